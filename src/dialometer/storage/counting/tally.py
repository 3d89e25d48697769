"""All judgments of a study as small whole numbers in memory, so that a dashboard counts a million of them in a moment.

Judgments are only ever added, so each look reads what came since the last one: a server reads a study once and then follows
it. What can change about a judgment is known elsewhere: whether its session counts (read anew at each look), and whether a
correction has replaced it (the correction is a later row that names it).

On SQLite rows become visible in the order of their numbers. On PostgreSQL a slow writer's rows may appear behind later ones;
there, rows of the last minute are read again at the next look, and everything after an import.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sqlalchemy import Connection, Integer, func, select, type_coerce

from dialometer.model.scale import Value
from dialometer.stats.observations import codes
from dialometer.storage.database import Database
from dialometer.storage.schema import imports, judgments, sessions

N_PER_BITE = 20_000
SETTLED_AFTER_S = 60.0
_ROWS = select(
    judgments.c.id,
    judgments.c.session_id,
    judgments.c.item_id,
    judgments.c.criterion,
    judgments.c.system,
    judgments.c.turn,
    judgments.c.scale,
    judgments.c.value,
    type_coerce(judgments.c.is_practice, Integer),
    judgments.c.replaces,
).order_by(judgments.c.id)
Ints = NDArray[np.int64]


@dataclass(slots=True)
class _Codes:
    """Whole numbers for what repeats."""

    of: dict[Any, int] = field(default_factory=dict)

    def one(self, value: Any) -> int:
        return self.of.setdefault(value, len(self.of))

    def all(self, rows: pl.DataFrame) -> NDArray[np.int32]:
        """The number of each row; each distinct row is looked up once."""
        distinct = rows.unique()
        keys = distinct.to_series().to_list() if rows.width == 1 else distinct.rows()
        known = distinct.with_columns(pl.Series("code", map(self.one, keys), dtype=pl.Int32))
        return rows.join(known, on=rows.columns, how="left", maintain_order="left")["code"].to_numpy()


@dataclass(frozen=True, slots=True)
class CountingFacts:
    """What decides whether a session's judgments count, by the tally's number of the session."""

    is_counted: NDArray[np.bool_]
    is_erased: NDArray[np.bool_]
    rater: Ints


def _frame(*columns: Sequence[Any]) -> pl.DataFrame:
    return pl.DataFrame({str(place): column for place, column in enumerate(columns)})


@dataclass(slots=True)
class JudgmentTally:
    """Judgments as columns of numbers. Safe to use from several threads."""

    database: Database
    sessions: _Codes = field(default_factory=_Codes)
    keys: _Codes = field(default_factory=_Codes)
    """Item, criterion, system, turn and scale type."""
    values: _Codes = field(default_factory=_Codes)
    ids: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    session: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    key: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    value: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    is_practice: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    is_current: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    lock: threading.Lock = field(default_factory=threading.Lock)
    _n_imports: int = 0
    _settled: list[tuple[float, int]] = field(default_factory=list)
    """When a look was made, and the newest row it saw."""

    def catch_up(self, connection: Connection, most: int | None = None) -> None:
        """Read what came since the last look, or the first ``most`` rows of it; the caller holds the lock."""
        self._forget(connection)
        last = int(self.ids[-1]) if len(self.ids) else 0
        options = {} if self.database.is_sqlite else {"yield_per": N_PER_BITE}
        rows = _ROWS.where(judgments.c.id > last).limit(most)
        with connection.execution_options(**options).execute(rows) as result:
            parts = []
            while bite := result.fetchmany(N_PER_BITE):
                parts.append(self._coded(bite))
        if not parts:
            return
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        replaced = columns.pop()
        self.ids, self.session, self.key, self.value, self.is_practice = (
            np.concatenate([old, new])
            for old, new in zip((self.ids, self.session, self.key, self.value, self.is_practice), columns, strict=True)
        )
        self.is_current = np.concatenate([self.is_current, np.ones(len(columns[0]), dtype=bool)])
        gone = replaced[replaced > 0]
        places = np.searchsorted(self.ids, gone)
        known = places < len(self.ids)
        known[known] = self.ids[places[known]] == gone[known]
        self.is_current[places[known]] = False

    def _coded(self, rows: Sequence[Any]) -> tuple[NDArray[Any], ...]:
        ids, session, *key, value, is_practice, replaces = zip(*rows, strict=True)
        return (
            np.array(ids, dtype=np.int64),
            self.sessions.all(_frame(session)),
            self.keys.all(_frame(*key)),
            self.values.all(_frame(value)),
            np.array(is_practice, dtype=bool),
            np.array([number or 0 for number in replaces], dtype=np.int64),
        )

    def _forget(self, connection: Connection) -> None:
        """Drop rows that may not yet have all their neighbours, so that they are read again."""
        if self.database.is_sqlite:
            return
        n_imports = connection.scalar(select(func.count()).select_from(imports)) or 0
        now = time.monotonic()
        settled = max((last for at, last in self._settled if now - at > SETTLED_AFTER_S), default=0)
        if n_imports != self._n_imports:
            settled, self._settled, self._n_imports = 0, [], n_imports
        n = int(np.searchsorted(self.ids, settled, side="right"))
        n = len(self.ids) if self._has_all_after(connection, n) else n
        for name in ("ids", "session", "key", "value", "is_practice", "is_current"):
            setattr(self, name, getattr(self, name)[:n])
        newest = connection.scalar(select(func.max(judgments.c.id))) or 0
        self._settled = [*[(at, last) for at, last in self._settled if last >= settled][-200:], (now, newest)]

    def _has_all_after(self, connection: Connection, n: int) -> bool:
        """Whether no row has appeared among, or gone from, those after the first ``n``: then none need be read again."""
        known = self.ids[n:]
        if not len(known):
            return True
        inside = judgments.c.id.between(int(known[0]), int(known[-1]))
        first = int(self.ids[n - 1]) + 1 if n else 0
        before = judgments.c.id.between(first, int(known[0]) - 1)
        totals = connection.execute(select(func.count(), func.sum(judgments.c.id)).where(inside)).one()
        is_same = (totals[0], int(totals[1] or 0)) == (len(known), int(known.sum()))
        return is_same and connection.execute(select(judgments.c.id).where(before).limit(1)).first() is None

    def facts(self, connection: Connection, counts: Any, sources: Sequence[str] | None) -> CountingFacts:
        """What is true of the sessions now; with ``sources``, only theirs count."""
        n = len(self.sessions.of)
        facts = CountingFacts(np.zeros(n, dtype=bool), np.ones(n, dtype=bool), np.zeros(n, dtype=np.int64))
        raters = _Codes()
        query = select(sessions.c.id, sessions.c.rater_id, sessions.c.source, type_coerce(counts, Integer))
        for session_id, rater, source, is_counted in connection.execute(query):
            place = self.sessions.of.get(session_id)
            if place is not None:
                facts.is_counted[place] = bool(is_counted) and (sources is None or source in sources)
                facts.is_erased[place] = rater is None
                facts.rater[place] = raters.of.setdefault(rater or session_id, len(raters.of))
        return facts

    def by_session(self) -> dict[str, tuple[int, int]]:
        """Judgments and practice judgments of each session."""
        n = len(self.sessions.of)
        practice, real = (
            np.bincount(self.session[self.is_current & chosen], minlength=n)
            for chosen in (self.is_practice, ~self.is_practice)
        )
        return {
            session: (int(real[place]), int(practice[place]))
            for session, place in self.sessions.of.items()
            if real[place] or practice[place]
        }

    def raters_by_item(self, facts: CountingFacts) -> dict[str, int]:
        """How many raters who count have judged each item."""
        used = self._counted(facts)
        items = _Codes()
        item_of_key = np.array([items.one(key[0]) for key in self.keys.of], dtype=np.int64)
        if not len(item_of_key):
            return {}
        n_raters = int(facts.rater.max(initial=0)) + 1
        _, pairs = codes(item_of_key[self.key[used]] * n_raters + facts.rater[self.session[used]])
        counts = np.bincount(pairs // n_raters, minlength=len(items.of))
        return {item: int(counts[place]) for item, place in items.of.items() if counts[place]}

    def value_counts(self, facts: CountingFacts, without: Sequence[str]) -> list[tuple[str, str, str, int, Value, int]]:
        """Item, criterion, system, turn, answer and how often raters who count gave it."""
        used = self._counted(facts)
        keys, texts = list(self.keys.of), list(self.values.of)
        left_out = np.array([key[4] in without for key in keys], dtype=bool)
        if not keys:
            return []
        chosen = used & ~left_out[self.key]
        pair_codes, pairs = codes(self.key[chosen].astype(np.int64) * len(texts) + self.value[chosen])
        counts = np.bincount(pair_codes, minlength=len(pairs))
        read = {code: json.loads(texts[code]) for code in np.unique(pairs % len(texts)).tolist()}
        return [
            (*keys[pair // len(texts)][:4], read[pair % len(texts)], n)
            for pair, n in zip(pairs.tolist(), counts.tolist(), strict=True)
        ]

    def _counted(self, facts: CountingFacts) -> NDArray[np.bool_]:
        is_used: NDArray[np.bool_] = self.is_current & ~self.is_practice & facts.is_counted[self.session]
        return is_used
