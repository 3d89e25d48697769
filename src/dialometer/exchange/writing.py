"""Tables into files, a part at a time, so that a million rows need the memory of a few thousand."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

import polars as pl

Schema = Mapping[str, Any]
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%.3fZ"
N_PER_ROW_GROUP = 100_000


class TableWriter(ABC):
    """One table on its way into a file. Always the same bytes for the same rows."""

    suffix: ClassVar[str]

    def __init__(self, path: Path, schema: Schema) -> None:
        self.path = path
        self.schema = dict(schema)
        self.n_rows = 0

    def write(self, frame: pl.DataFrame) -> None:
        """Add rows; columns that the frame lacks are empty, others than the schema's are an error of the caller."""
        missing = [pl.lit(None, dtype=kind).alias(name) for name, kind in self.schema.items() if name not in frame]
        self._write(frame.with_columns(missing).select(list(self.schema)).cast(pl.Schema(self.schema)))
        self.n_rows += frame.height

    def write_all(self, frames: Iterable[pl.DataFrame]) -> int:
        """Write the frames one after the other and finish the file; the number of rows."""
        try:
            for frame in frames:
                self.write(frame)
        except BaseException:
            self.abandon()
            raise
        self.close()
        return self.n_rows

    @abstractmethod
    def _write(self, frame: pl.DataFrame) -> None:
        """Add the rows of a frame to the file."""

    @abstractmethod
    def close(self) -> None:
        """Finish the file; a table without rows still tells its columns where the format can."""

    @abstractmethod
    def abandon(self) -> None:
        """Give up; whoever owns the folder removes what was written."""


class CsvWriter(TableWriter):
    """Comma-separated, UTF-8. An empty text is ``""``, nothing at all means "not known"; times are ISO 8601 in UTC."""

    suffix = ".csv"

    def __init__(self, path: Path, schema: Schema) -> None:
        super().__init__(path, schema)
        self._file: IO[bytes] = path.open("wb")
        self._add(pl.DataFrame(schema=self.schema), include_header=True)

    def _write(self, frame: pl.DataFrame) -> None:
        self._add(frame, include_header=False)

    def _add(self, frame: pl.DataFrame, *, include_header: bool) -> None:
        frame.write_csv(self._file, include_header=include_header, datetime_format=TIME_FORMAT)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    abandon = close


class JsonLinesWriter(TableWriter):
    """One JSON object a line; what is not known is null."""

    suffix = ".jsonl"

    def __init__(self, path: Path, schema: Schema) -> None:
        super().__init__(path, schema)
        self._file: IO[bytes] = path.open("wb")

    def _write(self, frame: pl.DataFrame) -> None:
        times = [name for name, kind in self.schema.items() if isinstance(kind, pl.Datetime)]
        frame.with_columns(pl.col(times).dt.strftime(TIME_FORMAT)).write_ndjson(self._file)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    abandon = close


class ParquetWriter(TableWriter):
    """Parquet, with types. Parts are written beside the file first, since a Parquet file cannot be added to."""

    suffix = ".parquet"

    def __init__(self, path: Path, schema: Schema) -> None:
        super().__init__(path, schema)
        self._folder = path.with_suffix(".parts")
        self._folder.mkdir()
        self._parts: list[Path] = []

    def _write(self, frame: pl.DataFrame) -> None:
        part = self._folder / f"{len(self._parts):06d}.parquet"
        frame.write_parquet(part)
        self._parts.append(part)

    def close(self) -> None:
        """Join the parts."""
        try:
            if self._parts:
                rows = pl.scan_parquet(self._parts)
                rows.sink_parquet(self.path, row_group_size=N_PER_ROW_GROUP, maintain_order=True)
            else:
                pl.DataFrame(schema=self.schema).write_parquet(self.path)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Remove the parts."""
        shutil.rmtree(self._folder, ignore_errors=True)


WRITERS: dict[str, type[TableWriter]] = {"csv": CsvWriter, "jsonl": JsonLinesWriter, "parquet": ParquetWriter}
"""The formats of an export by name."""
