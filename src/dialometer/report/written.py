"""A table in words, before it has markup: every cell written, every remark collected, how the numbers came about.

HTML, Markdown and LaTeX all start from here, so the same number reads the same everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dialometer.model.estimate import SHUFFLES, Estimate
from dialometer.model.report import PERCENTAGE_POINTS, Cell, Column, Table
from dialometer.report.numbers import (
    NOT_ENOUGH,
    RATIO_UNITS,
    Written,
    shared_digits,
    write_confidence,
    write_estimate,
    write_number,
    write_p,
    write_percent,
)

Align = Literal["left", "right", "center"]
_ESTIMATE_KINDS = ("estimate", "percent_estimate")
_N_METHODS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class WrittenCell:
    """One cell: what it says, its footnote marks, and more about the number for who asks."""

    value: str
    interval: str = ""
    marks: tuple[str, ...] = ()
    is_known: bool = True
    more: str = ""

    @property
    def text(self) -> str:
        """Value and interval together."""
        return f"{self.value} {self.interval}" if self.interval else self.value


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's heading, where its cells are aligned, and the room its intervals need so that values line up."""

    label: str
    align: Align
    n_interval_chars: int = 0


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """The whole table in words. ``footnotes`` are (mark, text); ``remarks`` hold for the whole table."""

    headings: tuple[Heading, ...]
    rows: tuple[tuple[WrittenCell, ...], ...]
    footnotes: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    has_row_headings: bool


def write_table(table: Table) -> WrittenTable:
    """The table in words; corrected p-values that are those beside them, as of single tests, are not said twice."""
    table = _without_repeated_p(table)
    by_column = [[row[i] for row in table.rows] for i in range(len(table.columns))]
    digits = _digits(table.columns, by_column)
    writers = [
        _writer(column, n, _plain_digits(column, cells))
        for column, n, cells in zip(table.columns, digits, by_column, strict=True)
    ]
    written = [[write(cell) for write, cell in zip(writers, row, strict=True)] for row in table.rows]
    shown_notes = {_sentence(note) for note in table.notes}
    shared = _shared_notes(cell for row in table.rows for cell in row)
    marks: dict[str, str] = {}
    for row in written:
        for word in row:
            for note in word.notes:
                if note not in shared and _sentence(note) not in shown_notes:
                    marks.setdefault(note, mark_of(len(marks)))
    rows = tuple(
        tuple(
            WrittenCell(
                word.value,
                word.interval,
                tuple(mark for note, mark in marks.items() if note in word.notes),
                word.is_known,
                describe(cell) if isinstance(cell, Estimate) else "",
            )
            for word, cell in zip(words, row, strict=True)
        )
        for words, row in zip(written, table.rows, strict=True)
    )
    rooms = [max((len(words[i].interval) for words in written), default=0) for i in range(len(table.columns))]
    return WrittenTable(
        headings=tuple(
            Heading(heading_of(column), _align(column), room) for column, room in zip(table.columns, rooms, strict=True)
        ),
        rows=rows,
        footnotes=tuple((mark, note) for note, mark in marks.items()),
        remarks=(*dict.fromkeys((*table.notes, *map(_sentence, shared))), *_methods(table.columns, by_column)),
        has_row_headings=bool(table.columns) and table.columns[0].kind == "text",
    )


def _without_repeated_p(table: Table) -> Table:
    names = [column.name for column in table.columns]
    if "p" not in names or "p_adjusted" not in names:
        return table
    plain, again = names.index("p"), names.index("p_adjusted")
    if any(row[plain] != row[again] for row in table.rows):
        return table
    columns = tuple(column for k, column in enumerate(table.columns) if k != again)
    return replace(
        table,
        columns=columns,
        rows=tuple(tuple(cell for k, cell in enumerate(row) if k != again) for row in table.rows),
    )


def heading_of(column: Column) -> str:
    """The heading with its unit."""
    return f"{column.label} ({column.unit})" if column.unit else column.label


def describe(estimate: Estimate) -> str:
    """All about one number in a line: n, method, interval, test."""
    parts = [estimate.method, f"n = {estimate.n:,}"]
    if estimate.has_interval:
        parts.append(interval_words(estimate))
    if not math.isnan(estimate.p_value):
        parts.append(write_p(estimate.p_value))
    return "; ".join(part for part in parts if part)


