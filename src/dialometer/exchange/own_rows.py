"""Rows of our own export, whatever it was written as, with a line for messages and cells that are read by type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from dialometer.exchange.formats.form import Intake
from dialometer.exchange.records import UNKNOWN_MS, read_time_ms
from dialometer.readers.source import Source
from dialometer.readers.table_rows import table_rows

N_PER_SLICE = 20_000


@dataclass(frozen=True, slots=True)
class OwnRow:
    """One row. A cell that cannot be read raises ValueError with the reason; an empty one is the default."""

    cells: dict[str, Any]
    line: int

    def text(self, name: str) -> str:
        """A text, empty where there is none."""
        value = self.cells.get(name) or ""
        if not isinstance(value, str):
            raise ValueError(f"'{name}' should be a text")
        if "\x00" in value or not value.isascii():
            _check_characters(value, name)
        return value

    def number(self, name: str) -> int | None:
        """A whole number."""
        value = self.cells.get(name)
        if value is None or value == "":
            return None
        if isinstance(value, bool) or not str(value).removeprefix("-").isdigit() or len(str(value)) > 18:
            raise ValueError(f"'{name}' should be a whole number, not '{value}'")
        return int(value)

    def truth(self, name: str) -> bool:
        """True or false; an empty cell is false."""
        value = self.cells.get(name)
        if isinstance(value, bool):
            return value
        known = {"true": True, "false": False, "": False, "none": False}.get(str(value).strip().lower())
        if known is None:
            raise ValueError(f"'{name}' should be true or false, not '{value}'")
        return known

    def time_ms(self, name: str) -> int:
        """A moment, or the sign for an unknown one."""
        value = self.cells.get(name)
        if isinstance(value, datetime):
            return round((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)
        return _time_ms(str(value)) if value not in (None, "") else UNKNOWN_MS

    def json(self, name: str) -> Any:
        """A value stored as JSON."""
        try:
            return _from_json(self.text(name))
        except RecursionError as error:
            raise ValueError(f"'{name}' is nested too deeply") from error
        except json.JSONDecodeError as error:
            raise ValueError(f"'{name}' is not valid JSON: {error.msg}") from error


# A screen's judgments share their times, and most answers are one of a few: what is read is kept and shared.


@lru_cache(maxsize=16_384)
def _time_ms(text: str) -> int:
    return read_time_ms(text)


@lru_cache(maxsize=16_384)
def _from_json(text: str) -> Any:
    return json.loads(text)


def _check_characters(text: str, name: str) -> None:
    """Databases hold neither NUL nor halves of surrogate pairs, which JSON can write."""
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError(f"'{name}' holds a character that cannot be stored")


def own_rows(path: Path, intake: Intake, needed: tuple[str, ...]) -> Iterator[OwnRow]:
    """The rows of a table that was exported as CSV, JSON Lines or Parquet."""
    if path.suffix == ".parquet":
        yield from _parquet_rows(path, intake, needed)
    elif Source(path).suffix == ".jsonl":
        yield from _json_rows(path, intake, needed)
    else:
        for row in table_rows(Source(path), intake.problems, needed):
            yield OwnRow(dict(row.cells), row.line)


def _json_rows(path: Path, intake: Intake, needed: tuple[str, ...]) -> Iterator[OwnRow]:
    for line, text in Source(path).lines(intake.problems):
        if not text.strip():
            continue
        try:
            cells = json.loads(text)
        except (ValueError, RecursionError):
            cells = None
        if not isinstance(cells, dict):
            intake.wrong(line, "not a JSON object", "one object a line, as the export wrote them")
            continue
        missing = [name for name in needed if name not in cells]
        if missing:
            intake.wrong(line, f"the key '{missing[0]}' is missing", "export the study again", missing[0])
            continue
        yield OwnRow(cells, line)


def _parquet_rows(path: Path, intake: Intake, needed: tuple[str, ...]) -> Iterator[OwnRow]:
    """Rows in slices; the line is the number of the row, from 1."""
    import polars as pl  # noqa: PLC0415 - heavy, and only this form of file needs it

    try:
        frame = pl.scan_parquet(path)
        names = frame.collect_schema().names()
        missing = [name for name in needed if name not in names]
        for name in missing:
            intake.wrong(0, f"the column '{name}' is missing", "export the study again", name)
        n_rows = 0 if missing else frame.select(pl.len()).collect().item()
        for start in range(0, n_rows, N_PER_SLICE):
            rows = frame.slice(start, N_PER_SLICE).collect().iter_rows(named=True)
            for number, cells in enumerate(rows, start=start + 1):
                yield OwnRow(cells, number)
    except (pl.exceptions.PolarsError, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        intake.wrong(0, f"the Parquet file cannot be read: {first}", "copy the export again")
