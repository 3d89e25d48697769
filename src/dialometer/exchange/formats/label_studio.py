"""Label Studio (labelstud.io): a study as a project, and the answers back.

Answers are read from the exports called JSON (one entry per item, with its annotations), JSON-MIN and CSV (one entry
per annotation).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as Xml  # nosec B405

from dialometer.exchange.cell_reader import MOST_SECONDS
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.records import UNKNOWN_MS, Record, read_time_ms
from dialometer.exchange.tool_form import KEY_FILE, PLACES, FormAnswers, FormField, FormItem, ToolForm, read_key
from dialometer.model.dialogue import Turn, clean_text
from dialometer.model.tool_steps import in_words
from dialometer.model.values import to_number
from dialometer.readers.json_records import is_too_deep
from dialometer.readers.reader import Head
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows

CANCELLED = "skipped annotations"
NOT_READ = "results of a kind that is not a rating"
AGAIN = "export the project again, as JSON"
NO_KEY = f"put {KEY_FILE} beside the file, or export the project as JSON"
_FLAT = frozenset({"annotator", "annotation_id", "lead_time"})
"""What every annotation of JSON-MIN and CSV has."""
_VALUES = {
    "rating": "rating",
    "number": "number",
    "choices": "choices",
    "pairwise": "selected",
    "textarea": "text",
}


@FORMATS.register("label_studio")
class LabelStudio(ImportFormat):
    """The exports called JSON, JSON-MIN and CSV. Only the first says which annotations were skipped."""

    takes: ClassVar[frozenset[str]] = frozenset()
    summary: ClassVar[str] = "answers of a Label Studio project (its JSON, JSON-MIN or CSV export)"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """Entries with annotations that have results, or answers beside who gave them and in which annotation."""
        if not path.is_file():
            return False
        if path.suffix.lower() != ".json":
            return set(header) >= _FLAT
        try:
            head = Head(".json", SourceFile(path).head())
        except OSError:
            return False
        text = head.text.lstrip()
        keys = ('"annotations"', '"from_name"', '"result"')
        is_flat = all(f'"{name}"' in text for name in _FLAT)
        return text.startswith("[") and (all(name in text for name in keys) or is_flat)

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each answered field."""
        answers = FormAnswers(intake, read_key(intake.path))
        for number, entry in enumerate(_entries(intake), start=1):
            if not isinstance(entry, dict):
                intake.wrong(number, "an entry is not an object", AGAIN)
            elif set(entry) >= _FLAT and not answers.has_key:
                intake.wrong(0, "without the form's key nothing says which columns are answers", NO_KEY)
                return
            elif set(entry) >= _FLAT:
                yield from _flat(entry, number, answers, intake)
            else:
                yield from _entry(entry, number, answers, intake)


def _entries(intake: Intake) -> list[Any]:
    """What the file lists: rows of the table, or the entries of the JSON file."""
    if intake.path.suffix.lower() != ".json":
        rows = table_rows(intake.source, intake.problems, sorted(_FLAT))
        return [{name: cell for name, cell in row.cells.items() if cell or name in _FLAT} for row in rows]
    try:
        entries = json.loads(intake.source.text(intake.problems))
    except (ValueError, RecursionError) as error:
        intake.wrong(0, f"this is not JSON ({error})", AGAIN)
        return []
    if is_too_deep(entries):
        intake.wrong(0, "this is nested too deeply", AGAIN)
        return []
    return entries if isinstance(entries, list) else [entries]


def _entry(entry: Mapping[str, Any], number: int, answers: FormAnswers, intake: Intake) -> Iterator[Record]:
    """An item with its annotations, as the export called JSON has it."""
    data, annotations = entry.get("data"), entry.get("annotations")
    if not isinstance(data, dict) or not isinstance(annotations, list):
        intake.wrong(number, "an entry without data or annotations", AGAIN)
        return
    item = _clean(data.get("item") or entry.get("id"), number, intake)
    for annotation in annotations:
        if not isinstance(annotation, dict) or not item:
            intake.wrong(number, "an annotation or an item's id cannot be read", AGAIN)
        elif annotation.get("was_cancelled"):
            intake.left_out[CANCELLED] += 1
        else:
            yield from _answers(annotation, _rater(annotation), item, _results(annotation, intake), number, answers)


def _results(annotation: Mapping[str, Any], intake: Intake) -> dict[str, object]:
    values: dict[str, object] = {}
    results = annotation.get("result")
    for result in results if isinstance(results, list) else ():
        kind = result.get("type") if isinstance(result, dict) else None
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(kind, str) or kind not in _VALUES or not isinstance(value, dict):
            intake.left_out[NOT_READ] += 1
        else:
            values[str(result.get("from_name"))] = _single(value.get(_VALUES[kind]))
    return values


def _flat(entry: Mapping[str, Any], number: int, answers: FormAnswers, intake: Intake) -> Iterator[Record]:
    """One annotation as JSON-MIN and CSV have it: the item's data, the answers and who gave them, side by side."""
    item = _clean(entry.get("item") or entry.get("id"), number, intake)
    fields = [name for name in entry if answers.knows(name)]
    values = {name: _flat_value(entry[name]) for name in fields}
    if item:
        yield from _answers(entry, str(entry.get("annotator") or ""), item, values, number, answers)
    else:
        intake.wrong(number, "nothing says which item was answered", AGAIN)


def _flat_value(value: object) -> object:
    """The answer itself: a text, or an object such as ``[{"rating": 4}]``, which CSV writes as JSON."""
    if isinstance(value, str) and value[:1] in "[{":
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    value = _single(value)
    if isinstance(value, dict):
        return _single(next((value[name] for name in _VALUES.values() if name in value), None))
    return value


