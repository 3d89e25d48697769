"""YAML with positions: the data, and the line and column of every key and value, for exact error messages."""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from dialometer.errors import Problem
from dialometer.registry import did_you_mean

Path = tuple[str | int, ...]
_MAX_NODES = 200_000
"""Of a file, also of what its aliases expand to."""
_TOO_MANY = "the file expands to too many values"


class StudyLoader(yaml.SafeLoader):
    """YAML 1.2 core: yes, no, on, off and dates are plain words, as people who write level names expect."""


class _QuickLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same, many times faster where PyYAML has been built with libyaml."""


_TAG = "tag:yaml.org,2002:"
_KINDS: dict[str, tuple[str, str, re.Pattern[str], Callable[[str], Any]]] = {
    tag: (words, first, re.compile(pattern), read)
    for tag, words, first, pattern, read in (
        ("bool", "true or false", "tTfF", r"^(?:true|True|TRUE|false|False|FALSE)$", lambda s: s[0] in "tT"),
        ("null", "empty", "~nN", r"^(?:~|null|Null|NULL|)$", lambda _: None),
        ("int", "a whole number", "-+0123456789", r"^[-+]?[0-9]+$", int),
        (
            "float",
            "a number",
            "-+.0123456789",
            r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+)$",
            float,
        ),
    )
}
"""What a word without quotes can be: its name, how it can begin, what it looks like, and how it is read.

Numbers are decimal, as in YAML 1.2: ``010`` is ten. YAML 1.1 reads it as eight, and fails on ``08``.
"""
_MAX_DIGITS = 100

StudyLoader.yaml_implicit_resolvers = {}
for _tag, _kind in _KINDS.items():
    StudyLoader.add_implicit_resolver(_TAG + _tag, _kind[2], [*_kind[1], ""] if _tag == "null" else list(_kind[1]))
_QuickLoader.yaml_implicit_resolvers = StudyLoader.yaml_implicit_resolvers
_QUICK_DEPTH = 500
_LONG = 50_000
"""Characters from which the slow loader would take more than about half a second."""
_STARTS = re.compile(r"^[ \t?:-]+", re.MULTILINE)
"""What a line begins with: each level of blocks takes at least one character of it."""


class _Refused(yaml.MarkedYAMLError):
    """YAML that is valid but not used in study files; says what to write instead."""

    def __init__(self, problem: str, remedy: str, node: yaml.Node) -> None:
        self.remedy = remedy
        super().__init__(problem=problem, problem_mark=node.start_mark)


@dataclass
class Positioned:
    """Parsed YAML: the plain data, where each path stands, and what was wrong with the text itself."""

    data: Any = None
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def at(self, path: Path) -> tuple[int, int]:
        """Line and column of a path, or of the nearest thing around it."""
        while path and path not in self.positions:
            path = path[:-1]
        return self.positions.get(path, (1, 1))


def parse_yaml(text: str, file: str) -> Positioned:
    """Parses a YAML text; syntax errors and keys given twice become problems."""
    result = Positioned()
    try:
        if _deepest(text) >= _QUICK_DEPTH and _depth(text) >= _QUICK_DEPTH:
            raise RecursionError
        if _most_nodes(text) > _MAX_NODES and _has_too_many(text):
            result.problems.append(Problem(_TOO_MANY, "make the file smaller", file, 1, 1))
            return result
        return _parsed(text, file, _QuickLoader)
    except (yaml.YAMLError, RecursionError) as error:
        if isinstance(error, RecursionError) or len(text) > _LONG:
            result.problems.append(_problem(error, text, file))
            return result
    try:  # the other loader says it in plainer words, but takes seconds for a long text
        return _parsed(text, file, StudyLoader)
    except (yaml.YAMLError, RecursionError) as error:
        result.problems.append(_problem(error, text, file))
    return result


def _problem(error: Exception, text: str, file: str) -> Problem:
    """What is wrong in the text, with its line."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        description = " ".join(filter(None, [error.context, error.problem]))
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        message, remedy = f"not valid YAML: {description}", "check indentation, colons and quotes here"
        if isinstance(error, _Refused):
            message, remedy = description, error.remedy
        return Problem(message, remedy, file, line, column)
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return Problem(f"not valid YAML: {error.reason}", "remove the character", file, line, 1)
    return Problem("not valid YAML: nested too deeply", "flatten the file", file, 1, 1)


def _parsed(text: str, file: str, kind: type[Any]) -> Positioned:
    result = Positioned()
    loader = kind(text)
    try:
        node = loader.get_single_node()
        if node is not None:
            result.data = _Builder(file, result).build(node, ())
    finally:
        loader.dispose()
    return result


def _deepest(text: str) -> int:
    """A bound on how deeply a text can be nested: libyaml's composer has no limit of its own but the stack."""
    return text.count("[") + text.count("{") + max((len(start) for start in _STARTS.findall(text)), default=0)


