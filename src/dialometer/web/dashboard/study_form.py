"""A form for everything in a study file, drawn from its JSON Schema: what a scale, a rule or a platform declares of itself
appears here by itself. Nothing in this module knows what a study is.

A field has the path of its value (``criteria.0.question``). What comes back is put into the data of the file; a field that
still shows what the file says, or what holds where it says nothing, changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dialometer.design.edit_yaml import is_same, yaml_text
from dialometer.design.positions import parse_yaml
from dialometer.errors import DialometerError

Schema = Mapping[str, Any]
Kind = Literal["text", "long", "number", "yes", "choice", "lines", "pairs", "yaml", "group", "list", "map", "told"]
LONG_WORDS = frozenset({"description", "question", "definition", "text", "task", "help", "hypothesis", "wording"})
"""Keys whose texts are sentences rather than words."""
LONG = 60
DO = "_do"
"""The field of the buttons that add, remove or move an entry."""
NAME = "_name"
"""The field with the name of an entry, where entries are known by name."""
CHOSEN = "_kind"
"""The field with what kind of entry is added."""


class FormError(DialometerError):
    """What was typed cannot be read as what the field holds."""


@dataclass(frozen=True, slots=True)
class SpecField:
    """One place of the form: a value to type or choose, or a group, list or map of others."""

    path: str
    label: str
    kind: Kind
    help: str = ""
    value: Any = ""
    options: tuple[str, ...] = ()
    is_required: bool = False
    is_given: bool = False
    children: tuple[SpecField, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()
    """What kinds of entries a list or map can hold, where there are several, each with what it says about itself."""
    about: str = ""
    """What an entry is, in a word or two, for the line that is shown while it is folded."""
    is_one_enough: bool = False
    """Whether a list of one may stand as the value alone."""
    holds: frozenset[str] = frozenset()
    """The types of its value, or of its values: string, integer, number, boolean."""

    @property
    def key(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


class StudyForm:
    """The form of one study file. ``known`` gives words to choose from for fields that name other parts, by their key."""

    def __init__(
        self, schema: Schema, data: Mapping[str, Any], known: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._schema = schema
        self._known = known or {}
        self.data: dict[str, Any] = _copied(dict(data))

    def fields(self, keys: Sequence[str]) -> list[SpecField]:
        """The fields of some of the top keys."""
        required = set(self._schema.get("required", ()))
        properties = self._schema["properties"]
        return [self._field(properties[key], self.data, key, key, key in required) for key in keys if key in properties]

    def value_at(self, path: str) -> Any:
        """What the file says in a place."""
        place, key = self._place(path)
        return place[key]

    # From schema and data to fields

    def _resolved(self, schema: Schema) -> Schema:
        """A schema without references, and without the alternative of leaving a value out."""
        if "$ref" in schema:
            target = self._schema["$defs"][schema["$ref"].rpartition("/")[2]]
            return self._resolved({**target, **{key: value for key, value in schema.items() if key != "$ref"}})
        others = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
        if "anyOf" in schema and len(others) == 1:
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            return self._resolved({**others[0], **rest})
        return schema

    def _alternatives(self, schema: Schema) -> dict[str, Schema]:
        """Parts that can stand in one place, by the constant that tells them apart."""
        named = {}
        for one in schema.get("oneOf", ()):
            part = self._resolved(one)
            constant = next((p["const"] for p in part["properties"].values() if "const" in p), None)
            if constant is not None:
                named[str(constant)] = part
        return named

    def _part_of(self, schema: Schema, value: Any) -> Schema:
        """The alternative that a value is, or the only one."""
        schema = self._resolved(schema)
        alternatives = self._alternatives(schema)
        if alternatives:
            words = [word for word in value.values() if isinstance(word, str)] if isinstance(value, dict) else []
            return next((alternatives[word] for word in words if word in alternatives), {"type": "object"})
        for one in map(self._resolved, schema.get("anyOf", ())):
            if isinstance(value, str) == (one.get("type") == "string"):
                return _fitting(one, value)
        return _fitting(schema, value)

    def _field(self, schema: Schema, parent: Any, key: str | int, path: str, is_required: bool = False) -> SpecField:
        schema = self._resolved(schema)
        is_given = key in parent if isinstance(parent, dict) else True
        value = parent[key] if is_given else schema.get("default")
        value = _nothing(schema) if value is None else value
        if value == "" and any("properties" in self._resolved(one) for one in schema.get("anyOf", ())):
            value = {}
        base = {
            "path": path,
            "label": label_of(str(key)),
            "help": schema.get("description", ""),
            "is_required": is_required,
            "is_given": is_given,
        }
        match self._kind(schema, value, str(key)):
            case "group":
                part = self._part_of(schema, value)
                base["help"] = base["help"] or part.get("description", "")
                return SpecField(kind="group", about=_about(value), children=self._children(part, value, path), **base)
            case "list":
                entries = [self._field(schema["items"], value, i, f"{path}.{i}") for i in range(len(value))]
                return SpecField(kind="list", children=tuple(entries), kinds=self._entry_kinds(schema["items"]), **base)
            case "map":
                inner = schema["additionalProperties"]
                entries = [self._field(inner, value, name, f"{path}.{name}") for name in value]
                return SpecField(kind="map", children=tuple(entries), kinds=self._entry_kinds(inner), **base)
            case kind:
                return SpecField(kind=kind, value=_typed(kind, value), **self._choices(schema, kind, str(key)), **base)

    def _kind(self, schema: Schema, value: Any, key: str) -> Kind:
        match schema.get("type"):
            case _ if "const" in schema:
                return "told"
            case _ if "enum" in schema:
                return "choice"
            case "boolean":
                return "yes"
            case "integer" | "number":
                return "number"
            case "array":
                inner = self._resolved(schema["items"])
                is_plain = inner.get("type") in ("string", "integer", "number") or self._is_words(inner)
                if is_plain:
                    return "lines" if _is_flat(value) else "yaml"
                return "list" if isinstance(value, list) else "yaml"
            case "object" if "properties" in schema:
                return "group" if isinstance(value, dict) else "yaml"
            case "object":
                if not isinstance(schema.get("additionalProperties"), dict):
                    return "yaml"
                inner = self._resolved(schema["additionalProperties"])
                is_map = "properties" in inner or "oneOf" in inner
                if not isinstance(value, dict):
                    return "yaml"
                return "map" if is_map else "pairs" if _is_flat(value) else "yaml"
        if "oneOf" in schema or any("properties" in self._resolved(one) for one in schema.get("anyOf", ())):
            if isinstance(value, int | float | list):  # a short form, such as a share or a list of names
                return "yaml"
            return "told" if isinstance(value, str) else "group"
        if any(self._resolved(one).get("type") == "array" for one in schema.get("anyOf", ())):
            return "lines"
        if isinstance(value, list | dict):
            return "yaml"
        is_long = key in LONG_WORDS or (isinstance(value, str) and len(value) > LONG)
        return "long" if is_long and not self._is_words(schema) else "text"

    def _is_words(self, schema: Schema) -> bool:
        return bool(schema.get("anyOf")) and all(
            self._resolved(one).get("type") in ("string", "integer", "number", "boolean") for one in schema["anyOf"]
        )

    def _children(self, part: Schema, value: Any, path: str) -> tuple[SpecField, ...]:
        required = set(part.get("required", ()))
        known = part.get("properties", {})
        fields = [self._field(schema, value, key, f"{path}.{key}", key in required) for key, schema in known.items()]
        others = [key for key in value if known and key not in known] if isinstance(value, dict) else []
        return (*fields, *(self._field({}, value, key, f"{path}.{key}") for key in others))

    def _choices(self, schema: Schema, kind: Kind, key: str) -> dict[str, Any]:
        options = [str(one) for one in schema.get("enum", ())]
        for one in map(self._resolved, schema.get("anyOf", ())):
            options += [str(word) for word in (*one.get("enum", ()), *([one["const"]] if "const" in one else []))]
        if not options and kind == "text":
            options = list(self._known.get(key, ()))
        alone = [one for one in schema.get("anyOf", ()) if one.get("type") != "array" and "const" not in one]
        return {"options": tuple(options), "holds": frozenset(self._types(schema)), "is_one_enough": bool(alone)}

    def _types(self, schema: Schema) -> set[str]:
        schema = self._resolved(schema)
        inner = schema.get("items") or schema.get("additionalProperties")
        if isinstance(inner, dict) and inner:
            return self._types(inner)
        ways = schema.get("anyOf", ())
        return {kind for way in ways for kind in self._types(way)} if ways else {str(schema.get("type", "string"))}

    def _entry_kinds(self, schema: Schema) -> tuple[tuple[str, str], ...]:
        schema = self._resolved(schema)
        named = tuple((name, part.get("description", "")) for name, part in self._alternatives(schema).items())
        words = [(word, "") for one in schema.get("anyOf", ()) for word in self._resolved(one).get("enum", ())]
        return named or ((("own", ""), *words) if words else ())

    # From what was typed back to data

    def take(self, keys: Sequence[str], typed: Mapping[str, str]) -> dict[str, str]:
        """Puts what was typed into the data; returns complaints by path, for what cannot be read."""
        complaints: dict[str, str] = {}
        renamed: list[tuple[str, str]] = []
        for field in self.fields(keys):
            self._take(field, typed, complaints, renamed)
        for path, name in reversed(renamed):
            self._rename(path, name, complaints)
        return complaints

    def _take(
        self, field: SpecField, typed: Mapping[str, str], complaints: dict[str, str], renamed: list[tuple[str, str]]
    ) -> None:
        for child in field.children:
            self._take(child, typed, complaints, renamed)
            wanted = typed.get(f"{child.path}.{NAME}", "").strip()
            if field.kind == "map" and wanted and wanted != child.key:
                renamed.append((child.path, wanted))
        if field.children or field.kind in ("group", "list", "map", "told"):
            return
        raw = typed.get(field.path)
        if raw is None and field.kind == "yes" and f"{field.path}._shown" in typed:
            raw = ""
        if raw is None:
            return
        raw = raw.replace("\r\n", "\n")
        if raw == field.value or (field.kind == "yes" and (raw == "yes") == (field.value == "yes")):
            return
        try:
            value = _read(field, raw)
        except FormError as error:
            complaints[field.path] = error.message
            return
        self._set(field, value)

    def _set(self, field: SpecField, value: Any) -> None:
        place, key = self._place(field.path)
        if value is None and not field.is_required and isinstance(place, dict):
            place.pop(key, None)
        elif not (isinstance(place, dict) and key in place and is_same(place[key], value)):
            place[key] = value if value is not None else ""

    def _place(self, path: str) -> tuple[Any, Any]:
        """The mapping or list that holds a path's value, made where it is not there yet, and the key in it."""
        *above, last = path.split(".")
        place: Any = self.data
        for part in above:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(_own_key(place, part), {})
        return place, int(last) if isinstance(place, list) else _own_key(place, last)

    def _rename(self, path: str, name: str, complaints: dict[str, str]) -> None:
        place, key = self._place(path)
        if name in place:
            complaints[f"{path}.{NAME}"] = f"there is a '{name}' already"
            return
        entries = [(name if one == key else one, value) for one, value in place.items()]
        place.clear()
        place.update(entries)

    # Entries that come, go and move

    def do(self, action: str, kind: str = "") -> str:
        """Adds, removes or moves an entry: ``add criteria``, ``remove criteria.2``, ``up criteria.2``; returns its path."""
        verb, _, path = action.partition(" ")
        field = self._find(path if verb == "add" else path.rpartition(".")[0])
        if field is None or (verb != "add" and path not in {child.path for child in field.children}):
            raise FormError("this entry is no longer there", remedy="look at the form again")
        place, key = self._place(path)
        if verb == "add":
            return self._add(field, kind)
        if verb == "remove":
            del place[key]
            return field.path
        if verb == "up" and isinstance(place, list) and key > 0:
            place[key - 1], place[key] = place[key], place[key - 1]
            return f"{field.path}.{key - 1}"
        return path

    def _add(self, field: SpecField, kind: str) -> str:
        place, key = self._place(field.path)
        entries = place.setdefault(key, {} if field.kind == "map" else [])
        schema = self._entry_schema(field.path)
        alternatives = self._alternatives(schema)
        part = alternatives.get(kind) or (next(iter(alternatives.values())) if alternatives else schema)
        singular = field.key.rpartition("_")[2]
        singular = singular.removesuffix("s") if not singular.endswith("ria") else "criterion"
        name = _free_name(singular, entries)
        if field.kind == "map":
            entries[name] = self._blank(part, "")
            return f"{field.path}.{name}"
        entries.append(kind if kind and kind not in alternatives and kind != "own" else self._blank(part, name))
        return f"{field.path}.{len(entries) - 1}"

    def _entry_schema(self, path: str) -> Schema:
        """The schema of the entries of a list or map."""
        schema: Schema = self._schema
        value: Any = self.data
        for part in path.split("."):
            if isinstance(value, list):
                schema, value = self._part_of(schema["items"], value[int(part)]), value[int(part)]
            else:
                inner = self._part_of(schema, value)
                known = inner.get("properties", {})
                schema = self._resolved(known[part] if part in known else inner["additionalProperties"])
                value = value.get(_own_key(value, part), {}) if isinstance(value, dict) else {}
        inner = self._resolved(schema.get("items") or schema["additionalProperties"])
        own = [one for one in map(self._resolved, inner.get("anyOf", ())) if "properties" in one]
        return own[0] if own else inner

    def _blank(self, part: Schema, name: str) -> Any:
        """A new entry with what it cannot do without."""
        if "properties" not in part:
            return ""
        entry: dict[str, Any] = {}
        for key, declared in part["properties"].items():
            schema = self._resolved(declared)
            if "const" in schema:
                entry[key] = schema["const"]
            elif key in part.get("required", ()):
                entry[key] = name if key == "name" and name else self._least(schema, key)
        return entry

    def _least(self, schema: Schema, key: str) -> Any:
        known = self._known.get(key)
        match schema.get("type"):
            case "array":
                inner = self._resolved(schema["items"])
                own = [one for one in map(self._resolved, inner.get("anyOf", ())) if "properties" in one]
                singular = key.rstrip("s")
                return [
                    self._blank(own[0] if own else inner, f"{singular}_{i + 1}")
                    for i in range(schema.get("minItems", 1))
                ]
            case "object":
                return self._blank(schema, "") if "properties" in schema else {}
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return False
        return schema["enum"][0] if "enum" in schema else known[0] if known else ""

    def _find(self, path: str) -> SpecField | None:
        fields = self.fields([path.partition(".")[0]])
        while fields:
            field = fields.pop()
            if field.path == path and field.kind in ("list", "map"):
                return field
            fields += [child for child in field.children if path.startswith(f"{child.path}.") or child.path == path]
        return None


