"""What a file is: its format, how it was read, what it holds, and what would be ignored. Nothing is written."""

from __future__ import annotations

import logging
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from dialometer.errors import DialometerError, Problem, ReadError
from dialometer.exchange.columns import Columns
from dialometer.exchange.exports.export_folder import read_manifest
from dialometer.exchange.formats import FORMATS, ImportOptions, Intake
from dialometer.exchange.importing import columns_of, format_of
from dialometer.exchange.rating_table import RATING_ROLES
from dialometer.exchange.records import AnswerRecord, JudgmentRecord
from dialometer.model.dialogue import Dialogue, Role
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE, is_missing, to_number
from dialometer.readers import read_dialogues
from dialometer.readers.containers.columnar import is_columnar
from dialometer.readers.dialogue_file import recognised_formats
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows
from dialometer.readers.turn_parts import turn_as_json

N_ROWS_TRIED = 100
MOST_FILES = 40
LARGE_BYTES = 50_000_000
Found = dict[str, Any]


def look_at(path: Path, format_name: str = "", speakers: Mapping[str, Role] | None = None) -> Found:
    """What a file or folder holds, by ``kind``: dialogues, judgments, table, study, export or folder.

    A file of judgments may hold dialogues, too; they are under ``dialogues`` then. Raises :class:`ReadError` where it is none.
    """
    if path.is_dir() and not is_columnar(path):
        return _folder(path)
    if path.is_dir() and read_manifest(path) is not None:
        return _folder(path)
    judged = None if format_name else _judgments(path)
    try:
        dialogues = _dialogues(path, format_name, speakers or {})
    except ReadError as error:
        other = judged or (None if format_name or _is_of_turns(path) else _table(path))
        if other is None or not path.exists():
            raise error
        return other
    if judged is None:
        return dialogues
    return {**judged, "dialogues": dialogues}


# dialogues


def _dialogues(path: Path, format_name: str, speakers: Mapping[str, Role]) -> Found:
    """What the reader finds, with everything that it left out or assumed."""
    reading = read_dialogues(path, format_name or None, speakers=speakers, lenient=True)
    first: Dialogue | None = None
    n_turns: list[int] = []
    n_calls = 0
    spoken: Counter[tuple[str, str]] = Counter()
    keys: Counter[str] = Counter()
    with _without_log():
        for dialogue in reading:
            first = first or dialogue
            n_turns.append(len(dialogue.turns))
            n_calls += sum(len(turn.tool_calls) for turn in dialogue.turns)
            spoken.update((turn.speaker, turn.role) for turn in dialogue.turns)
            keys.update(dialogue.metadata.keys())
    turns = {"least": min(n_turns), "median": statistics.median(n_turns), "most": max(n_turns)} if n_turns else {}
    return {
        "kind": "dialogues",
        "format": reading.format,
        "read_as": forms_of(path),
        "dialogues": len(n_turns),
        "turns": sum(n_turns),
        "turns_per_dialogue": turns,
        "tool_calls": n_calls,
        "speakers": [{"name": name, "role": role, "turns": n} for (name, role), n in spoken.most_common()],
        "metadata": dict(keys.most_common()),
        "first": _first(first),
        "warnings": [_words(problem, n) for problem, n in reading.kinds_of_warnings],
        "n_warnings": reading.n_warnings,
    }


@contextmanager
def _without_log() -> Iterator[None]:
    """The readers log what they assumed; here it is part of the result, so it is not said twice."""
    log = logging.getLogger("dialometer.readers")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _words(problem: Problem, n: int = 1) -> str:
    line = f"line {problem.line}: " if problem.line else ""
    remedy = f" ({problem.remedy})" if problem.remedy else ""
    if n == 1:
        return f"{line}{problem.message}{remedy}"
    return f"{n:,} {problem.noun}, the first of them {line}{problem.message}{remedy}"


def _first(dialogue: Dialogue | None) -> Found | None:
    if dialogue is None:
        return None
    turns = [{**turn_as_json(turn), "role": turn.role} for turn in dialogue.turns]
    prompt = {"system_prompt": dialogue.system_prompt} if dialogue.system_prompt else {}
    return {"id": dialogue.id, **prompt, "turns": turns, "metadata": dict(dialogue.metadata)}


def forms_of(path: Path) -> list[str]:
    """In words, how a file is written where that is not plain UTF-8 text: packed, another encoding, line ends, delimiters."""
    source = SourceFile(path)
    try:
        source.probe()
        return source.forms()
    except (ReadError, OSError):
        return []


# judgments