def _single(value: object) -> object:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _answers(
    annotation: Mapping[str, Any],
    by: str,
    item: str,
    values: Mapping[str, object],
    line: int,
    answers: FormAnswers,
) -> Iterator[Record]:
    answered = _time_ms(annotation.get("created_at"))
    lead_s = to_number(annotation.get("lead_time"))
    is_known = answered and lead_s is not None and 0 <= lead_s < MOST_SECONDS
    shown = max(UNKNOWN_MS, answered - round(lead_s * 1000)) if is_known and lead_s is not None else UNKNOWN_MS
    rater = _clean(by, line, answers.intake)
    if rater:
        given = {name: value for name, value in values.items() if value is not None}
        yield from answers.records(rater, item, given, line=line, shown_at_ms=shown, answered_at_ms=answered)
    else:
        answers.intake.wrong(line, "nothing says who answered", AGAIN)


def _clean(value: object, line: int, intake: Intake) -> str:
    """A name as text; empty where there is none or it holds characters that cannot be stored, which is reported."""
    try:
        return clean_text(str(value)) if isinstance(value, str | int) else ""
    except ValueError as error:
        intake.wrong(line, f"a name holds a {error}", "remove the character")
        return ""


def _rater(annotation: Mapping[str, Any]) -> str:
    """Who answered: an id, or an object with an address, as the export's settings have it."""
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        return str(by.get("email") or by.get("id") or "")
    return str(by if by is not None else annotation.get("id", ""))


def _time_ms(text: object) -> int:
    try:
        return read_time_ms(str(text)) if text else UNKNOWN_MS
    except ValueError:
        return UNKNOWN_MS


# writing a project

CONFIG_FILE, ITEMS_FILE = "config.xml", "items.json"


def write_label_studio(form: ToolForm, folder: Path) -> list[Path]:
    """Write the two files that a new project asks for, and the key."""
    folder.mkdir(parents=True, exist_ok=True)
    view = _view(form)
    Xml.indent(view)
    config = folder / CONFIG_FILE
    config.write_text(Xml.tostring(view, encoding="unicode") + "\n", encoding="utf-8")
    listed = [{"data": _data(item)} for item in form.items]
    (folder / ITEMS_FILE).write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return [config, folder / ITEMS_FILE, form.write_key(folder)]


def _view(form: ToolForm) -> Xml.Element:
    view = Xml.Element("View")
    dialogue = {"layout": "dialogue", "nameKey": "author", "textKey": "text"}
    if any(item.context for item in form.items):
        Xml.SubElement(view, "Paragraphs", {"name": "context", "value": "$context", **dialogue})
    for place in range(form.n_places):
        if form.n_places > 1:
            Xml.SubElement(view, "Header", {"value": PLACES[place]})
        Xml.SubElement(view, "Paragraphs", {"name": f"option{place + 1}", "value": f"$option{place + 1}", **dialogue})
    for field in form.fields:
        if field.part == "worst":
            _add_worst(view, form, field)
        else:
            Xml.SubElement(view, "Header", {"value": form.question(field)})
            _add_control(view, form, field)
    return view


def _add_control(view: Xml.Element, form: ToolForm, field: FormField) -> None:
    """The control of one field. Choices between responses are always ``Choices``: of several ``Pairwise`` one is stored."""
    entered = form.scale(field).input_field(PLACES[: form.n_places])
    common = _common(form, field)
    match entered.kind:
        case "points" if entered.low == 1:
            Xml.SubElement(view, "Rating", {**common, "maxRating": f"{entered.high:g}"})
        case "points" | "one_of":
            _add_choices(view, common, entered.options)
        case "any_of":
            _add_choices(view, {**common, "choice": "multiple"}, entered.options)
        case "range":
            ends = {
                "min": f"{entered.low:g}",
                "max": f"{entered.high:g}",
                "step": f"{entered.step:g}",
                "slider": "true",
            }
            Xml.SubElement(view, "Number", {**common, **ends})
        case "number":
            least = {} if entered.low is None else {"min": f"{entered.low:g}"}
            Xml.SubElement(view, "Number", {**common, **least})
        case _:
            Xml.SubElement(view, "TextArea", {**common, "maxSubmissions": "1"})


def _common(form: ToolForm, field: FormField) -> dict[str, str]:
    is_required = form.study.criteria_by_name[field.criterion].is_required
    needed = {"required": "true", "requiredMessage": f"Please answer: {form.question(field)}"} if is_required else {}
    return {"name": field.name, "toName": f"option{field.place or 1}", **needed}


def _add_worst(view: Xml.Element, form: ToolForm, field: FormField) -> None:
    for control in form.worst_controls(field):
        shown = {"visibleWhen": "choice-selected", "whenTagName": control.best, "whenChoiceValue": control.letter}
        part = Xml.SubElement(view, "View", shown)
        Xml.SubElement(part, "Header", {"value": form.question(field)})
        _add_choices(part, {**_common(form, field), "name": control.name}, control.options)


def _add_choices(view: Xml.Element, attributes: dict[str, str], options: Sequence[str]) -> None:
    control = Xml.SubElement(view, "Choices", {"choice": "single", "layout": "inline", **attributes})
    for option in options:
        Xml.SubElement(control, "Choice", {"value": option})


def _data(item: FormItem) -> dict[str, Any]:
    shown = {f"option{place}": _turns(turns) for place, turns in enumerate(item.options, start=1)}
    context = {"context": _turns(item.context)} if item.context else {}
    return {"item": item.id, **context, **shown}


def _turns(turns: tuple[Turn, ...]) -> list[dict[str, str]]:
    return [{"author": turn.speaker, "text": in_words(turn)} for turn in turns]
