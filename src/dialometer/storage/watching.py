"""Looking at a running study without holding it up: narrow columns, and no objects that nobody needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, insert, select

from dialometer.model.scale import Value
from dialometer.model.session import Answer, Judgment, Source, State
from dialometer.storage.database import Database
from dialometer.storage.desk_schema import looks
from dialometer.storage.reading import is_current, query
from dialometer.storage.rows import answer_from, judgment_from, to_json
from dialometer.storage.schema import (
    answers,
    chat_turns,
    controls,
    exclusions,
    findings,
    judgments,
    sessions,
    visits,
    withdrawals,
)

_MARKS = ("id", "ordinal", "state", "step", "cell", "source", "is_excluded")
_TIMES = ("started_at_ms", "last_seen_at_ms", "finished_at_ms")


@dataclass(frozen=True, slots=True)
class SessionMark:
    """What an overview needs to know of a session."""

    id: str
    ordinal: int
    state: State
    step: int
    cell: int
    source: Source
    is_excluded: bool
    started_at_ms: int
    last_seen_at_ms: int
    finished_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the results while data came in. ``seen`` are the numbers: label, value, low, high."""

    made_by: str
    n_judgments: int
    n_raters: int
    seen: Sequence[dict[str, Any]]
    at_ms: int


class Watching(Database):
    """What a dashboard asks again and again."""

    def pulse(self) -> str:
        """A short text that changes whenever something happened; cheap, so that pages can ask often."""
        tops: list[Select[Any]] = [select(func.max(table.c.id)) for table in (visits, judgments, answers)]
        tops += [select(func.max(table.c.id)) for table in (findings, exclusions, controls)]
        tops += [select(func.max(sessions.c.ordinal)), select(func.count()).select_from(withdrawals)]
        by_state = select(sessions.c.state, func.count()).group_by(sessions.c.state).order_by(sessions.c.state)
        with self.reading() as connection:
            numbers = [str(connection.scalar(top) or 0) for top in tops]
            numbers += [f"{state}{n}" for state, n in connection.execute(by_state)]
        return "-".join(numbers)

    def session_marks(self) -> list[SessionMark]:
        """All sessions in the order of arrival."""
        columns = [sessions.c[name] for name in (*_MARKS, *_TIMES)]
        with self.reading() as connection:
            return [SessionMark(*row) for row in connection.execute(select(*columns).order_by(sessions.c.ordinal))]

    def session_id_of(self, ordinal: int) -> str | None:
        """The session of that number, or None."""
        if not 0 < ordinal < 2**31:
            return None
        with self.reading() as connection:
            found: str | None = connection.scalar(select(sessions.c.id).where(sessions.c.ordinal == ordinal))
        return found

    def n_judgments(self) -> int:
        """How many judgments are stored, practice and replaced ones included."""
        with self.reading() as connection:
            return connection.scalar(select(func.count()).select_from(judgments)) or 0

    def n_judgments_by_session(self) -> dict[str, int]:
        """Judgments of each session that has any."""
        by_session = select(judgments.c.session_id, func.count()).group_by(judgments.c.session_id)
        with self.reading() as connection:
            return dict(connection.execute(by_session).all())

    def screen_times(self, n_newest: int) -> list[tuple[str, float]]:
        """Screen and seconds of the newest visits."""
        columns = (visits.c.screen, visits.c.shown_at_ms, visits.c.submitted_at_ms)
        newest = select(*columns).order_by(visits.c.id.desc()).limit(n_newest)
        with self.reading() as connection:
            return [(screen, (end - start) / 1000) for screen, start, end in connection.execute(newest)]

    def value_counts(self, source: Source) -> list[tuple[str, str, str, int, Value, int]]:
        """Item, criterion, system, turn, answer and how often it was given, of sessions of one source that count.

        The database counts, so that a million judgments are a few thousand rows here. Free texts are left out.
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
                judgments.c.scale != "text",
                is_current(judgments),
            )
            .group_by(*key)
        )
        with self.reading() as connection:
            return [(*row[:4], json.loads(row[4]), row[5]) for row in connection.execute(counted)]

    def judgments_on(self, item_id: str) -> list[Judgment]:
        """All judgments on one item, replaced ones left out."""
        with self.reading() as connection:
            rows = connection.execute(query(judgments).where(judgments.c.item_id == item_id))
            return [judgment_from(row) for row in rows]

    def written_judgments(self) -> list[Judgment]:
        """Judgments that are free text."""
        with self.reading() as connection:
            rows = connection.execute(query(judgments).where(judgments.c.scale == "text"))
            return [judgment_from(row) for row in rows]

    def answers_to(self, questions: Sequence[str]) -> list[Answer]:
        """Answers to these questions."""
        with self.reading() as connection:
            rows = connection.execute(query(answers).where(answers.c.question.in_(list(questions))))
            return [answer_from(row) for row in rows]

    def chats_on(self, item_id: str) -> list[tuple[str, int]]:
        """Sessions that talked about one item, with how many turns there were."""
        counted = (
            select(chat_turns.c.session_id, func.count())
            .where(chat_turns.c.item_id == item_id)
            .group_by(chat_turns.c.session_id)
        )
        with self.reading() as connection:
            return [(session_id, n) for session_id, n in connection.execute(counted)]

    # looking at results

    def note_look(self, look: Look) -> None:
        """Keep that somebody looked, and what there was to see."""
        row = {
            "made_by": look.made_by,
            "n_judgments": look.n_judgments,
            "n_raters": look.n_raters,
            "seen": to_json(list(look.seen)),
            "at_ms": look.at_ms,
        }
        with self.writing() as connection:
            connection.execute(insert(looks), row)

    def looks(self) -> list[Look]:
        """All looks, the oldest first."""
        with self.reading() as connection:
            rows = connection.execute(select(looks).order_by(looks.c.id))
            return [Look(r.made_by, r.n_judgments, r.n_raters, json.loads(r.seen), r.at_ms) for r in rows]
