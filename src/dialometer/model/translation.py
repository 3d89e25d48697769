"""What raters read in a study, and the same study in another language.

One walk over the study's own model does both. It finds the fields that are marked in :mod:`dialometer.model.rater_text`,
and the options of scales, in whatever part they are; a scale or rule of another package needs no entry anywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from dialometer.model.part import Part
from dialometer.model.rater_text import TextMark
from dialometer.model.scale import Scale

if TYPE_CHECKING:
    from dialometer.model.study import Study

Replace = Callable[[str, str], str]
"""From the key of a text and the text to what stands in its place."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A text in another language, and the source text of which it is the translation."""

    source: str
    text: str


def study_texts(study: Study) -> dict[str, str]:
    """Every text that raters read, by its key: the path of the text in the study, such as ``criteria.clarity.question``.

    Texts of items are among them where the study has its items translated. They are found once, since a study never changes.
    """
    place = ("texts by key",)
    if place not in study.remembered:
        found: dict[str, str] = {}

        def note(key: str, text: str) -> str:
            found.setdefault(key, text)
            return text

        _replaced(study, note)
        study.remembered[place] = found
    texts: dict[str, str] = study.remembered[place]
    return texts


def in_words_of(study: Study, language: str, translations: Mapping[str, Translation]) -> Study:
    """The study as raters of another language read it; what has no translation stays as it is."""

    def translate(key: str, text: str) -> str:
        known = translations.get(key)
        return known.text if known is not None and known.text else text

    spec, texts, items = _replaced(study, translate)
    spec = spec.model_copy(update={"language": language, "languages": []})
    return dataclasses.replace(study, spec=spec, texts=texts, items=items, translations={})


def _replaced(study: Study, replace: Replace) -> tuple[Any, Mapping[str, str], tuple[Any, ...]]:
    walk = _Walk(replace, study.texts)
    spec = walk.part(study.spec, "")
    items = study.items
    if study.spec.items.translated:
        items = tuple(walk.whole(item, f"items.{item.id}") for item in study.items)
    elif walk.has_other_speakers:
        items = tuple(_Walk(_speakers_only(replace), {}).whole(item, "") for item in study.items)
    return spec, {**study.texts, **walk.files}, items


def _speakers_only(replace: Replace) -> Replace:
    return lambda key, text: replace(key, text) if key.startswith(SPEAKERS) else text


SPEAKERS = "speakers."
Mark = TextMark | None


