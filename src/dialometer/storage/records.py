"""What sessions left: judgments, answers, visits and flags, with corrections applied unless asked otherwise.

Long results come as a stream, and all judgments also as columns: a million rows without a million objects. What judgments
take from their session is looked up by polars, column by column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import polars as pl
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    CursorResult,
    Integer,
    Row,
    Select,
    Table,
    bindparam,
    exists,
    func,
    select,
    type_coerce,
)

from dialometer.model.quality import Finding
from dialometer.model.scale import Value
from dialometer.model.session import ERASED_STATES, Answer, Judgment, PairVotes, ScreenVisit, SessionRecord, Source
from dialometer.storage import schema
from dialometer.storage.database import StorePart
from dialometer.storage.rows import answer_from, judgment_from, mapping_from_json, visit_from
from dialometer.storage.schema import NO_TURN, answers, judgments, sessions, visits
from dialometer.storage.sessions import rater_numbers

T = TypeVar("T")
N_PER_FETCH = 2000
Columns = Mapping[str, Sequence[Any] | pl.Series]
N_PER_BITE = 500

OF_JUDGMENT = [column.name for column in judgments.columns]
TRUTHS = [column.name for column in judgments.columns if isinstance(column.type, Boolean)]
# Truth values are read as they are and turned at the end, a column at a time.
PLAIN = [type_coerce(column, Integer) if column.name in TRUTHS else column for column in judgments.columns]
OF_SESSION = ("rater_id", "ordinal", "cell", "condition", "source", "state", "is_excluded", "study_version")
RATER_NUMBER = "rater_number"
# Asked for every page of a rater: a statement that is made once has its compiled text looked up at once.
_LATEST_FIRST = (
    select(visits.c.screen, visits.c.shown_at_ms, visits.c.submitted_at_ms)
    .where(visits.c.session_id == bindparam("of_session"))
    .order_by(visits.c.id.desc())
)


@dataclass(frozen=True, slots=True)
class LoggedFinding:
    """A finding, whose it is and when it was made."""

    session_id: str
    finding: Finding
    at_ms: int


class Records(StorePart):
    """What sessions left, in the order in which it was written. Without ``session_id`` it is that of all sessions."""

    def of_session(self, session_id: str) -> SessionRecord:
        """All that one session has left so far, from one moment."""
        with self.database.reading() as connection:
            return SessionRecord(
                judgments=[judgment_from(row) for row in connection.execute(query(schema.judgments, session_id))],
                answers=[answer_from(row) for row in connection.execute(query(schema.answers, session_id))],
                visits=[visit_from(row) for row in connection.execute(query(schema.visits, session_id))],
            )

    def judgments(self, session_id: str | None = None, *, include_corrected: bool = False) -> Iterator[Judgment]:
        """Judgments; with ``include_corrected`` also those that a correction has replaced."""
        return self._rows(schema.judgments, judgment_from, session_id, include_corrected)

    def answers(self, session_id: str | None = None, *, include_corrected: bool = False) -> Iterator[Answer]:
        """Answers to questionnaires and checks; with ``include_corrected`` also the replaced ones."""
        return self._rows(schema.answers, answer_from, session_id, include_corrected)

    def visits(self, session_id: str | None = None) -> Iterator[ScreenVisit]:
        """How screens were used."""
        return self._rows(schema.visits, visit_from, session_id)

    def findings(self, session_id: str | None = None) -> Iterator[LoggedFinding]:
        """What quality rules found."""

        def finding(row: Row[Any]) -> LoggedFinding:
            content = Finding(row.rule, row.action, row.reason, mapping_from_json(row.details))
            return LoggedFinding(row.session_id, content, row.at_ms)

        return self._rows(schema.findings, finding, session_id)

    def judgments_on(self, item_id: str) -> list[Judgment]:
        """All judgments on one item, replaced ones left out."""
        with self.database.reading() as connection:
            rows = connection.execute(query(judgments).where(judgments.c.item_id == item_id))
            return [judgment_from(row) for row in rows]

    def numbered(self, numbers: Sequence[int]) -> list[Judgment]:
        """The judgments of these numbers, whether or not one was corrected since; erased ones are missing."""
        with self.database.reading() as connection:
            rows = connection.execute(query(judgments, include_corrected=True).where(judgments.c.id.in_(numbers)))
            return [judgment_from(row) for row in rows]

    def judgments_on_scales(self, types: Sequence[str]) -> list[Judgment]:
        """Judgments on scales of these types."""
        with self.database.reading() as connection:
            rows = connection.execute(query(judgments).where(judgments.c.scale.in_(list(types))))
            return [judgment_from(row) for row in rows]

    def answers_to(self, questions: Sequence[str]) -> list[Answer]:
        """Answers to these questions."""
        with self.database.reading() as connection:
            rows = connection.execute(query(answers).where(answers.c.question.in_(list(questions))))
            return [answer_from(row) for row in rows]

    def screen_times(self, n_newest: int, sources: Sequence[Source]) -> list[tuple[str, float]]:
        """Screen and seconds of the newest visits of raters of these sources."""
        columns = (visits.c.screen, visits.c.shown_at_ms, visits.c.submitted_at_ms)
        # Asked of each visit from the newest back, not joined: a join may begin with the sessions and sort all their visits.
        source = select(sessions.c.source).where(sessions.c.id == visits.c.session_id).scalar_subquery()
        newest = select(*columns).where(source.in_(sources)).order_by(visits.c.id.desc()).limit(n_newest)
        with self.database.reading() as connection:
            return [(screen, (end - start) / 1000) for screen, start, end in connection.execute(newest)]

    def seconds_on_screens(self, session_id: str) -> dict[str, float]:
        """How long a session stayed on each screen when it was first sent."""
        with self.database.reading() as connection:
            rows = connection.execute(_LATEST_FIRST, {"of_session": session_id}).all()
        return {screen: (end - start) / 1000 for screen, start, end in rows}

    def pair_votes(self, criterion: str, source: Source) -> dict[tuple[str, str], PairVotes]:
        """How the votes on a question stand between every two systems, by their names in order; a vote may be for neither."""
        tally: dict[tuple[str, str], list[int]] = {}
        for order, value, n in self._counted(judgments.c.order, criterion, source):
            shown = json.loads(order) if order else []
            if len(shown) != 2:
                continue
            counts = tally.setdefault((shown[0], shown[1]), [0, 0, 0])
            counts[shown.index(value) if value in shown else 2] += n
        return _both_orders(tally)

    def rating_counts(self, criterion: str, source: Source) -> list[tuple[str, Value, int]]:
        """How often every system got every value on a criterion."""
        return self._counted(judgments.c.system, criterion, source)

    def _counted(self, about: Column[str], criterion: str, source: Source) -> list[tuple[str, Value, int]]:
        """How often each value was given, by another column; of raters who count."""
        chosen = (
            select(about, judgments.c.value, func.count())
            .join(sessions, sessions.c.id == judgments.c.session_id)
            .where(judgments.c.criterion == criterion, ~judgments.c.is_practice, sessions.c.source == source)
            .where(~sessions.c.is_excluded, sessions.c.state.not_in(ERASED_STATES), is_current(judgments))
            .group_by(about, judgments.c.value)
        )
        with self.database.reading() as connection:
            return [(key, json.loads(value), n) for key, value, n in connection.execute(chosen)]

    # judgments as columns

    def judgment_batches(self, *, include_corrected: bool = False, n_rows: int = 20_000) -> Iterator[Columns]:
        """All judgments, a part at a time in the order of writing, as one list per column, joined with their sessions.

        The columns are those of a judgment and ``rater_id``, ``ordinal``, ``cell``, ``condition``, ``source``, ``state``,
        ``is_excluded`` and ``study_version`` of its session, and ``rater_number``: the ordinal of the rater's first
        session, the same in all sessions of one person. ``value``, ``condition`` and (where not empty)
        ``order`` are JSON texts as stored; ``turn`` is None where there is none.
        """
        rows = select(*PLAIN).order_by(judgments.c.id)
        with self.database.reading_all() as connection:
            if not include_corrected and has_corrections(connection, judgments):
                rows = rows.where(is_current(judgments))
            known = connection.execute(select(sessions.c.id, *(sessions.c[name] for name in OF_SESSION))).all()
            place_of = {row[0]: place for place, row in enumerate(known)}
            of_session = {
                name: pl.Series(name, [row[place] for row in known], dtype=None if known else pl.Null)
                for place, name in enumerate(OF_SESSION, start=1)
            }
            numbers = rater_numbers((row[0], row.rater_id, row.ordinal) for row in known)
            of_session[RATER_NUMBER] = pl.Series(RATER_NUMBER, [numbers[row[0]] for row in known], dtype=pl.Int64)
            # SQLite hands rows out one by one anyway; PostgreSQL has to be asked not to send them all.
            options = {} if self.database.is_sqlite else {"yield_per": N_PER_BITE}
            with connection.execution_options(**options).execute(rows) as result:
                for batch in _transposed(result, n_rows):
                    places = pl.Series(map(place_of.__getitem__, batch["session_id"]), dtype=pl.UInt32)
                    yield {**batch, **{name: values.gather(places) for name, values in of_session.items()}}

    def _rows(
        self,
        table: Table,
        convert: Callable[[Row[Any]], T],
        session_id: str | None = None,
        include_corrected: bool = False,
    ) -> Iterator[T]:
        """The rows of one session read at once, since a rater may be waiting; those of all sessions as a stream."""
        rows = query(table, session_id, include_corrected)
        if session_id is not None:
            with self.database.reading() as connection:
                of_session = connection.execute(rows).all()
            yield from map(convert, of_session)
            return
        # The result is closed by name, so that a stream that is left early gives its cursor back as well.
        with (
            self.database.reading_all() as connection,
            connection.execution_options(yield_per=N_PER_FETCH).execute(rows) as result,
        ):
            yield from map(convert, result)


def _both_orders(tally: Mapping[tuple[str, str], list[int]]) -> dict[tuple[str, str], PairVotes]:
    """Votes of either order on the screen together, under both orders of the names."""
    votes = {}
    for a, b in {*tally, *((b, a) for a, b in tally)}:
        left, right = tally.get((a, b), [0, 0, 0]), tally.get((b, a), [0, 0, 0])
        votes[a, b] = PairVotes(left[0] + right[1], left[1] + right[0], left[2] + right[2])
    return votes


def query(table: Table, session_id: str | None = None, include_corrected: bool = False) -> Select[Any]:
    """The rows of a table in the order they were written, without replaced ones where the table has such."""
    rows = select(table).order_by(table.c.id)
    if session_id is not None:
        rows = rows.where(table.c.session_id == session_id)
    if "replaces" in table.c and not include_corrected:
        rows = rows.where(is_current(table))
    return rows


@lru_cache
def is_current(table: Table) -> Any:
    """Whether no correction has replaced a row."""
    correction = table.alias("correction")
    return ~exists().where(correction.c.replaces == table.c.id)


def has_corrections(connection: Connection, table: Table) -> bool:
    """Whether any row is a correction; where none is, no row needs to be looked up among them."""
    return connection.execute(select(table.c.id).where(table.c.replaces.is_not(None)).limit(1)).first() is not None


def _transposed(result: CursorResult[Any], n_rows: int) -> Iterator[dict[str, list[Any]]]:
    """Rows turned into columns, in bites small enough for the processor's cache: it matters at a million rows."""
    is_over = False
    while not is_over:
        batch: dict[str, list[Any]] = {name: [] for name in OF_JUDGMENT}
        while len(batch["id"]) < n_rows:
            bite = result.fetchmany(min(N_PER_BITE, n_rows - len(batch["id"])))
            if not bite:
                is_over = True
                break
            for name, values in zip(OF_JUDGMENT, zip(*bite, strict=True), strict=True):
                batch[name].extend(values)
        if batch["id"]:
            batch["turn"] = [None if turn == NO_TURN else turn for turn in batch["turn"]]
            for name in TRUTHS:
                batch[name] = list(map(bool, batch[name]))
            yield batch
