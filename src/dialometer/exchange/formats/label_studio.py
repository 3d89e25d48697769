"""Label Studio (labelstud.io): a study as a project, and the answers back.

Answers are read from the JSON export, with one entry per item and one annotation per rater.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as Xml  # nosec B405

from dialometer.exchange.cell_reader import MOST_SECONDS
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.records import UNKNOWN_MS, Record, read_time_ms
from dialometer.exchange.tool_form import PLACES, FormAnswers, FormField, FormItem, ToolForm, read_key
from dialometer.model.dialogue import Turn, clean_text
from dialometer.model.values import to_number
from dialometer.readers.json_records import is_too_deep
from dialometer.readers.reader import Head
from dialometer.readers.source import SourceFile

CANCELLED = "skipped annotations"
NOT_READ = "results of a kind that is no rating"
_VALUES = {
    "rating": "rating",
    "number": "number",
    "choices": "choices",
    "pairwise": "selected",
    "textarea": "text",
}


@FORMATS.register("label_studio")
class LabelStudio(ImportFormat):
    """The export called JSON (not JSON-MIN, which does not say who answered)."""

    takes: ClassVar[frozenset[str]] = frozenset()
    summary: ClassVar[str] = "answers of a Label Studio project (its JSON export)"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """Entries with annotations that have results."""
        if not path.is_file() or path.suffix.lower() != ".json":
            return False
        try:
            head = Head(".json", SourceFile(path).head())
        except OSError:
            return False
        text = head.text.lstrip()
        return text.startswith("[") and '"annotations"' in text and '"from_name"' in text and '"result"' in text

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each answered field."""
        answers = FormAnswers(intake, read_key(intake.path))
        try:
            entries = json.loads(intake.source.text(intake.problems))
        except (ValueError, RecursionError) as error:
            intake.wrong(0, f"this is not JSON ({error})", "export the project again, as JSON")
            return
        if is_too_deep(entries):
            intake.wrong(0, "this is nested too deeply", "export the project again, as JSON")
            return
        for number, entry in enumerate(entries if isinstance(entries, list) else [], start=1):
            data = entry.get("data") if isinstance(entry, dict) else None
            annotations = entry.get("annotations") if isinstance(entry, dict) else None
            if not isinstance(data, dict) or not isinstance(annotations, list):
                intake.wrong(number, "an entry without data or annotations", "export the project again, as JSON")
                continue
            item = _clean(data.get("item") or entry.get("id"), number, intake)
            for annotation in annotations:
                if isinstance(annotation, dict) and item:
                    yield from _annotation(annotation, item, number, answers, intake)
                else:
                    intake.wrong(number, "an annotation or an item's id cannot be read", "export the project again")


def _annotation(
    annotation: Mapping[str, Any], item: str, line: int, answers: FormAnswers, intake: Intake
) -> Iterator[Record]:
    if annotation.get("was_cancelled"):
        intake.left_out[CANCELLED] += 1
        return
    values: dict[str, object] = {}
    results = annotation.get("result")
    for result in results if isinstance(results, list) else ():
        kind = result.get("type") if isinstance(result, dict) else None
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(kind, str) or kind not in _VALUES or not isinstance(value, dict):
            intake.left_out[NOT_READ] += 1
            continue
        raw = value.get(_VALUES[kind])
        if isinstance(raw, list) and len(raw) == 1:
            raw = raw[0]
        values[str(result.get("from_name"))] = raw
    answered = _time_ms(annotation.get("created_at"))
    lead_s = to_number(annotation.get("lead_time"))
    is_known = answered and lead_s is not None and 0 <= lead_s < MOST_SECONDS
    shown = max(UNKNOWN_MS, answered - round(lead_s * 1000)) if is_known and lead_s is not None else UNKNOWN_MS
    rater = _clean(_rater(annotation), line, intake)
    if rater:
        yield from answers.records(rater, item, values, line=line, shown_at_ms=shown, answered_at_ms=answered)
    else:
        intake.wrong(line, "nothing says who answered", "export the project again, as JSON")


def _clean(given: object, line: int, intake: Intake) -> str:
    """A name as text; empty where there is none or it holds characters that cannot be stored, which is reported."""
    try:
        return clean_text(str(given)) if isinstance(given, str | int) else ""
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
        Xml.SubElement(view, "Header", {"value": form.question(field)})
        _add_control(view, form, field)
    return view


def _add_control(view: Xml.Element, form: ToolForm, field: FormField) -> None:
    scale = form.scale(field)
    is_required = form.study.criteria_by_name[field.criterion].is_required
    common = {"name": field.name, "toName": f"option{field.place or 1}", "required": str(is_required).lower()}
    entered = scale.input_field(PLACES[: form.n_places])
    if scale.choice_form == "one" and not scale.extra_options():
        Xml.SubElement(view, "Pairwise", {**common, "toName": "option1,option2"})
        return
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


def _add_choices(view: Xml.Element, attributes: dict[str, str], options: Sequence[str]) -> None:
    control = Xml.SubElement(view, "Choices", {"choice": "single", **attributes})
    for option in options:
        Xml.SubElement(control, "Choice", {"value": option})


def _data(item: FormItem) -> dict[str, Any]:
    shown = {f"option{place}": _turns(turns) for place, turns in enumerate(item.options, start=1)}
    context = {"context": _turns(item.context)} if item.context else {}
    return {"item": item.id, **context, **shown}


def _turns(turns: tuple[Turn, ...]) -> list[dict[str, str]]:
    return [{"author": turn.speaker, "text": turn.text} for turn in turns]
