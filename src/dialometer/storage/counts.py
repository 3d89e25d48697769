"""How many sessions, raters and judgments there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, case, func, select

from dialometer.model.scale import Value
from dialometer.model.session import Source, State
from dialometer.storage.database import StorePart
from dialometer.storage.records import is_current
from dialometer.storage.schema import (
    answers,
    controls,
    exclusions,
    findings,
    judgments,
    sessions,
    slots,
    visits,
    withdrawals,
)


class Counts(StorePart):
    """Every count of a study."""

    def session_counts(self, *, source: Source | None = None) -> dict[tuple[int, State], int]:
        """How many sessions there are by cell and state, excluded ones included."""
        query = select(sessions.c.cell, sessions.c.state, func.count()).group_by(sessions.c.cell, sessions.c.state)
        if source is not None:
            query = query.where(sessions.c.source == source)
        with self.database.reading() as connection:
            return {(cell, state): n for cell, state, n in connection.execute(query)}

    def item_counts(self, *, source: Source | None = None) -> dict[tuple[int, str], dict[str, int]]:
        """By cell and item, how many places are ``reserved``, ``done`` and ``released``."""
        is_done = slots.c.done_at_ms.is_not(None)
        state = case((slots.c.is_released, "released"), (is_done, "done"), else_="reserved").label("place")
        columns = (slots.c.cell, slots.c.item_id, state)
        query = select(*columns, func.count()).group_by(slots.c.cell, slots.c.item_id, "place")
        if source is not None:
            query = query.where(slots.c.source == source)
        counts: dict[tuple[int, str], dict[str, int]] = {}
        with self.database.reading() as connection:
            for cell, item, state, n in connection.execute(query):
                counts.setdefault((cell, item), {"reserved": 0, "done": 0, "released": 0})[state] = n
        return counts

    def n_judgments(self) -> int:
        """How many judgments are stored, practice and replaced ones included."""
        with self.database.reading() as connection:
            return connection.scalar(select(func.count()).select_from(judgments)) or 0

    def n_judgments_by_session(self) -> dict[str, int]:
        """Judgments of each session that has any."""
        by_session = select(judgments.c.session_id, func.count()).group_by(judgments.c.session_id)
        with self.database.reading() as connection:
            return dict(connection.execute(by_session).all())

    def value_counts(
        self, source: Source, *, without: Sequence[str] = ()
    ) -> list[tuple[str, str, str, int, Value, int]]:
        """Item, criterion, system, turn, answer and how often it was given, of sessions of one source that count.

        The database counts, so that a million judgments are a few thousand rows here. Scales of the types ``without`` are
        left out.
        """
        key = (judgments.c.item_id, judgments.c.criterion, judgments.c.system, judgments.c.turn, judgments.c.value)
        counted = (
            select(*key, func.count())
            .join(sessions, sessions.c.id == judgments.c.session_id)
            .where(
                sessions.c.source == source,
                sessions.c.is_excluded.is_(False),
                sessions.c.state.in_(("active", "completed", "stale")),
                judgments.c.is_practice.is_(False),
                judgments.c.scale.not_in(list(without)),
                is_current(judgments),
            )
            .group_by(*key)
        )
        with self.database.reading() as connection:
            return [(*row[:4], json.loads(row[4]), row[5]) for row in connection.execute(counted)]

    def pulse(self) -> str:
        """A short text that changes whenever something happened; cheap, so that pages can ask often."""
        tops: list[Select[Any]] = [select(func.max(table.c.id)) for table in (visits, judgments, answers)]
        tops += [select(func.max(table.c.id)) for table in (findings, exclusions, controls)]
        tops += [select(func.max(sessions.c.ordinal)), select(func.count()).select_from(withdrawals)]
        by_state = select(sessions.c.state, func.count()).group_by(sessions.c.state).order_by(sessions.c.state)
        with self.database.reading() as connection:
            numbers = [str(connection.scalar(top) or 0) for top in tops]
            numbers += [f"{state}{n}" for state, n in connection.execute(by_state)]
        return "-".join(numbers)