def _judgments(path: Path) -> Found | None:
    """What an import would read; None where no format of judgments recognises the file."""
    try:
        name = format_of(path)
        columns = columns_of(path)
    except DialometerError:
        return None
    reader = FORMATS.get(name)()
    problems = Problems(str(path))
    intake = Intake(path, SourceFile(reader.file_of(path)), problems, ImportOptions())
    seen = _Seen()
    try:
        with _without_log():
            for record in reader.records(intake):
                seen.add(record)
    except DialometerError as error:
        problems.of_file(Problem(error.message, error.remedy, str(path)))
    return {
        "kind": "judgments",
        "format": name,
        "read_as": forms_of(path),
        "columns": columns,
        **seen.summary(),
        "used": dict(intake.used),
        "ignored": list(dict.fromkeys(intake.unread)),
        "left_out": dict(intake.left_out),
        "assumed": list(problems.assumed),
        "problems": [_words(problem, n) for problem, n in problems.kinds_of_errors],
        "n_problems": problems.n_errors,
    }


class _Seen:
    """Counts what records say."""

    def __init__(self) -> None:
        self.n_judgments = 0
        self.n_answers = 0
        self.raters: set[str] = set()
        self.items: set[str] = set()
        self.systems: Counter[str] = Counter()
        self.criteria: Counter[str] = Counter()
        self.undecided: Counter[str] = Counter()

    def add(self, record: object) -> None:
        if isinstance(record, AnswerRecord):
            self.n_answers += 1
        if not isinstance(record, JudgmentRecord):
            return
        self.n_judgments += 1
        self.raters.add(record.rater)
        self.items.add(record.item or f"{record.question} {record.answer}")
        self.systems.update([record.system] if record.system else record.shown)
        self.criteria[record.criterion] += 1
        if record.raw in (TIE, BOTH_BAD, CANNOT_TELL):
            self.undecided[str(record.raw)] += 1

    def summary(self) -> Found:
        return {
            "judgments": self.n_judgments,
            "answers": self.n_answers,
            "raters": len(self.raters),
            "items": len(self.items),
            "systems": dict(self.systems.most_common()),
            "criteria": dict(self.criteria),
            "undecided": dict(self.undecided),
        }


def _table(path: Path) -> Found | None:
    """The columns of a table that is of no known format; None for no table."""
    try:
        columns = columns_of(path)
    except DialometerError:
        return None
    if len(columns) < 2:
        return None
    return {
        "kind": "table", "format": "", "read_as": forms_of(path), "columns": columns, "ratings": _ratings(path, columns)
    }  # fmt: skip


def _ratings(path: Path, header: Sequence[str]) -> list[str] | None:
    """Which columns of a table with raters are criteria: all their cells are numbers, and they play no other part.

    Empty where the table has a known column of ratings; None where it does not seem to hold any.
    """
    columns = Columns.bind(header, {}, RATING_ROLES)
    if not columns.has("rater") or not (columns.has("item") or columns.has("system")):
        return None
    if columns.has("value"):
        return []
    rows = list(islice(table_rows(SourceFile(path), Problems(str(path)), ()), N_ROWS_TRIED))
    unbound = [name for name in header if name not in columns.by_role.values()]
    cells = {name: [row.cells[name] for row in rows if not is_missing(row.cells[name])] for name in unbound}
    rated = [name for name, texts in cells.items() if texts and all(to_number(cell) is not None for cell in texts)]
    return rated or None


def _is_of_turns(path: Path) -> bool:
    """Whether a table has the columns of turns: then it is a file of dialogues, with mistakes."""
    return path.is_file() and "csv" in recognised_formats(SourceFile(path))


# folders


def _folder(path: Path) -> Found:
    if (path / STUDY_FILE).is_file():
        return {"kind": "study", "folder": str(path)}
    manifest = read_manifest(path)
    if manifest is not None:
        rows = {name: about.get("n_rows") for name, about in manifest["files"].items() if isinstance(about, dict)}
        return {"kind": "export", "folder": str(path), "study": manifest.get("study", {}), "files": rows}
    inside = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    files = [_in_folder(file) for file in inside[:MOST_FILES]]
    return {"kind": "folder", "folder": str(path), "files": files, "n_files": len(inside)}


def _in_folder(path: Path) -> Found:
    """One line about a file of a folder. Of large files only the format is told."""
    if path.is_file() and path.stat().st_size > LARGE_BYTES:
        return {"name": path.name, "kind": "large", "megabytes": path.stat().st_size // 1_000_000}
    try:
        is_data = path.is_file() or is_columnar(path) or (path / STUDY_FILE).is_file()
        summary: Found = look_at(path) if is_data else {"kind": "folder"}
    except (DialometerError, OSError) as error:
        return {"name": path.name, "kind": "unknown", "why": str(error).splitlines()[-1].strip()}
    kept = ("kind", "format", "judgments", "dialogues", "turns", "columns")
    short = {name: summary[name] for name in kept if name in summary}
    dialogues = short.get("dialogues")
    if isinstance(dialogues, dict):
        short["dialogues"] = dialogues["dialogues"]
    return {"name": path.name, **short}
