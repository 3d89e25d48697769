"""The data dictionary: every file, column and value of an export, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import polars as pl

from dialometer.exchange.exports.export_tables import ExportTable
from dialometer.model.quality import Action, CheckQuestion
from dialometer.model.scale import Scale
from dialometer.model.session import Source, State
from dialometer.model.study import Criterion, Question, Study
from dialometer.storage.table import FACTOR_PREFIX

_TYPES = {pl.String: "text", pl.Boolean: "true or false", pl.Float64: "number", pl.Int64: "whole number"}
_TYPES[pl.Int32] = "whole number"
PARTS = {"screening": "screening", "pre": "pre_questionnaire", "post": "post_questionnaire"}
"""Where questions are asked, and under which key the study file lists them."""


def data_dictionary(study: Study, tables: Mapping[str, ExportTable], about: Mapping[str, Any]) -> dict[str, Any]:
    """The dictionary of tables by file name; ``about`` says which study and which version of it this is."""
    spec = study.spec
    return {
        "study": dict(about),
        "files": {file: _describe_table(study, table) for file, table in tables.items()},
        "systems": [{"name": s.name, "label": s.label, "description": s.description} for s in spec.systems],
        "criteria": [_describe_criterion(study, criterion) for criterion in spec.criteria],
        "factors": [
            {
                "name": factor.name,
                "label": factor.label,
                "levels": [
                    {"name": level.name, "label": level.label, "sets": level.set.model_dump(exclude_unset=True)}
                    for level in factor.levels
                ],
            }
            for factor in spec.design.factors
        ],
        "blocks": [{"name": block.name, "title": block.title} for block in study.blocks],
        "questions": [_describe_question(study, part, question) for part, question in questions_of(study)],
        "items": {"kind": spec.items.kind, "n": len(study.items)},
    }


def _describe_table(study: Study, table: ExportTable) -> dict[str, Any]:
    values = _allowed_values(study)
    columns = []
    for name, (kind, meaning) in table.columns.items():
        known = None if (table.name, name) == ("answers", "value") else values.get(name) or None
        columns.append({"name": name, "type": _type_name(kind), "meaning": meaning, "values": known})
    return {"row": table.meaning, "columns": columns}


def _type_name(kind: Any) -> str:
    return "time in UTC" if isinstance(kind, pl.Datetime) else _TYPES[kind]


def _allowed_values(study: Study) -> dict[str, list[str]]:
    """What a column may hold, where the study says so."""
    spec = study.spec
    scales = [scale for criterion in spec.criteria for scale, _ in _scales_of(study, criterion)]
    systems = [system.name for system in spec.systems]
    rules = [rule.rule for rule in spec.quality] + (["screening"] if spec.screening else [])
    return {
        "source": list(get_args(Source)),
        "state": list(get_args(State)),
        "block": [block.name for block in study.blocks],
        "system": systems,
        "criterion": [
            name
            for criterion in spec.criteria
            for name in (criterion.name, *([criterion.reason_name] if criterion.reason else []))
        ],
        "scale": sorted({scale.type for scale in scales}),
        "choice": _choices(scales, systems),
        "worst": systems if any(scale.choice_form == "ends" for scale in scales) else [],
        "value": [f"{criterion.name}: {_in_words(study, criterion)}" for criterion in spec.criteria],
        "action": list(get_args(Action)),
        "rule": list(dict.fromkeys(rules)),
        "role": ["user", "agent"],
        "part": list(dict.fromkeys(part for part, _ in questions_of(study))),
        "question": list(dict.fromkeys(question.name for _, question in questions_of(study))),
        **{FACTOR_PREFIX + factor.name: [level.name for level in factor.levels] for factor in spec.design.factors},
    }


def _choices(scales: Sequence[Scale], systems: list[str]) -> list[str]:
    """What can be chosen by name; nothing where texts are free."""
    names: list[str] = []
    for scale in scales:
        own = scale.names(systems)
        if own is None:
            return []
        names += own
    return list(dict.fromkeys(names))


def _in_words(study: Study, criterion: Criterion) -> str:
    return " or ".join(scale.describe() for scale, _ in _scales_of(study, criterion))


def questions_of(study: Study) -> list[tuple[str, Question | CheckQuestion]]:
    """Every question of the study with the part under which its answers are stored."""
    questions: list[tuple[str, Question | CheckQuestion]] = [
        (part, question) for part, key in PARTS.items() for question in getattr(study.spec, key)
    ]
    return questions + [question for rule in study.spec.quality for question in rule.questions_asked()]


def _scales_of(study: Study, criterion: Criterion) -> list[tuple[Scale, list[str]]]:
    """The scales on which a criterion is answered, each with the conditions where that is so."""
    scales: list[tuple[Scale, list[str]]] = []
    for cell in study.cells:
        for block in study.blocks:
            scale = study.scale_for(criterion, study.presentation(cell, block))
            label = study.cell_label(cell)
            entry = next((labels for known, labels in scales if known == scale), None)
            if entry is None:
                scales.append((scale, [label]))
            elif label not in entry:
                entry.append(label)
    return scales


def _describe_scale(scale: Scale) -> dict[str, Any]:
    return {"in_words": scale.describe(), "values": scale.categories(), **scale.model_dump(mode="json")}


def _describe_criterion(study: Study, criterion: Criterion) -> dict[str, Any]:
    return {
        "name": criterion.name,
        "label": criterion.label,
        "question": criterion.question,
        "definition": criterion.definition,
        "is_required": criterion.is_required,
        **({"reason": criterion.reason, "reasons_under": criterion.reason_name} if criterion.reason else {}),
        "scales": [
            {**_describe_scale(scale), "conditions": conditions} for scale, conditions in _scales_of(study, criterion)
        ],
    }


def _describe_question(study: Study, part: str, question: Question | CheckQuestion) -> dict[str, Any]:
    return {
        "part": part,
        "name": question.name,
        "text": question.text if isinstance(question, Question) else question.question,
        "scale": _describe_scale(study.spec.scales[question.scale]),
    }


def as_markdown(dictionary: Mapping[str, Any], options: Sequence[str]) -> str:
    """The dictionary for people; ``options`` are sentences on what this export holds and leaves out."""
    study = dictionary["study"]
    version = f"version {study['version']}, frozen {study['frozen_at']}" if study["version"] else "never frozen"
    recruited = study.get("recruited_through")
    lines = [
        f"# Data of “{study['title']}”",
        "",
        f"Study `{study['name']}`, {version}, fingerprint `{study['fingerprint']}`."
        + (f" Raters were recruited through {recruited}." if recruited else ""),
        "",
        *(f"- {sentence}" for sentence in options),
        "",
        "Raters appear under pseudonyms, the same in all files. Times are in UTC. An empty cell means “not known” or"
        " “does not apply”, never zero.",
    ]
    for file, table in dictionary["files"].items():
        lines += ["", f"## {file}", "", f"Each row is {table['row'].removesuffix(' a row')}.", ""]
        rows = [[f"`{c['name']}`", c["type"], _cell(c["meaning"]), _listed(c["values"])] for c in table["columns"]]
        lines += _markdown_table(["column", "type", "meaning", "values"], rows)
    lines += ["", "## Criteria", ""]
    lines += _markdown_table(["criterion", "question", "scale"], [_criterion_row(c) for c in dictionary["criteria"]])
    if dictionary["factors"]:
        lines += ["", "## Conditions", ""]
        rows = [
            [f"`{FACTOR_PREFIX}{f['name']}`", _cell(f["label"]), _listed([level["name"] for level in f["levels"]])]
            for f in dictionary["factors"]
        ]
        lines += _markdown_table(["factor", "label", "levels"], rows)
    if dictionary["questions"]:
        lines += ["", "## Questions", ""]
        rows = [
            [q["part"], f"`{q['name']}`", _cell(q["text"]), _scale_words(q["scale"])] for q in dictionary["questions"]
        ]
        lines += _markdown_table(["part", "question", "text", "answer"], rows)
    lines += ["", "## Systems", ""]
    rows = [[f"`{s['name']}`", _cell(s["label"]), _cell(s["description"])] for s in dictionary["systems"]]
    lines += _markdown_table(["system", "label", "description"], rows)
    return "\n".join(lines) + "\n"


def _criterion_row(criterion: Mapping[str, Any]) -> list[str]:
    scales = criterion["scales"]
    words = [
        _scale_words(scale) + (f" ({_cell('; '.join(scale['conditions']))})" if len(scales) > 1 else "")
        for scale in scales
    ]
    return [f"`{criterion['name']}`", _cell(criterion["question"]), "<br>".join(words)]


def _scale_words(scale: Mapping[str, Any]) -> str:
    labels = scale.get("labels") or {}
    if labels:
        return _cell(scale["in_words"] + ": " + ", ".join(f"{point} = {label}" for point, label in labels.items()))
    options = scale.get("options") or []
    return _cell(scale["in_words"] + (": " + "; ".join(options) if options else ""))


def _listed(values: Sequence[str] | None) -> str:
    return ", ".join(f"`{value}`" for value in values or ())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
