"""Exporting a study: its tables, their dictionary and a manifest, as one folder.

Rows are read and written in parts, so that memory does not grow with their number.
"""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar

import polars as pl

from dialometer._version import __version__
from dialometer.design.lock import fingerprint, read_lock
from dialometer.errors import DialometerError
from dialometer.exchange.dialogue_pairs import PAIRS, counted, is_about_dialogues, pair_frames
from dialometer.exchange.exports.data_dictionary import as_markdown, data_dictionary
from dialometer.exchange.exports.export_folder import ExportFolder
from dialometer.exchange.exports.export_tables import (
    ADJUDICATIONS,
    ANSWERS,
    CHAT_TURNS,
    DRAWN_SYSTEMS,
    FLAGS,
    SCREENS,
    ExportTable,
    JudgmentRows,
    RaterNames,
    adjudication_frames,
    answer_frames,
    chat_frames,
    detail_frames,
    detail_tables,
    flag_frames,
    judgments_table,
    screen_frames,
    session_frames,
    sessions_table,
    system_draw_frames,
)
from dialometer.formula_cells import OPTION, escaped
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.recruit.platforms import platform_of
from dialometer.registry import did_you_mean
from dialometer.storage.counting.counts import count_sessions
from dialometer.storage.store import Store
from dialometer.storage.table import long_table

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
    """One JSON object per line; what is not known is null."""

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


DICTIONARY = "data_dictionary"
Report = Callable[[str, int], None]
"""Called with the file being written and its rows so far."""


@dataclass(frozen=True, slots=True)
class Export:
    """What an export wrote: the rows of each file, and what the reader of the data should know about them."""

    folder: Path
    format: str
    manifest: dict[str, Any]
    n_rows: dict[str, int]
    n_raters: int
    n_practice_left_out: int
    states: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    n_excluded: int = 0


def export_study(
    study: Study,
    store: Store,
    out: Path,
    *,
    format: str = "csv",
    include_practice: bool = False,
    include_corrected: bool = False,
    escape_formulas: bool = True,
    force: bool = False,
    report: Report | None = None,
) -> Export:
    """Write everything a study has collected to the folder ``out``; the same database gives the same bytes.

    ``escape_formulas`` marks texts in CSV that a spreadsheet would run; the import reads them back as they were.

    ``force`` allows a folder that holds other files; those stay, except where they have the name of one that is written.
    """
    if format not in WRITERS:
        raise DialometerError(f"unknown export format '{format}'", remedy=did_you_mean(format, sorted(WRITERS)))
    try:
        with ExportFolder(out, force=force) as folder:
            is_escaped = escape_formulas and format == "csv"
            job = _Job(study, store, folder, format, include_practice, include_corrected, is_escaped, report)
            return job.run()
    except OSError as error:
        raise DialometerError(
            f"the export cannot be written: {error.strerror or error}",
            where=str(error.filename or out),
            remedy="check that the folder may be written and the disk is not full",
        ) from error


