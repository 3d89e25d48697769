"""Marks for fields that hold what raters read. A study can be translated in exactly these, those of plug-ins included."""

from __future__ import annotations

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
