"""From what a browser sends to raw answers, by one rule for all scales, so that a new scale needs only its template.

A control is named like its field. Parts of an answer follow a dot (``quality.best``, ``importance.Readability``) and
become a mapping; several values under one name become a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialometer.flow.screens import CONSENT_FIELD, MORE_FIELD, Screen

OTHER = "__other__"
"""What a choice sends when the rater's own words stand in the control ``<name>.other``."""

RESERVED = frozenset(
    {"screen", "token", "csrf", "shown_at_ms", "first_input_at_ms", "focus_lost_n", "focus_lost_s", "device"}
)
"""Names that every form uses for itself; a question of the same name gets another control name."""

_NUMBER_SCALES = frozenset({"magnitude", "slider", "likert"})
_ARABIC_SEPARATORS = str.maketrans({"٫": ".", "٬": ""})

Form = Mapping[str, Sequence[str]]


def control_name(field: str) -> str:
    """The name of a field's control in the form."""
    return f"answer.{field}" if field.split(".", 1)[0] in RESERVED else field


def read_form(screen: Screen, form: Form) -> dict[str, object]:
    """The raw answers of a sent form, by field, as the scales read them."""
    return _read(screen, form, keeps_other=False)


def typed_answers(screen: Screen, typed: Mapping[str, object]) -> dict[str, object]:
    """What a page shows again: takes raw answers, stored values, a form as sent or a draft of one."""
    form: dict[str, list[str]] = {}
    is_form = "csrf" in typed
    for name, value in typed.items():
        if is_form and name in RESERVED:
            continue
        control = control_name(name)
        if isinstance(value, Mapping):
            form.update({f"{control}.{part}": [_as_typed(given)] for part, given in value.items()})
        elif isinstance(value, Sequence) and not isinstance(value, str):
            form[control] = [_as_typed(given) for given in value]
        elif value is not None:
            form[control] = [_as_typed(value)]
    return _read(screen, form, keeps_other=True)


def _as_typed(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _read(screen: Screen, form: Form, *, keeps_other: bool) -> dict[str, object]:
    answers: dict[str, object] = {}
    for special in (CONSENT_FIELD, MORE_FIELD):
        if screen.kind == special and form.get(special):
            answers[special] = form[special][-1]
    names = {control_name(field.name) for field in screen.fields}
    for field in screen.fields:
        name = control_name(field.name)
        allows_other = bool(getattr(field.scale, "allow_other", False))
        value: object = _own_words(name, form, keeps_other=keeps_other) if allows_other else None
        if value is None:
            value = _answer(name, form, names)
        if isinstance(value, str) and (field.scale.type in _NUMBER_SCALES or _is_number_text(field.scale)):
            value = value.translate(_ARABIC_SEPARATORS)
        if value not in (None, "", [], {}):
            answers[field.name] = value
    return answers


def _is_number_text(scale: object) -> bool:
    return getattr(scale, "format", "text") in ("integer", "number")


def _own_words(name: str, form: Form, *, keeps_other: bool) -> str | None:
    """The rater's own answer where "other" is chosen, or where words stand there and nothing is chosen."""
    chosen = form.get(name, ())
    words = next((value for value in form.get(f"{name}.other", ()) if value.strip()), "")
    if OTHER in chosen:
        return words or (OTHER if keeps_other else "")
    return words if words and not any(value.strip() for value in chosen) else None


def _answer(name: str, form: Form, names: set[str]) -> object:
    given = [value for value in form.get(name, ()) if value.strip()]
    if given:
        return given[0] if len(given) == 1 else given
    prefix = f"{name}."
    parts = {key[len(prefix) :]: values for key, values in form.items() if key.startswith(prefix) and key not in names}
    return {part: values[-1] for part, values in parts.items() if values and values[-1].strip()}
