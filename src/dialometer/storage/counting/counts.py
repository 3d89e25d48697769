"""The one place where raters, sessions and judgments are counted, and where it is said what counts.

**Judgment.** One answer to one criterion about one item (and system, and turn). An answer that a correction has replaced is no
judgment any more; the correction is. An answer on a practice item is a *practice judgment* and never a judgment. Gold items
are items like others: their judgments are judgments.

**Judgment that counts.** A judgment of a session that counts. Reports are about these.

**Session that counts.** One that is not excluded and was neither screened out, declined nor withdrawn. Sessions under way and
sessions that were left (stale) count with what they hold.

**Rater.** Who takes part in a session. A person has one session; only imports can give one rater several. A session that was
withdrawn or declined has lost its rater and stays a session.

**Rater of an item.** A rater with at least one judgment that counts on it.

**Source.** People, simulated raters, models and imported raters are never mixed unless somebody asks for it: what is shown is of
people, imported ones included, or, where there are none, of simulated raters, or else of models (:func:`main_sources`).
Adjudicators settle what raters disagree about and are never among the raters.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sqlalchemy import ColumnElement, Select, and_, case, distinct, func, select

from dialometer.model.scale import Value
from dialometer.model.session import ADJUDICATORS, Source, State
from dialometer.storage.counting.tally import N_PER_BITE, JudgmentTally
from dialometer.storage.database import Database, StorePart
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

PAUSE_S = 0.02
"""Between bites of judgments that are read before anybody asks for them."""
OUTSIDE_STATES: tuple[State, ...] = ("screened_out", "declined", "withdrawn")
"""Sessions in these states do not count."""
SOURCES: tuple[Source, ...] = ("person", "imported", "simulated", "model", *ADJUDICATORS)
PEOPLE: tuple[Source, ...] = ("person", "imported")
Group = Literal["people", "simulated", "models"]
GROUPS: Mapping[Group, tuple[Source, ...]] = {"people": PEOPLE, "simulated": ("simulated",), "models": ("model",)}
"""Sources that are counted together. No figure is about more than one group."""

SESSION_COUNTS: ColumnElement[bool] = and_(sessions.c.is_excluded.is_(False), sessions.c.state.not_in(OUTSIDE_STATES))
IS_JUDGMENT: ColumnElement[bool] = and_(judgments.c.is_practice.is_(False), is_current(judgments))


class CountedSession(Protocol):
    """What must be known of a session to count it."""

    @property
    def state(self) -> State: ...
    @property
    def is_excluded(self) -> bool: ...
    @property
    def source(self) -> Source: ...


def does_count(session: CountedSession) -> bool:
    """Whether a session's judgments count."""
    return not session.is_excluded and session.state not in OUTSIDE_STATES


def main_sources(present: Collection[str]) -> tuple[Source, ...]:
    """The sources that numbers and reports are about when nobody asks for others."""
    people = tuple(source for source in PEOPLE if source in present)
    programs: tuple[Source, ...] = ("simulated", "model")
    return people or next(((source,) for source in programs if source in present), PEOPLE)


def groups_of(present: Collection[str]) -> list[Group]:
    """The groups of which there are sessions, people first."""
    return [group for group, sources in GROUPS.items() if any(source in present for source in sources)]


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """Sessions by what became of them. Excluded ones are counted under their state as well, withdrawn ones only there."""

    arrived: int
    active: int
    finished: int
    screened_out: int
    declined: int
    left: int
    withdrawn: int
    excluded: int
    valid: int
    """Finished and not excluded."""


def count_sessions(of: Iterable[CountedSession]) -> SessionCounts:
    """Sessions by what became of them."""
    all_sessions = list(of)
    states = Counter(session.state for session in all_sessions)
    return SessionCounts(
        arrived=len(all_sessions),
        active=states["active"],
        finished=states["completed"],
        screened_out=states["screened_out"],
        declined=states["declined"],
        left=states["stale"],
        withdrawn=states["withdrawn"],
        excluded=sum(session.is_excluded and session.state != "withdrawn" for session in all_sessions),
        valid=sum(session.state == "completed" and not session.is_excluded for session in all_sessions),
    )


@dataclass(frozen=True, slots=True)
class JudgmentCounts:
    """Judgments, those of them that count, and apart from them practice judgments."""

    judgments: int = 0
    counted: int = 0
    practice: int = 0

    @property
    def not_counted(self) -> int:
        """Judgments of sessions that are excluded or were screened out."""
        return self.judgments - self.counted

    def __add__(self, other: JudgmentCounts) -> JudgmentCounts:
        return JudgmentCounts(
            self.judgments + other.judgments, self.counted + other.counted, self.practice + other.practice
        )

    def __str__(self) -> str:
        practice = f" and {_n_of(self.practice, 'practice judgment')}" if self.practice else ""
        return f"{_n_of(self.judgments, 'judgment')}{practice}"


