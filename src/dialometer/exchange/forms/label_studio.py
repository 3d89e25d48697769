"""A study as a Label Studio project: the labelling configuration, the items as JSON, and the key (labelstud.io)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from dialometer.exchange.forms.tool_form import PLACES, FormField, FormItem, ToolForm
from dialometer.model.dialogue import Turn

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
    scale: Any = form.scale(field)
    is_required = form.study.criteria_by_name[field.criterion].is_required
    common = {"name": field.name, "toName": f"option{field.place or 1}", "required": str(is_required).lower()}
    letters = list(PLACES[: form.n_places])
    match scale.type:
        case "likert" if scale.first == 1:
            Xml.SubElement(view, "Rating", {**common, "maxRating": str(scale.points)})
        case "likert":
            _add_choices(view, common, [str(point) for point in scale.categories()])
        case "slider":
            ends = {"min": f"{scale.low:g}", "max": f"{scale.high:g}", "step": f"{scale.step:g}", "slider": "true"}
            Xml.SubElement(view, "Number", {**common, **ends})
        case "magnitude":
            Xml.SubElement(view, "Number", {**common, "min": f"{scale.minimum:g}"})
        case "pairwise" if not scale.allow_tie and not scale.allow_cannot_tell:
            Xml.SubElement(view, "Pairwise", {**common, "toName": "option1,option2"})
        case "pairwise":
            extra = [word for word, on in (("tie", scale.allow_tie), ("cannot_tell", scale.allow_cannot_tell)) if on]
            _add_choices(view, common, [*letters, *extra])
        case "best_worst":
            _add_choices(view, common, letters)
        case "choice":
            _add_choices(view, common, scale.options)
        case "multiple":
            _add_choices(view, {**common, "choice": "multiple"}, scale.options)
        case _:
            Xml.SubElement(view, "TextArea", {**common, "maxSubmissions": "1"})


def _add_choices(view: Xml.Element, attributes: dict[str, str], options: list[str]) -> None:
    control = Xml.SubElement(view, "Choices", {"choice": "single", **attributes})
    for option in options:
        Xml.SubElement(control, "Choice", {"value": option})


def _data(item: FormItem) -> dict[str, Any]:
    shown = {f"option{place}": _turns(turns) for place, turns in enumerate(item.options, start=1)}
    context = {"context": _turns(item.context)} if item.context else {}
    return {"item": item.id, **context, **shown}


def _turns(turns: tuple[Turn, ...]) -> list[dict[str, str]]:
    return [{"author": turn.speaker, "text": turn.text} for turn in turns]
