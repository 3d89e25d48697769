"""Fields that were drawn before: an empty field looks the same for every rater, and drawing it is most of a page's cost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache

from markupsafe import Markup

from dialometer.scales import SCALES
from dialometer.web.rater.layout import Alternative, Control

MOST_KEPT = 2_000


@cache
def _is_own(scale_type: str) -> bool:
    """Whether the pages of this package draw a scale; looked up once, since it asks the file system."""
    return scale_type in SCALES and SCALES.get(scale_type).template_file() is None


class DrawnFields:
    """The empty fields of one study's pages in one language, as HTML. Safe to use from several threads."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Markup] = {}

    def key(self, control: Control, alternatives: Sequence[Alternative]) -> Hashable | None:
        """What the looks of a field depend on; None for a field that holds an answer or an error, or shows responses.

        A scale of another package may draw whatever it likes, so its fields are drawn each time.
        """
        field, scale = control.field, control.field.scale
        if control.value is not None or control.error or scale.compares or scale.marks_text:
            return None
        if not _is_own(scale.type):
            return None
        words = (field.name, field.question, field.definition, field.label, field.help, field.target)
        looks = (
            field.alternatives,
            field.is_required,
            field.anchor,
            tuple(alternative.place for alternative in alternatives),
        )
        return (id(scale), *words, *looks, control.id, control.name, control.about)

    def get(self, key: Hashable | None) -> Markup | None:
        """The field, where it was drawn before."""
        return None if key is None else self._kept.get(key)

    def keep(self, key: Hashable | None, drawn: Markup) -> Markup:
        """Note a field that was drawn, and give it back."""
        if key is not None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = drawn
        return drawn
