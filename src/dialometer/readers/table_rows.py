"""Rows of a table in CSV with their line numbers, for the formats that are tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from dialometer.readers.problems import Problems
from dialometer.readers.reader import DELIMITERS
from dialometer.readers.source import SourceFile
from dialometer.registry import did_you_mean


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row by column name, and the line where it begins (a quoted cell may hold several lines)."""

    cells: dict[str, str]
    line: int


def table_rows(
    source: SourceFile, problems: Problems, needed: Sequence[str], delimiter: str | None = None
) -> Iterator[TableRow]:
    """The rows of a table that has at least the ``needed`` columns; a row of another length is a fault of the file.

    The delimiter is told from the header where it is not given: spreadsheets write commas, semicolons or tabs.
    """
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
                names = [name.strip() for name in values]
                if not _is_usable(names, needed, line, problems):
                    return
            elif not any(value.strip() for value in values):
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


def _is_usable(names: list[str], needed: Sequence[str], line: int, problems: Problems) -> bool:
    n_before = problems.n_errors
    for name in needed:
        if name not in names:
            others = [other for other in names if other not in needed]
            remedy = did_you_mean(name, others) if others else f"the header needs {', '.join(needed)}"
            problems.of_file(problems.problem(f"the column '{name}' is missing", remedy=remedy, line=line))
    for name in sorted({name for name in names if names.count(name) > 1 or not name}):
        message = f"the column '{name}' appears twice" if name else "a column has no name"
        problems.of_file(problems.problem(message, remedy="give every column a name of its own", line=line))
    return problems.n_errors == n_before