@dataclass(slots=True)
class _Job:
    """One export on its way."""

    study: Study
    store: Store
    folder: ExportFolder
    format: str
    include_practice: bool
    include_corrected: bool
    is_escaped: bool
    report: Report | None
    tables: dict[str, ExportTable] = field(default_factory=dict)
    n_rows: dict[str, int] = field(default_factory=dict)

    def run(self) -> Export:
        first = self.store.sessions.all()
        factors = self._factors(first)
        raters = RaterNames(self.store)
        judged = JudgmentRows(self.study, self.store, self.include_practice, self.include_corrected)
        self._write(judgments_table(factors), judged.frames())
        included = {"include_practice": self.include_practice, "include_corrected": self.include_corrected}
        for scale_type, table in detail_tables(self.study).items():
            self._write(table, detail_frames(self.study, self.store, scale_type, table, **included))
        self._write(ANSWERS, answer_frames(self.study, self.store, raters, include_corrected=self.include_corrected))
        self._write(SCREENS, screen_frames(self.store, raters))
        self._write(FLAGS, flag_frames(self.store, raters))
        # Sessions come last: whoever arrived while the rows above were written is then among them.
        sessions = self.store.sessions.all()
        if any(item.kind in ("chat", "arena") for item in self.study.items):
            self._write(CHAT_TURNS, chat_frames(self.store, raters, self.study, sessions))
        if any(session.draw.pairs for session in sessions):
            self._write(DRAWN_SYSTEMS, system_draw_frames(raters, sessions))
        if any(session.draw.disputes for session in sessions):
            self._write(ADJUDICATIONS, adjudication_frames(self.store, raters, sessions))
        if is_about_dialogues(self.study):
            judgments = long_table(self.store.records.judgment_batches(), self.study)
            self._write(PAIRS, pair_frames(self.study, counted(judgments)))
        reasons = {entry.session_id: entry.reason for entry in self.store.exclusions.log() if entry.is_excluded}
        by_session = sessions_table(self._factors(sessions))
        self._write(by_session, session_frames(by_session, raters, sessions, reasons, judged.n_counted))
        about = self._about()
        self._write_dictionary(about, judged.n_practice_left_out)
        options = {**included, OPTION: self.is_escaped}
        head = {"dialometer": __version__, "format": self.format, "study": about, "options": options}
        return Export(
            folder=self.folder.target,
            format=self.format,
            manifest=self.folder.finish(head, self.n_rows),
            n_rows=self.n_rows,
            n_raters=len(judged.raters),
            n_practice_left_out=judged.n_practice_left_out,
            states=dict(Counter(session.state for session in sessions)),
            sources=dict(Counter(session.source for session in sessions)),
            n_excluded=count_sessions(sessions).excluded,
        )

    def _factors(self, sessions: list[Session]) -> list[str]:
        """The study's factors, and those of earlier versions that sessions still name."""
        declared = [factor.name for factor in self.study.spec.design.factors]
        return declared + sorted({name for session in sessions for name in session.condition} - set(declared))

    def _write(self, table: ExportTable, frames: Iterator[pl.DataFrame]) -> None:
        writer_class = WRITERS[self.format]
        file = table.name + writer_class.suffix
        writer = writer_class(self.folder.path(file), table.schema)
        self.tables[file] = table
        self.n_rows[file] = writer.write_all(self._reported(file, frames))

    def _reported(self, file: str, frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        n_rows = 0
        for frame in frames:
            yield escaped(frame) if self.is_escaped else frame
            n_rows += frame.height
            if self.report is not None:
                self.report(file, n_rows)

    def _about(self) -> dict[str, Any]:
        """Which study this is, and under which versions of it the data were collected."""
        spec = self.study.spec
        versions = read_lock(self.study.folder) if self.study.folder else []
        newest = versions[-1] if versions else {}
        platform = platform_of(spec.recruitment)
        return {
            "name": spec.name,
            "title": spec.title,
            **({} if platform.is_open else {"recruited_through": platform.label}),
            "fingerprint": fingerprint(self.study),
            "version": newest.get("version"),
            "frozen_at": newest.get("frozen_at"),
            "collected_under": [
                {"study_version": version.id, "fingerprint": version.fingerprint}
                for version in self.store.studies.versions()
            ],
        }

    def _write_dictionary(self, about: dict[str, Any], n_practice: int) -> None:
        dictionary = data_dictionary(self.study, self.tables, about)
        text = json.dumps(dictionary, indent=1, ensure_ascii=False) + "\n"
        self.folder.path(DICTIONARY + ".json").write_text(text, encoding="utf-8")
        practice = "Practice judgments are included (`is_practice`)." if self.include_practice else ""
        if n_practice:
            practice = f"{n_practice:,} practice judgments are excluded."
        corrected = (
            "Where a rater corrected an answer, both rows are included; `replaces` names the earlier one."
            if self.include_corrected
            else "Where a rater corrected an answer, only the last one is included."
        )
        excluded = "Sessions that are excluded from the analysis are included and marked `is_excluded`."
        sentences = [sentence for sentence in (practice, corrected, excluded) if sentence]
        markdown = as_markdown(dictionary, sentences)
        self.folder.path(DICTIONARY + ".md").write_text(markdown, encoding="utf-8")
