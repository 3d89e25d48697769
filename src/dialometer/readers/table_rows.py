"""Rows of a table with their line numbers, for the formats that are tables: CSV, TSV, a spreadsheet, or JSON objects."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from dialometer.readers.json_records import JsonRecord, json_records, kind_of
from dialometer.readers.problems import Problems
from dialometer.readers.reader import DELIMITERS
from dialometer.readers.source import SourceFile
from dialometer.registry import did_you_mean

MAX_CELL = 2**24
"""Characters of one cell; Python's own limit of 131,072 is too small for a long conversation in one cell."""
MAX_COLUMNS = 20_000
N_COLUMNS_SHOWN = 20
csv.field_size_limit(MAX_CELL)
_HALF = re.compile("[\ud800-\udfff]")
"""JSON can write halves of surrogate pairs (``\\ud800``), which no file and no database holds."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row by column name, and the line where it begins (a quoted cell may hold several lines)."""

    cells: dict[str, str]
    line: int


def table_rows(
    source: SourceFile, problems: Problems, needed: Sequence[str], delimiter: str | None = None
) -> Iterator[TableRow]:
    """The rows of a table that has at least the ``needed`` columns; a row of another length is a fault of the file.

    The delimiter is told from the header where it is not given: spreadsheets write commas, semicolons or tabs. Needed
    columns may be in capitals, or with spaces. A file of JSON objects is a table whose columns are their keys.
    """
    if is_json(source):
        yield from _json_rows(source, problems, needed)
        return
    lines = source.lines(problems)
    first, header = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    rest = (line for _, line in lines)
    text = (f"{line}\n" for line in chain([header], rest))
    cells = csv.reader(text, delimiter=delimiter or delimiter_of(header), strict=True)
    names: list[str] = []
    line = first
    try:
        for values in cells:
            if not names:
                names = usable_header(values, needed, line, problems) or []
                if not names:
                    return
            elif not (values and values[0].strip()) and not any(value.strip() for value in values):
                pass  # spreadsheets leave rows of empty cells behind
            elif len(values) == len(names):
                yield TableRow(dict(zip(names, values, strict=True)), line)
            else:
                message = f"the row has {len(values)} cells, the header {len(names)}"
                remedy = "put a cell that holds the delimiter in quotation marks"
                problems.of_file(problems.problem(message, remedy=remedy, line=line))
            line = first + cells.line_num
    except csv.Error as error:
        remedy = "close every quoted cell, double the quotation marks within it, and end lines in the usual way"
        problems.of_file(problems.problem(f"broken CSV: {error}", remedy=remedy, line=line))


def delimiter_of(header: str) -> str:
    """The delimiter that cuts the header into most columns."""
    return max(DELIMITERS, key=header.count)


def plain_column(name: str) -> str:
    """A column's name as it is compared where writing varies: lower case, with underscores for spaces, dots and hyphens."""
    return _short_plain(name) if len(name) < 100 else _plain(name)


def _plain(name: str) -> str:
    return "_".join(filter(None, re.split(r"[\s_.\-]+", name.casefold())))


_short_plain = lru_cache(maxsize=65_536)(_plain)


def some_columns(names: Sequence[str]) -> str:
    """Columns for a message, the first of them where they are many."""
    shown = ", ".join(name[:40] for name in names[:N_COLUMNS_SHOWN])
    return shown + (f" and {len(names) - N_COLUMNS_SHOWN:,} more" if len(names) > N_COLUMNS_SHOWN else "")


def usable_header(values: Sequence[str], needed: Sequence[str], line: int, problems: Problems) -> list[str] | None:
    """The names of the columns, those that are needed as they are called here; None where they cannot be used."""
    names = [name.strip() for name in values]
    n_before = problems.n_errors
    if len(names) > MAX_COLUMNS:
        message = f"the table has {len(names):,} columns"
        problems.of_file(problems.problem(message, remedy=f"keep to {MAX_COLUMNS:,}", line=line))
        return None
    by_plain: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        by_plain.setdefault(plain_column(name), []).append(place)
    there = set(names)
    for name in needed:
        alike = by_plain.get(plain_column(name), [])
        if name not in there and len(alike) == 1:
            problems.assume(f"the column '{names[alike[0]]}' is read as '{name}'")
            names[alike[0]] = name
        elif name not in there:
            candidates = [other for other in names if other not in needed][:MAX_COLUMNS]
            remedy = _nearest(name, candidates) if candidates else f"the header needs {', '.join(needed)}"
            problems.of_file(problems.problem(f"the column '{name}' is missing", remedy=remedy, line=line))
    for name, n in sorted(Counter(names).items()):
        if n > 1 or not name:
            message = f"the column '{name[:60]}' appears twice" if name else "a column has no name"
            problems.of_file(problems.problem(message, remedy="give every column a name of its own", line=line))
    return names if problems.n_errors == n_before else None


def _nearest(name: str, candidates: Sequence[str]) -> str:
    few = [other for other in candidates if len(other) < 100][:200]
    return (
        did_you_mean(name, few) if len(candidates) <= N_COLUMNS_SHOWN else f"the header has {some_columns(candidates)}"
    )


# JSON objects as rows


def is_json(source: SourceFile) -> bool:
    """Whether a file holds JSON objects, by its beginning: an object, or a list of them."""
    return re.match(r"\s*(\{|\[\s*[\{\]])", source.head()[:10_000]) is not None


def _json_rows(source: SourceFile, problems: Problems, needed: Sequence[str]) -> Iterator[TableRow]:
    """Objects with the same columns each: one that lacks a key has an empty cell there. The file is gone through twice."""
    header: dict[str, None] = {}
    for record in json_records(source, Problems(source.name)):
        if isinstance(record.value, dict):
            header |= dict.fromkeys(record.value)
        if len(header) > MAX_COLUMNS:
            break
    names = [name for name in header if not _HALF.search(name)]
    if len(names) < len(header):
        problems.of_file(problems.problem("a key holds half of a surrogate pair", remedy="correct the key", line=1))
    used = usable_header(names, needed, 1, problems) if names or needed else []
    if used is None:
        return
    called = dict(zip(names, used, strict=True))
    for record in json_records(source, problems):
        if not isinstance(record.value, dict):
            problems.of_record([_no_object(record, problems)])
            continue
        cells = dict.fromkeys(used, "")
        cells |= {called[key]: cell_text(value) for key, value in record.value.items() if key in called}
        if half := next((name for name, cell in cells.items() if not cell.isascii() and _HALF.search(name + cell)), ""):
            message, remedy = "half of a surrogate pair, which is not a character", "correct the text"
            problems.of_record([problems.problem(message, remedy=remedy, line=record.line, field=half[:60])])
            continue
        if any(cell.strip() for cell in cells.values()):
            yield TableRow(cells, record.line)


def _no_object(record: JsonRecord, problems: Problems) -> Any:
    message = f"a row must be an object, not {kind_of(record.value)}"
    return problems.problem(message, remedy='write {"column": value, …}', line=record.line, column=record.column)


def cell_text(value: Any) -> str:
    """A JSON value as a cell of a table: null is empty, lists and objects stay JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)