def interval_words(estimate: Estimate) -> str:
    """How the interval was made."""
    words = f"{write_confidence(estimate.confidence)} confidence interval"
    if estimate.interval_method == SHUFFLES:
        words = f"in brackets the middle {write_confidence(estimate.confidence)} of the shuffles"
    elif estimate.interval_method:
        words += f": {estimate.interval_method}"
    if estimate.n_resamples:
        words += f", {estimate.n_resamples:,} resamples"
    if estimate.seed is not None:
        words += f", seed {estimate.seed}"
    return words


def mark_of(i: int) -> str:
    """Footnote marks: a to z, then aa, ab …"""
    letters = ""
    i += 1
    while i:
        i, rest = divmod(i - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _align(column: Column) -> Align:
    if column.kind == "mark":
        return "center"
    return "left" if column.kind == "text" else "right"


def _digits(columns: Sequence[Column], by_column: Sequence[Sequence[Cell]]) -> list[int | None]:
    """Digits of each column's estimates: the same for columns that hold the same statistic, so that a row reads alike."""
    pools: dict[tuple[object, ...], list[Estimate]] = {}
    keys = []
    for column, cells in zip(columns, by_column, strict=True):
        estimates = [cell for cell in cells if isinstance(cell, Estimate)]
        method = next((e.method for e in estimates if e.has_interval), "")
        if method and all(e.unit in RATIO_UNITS for e in estimates):
            method = "ratio"  # whatever they were computed by, ratios of one table are read side by side
        keys.append((column.kind, column.unit, column.n_digits, method))
        pools.setdefault(keys[-1], []).extend(estimates)
    made: dict[tuple[object, ...], int | None] = {}
    for key, column in zip(keys, columns, strict=True):
        fitting = pools[key]
        if not key[-1]:  # no interval says how precise they are: as precise as others of their kind
            fitting = [e for other, pool in pools.items() if other[:-1] == key[:-1] for e in pool]
        shared = shared_digits(fitting, _fallback(column), is_percent=_is_percent(column))
        made[key] = _fallback(column) if shared is None and column.unit else shared  # a column with a unit has one unit
    return [
        made[key] if made[key] is not None else _own_digits(column, cells)
        for key, column, cells in zip(keys, columns, by_column, strict=True)
    ]


def _own_digits(column: Column, cells: Sequence[Cell]) -> int | None:
    """Digits of a column whose statistic is in several units over the table, but in one within the column."""
    estimates = [cell for cell in cells if isinstance(cell, Estimate)]
    return shared_digits(estimates, _fallback(column), is_percent=_is_percent(column))


def _is_percent(column: Column) -> bool:
    return column.kind in ("percent", "percent_estimate")


def _fallback(column: Column) -> int:
    return min(column.n_digits, 1) if _is_percent(column) else column.n_digits


def _plain_digits(column: Column, cells: Sequence[Cell]) -> int:
    """Digits of numbers without an interval; none where a column of few digits holds whole numbers only."""
    numbers = [cell for cell in cells if isinstance(cell, int | float) and not math.isnan(cell)]
    is_whole = column.kind == "number" and column.n_digits == 1 and all(float(cell).is_integer() for cell in numbers)
    return 0 if numbers and is_whole else _fallback(column)


def _writer(column: Column, n_digits: int | None, fallback: int) -> Callable[[Cell], Written]:
    """How the cells of one column are written."""
    is_percent = _is_percent(column)

    def write(cell: Cell) -> Written:
        if cell is None:
            return Written(NOT_ENOUGH, is_known=False)
        if isinstance(cell, Estimate):
            if column.kind == "p_value":
                return _p_of(cell)
            words = write_estimate(cell, n_digits=n_digits, fallback=_fallback(column), is_percent=is_percent)
            is_points = column.unit == PERCENTAGE_POINTS
            return replace(words, value=words.value.removesuffix("%")) if is_points else words
        if isinstance(cell, bool):
            return Written(("✓" if cell else "–") if column.kind == "mark" else ("yes" if cell else "no"))
        if isinstance(cell, str) or column.kind == "text":
            return Written(str(cell))
        if math.isnan(cell):
            return Written(NOT_ENOUGH, is_known=False)
        return Written(_plain_number(cell, column, fallback))

    return write


def _plain_number(cell: float, column: Column, fallback: int) -> str:
    if column.kind == "p_value":
        return write_p(cell, is_bare=True)
    if column.kind in ("percent", "percent_estimate"):
        return write_percent(cell, fallback)
    if column.kind == "count":
        return write_number(cell, 0 if float(cell).is_integer() else 1)
    return write_number(cell, fallback)


def _p_of(estimate: Estimate) -> Written:
    if math.isnan(estimate.p_value):
        return Written(NOT_ENOUGH, notes=estimate.notes, is_known=False)
    return Written(write_p(estimate.p_value, is_bare=True), notes=estimate.notes)


def _shared_notes(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Notes that every estimate of the table carries: one remark instead of a mark in every cell."""
    estimates = [cell for cell in cells if isinstance(cell, Estimate)]
    if len(estimates) < 2:
        return ()
    return tuple(note for note in dict.fromkeys(estimates[0].notes) if all(note in e.notes for e in estimates))


def _methods(columns: Sequence[Column], by_column: Sequence[Sequence[Cell]]) -> tuple[str, ...]:
    """Sentences on how the estimates were made: one for the table if all are alike, else one per column, whose heading
    is left out where the method begins with it."""
    sentences: dict[str, list[str]] = {}
    for column, cells in zip(columns, by_column, strict=True):
        known = [cell for cell in cells if isinstance(cell, Estimate) and cell.is_known]
        if column.kind in _ESTIMATE_KINDS and known:
            sentences.setdefault(_how(known), []).append(column.label)
    if len(sentences) == 1:
        return tuple(_sentence(how) for how in sentences)
    return tuple(
        _sentence(how) if re.match(rf"{re.escape(listing)}(?!\w)", how, re.IGNORECASE) else f"{listing}: {how}."
        for how, listing in ((how, ", ".join(labels)) for how, labels in sentences.items())
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _how(estimates: Sequence[Estimate]) -> str:
    ways = list(
        dict.fromkeys(f"{e.method}; {interval_words(e)}" if e.has_interval else f"{e.method}" for e in estimates)
    )
    methods = _fullest(dict.fromkeys(e.method for e in estimates))
    kinds = {interval_words(e) if e.has_interval else "" for e in estimates}
    if 1 < len(ways) <= _N_METHODS_SHOWN and len(kinds) == 1 and len(methods) > 1:
        ways = ["; ".join(filter(None, (" / ".join(dict.fromkeys(e.method for e in estimates)), *kinds)))]
    if len(ways) > 1 and len(methods) == 1:
        ways = [_with_intervals(methods[0], estimates)]
    if len(ways) > _N_METHODS_SHOWN:
        many = "several methods, named for each row in the data files"
        n_kinds = len({interval_words(e) for e in estimates if e.has_interval})
        return _with_intervals(many, estimates) if n_kinds <= _N_METHODS_SHOWN else many
    low, high = min(e.n for e in estimates), max(e.n for e in estimates)
    return f"{' / '.join(ways)}; n = {low:,}" + (f" to {high:,}" if high > low else "")


def _fullest(methods: Iterable[str]) -> list[str]:
    """The methods without those that another one only adds to, such as a test that some rows cannot have."""
    parts = {method: set(re.split("[,;] ", method)) for method in methods}
    return [method for method in parts if not any(parts[method] < other for other in parts.values())]


def _with_intervals(method: str, estimates: Sequence[Estimate]) -> str:
    """One method with every kind of interval in the column: "95% confidence interval: Wilson, or Clopper-Pearson"."""
    kinds = sorted(dict.fromkeys(interval_words(e) for e in estimates if e.has_interval), key=len)
    if len(kinds) < 2:
        return "; ".join((method, *kinds))
    head = kinds[0].partition(": ")[0] + ": "
    shown: list[str] = []
    for kind in (kind.removeprefix(head) for kind in kinds):
        base = next((k for k, text in enumerate(shown) if kind.startswith(f"{text}, ")), None)
        if base is None:
            shown.append(kind)
        else:
            shown[base] += f" (some {kind[len(shown[base]) + 2 :]})"
    return f"{method}; {head}{', or '.join(shown)}"
