"""Turns what pydantic found into sentences with a place in the file and a remedy."""

from __future__ import annotations

import types
import typing
from typing import Any

from pydantic import BaseModel, ValidationError

from dialometer.design.positions import Path, Positioned
from dialometer.errors import Problem
from dialometer.registry import did_you_mean

_WORDS = {
    "string_type": "should be text",
    "string_too_short": "must not be empty",
    "int_type": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_from_float": "should be a whole number",
    "float_type": "should be a number",
    "float_parsing": "should be a number",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "list_type": "should be a list (lines that start with '- ')",
    "dict_type": "should be a mapping (lines of 'key: value')",
    "model_type": "should be a mapping (lines of 'key: value')",
    "too_short": "has too few entries",
}


def explain(
    error: ValidationError, model: type[BaseModel], source: Positioned, file: str, prefix: Path = ()
) -> list[Problem]:
    """One problem for each thing that is wrong; alternatives of one union are told as one."""
    problems: dict[Path, Problem] = {}
    for detail in error.errors(include_url=False):
        path = _real_path(
            (*prefix, *detail["loc"]), source, is_missing=detail["type"] in ("missing", "extra_forbidden")
        )
        if path in problems:
            continue
        line, column = source.at(path)
        message, remedy = _sentence(detail, model, tuple(detail["loc"]))
        problems[path] = Problem(message, remedy, file, line, column, ".".join(map(str, path)))
    return list(problems.values())


def _real_path(loc: Path, source: Positioned, *, is_missing: bool) -> Path:
    """Drops the names of union members that pydantic puts into a location."""
    path: Path = ()
    for step in loc:
        if (*path, step) in source.positions:
            path = (*path, step)
    return (*path, loc[-1]) if is_missing and (not path or path[-1] != loc[-1]) else path


def _sentence(detail: Any, model: type[BaseModel], loc: Path) -> tuple[str, str]:
    kind, given, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    key = str(loc[-1]) if loc else ""
    if kind == "missing":
        owner = _model_at(model, loc[:-1])
        field = owner.model_fields.get(key) if owner else None
        hint = f": {field.description}" if field and field.description else ""
        return f"the key '{key}' is missing", f"add '{key}:'{hint}"
    if kind == "extra_forbidden":
        owner = _model_at(model, loc[:-1])
        return f"unknown key '{key}'", did_you_mean(key, sorted(owner.model_fields) if owner else [])
    if kind == "literal_error":
        expected = [word.strip(" '") for word in str(context.get("expected", "")).replace(" or ", ", ").split(",")]
        return f"'{given}' is not one of the possible values", did_you_mean(str(given), expected)
    if kind == "string_pattern_mismatch":
        return f"'{given}' cannot be a name", "use letters, digits, '_' and '-', starting with a letter"
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        sign, bound = next(
            (s, context[k]) for k, s in (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤")) if k in context
        )
        return f"{given} is out of range", f"use a number {sign} {bound:g}"
    if kind == "value_error":
        return str(context.get("error", detail["msg"])), "correct it here"
    if kind == "too_short":
        return f"needs at least {context.get('min_length', 1)} entries", "add what is missing"
    words = _WORDS.get(kind, detail["msg"])
    shown = "" if isinstance(given, dict | list) else f", not '{given}'"
    return f"{words}{shown}", "correct the value"


def _model_at(model: type[BaseModel], loc: Path) -> type[BaseModel] | None:
    """The model that stands at a location, found by walking the declared types."""
    current: Any = model
    for step in loc:
        found = _models_in(current)
        owner = next((m for m in found if isinstance(step, str) and step in m.model_fields), None)
        if owner is not None:
            current = owner.model_fields[str(step)].annotation
        elif typing.get_origin(current) in (list, dict):
            current = typing.get_args(current)[-1]
    models = _models_in(current)
    return models[0] if models else None


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType, list, dict, typing.Annotated):
        return [m for arg in typing.get_args(annotation) for m in _models_in(arg)]
    return []