def _fitting(part: Schema, value: Any) -> Schema:
    """A part with what it holds besides, by its conditions: the options of an agent depend on its type."""
    for condition in part.get("allOf", ()):
        named = {key: one.get("const") for key, one in condition.get("if", {}).get("properties", {}).items()}
        if named and isinstance(value, dict) and all(value.get(key) == constant for key, constant in named.items()):
            part = {**part, "properties": {**part["properties"], **condition["then"]["properties"]}}
    return part


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _own_key(place: Mapping[Any, Any], part: str) -> Any:
    """The key as the file has it: points of a scale are numbers there."""
    return next((key for key in place if str(key) == part), part)


def label_of(key: str) -> str:
    """A key in words: ``n_practice_items`` is the number of practice items, ``deadline_s`` a deadline in seconds."""
    words = key.replace("_", " ")
    for start, said in (("n ", "number of "), ("is ", ""), ("may ", "raters may ")):
        words = said + words.removeprefix(start) if words.startswith(start) else words
    if words.endswith(" per s"):
        words += "econd"
    elif words.endswith(" s"):
        words = f"{words.removesuffix(' s')} (seconds)"
    return words[:1].upper() + words[1:]


def _nothing(schema: Schema) -> Any:
    kinds: dict[str, Any] = {"array": [], "object": {}, "boolean": False}
    return kinds.get(str(schema.get("type")), "")


