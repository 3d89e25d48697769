"""Marks in texts: what can be marked, and what a mark says. Offsets count characters (code points) of the exact text."""

from __future__ import annotations

import re
from dataclasses import dataclass

# In scripts that put no spaces between words every character counts as one.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that a rater sees and may be able to mark: a response, or one turn of a dialogue (counted from 0)."""

    turn: int
    text: str
    speaker: str = ""
    is_markable: bool = True


@dataclass(frozen=True, slots=True)
class SpanMark:
    """One marked stretch and what is said about it; ``weight`` is that of its severity."""

    turn: int
    start: int
    end: int
    text: str
    category: str
    severity: str
    weight: float
    comment: str = ""


def word_places(text: str) -> list[tuple[int, int]]:
    """Beginning and end of every word."""
    return [match.span() for match in _WORD.finditer(text)]


def count_words(text: str) -> int:
    """How many words a text has."""
    return sum(1 for _ in _WORD.finditer(text))


def find_words(text: str, quote: str) -> list[tuple[int, int]]:
    """Where words occur in a text: exactly, or else whatever the spaces, line ends and capitals."""
    words = quote.strip()
    if not words:
        return []
    places = [match.span() for match in re.finditer(re.escape(words), text)]
    if places:
        return places
    loose = r"\s+".join(re.escape(word) for word in words.split())
    return [match.span() for match in re.finditer(loose, text, re.IGNORECASE)]