def _depth(text: str) -> int:
    """How deeply a text really is nested, from the parser's events, which come one after the other."""
    depth = deepest = 0
    for event in yaml.parse(text, Loader=_QuickLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            deepest = max(deepest, depth)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if deepest >= _QUICK_DEPTH:
            break
    return deepest


def _most_nodes(text: str) -> int:
    """A bound on how many values a text can hold: each has one of these signs before or after it, and of pairs it is one for two."""
    return 2 * sum(map(text.count, ":,-?[{")) + 1


def _has_too_many(text: str) -> bool:
    """Whether a text holds more values than are read. They are counted one after the other: the composer holds all of them at
    once, which takes gigabytes for a file of 16 MB."""
    n_nodes = 0
    for event in yaml.parse(text, Loader=_QuickLoader):
        n_nodes += isinstance(event, yaml.NodeEvent)
        if n_nodes > _MAX_NODES:
            return True
    return False


class _Builder:
    def __init__(self, file: str, result: Positioned) -> None:
        self.file = file
        self.result = result
        self.n_nodes = 0

    def build(self, node: yaml.Node, path: Path) -> Any:
        self.n_nodes += 1
        if self.n_nodes > _MAX_NODES:
            raise _Refused(_TOO_MANY, "use fewer aliases (*name)", node)
        self.result.positions.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(child, (*path, i)) for i, child in enumerate(node.value)]
        return scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[Hashable, Any]:
        data: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            mark = key_node.start_mark
            if key is None or not isinstance(key, str | int):
                raise _Refused("keys must be plain words", "put the key in quotes", key_node)
            if key in data:
                self.result.problems.append(
                    Problem(f"the key '{key}' is given twice", "keep one", self.file, mark.line + 1, mark.column + 1)
                )
            # A key's own position serves for its value: an editor should land on the line that names it.
            self.result.positions[(*path, key)] = (mark.line + 1, mark.column + 1)
            data[key] = self.build(value_node, (*path, key))
        return data


def scalar(node: yaml.Node) -> Any:
    """The value of one word, number or text. Whatever stands there, the result is a plain value or a refusal with its line."""
    text = str(node.value)
    tag = node.tag.removeprefix(_TAG)
    if tag == "str":
        return text
    if tag not in _KINDS:
        raise _Refused(f"the tag '{_shown_tag(node.tag)}' is not used in study files", "remove the tag", node)
    words, _, pattern, read = _KINDS[tag]
    if not pattern.match(text):
        raise _Refused(f"'{text[:40]}' is not {words}, as the tag '!!{tag}' says", "remove the tag", node)
    n_digits = sum(map(str.isdigit, text))
    value = read(text) if n_digits <= _MAX_DIGITS else None
    if n_digits > _MAX_DIGITS or (isinstance(value, float) and not math.isfinite(value)):
        raise _Refused(f"the number {text[:12]}… is too large", "write a smaller number, or put it in quotes", node)
    return value


def _shown_tag(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag[:40]


# Turns what pydantic found into sentences with a place in the file and a remedy.


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
        is_missing = detail["type"] in ("missing", "extra_forbidden")
        path = (*prefix, *_real_path(tuple(detail["loc"]), source, prefix, is_missing=is_missing))
        if path in problems:
            continue
        line, column = source.at(path)
        message, remedy = _sentence(detail, model, tuple(detail["loc"]))
        if is_missing and prefix and prefix not in source.positions:
            remedy = f"add '{prefix[-1]}:', and below it {remedy.removeprefix('add ')}"
        problems[path] = Problem(message, remedy, file, line, column, ".".join(map(str, path)))
    return list(problems.values())


def _real_path(loc: Path, source: Positioned, below: Path, *, is_missing: bool) -> Path:
    """Drops the names of union members that pydantic puts into a location."""
    path: Path = ()
    for step in loc:
        if (*below, *path, step) in source.positions:
            path = (*path, step)
    return (*path, loc[-1]) if is_missing and (not path or path[-1] != loc[-1]) else path


def _sentence(detail: Any, model: type[BaseModel], loc: Path) -> tuple[str, str]:
    kind, value, context = detail["type"], detail.get("input"), detail.get("ctx", {})
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
        return f"'{value}' is not one of the possible values", did_you_mean(str(value), expected)
    if kind == "string_pattern_mismatch":
        return f"'{value}' cannot be a name", "use letters, digits, '_' and '-', starting with a letter"
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        sign, bound = next(
            (s, context[k]) for k, s in (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤")) if k in context
        )
        return f"{value} is out of range", f"use a number {sign} {bound:g}"
    if kind == "value_error":
        return str(context.get("error", detail["msg"])), "correct it here"
    if kind == "string_too_short" and not value:
        return f"'{key}' is empty", "write it"
    if kind == "too_short":
        least = context.get("min_length", 1)
        return "needs at least one entry" if least == 1 else f"needs at least {least} entries", "add what is missing"
    words = _WORDS.get(kind, detail["msg"])
    shown = "" if isinstance(value, dict | list) else f", not '{value}'"
    return f"{words}{shown}", "correct the value"


def _model_at(model: type[BaseModel], loc: Path) -> type[BaseModel] | None:
    """The model at a location, by walking the declared types."""
    current: Any = model
    for step in loc:
        owner = next((m for m in _models_in(current) if isinstance(step, str) and step in m.model_fields), None)
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
