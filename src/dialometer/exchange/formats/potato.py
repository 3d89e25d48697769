"""Answers of a Potato project: its output folder, or one rater's user_state.json or annotated_instances.jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dialometer.errors import ImportFileError
from dialometer.exchange.formats.form import FORMATS, Format, Intake, unreadable
from dialometer.exchange.forms.tool_form import FormAnswers, read_key
from dialometer.exchange.records import Record

STATE_FILE, OLD_FILE = "user_state.json", "annotated_instances.jsonl"
LABELS = "instance_id_to_label_to_value"
_FALSE = (None, "", False, "false", "False")


@FORMATS.register("potato")
class Potato(Format):
    """One state per rater. Potato writes an item's labels as pairs of label and value, or (older) as nested objects."""

    summary: ClassVar[str] = "answers of a Potato project (its output folder, or a rater's user_state.json)"
    takes_folder: ClassVar[bool] = True

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """The names of Potato's files."""
        return path.name in (STATE_FILE, OLD_FILE) or (path.is_dir() and bool(_files(path)))

    def file_of(self, path: Path) -> Path:
        """The file that identifies a folder: that of its first rater."""
        if not path.is_dir():
            return path
        files = _files(path)
        if not files:
            remedy = f"give the folder that holds one folder a rater, each with {STATE_FILE}"
            raise ImportFileError([unreadable(path, "there are no answers of Potato here", remedy)])
        return files[0]

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each answered field."""
        answers = FormAnswers(intake, read_key(intake.path))
        files = _files(intake.path) if intake.path.is_dir() else [intake.path]
        for file in files:
            intake.problems.file = str(file)
            for rater, item, labels, line in _labels(file, intake):
                yield from answers.records(rater, item, _values(labels), line=line)


def _files(folder: Path) -> list[Path]:
    """One file a rater: the state where there is one, else the older file."""
    folders = sorted({file.parent for name in (STATE_FILE, OLD_FILE) for file in folder.rglob(name)})
    return [one / STATE_FILE if (one / STATE_FILE).is_file() else one / OLD_FILE for one in folders]


def _labels(file: Path, intake: Intake) -> Iterator[tuple[str, str, Any, int]]:
    """Rater, item, labels and line (or, in a state, number) of every answered item of a file."""
    try:
        text = file.read_text(encoding="utf-8")
        if file.name == OLD_FILE:
            lines = [
                (number, json.loads(line)) for number, line in enumerate(text.splitlines(), start=1) if line.strip()
            ]
            for number, entry in lines:
                item = str(entry.get("instance_id") or entry.get("id") or "")
                yield str(entry.get("user_id") or file.parent.name), item, entry.get("label_annotations", {}), number
            return
        state = json.loads(text)
        for number, (item, labels) in enumerate(state[LABELS].items(), start=1):
            yield str(state.get("user_id") or file.parent.name), str(item), labels, number
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        intake.wrong(0, f"this is no file of Potato's ({type(error).__name__}: {error})", "copy it again")


def _values(labels: Any) -> dict[str, object]:
    """Answers by field. A label that is ticked is an answer by its name, any other value is the answer itself."""
    entries: dict[str, list[tuple[str, object]]] = {}
    if isinstance(labels, Mapping):
        for schema, named in labels.items():
            inner = named.get("labels", named) if isinstance(named, Mapping) else {"": named}
            entries[str(schema)] = [(str(name), value) for name, value in inner.items()]
    else:
        for label, value in labels or ():
            entries.setdefault(str(label["schema"]), []).append((str(label["name"]), value))
    values: dict[str, object] = {}
    for schema, given in entries.items():
        chosen = [_one(name, value) for name, value in given if value not in _FALSE]
        if chosen:
            values[schema] = chosen[0] if len(chosen) == 1 else chosen
    return values


def _one(name: str, value: object) -> object:
    if value in (True, "true", "True") or value == name:
        return name.removeprefix("scale_")
    return value
