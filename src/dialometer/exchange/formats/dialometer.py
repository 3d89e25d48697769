"""Our own export: the folder, or its judgments file alone, written as CSV, JSON Lines or Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, ClassVar, TypeVar, cast, get_args

from dialometer.errors import ImportFileError
from dialometer.exchange.exports.export_folder import MANIFEST, changed_files, read_manifest
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake, unreadable
from dialometer.exchange.records import (
    UNKNOWN_MS,
    AnswerRecord,
    Condition,
    JudgmentRecord,
    Record,
    SessionFacts,
    checked_time_ms,
    read_time_ms,
)
from dialometer.formula_cells import is_escaped, restored
from dialometer.model.session import ADJUDICATORS, Source, State
from dialometer.readers.containers.columnar import ColumnarError, row_frames
from dialometer.readers.json_records import line_records
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows
from dialometer.storage.table import FACTOR_PREFIX


@dataclass(frozen=True, slots=True)
class ExportedRow:
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
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            return checked_time_ms(round(moment.timestamp() * 1000), str(value))
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


def exported_rows(path: Path, intake: Intake, needed: tuple[str, ...]) -> Iterator[ExportedRow]:
    """The rows of a table that was exported as CSV, JSON Lines or Parquet."""
    if path.suffix == ".parquet":
        yield from _parquet_rows(path, intake, needed)
    elif SourceFile(path).suffix == ".jsonl":
        yield from _json_rows(path, intake, needed)
    else:
        is_marked = is_escaped(read_manifest(path.parent), default=True)
        for row in table_rows(SourceFile(path), intake.problems, needed):
            cells = {name: restored(cell) for name, cell in row.cells.items()} if is_marked else row.cells
            yield ExportedRow(dict(cells), row.line)


def _json_rows(path: Path, intake: Intake, needed: tuple[str, ...]) -> Iterator[ExportedRow]:
    for record in line_records(SourceFile(path), intake.problems):
        cells, line = record.value, record.line
        if not isinstance(cells, dict):
            intake.wrong(line, "not a JSON object", "one object per line, as the export wrote them")
            continue
        missing = [name for name in needed if name not in cells]
        if missing:
            intake.wrong(line, f"the key '{missing[0]}' is missing", "export the study again", missing[0])
            continue
        yield ExportedRow(cells, line)


def _parquet_rows(path: Path, intake: Intake, needed: tuple[str, ...]) -> Iterator[ExportedRow]:
    """Rows in parts; the line is the number of the row, from 1."""
    n_read = 0
    try:
        for frame in row_frames(path):
            missing = [name for name in needed if name not in frame.columns]
            for name in missing:
                intake.wrong(0, f"the column '{name}' is missing", "export the study again", name)
            if missing:
                return
            for number, cells in enumerate(frame.iter_rows(named=True), start=n_read + 1):
                yield ExportedRow(cells, number)
            n_read += len(frame)
    except ColumnarError as error:
        intake.wrong(0, error.message, "copy the export again")


R = TypeVar("R", bound=Record)
DICTIONARY = "data_dictionary.json"
NEEDED = ("judgment", "rater", "item", "system", "criterion", "scale", "answer")
CORRECTED = "judgments and answers that were corrected later"
SUFFIXES = (".csv", ".jsonl", ".parquet")


@FORMATS.register("dialometer")
class OwnExport(ImportFormat):
    """What ``dialometer export`` writes. A folder brings answers and sessions too; pseudonyms stay what they are."""

    takes: ClassVar[frozenset[str]] = frozenset()
    summary: ClassVar[str] = "a folder that 'dialometer export' wrote, or its judgments file"
    takes_folder: ClassVar[bool] = True

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """The manifest in a folder, or our columns."""
        return set(NEEDED) <= set(header) or (path.is_dir() and read_manifest(path) is not None)

    def file_of(self, path: Path) -> Path:
        """The judgments file; an incomplete or changed folder is refused."""
        return _checked_files(path)["judgments"] if path.is_dir() else path

    def declared(self, path: Path) -> Mapping[str, Any]:
        """The data dictionary beside the judgments."""
        folder = path if path.is_dir() else path.parent
        try:
            dictionary = json.loads((folder / DICTIONARY).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return dictionary if isinstance(dictionary, dict) else {}

    def name_of(self, rater: str, sha256: str) -> str:
        """R0001 of one export is not R0001 of another one."""
        return f"{rater}@{sha256[:12]}"

    def records(self, intake: Intake) -> Iterator[Record]:
        """Sessions first, since they keep the order of arrival; then judgments and answers."""
        files = _checked_files(intake.path) if intake.path.is_dir() else {"judgments": intake.path}
        ahead = _look_ahead(files["judgments"], intake, with_sessions="sessions" not in files)
        if "sessions" in files:
            yield from _read(files["sessions"], intake, ("rater", "state"), _session)
        yield from sorted(ahead.sessions.values(), key=_arrival)
        yield from _read(files["judgments"], intake, NEEDED, _judgment, ahead.replaced)
        if "answers" in files:
            replaced = _look_ahead(files["answers"], intake).replaced
            yield from _read(files["answers"], intake, ("rater", "part", "question", "answer"), _answer, replaced)


def _checked_files(folder: Path) -> dict[str, Path]:
    """The tables of an export by name."""
    manifest = read_manifest(folder)
    if manifest is None:
        remedy = f"give the folder that 'dialometer export' wrote; it has the file {MANIFEST}"
        raise ImportFileError([unreadable(folder, "this folder is not an export", remedy)])
    changed = changed_files(folder, manifest)
    if changed:
        remedy = "copy the whole folder again; to import what you changed, name the judgments file itself"
        problems = [
            unreadable(folder / name, "the file is not as it was exported, or missing", remedy) for name in changed
        ]
        raise ImportFileError(problems)
    paths = [folder / name for name in manifest["files"] if Path(name).suffix in SUFFIXES and Path(name).name == name]
    files = {path.stem: path for path in paths}
    if "judgments" not in files:
        raise ImportFileError([unreadable(folder, "the export holds no judgments", "export the study again")])
    return files


@dataclass(slots=True)
class _Ahead:
    """What must be known of a table before its rows are read."""

    replaced: set[int] = field(default_factory=set)
    sessions: dict[str, SessionFacts] = field(default_factory=dict)


def _look_ahead(path: Path, intake: Intake, *, with_sessions: bool = False) -> _Ahead:
    """Numbers of rows that a later one corrects and, where no other file tells them, the sessions.

    Whatever is wrong in the file is told by the reading proper.
    """
    ahead = _Ahead()
    quiet = Intake(intake.path, intake.source, Problems(str(path)))
    for row in exported_rows(path, quiet, ()):
        try:
            replaced = row.number("replaces")
            if replaced is not None:
                ahead.replaced.add(replaced)
            key = row.text("session") or row.text("rater")
            if with_sessions and key not in ahead.sessions:
                ahead.sessions[key] = _session(row)
        except ValueError:
            continue
    return ahead


def _read(
    path: Path,
    intake: Intake,
    needed: tuple[str, ...],
    convert: Callable[[ExportedRow], R],
    replaced: Collection[int] = (),
) -> Iterator[R]:
    """The records of a table without those that were replaced; a row that cannot be read is filed."""
    intake.problems.file = str(path)
    for row in exported_rows(path, intake, needed):
        try:
            if replaced and (row.number("judgment") or row.number("entry")) in replaced:
                intake.left_out[CORRECTED] += 1
            else:
                yield convert(row)
        except ValueError as error:
            intake.wrong(row.line, str(error), "export the study again")
        intake.has_read(row.line)


def _condition(row: ExportedRow) -> Condition:
    columns = _factor_columns(tuple(row.cells))
    return _levels(tuple((name, row.text(column)) for name, column in columns))


@lru_cache
def _factor_columns(header: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(column.removeprefix(FACTOR_PREFIX), column) for column in header if column.startswith(FACTOR_PREFIX)]


@lru_cache(maxsize=4_096)
def _levels(condition: Condition) -> Condition:
    return tuple((name, level) for name, level in condition if level)


@lru_cache(maxsize=16_384)
def _systems(order: str) -> tuple[str, ...]:
    return tuple(intern(system) for system in order.split("|")) if order else ()


def _session(row: ExportedRow) -> SessionFacts:
    is_excluded = row.truth("is_excluded")
    return SessionFacts(
        line=row.line,
        rater=_rater(row),
        condition=_condition(row),
        state=_state(row),
        source=_source(row),
        exclusion_reason=row.text("exclusion_reason") if is_excluded else None,
        started_at_ms=row.time_ms("started_at"),
        finished_at_ms=row.time_ms("finished_at"),
        last_seen_at_ms=row.time_ms("last_seen_at"),
        consent_version=row.text("consent_version"),
        language=row.text("language"),
        session=intern(row.text("session")),
    )


def _arrival(session: SessionFacts) -> tuple[int, str]:
    """What sorts sessions by their number, since names of one length sort as numbers do."""
    name = session.session or session.rater
    return len(name), name


def _rater(row: ExportedRow) -> str:
    rater = row.text("rater")
    if not rater:
        raise ValueError("the rater is missing")
    return intern(rater)


def _state(row: ExportedRow) -> State:
    state = row.text("state") or "completed"
    if state not in get_args(State):
        raise ValueError(f"unknown state '{state}'")
    # Whoever was in the middle of a session cannot go on in another database.
    return "stale" if state == "active" else cast(State, state)


def _source(row: ExportedRow) -> Source:
    """People's sessions become imported ones; simulated raters, models and adjudicators stay what they are."""
    source = row.text("source")
    if source not in ("", *get_args(Source)):
        raise ValueError(f"unknown source '{source}'")
    return source if source in ("simulated", "model", *ADJUDICATORS) else "imported"


def _judgment(row: ExportedRow) -> JudgmentRecord:
    return JudgmentRecord(
        line=row.line,
        rater=_rater(row),
        item=intern(row.text("item")),
        criterion=intern(row.text("criterion")),
        raw=row.json("answer"),
        system=intern(row.text("system")),
        shown=_systems(row.text("order")),
        side=row.number("side") or 0,
        turn=row.number("turn"),
        block=intern(row.text("block")),
        position=row.number("position") or 0,
        shown_at_ms=row.time_ms("shown_at"),
        answered_at_ms=row.time_ms("answered_at"),
        is_late=row.truth("is_late"),
        is_practice=row.truth("is_practice"),
        condition=_condition(row),
        scale=intern(row.text("scale")),
        column="answer",
        session=intern(row.text("session")),
    )


def _answer(row: ExportedRow) -> AnswerRecord:
    return AnswerRecord(
        line=row.line,
        rater=_rater(row),
        question=row.text("question"),
        raw=row.json("answer"),
        part=row.text("part"),
        shown_at_ms=row.time_ms("shown_at"),
        answered_at_ms=row.time_ms("answered_at"),
        column="answer",
        session=intern(row.text("session")),
    )
