"""Judgments as columns for analysis: a million rows without a million objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Boolean, CursorResult, Integer, select, type_coerce

from dialometer.storage.database import Database
from dialometer.storage.reading import is_current
from dialometer.storage.schema import NO_TURN, judgments, sessions
from dialometer.storage.sessions import rater_numbers

Columns = dict[str, list[Any]]
N_PER_FETCH = 500
N_SHARED = 200_000

OF_JUDGMENT = [column.name for column in judgments.columns]
TRUTHS = [column.name for column in judgments.columns if isinstance(column.type, Boolean)]
# Truth values are read as they are and turned at the end, a column at a time.
PLAIN = [type_coerce(column, Integer) if column.name in TRUTHS else column for column in judgments.columns]
OF_SESSION = ("rater_id", "ordinal", "cell", "condition", "source", "state", "is_excluded", "study_version")
RATER_NUMBER = "rater_number"
SHARED = frozenset(
    ("session_id", "item_id", "criterion", "system", "value", "scale", "block", "order", "corrected_by", "reason")
)
"""Texts that repeat: each distinct one is kept once."""


class Columnar(Database):
    """The fast way out for everything that was judged."""

    def judgment_columns(self, *, include_corrected: bool = False) -> Columns:
        """All judgments as one list per column, joined with their sessions; empty lists where there are none.

        The columns are those of a judgment and ``rater_id``, ``ordinal``, ``cell``, ``condition``, ``source``, ``state``,
        ``is_excluded`` and ``study_version`` of its session, and ``rater_number``: the ordinal of the rater's first
        session, the same in all sessions of one person. ``value``, ``condition`` and (where not empty)
        ``order`` are JSON texts as stored; ``turn`` is None where there is none.
        """
        columns: Columns = {name: [] for name in (*OF_JUDGMENT, *OF_SESSION, RATER_NUMBER)}
        for batch in self.judgment_batches(include_corrected=include_corrected):
            for name, values in batch.items():
                columns[name] += values
        return columns

    def judgment_batches(self, *, include_corrected: bool = False, n_rows: int = 50_000) -> Iterator[Columns]:
        """The same, a part at a time in the order of writing, for what does not fit into memory."""
        rows = select(*PLAIN).order_by(judgments.c.id)
        if not include_corrected:
            rows = rows.where(is_current(judgments))
        with self.reading() as connection:
            known = connection.execute(select(sessions.c.id, *(sessions.c[name] for name in OF_SESSION))).all()
            of_session = {name: {row[0]: row[place] for row in known} for place, name in enumerate(OF_SESSION, start=1)}
            of_session[RATER_NUMBER] = rater_numbers((row[0], row.rater_id, row.ordinal) for row in known)
            with connection.execution_options(yield_per=N_PER_FETCH).execute(rows) as result:
                for batch in _transposed(result, n_rows):
                    for name, values in of_session.items():
                        batch[name] = list(map(values.__getitem__, batch["session_id"]))
                    yield batch


def _transposed(result: CursorResult[Any], n_rows: int) -> Iterator[Columns]:
    """Rows turned into columns, in bites small enough for the processor's cache: it matters at a million rows."""
    shared: dict[str, str] = {}
    is_over = False
    while not is_over:
        batch: Columns = {name: [] for name in OF_JUDGMENT}
        while len(batch["id"]) < n_rows:
            bite = result.fetchmany(min(N_PER_FETCH, n_rows - len(batch["id"])))
            if not bite:
                is_over = True
                break
            for name, values in zip(OF_JUDGMENT, zip(*bite, strict=True), strict=True):
                batch[name].extend(map(shared.setdefault, values, values) if name in SHARED else values)
        if len(shared) > N_SHARED:  # free texts hardly repeat; keeping them all would hold the whole table
            shared.clear()
        if batch["id"]:
            batch["turn"] = [None if turn == NO_TURN else turn for turn in batch["turn"]]
            for name in TRUTHS:
                batch[name] = list(map(bool, batch[name]))
            yield batch