def _is_flat(value: Any) -> bool:
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [None]
    return all(isinstance(one, str | int | float) and "\n" not in str(one) for one in values)


def _about(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    words = [value.get(key) for key in ("label", "name", "title", "rule", "type", "criterion")]
    return " · ".join(dict.fromkeys(str(word) for word in words if word))[:80]


def _typed(kind: Kind, value: Any) -> str:
    """A value as it stands in its field."""
    if value is None or value == "":
        return ""
    match kind:
        case "yes":
            return "yes" if value is True else ""
        case "lines":
            return "\n".join(_word(one) for one in value) if isinstance(value, list) else _word(value)
        case "pairs":
            return "\n".join(f"{key}: {_word(one)}" for key, one in value.items())
        case "yaml":
            return yaml_text(value) if value else ""
    return _word(value)


def _word(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _read(field: SpecField, raw: str) -> Any:
    """The value of what was typed; None for nothing."""
    text = raw.strip()
    match field.kind:
        case "yes":
            return text == "yes"
        case "lines" if text in field.options:
            return text
        case "lines" if _BLOCK.search(text):  # entries of several lines, as YAML writes them
            return _read(replace(field, kind="yaml"), raw)
        case "lines":
            values = [_value(line.strip(), field.holds) for line in text.split("\n") if line.strip()]
            return values[0] if len(values) == 1 and field.is_one_enough else values or None
        case "pairs":
            pairs = [line.partition(":") for line in text.split("\n") if line.strip()]
            if any(not separator for _, separator, _ in pairs):
                raise FormError("write one “name: value” on each line")
            return {_value(key.strip(), NUMBERS): _value(value.strip(), field.holds) for key, _, value in pairs} or None
        case "yaml":
            parsed = parse_yaml(text, "")
            if parsed.problems:
                raise FormError(parsed.problems[0].message)
            return parsed.data
    if not text:
        return None
    value = _value(text, field.holds)
    if field.kind == "number" and (
        isinstance(value, str) or (isinstance(value, float) and "number" not in field.holds)
    ):
        raise FormError("write a number" if "number" in field.holds else "write a whole number")
    return value


_BLOCK = re.compile(r"^- [|>][-+]?$", re.MULTILINE)
NUMBERS = frozenset({"integer", "string"})


def _value(text: str, holds: frozenset[str]) -> Any:
    """A word, or the number or truth value that it says where the field may hold one."""
    if holds & {"integer", "number"}:
        if re.fullmatch(r"[-+]?\d{1,15}", text):
            return int(text)
        if re.fullmatch(r"[-+]?(\d+\.\d*|\.\d+|\d+(\.\d*)?[eE][-+]?\d{1,2})", text):
            return float(text)
    if "boolean" in holds and text in ("true", "false"):
        return text == "true"
    return text


def _free_name(singular: str, entries: Any) -> str:
    taken = (
        set(entries)
        if isinstance(entries, dict)
        else {entry.get("name") for entry in entries if isinstance(entry, dict)}
    )
    number = len(entries) + 1
    while f"{singular}_{number}" in taken:
        number += 1
    return f"{singular}_{number}"