class _Walk:
    """One pass over the parts of a study. A part in which nothing is replaced stays the same object."""

    def __init__(self, replace: Replace, texts: Mapping[str, str]) -> None:
        self._replace = replace
        self._texts = texts
        self.files: dict[str, str] = {}
        self.has_other_speakers = False

    def part(self, part: BaseModel, key: str) -> BaseModel:
        """A part of the study file."""
        changed = {}
        for name, hint, mark in _fields(type(part)):
            old = getattr(part, name)
            if mark is not None and old == "" and isinstance(part, Part):
                old = part.text_if_empty(name)
            new = self._value(old, hint, mark, f"{key}.{name}" if key else name)
            if new is not old:
                changed[name] = new
        if isinstance(part, Scale):
            words = {
                value: self._replace(f"{key}.options.{value}", words)
                for value, words in part.value_words().items()
                if not _is_number(words)
            }
            other = {value: text for value, text in words.items() if text != part.value_words()[value]}
            if other or changed:
                return part.model_copy(update=changed).said_as(other)
        return part.model_copy(update=changed) if changed else part

    def whole(self, content: Any, key: str) -> Any:
        """An item or one of its parts."""
        changed = {}
        owner: type = type(content)
        for name, hint, mark in _fields(owner):
            old = getattr(content, name)
            new = self._value(old, hint, mark, f"{key}.{name}")
            if new is not old:
                changed[name] = new
        return dataclasses.replace(content, **changed) if changed else content

    def _value(self, value: Any, hint: Any, mark: Mark, key: str) -> Any:
        if isinstance(value, str):
            return self._text(value, mark, key) if mark is not None and value else value
        if isinstance(value, BaseModel):
            return self.part(value, key)
        if dataclasses.is_dataclass(value):
            return self.whole(value, key)
        inner = [_unwrapped(arg) for arg in get_args(hint)]
        if isinstance(value, Mapping) and len(inner) == 2:
            return self._mapping(value, inner, key)
        if isinstance(value, list | tuple) and inner:
            names = _names(value)
            hint, mark = inner[0]
            new = [self._value(entry, hint, mark, f"{key}.{name}") for entry, name in zip(value, names, strict=True)]
            is_same = all(entry is old for entry, old in zip(new, value, strict=True))
            return value if is_same else type(value)(new)
        return value

    def _mapping(self, value: Mapping[Any, Any], inner: Sequence[tuple[Any, Mark]], key: str) -> Mapping[Any, Any]:
        (of_name, name_mark), (of_one, one_mark) = inner
        new = {
            self._value(name, of_name, name_mark, f"{key}.{name}"): self._value(
                entry, of_one, one_mark, f"{key}.{name}"
            )
            for name, entry in value.items()
        }
        is_same = list(new) == list(value) and all(new[name] is value[name] for name in new)
        return value if is_same else new

    def _text(self, value: str, mark: TextMark, key: str) -> str:
        if mark.kind == "file":
            if value in self._texts and value not in self.files:
                self.files[value] = self._replace(key, self._texts[value])
            return value
        if mark.kind == "speaker":
            name = self._replace(SPEAKERS + value, value)
            self.has_other_speakers |= name != value
            return name
        return self._replace(key, value)


def _is_number(words: str) -> bool:
    try:
        float(words)
    except ValueError:
        return False
    return True


def _names(values: Sequence[Any]) -> list[str]:
    """The members of a list by their own names, so that a key stays the same when another member comes before it."""
    names: list[str] = []
    for place, value in enumerate(values, start=1):
        own = next((str(getattr(value, field)) for field in ("name", "rule", "id") if getattr(value, field, "")), "")
        name = own or str(place)
        names.append(name if name not in names else f"{name}-{place}")
    return names


@cache
def _fields(owner: type) -> tuple[tuple[str, Any, Mark], ...]:
    """The fields of a part or an item that can hold texts, each with its type and mark."""
    if issubclass(owner, BaseModel):
        fields = {name: (field.annotation, _mark(field.metadata)) for name, field in owner.model_fields.items()}
    else:
        hints = get_type_hints(owner, include_extras=True)
        content: Any = owner
        fields = {field.name: _unwrapped(hints[field.name]) for field in dataclasses.fields(content)}
    plain = {name: _without_none(hint, mark) for name, (hint, mark) in fields.items()}
    return tuple((name, hint, mark) for name, (hint, mark) in plain.items() if mark or _can_hold(hint))


def _unwrapped(hint: Any) -> tuple[Any, Mark]:
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        return _without_none(inner, _mark(metadata))
    return _without_none(hint, None)


def _without_none(hint: Any, mark: Mark) -> tuple[Any, Mark]:
    """``X | None`` is X; of other unions only the parts of a study are looked into, which need no type."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        if len(kinds) == 1:
            inner, own = _unwrapped(kinds[0])
            return inner, mark or own
    return hint, mark


def _mark(metadata: Sequence[Any]) -> Mark:
    return next((data for data in metadata if isinstance(data, TextMark)), None)


def _can_hold(hint: Any) -> bool:
    """Whether a value of this type can have a text inside."""
    if isinstance(hint, type) and (issubclass(hint, BaseModel) or dataclasses.is_dataclass(hint)):
        return True
    parts = (_unwrapped(arg) for arg in get_args(hint) if arg is not ...)
    return any(mark is not None or _can_hold(inner) for inner, mark in parts)