def _n_of(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


class Counts(StorePart):
    """Every count of a study."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._tally = JudgmentTally(database)

    def read_ahead(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Read the judgments of a study before anybody asks, a few at a time, so that the first look at it is quick.

        Meant for a thread of its own: between two bites others have their turn, and a look that comes meanwhile goes on
        from what is read.
        """
        most = (
            N_PER_BITE if self.database.is_sqlite else 10 * N_PER_BITE
        )  # there each bite looks back at those before it
        n_before = -1
        while not is_over() and len(self._tally.ids) > n_before:
            n_before = len(self._tally.ids)
            with self._tally.lock, self.database.reading() as connection:
                self._tally.catch_up(connection, most=most)
            time.sleep(PAUSE_S)

    def session_counts(self, *, source: Source | None = None) -> dict[tuple[int, State], int]:
        """How many sessions there are by cell and state, excluded ones included."""
        query = select(sessions.c.cell, sessions.c.state, func.count()).group_by(sessions.c.cell, sessions.c.state)
        if source is not None:
            query = query.where(sessions.c.source == source)
        with self.database.reading() as connection:
            return {(cell, state): n for cell, state, n in connection.execute(query)}

    def judgments_by_source(self) -> dict[Source, JudgmentCounts]:
        """Judgments of each source that has sessions."""
        of_source = {source: JudgmentCounts() for source in SOURCES}
        present = set()
        of_session = self.judgments_by_session()
        query = select(sessions.c.id, sessions.c.source)
        with self.database.reading() as connection:
            for session_id, source in connection.execute(query):
                present.add(source)
                of_source[source] += of_session.get(session_id, JudgmentCounts())
        return {source: counts for source, counts in of_source.items() if source in present}

    def judgments_by_session(self, session_id: str | None = None) -> dict[str, JudgmentCounts]:
        """Judgments of each session that has any, or of one session."""
        if session_id is not None:
            return self._judgments_of(session_id)
        tally = self._tally
        with tally.lock, self.database.reading() as connection:
            tally.catch_up(connection)
            facts = tally.facts(connection, SESSION_COUNTS, None)
            return {
                session: JudgmentCounts(real, real if facts.is_counted[tally.sessions.of[session]] else 0, practice)
                for session, (real, practice) in tally.by_session().items()
                if not facts.is_erased[tally.sessions.of[session]]
            }

    def _judgments_of(self, session_id: str) -> dict[str, JudgmentCounts]:
        rows = (
            select(judgments.c.is_practice, func.count())
            .where(judgments.c.session_id == session_id, is_current(judgments))
            .group_by(judgments.c.is_practice)
        )
        with self.database.reading() as connection:
            by_kind: dict[bool, int] = dict(connection.execute(rows).all())
            counts = connection.scalar(select(sessions.c.id).where(sessions.c.id == session_id, SESSION_COUNTS))
        n = by_kind.get(False, 0)
        return {session_id: JudgmentCounts(n, n if counts else 0, by_kind.get(True, 0))} if by_kind else {}

    def raters_by_item(self, sources: Sequence[Source], item_id: str | None = None) -> dict[str, int]:
        """Raters of each item that has any, or of one item."""
        if item_id is not None:
            return self._raters_of(sources, item_id)
        tally = self._tally
        with tally.lock, self.database.reading() as connection:
            tally.catch_up(connection)
            return tally.raters_by_item(tally.facts(connection, SESSION_COUNTS, sources))

    def _raters_of(self, sources: Sequence[Source], item_id: str) -> dict[str, int]:
        rater = func.coalesce(sessions.c.rater_id, sessions.c.id)
        query = (
            select(judgments.c.item_id, func.count(distinct(rater)))
            .join(sessions, sessions.c.id == judgments.c.session_id)
            .where(sessions.c.source.in_(sources), SESSION_COUNTS, IS_JUDGMENT, judgments.c.item_id == item_id)
            .group_by(judgments.c.item_id)
        )
        with self.database.reading() as connection:
            return dict(connection.execute(query).all())

    def reserved_by_item(self, sources: Sequence[Source]) -> dict[str, int]:
        """Slots that raters who are under way have not used yet. Others have released theirs, so only theirs are looked at."""
        query = (
            select(slots.c.item_id, func.count())
            .join(sessions, sessions.c.id == slots.c.session_id)
            .where(sessions.c.state == "active", sessions.c.source.in_(sources))
            .where(slots.c.is_released.is_(False), slots.c.done_at_ms.is_(None))
            .group_by(slots.c.item_id)
        )
        with self.database.reading() as connection:
            return dict(connection.execute(query).all())

    def item_counts(self, *, sources: Sequence[Source] | None = None) -> dict[tuple[int, str], dict[str, int]]:
        """By cell and item, how many slots are ``reserved``, ``done`` and ``released``: what assignment works with."""
        is_done = slots.c.done_at_ms.is_not(None)
        state = case((slots.c.is_released, "released"), (is_done, "done"), else_="reserved").label("place")
        columns = (slots.c.cell, slots.c.item_id, state)
        query = select(*columns, func.count()).group_by(slots.c.cell, slots.c.item_id, "place")
        if sources is not None:
            query = query.where(slots.c.source.in_(sources))
        counts: dict[tuple[int, str], dict[str, int]] = {}
        with self.database.reading() as connection:
            for cell, item, state, n in connection.execute(query):
                counts.setdefault((cell, item), {"reserved": 0, "done": 0, "released": 0})[state] = n
        return counts

    def value_counts(
        self, sources: Sequence[Source], *, without: Sequence[str] = ()
    ) -> list[tuple[str, str, str, int, Value, int]]:
        """Item, criterion, system, turn, answer and how often it was given, of judgments of these sources that count.

        A million judgments are a few thousand rows here. Scales of the types ``without`` are left out.
        """
        tally = self._tally
        with tally.lock, self.database.reading() as connection:
            tally.catch_up(connection)
            return tally.value_counts(tally.facts(connection, SESSION_COUNTS, sources), without)

    def groups(self) -> list[Group]:
        """The groups of raters of which there are sessions."""
        with self.database.reading() as connection:
            return groups_of(connection.scalars(select(sessions.c.source).distinct()).all())

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
