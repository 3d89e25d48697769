"""Potato (potatoannotator.com, github.com/davidjurgens/potato): a study as a project, and the answers back.

Answers are read from the output folder, or from one rater's user_state.json or annotated_instances.jsonl.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import yaml

from dialometer.errors import ImportFileError
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake, unreadable
from dialometer.exchange.records import Record
from dialometer.exchange.tool_form import PLACES, FormAnswers, FormField, FormItem, ToolForm, read_key
from dialometer.model.dialogue import Turn, clean_text
from dialometer.model.tool_steps import in_words
from dialometer.model.values import CANNOT_TELL, TIE
from dialometer.readers.json_records import json_records, line_records
from dialometer.readers.source import SourceFile

STATE_FILE, OLD_FILE = "user_state.json", "annotated_instances.jsonl"
LABELS = "instance_id_to_label_to_value"


@FORMATS.register("potato")
class Potato(ImportFormat):
    """One state per rater. Potato writes an item's labels as pairs of label and value, or (older) as nested objects."""

    takes: ClassVar[frozenset[str]] = frozenset()
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
    return [path / STATE_FILE if (path / STATE_FILE).is_file() else path / OLD_FILE for path in folders]


def _labels(file: Path, intake: Intake) -> Iterator[tuple[str, str, Any, int]]:
    """Rater, item, labels and line (or, in a state, number) of every answered item of a file."""
    if file.name == OLD_FILE:
        for record in line_records(SourceFile(file), intake.problems):
            entry = record.value if isinstance(record.value, dict) else {}
            item = _name(entry.get("instance_id") or entry.get("id"))
            rater = _name(entry.get("user_id")) or _name(file.parent.name)
            if item and rater:
                yield rater, item, entry.get("label_annotations", {}), record.line
            else:
                intake.wrong(record.line, "nothing says which item was answered, or by whom", "copy the file again")
        return
    for record in json_records(SourceFile(file), intake.problems):
        state = record.value if isinstance(record.value, dict) else {}
        answered = state.get(LABELS)
        rater = _name(state.get("user_id")) or _name(file.parent.name)
        if not isinstance(answered, dict) or not rater:
            intake.wrong(record.line, f"this is not a file of Potato's (there is no '{LABELS}')", "copy it again")
            continue
        for number, (name, labels) in enumerate(answered.items(), start=1):
            if item := _name(name):
                yield rater, item, labels, number
            else:
                intake.wrong(number, "the id of an item cannot be read", "copy the file again")


def _name(value: object) -> str:
    """A name as text; empty where there is none, or none that can be stored."""
    with suppress(ValueError):
        return clean_text(str(value)) if isinstance(value, str | int) else ""
    return ""


def _values(labels: Any) -> dict[str, object]:
    """Answers by field. A label that is ticked is an answer by its name, any other value is the answer itself."""
    entries: dict[str, list[tuple[str, object]]] = {}
    if isinstance(labels, Mapping):
        for schema, names in labels.items():
            inner = names.get("labels", names) if isinstance(names, Mapping) else {"": names}
            if isinstance(inner, Mapping):
                entries[str(schema)] = [(str(name), value) for name, value in inner.items()]
    for pair in labels if isinstance(labels, list) else ():
        label, value = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
        if isinstance(label, Mapping) and {"schema", "name"} <= set(label):
            entries.setdefault(str(label["schema"]), []).append((str(label["name"]), value))
    values: dict[str, object] = {}
    for schema, answers in entries.items():
        chosen = [_answer(name, value) for name, value in answers if not _is_unticked(value)]
        if chosen:
            values[schema] = chosen[0] if len(chosen) == 1 else chosen
    return values


def _is_unticked(value: object) -> bool:
    return value is None or value is False or (isinstance(value, str) and value in ("", "false", "False"))


def _answer(name: str, value: object) -> object:
    if value is True or (isinstance(value, str) and value in ("true", "True", name)):
        return name.removeprefix("scale_")
    return value


# writing a project

DATA_FILE = "data/items.jsonl"
OUTPUT_FOLDER = "annotation_output"


def write_potato(form: ToolForm, folder: Path) -> list[Path]:
    """Write the project; ``potato start config.yaml`` in the folder serves it."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(_config(form), sort_keys=False, allow_unicode=True, width=1000), encoding="utf-8")
    lines = [json.dumps(_instance(item), ensure_ascii=False) for item in form.items]
    (folder / DATA_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [config, folder / DATA_FILE, form.write_key(folder)]


def _config(form: ToolForm) -> dict[str, Any]:
    return {
        "annotation_task_name": form.study.spec.title,
        "task_dir": ".",
        "data_files": [DATA_FILE],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "output_annotation_dir": f"{OUTPUT_FOLDER}/",
        "user_config": {"allow_all_users": True},
        "annotation_schemes": [scheme for field in form.fields for scheme in _schemes(form, field)],
    }


def _schemes(form: ToolForm, field: FormField) -> Iterator[dict[str, Any]]:
    """The schemes of one field. Potato's own best-worst scheme shows tuples that it draws itself, so it is not for items."""
    scheme = _scheme(form, field)
    if field.part != "worst":
        yield scheme
    else:
        for control in form.worst_controls(field):
            chosen = {"schema": control.best, "operator": "equals", "value": control.letter}
            logic = {"display_logic": {"show_when": [chosen]}}
            yield {**scheme, "name": control.name, "labels": list(control.options), **logic}


def _scheme(form: ToolForm, field: FormField) -> dict[str, Any]:
    scale = form.scale(field)
    is_required = form.study.criteria_by_name[field.criterion].is_required
    common = {"name": field.name, "description": form.question(field)}
    needed = {"label_requirement": {"required": is_required}}
    letters = PLACES[: form.n_places]
    entered, extra = scale.input_field(letters), scale.extra_options()
    if scale.choice_form == "one" and CANNOT_TELL not in extra:
        shown = {"items_key": "responses", "labels": list(letters), "allow_tie": TIE in extra}
        return {"annotation_type": "pairwise", **common, "mode": "binary", **shown, **needed}
    match entered.kind:
        case "points" if entered.low == 1 and entered.high is not None:
            ends = (1, int(entered.high))
            labels = [entered.labels.get(end, str(end)) for end in ends]
            ends_shown = {"min_label": labels[0], "max_label": labels[1], "size": ends[1]}
            return {"annotation_type": "likert", **common, **ends_shown, **needed}
        case "points" | "one_of":
            return {"annotation_type": "radio", **common, "labels": list(entered.options), **needed}
        case "any_of":
            return {"annotation_type": "multiselect", **common, "labels": list(entered.options), **needed}
        case "range" if entered.low is not None and entered.high is not None:
            middle = (entered.low + entered.high) / 2
            ends_set = {"min_value": entered.low, "max_value": entered.high, "starting_value": middle}
            return {"annotation_type": "slider", **common, **ends_set, **needed}
        case "number":
            return {"annotation_type": "number", **common, **needed}
        case _:
            return {"annotation_type": "text", **common, **needed}


def _instance(item: FormItem) -> dict[str, Any]:
    parts = [_text(item.context)] if item.context else []
    if len(item.options) == 1:
        parts.append(_text(item.options[0]))
    else:
        parts += [f"{PLACES[place]}.\n{_text(turns)}" for place, turns in enumerate(item.options)]
    return {"id": item.id, "text": "\n\n".join(parts), "responses": [_text(turns) for turns in item.options]}


def _text(turns: tuple[Turn, ...]) -> str:
    return "\n".join(f"{turn.speaker}: {in_words(turn)}" for turn in turns)
