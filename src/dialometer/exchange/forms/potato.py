"""A study as a Potato project: config.yaml, the items, and the key (potatoannotator.com, github.com/davidjurgens/potato)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from dialometer.exchange.forms.tool_form import PLACES, FormField, FormItem, ToolForm
from dialometer.model.dialogue import Turn

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
        "annotation_schemes": [_scheme(form, field) for field in form.fields],
    }


def _scheme(form: ToolForm, field: FormField) -> dict[str, Any]:
    scale: Any = form.scale(field)
    is_required = form.study.criteria_by_name[field.criterion].is_required
    common = {"name": field.name, "description": form.question(field)}
    needed = {"label_requirement": {"required": is_required}}
    letters = list(PLACES[: form.n_places])
    match scale.type:
        case "likert" if scale.first == 1:
            labels = {int(point): text for point, text in scale.labels.items()}
            ends = {"min_label": labels.get(1, "1"), "max_label": labels.get(scale.points, str(scale.points))}
            return {"annotation_type": "likert", **common, **ends, "size": scale.points, **needed}
        case "likert":
            return {"annotation_type": "radio", **common, "labels": [str(p) for p in scale.categories()], **needed}
        case "slider":
            ends = {"min_value": scale.low, "max_value": scale.high, "starting_value": (scale.low + scale.high) / 2}
            return {"annotation_type": "slider", **common, **ends, **needed}
        case "magnitude":
            return {"annotation_type": "number", **common, **needed}
        case "pairwise" if not scale.allow_cannot_tell:
            shown = {"items_key": "responses", "labels": letters, "allow_tie": scale.allow_tie}
            return {"annotation_type": "pairwise", **common, "mode": "binary", **shown, **needed}
        case "pairwise":
            extra = ["tie"] if scale.allow_tie else []
            return {"annotation_type": "radio", **common, "labels": [*letters, *extra, "cannot_tell"], **needed}
        case "best_worst":
            return {"annotation_type": "radio", **common, "labels": letters, **needed}
        case "choice":
            return {"annotation_type": "radio", **common, "labels": list(scale.options), **needed}
        case "multiple":
            return {"annotation_type": "multiselect", **common, "labels": list(scale.options), **needed}
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
    return "\n".join(f"{turn.speaker}: {turn.text}" for turn in turns)
