"""The languages that a rater can choose from on the first pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from dialometer.flow.language import own_name


@dataclass(frozen=True, slots=True)
class LanguageChoice:
    """A language that a rater can choose; ``address`` is empty where a form sends the choice."""

    tag: str
    name: str
    is_current: bool
    address: str = ""


def language_choices(
    tags: Sequence[str], current: str, landing: str | None, hidden: Mapping[str, str]
) -> list[LanguageChoice]:
    """Languages to choose from; with the address of the first page (``landing``) each is a link to it."""
    return [
        LanguageChoice(
            tag,
            own_name(tag),
            tag == current,
            "" if landing is None else f"{landing.rstrip('/')}/?{urlencode({**hidden, 'lang': tag})}",
        )
        for tag in tags
        if len(tags) > 1
    ]
