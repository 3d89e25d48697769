"""Marks for fields that hold what raters read. A study can be translated in exactly these, those of plug-ins included."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal


@dataclass(frozen=True, slots=True)
class TextMark:
    """What a marked string is: a text, the name of a file with a text, or who speaks."""

    kind: Literal["text", "file", "speaker"]


RaterText = Annotated[str, TextMark("text")]
"""A text that raters read."""
TextFile = Annotated[str, TextMark("file")]
"""The name of a file beside study.yaml whose content raters read."""
SpeakerName = Annotated[str, TextMark("speaker")]
"""Who speaks in a dialogue, as raters read it."""

PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
"""A name in double braces; white space around the name does not count. It is stripped afterwards: a pattern that looks for it
takes hours for a few thousand spaces."""


def placeholders_in(text: str) -> list[str]:
    """The names in double braces in a text, in their order."""
    return [name.strip() for name in PLACEHOLDER.findall(text)]
