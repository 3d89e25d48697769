"""What of a dialogue is fit to learn from: turns of reasonable length, without words that the user does not want said.

A turn that is taken out parts the dialogue in two, so that no response is learned to a turn that it did not follow.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dialometer.errors import DialometerError
from dialometer.generators.vocabulary import plain

_WORD = re.compile(r"[\w']+")


@dataclass(frozen=True, slots=True)
class Limits:
    """``max_words`` and ``min_words`` of a turn, and the fewest turns of a dialogue (two make one example)."""

    min_words: int = 1
    max_words: int = 40
    min_turns: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.min_words <= self.max_words:
            raise DialometerError(
                f"turns of {self.min_words} to {self.max_words} words cannot exist", remedy="give 1 ≤ min ≤ max"
            )
        if self.min_turns < 2:
            raise DialometerError("a dialogue to learn from needs two turns", remedy="give min_turns of 2 or more")


def words_of(text: str) -> list[str]:
    """Words in lower case, without punctuation; how lengths are counted and lists are compared."""
    return _WORD.findall(text.lower())


def read_word_list(path: Path) -> frozenset[str]:
    """One word or phrase a line; ``#`` begins a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DialometerError(f"the list cannot be read: {error}", where=str(path), remedy="check the file") from error
    listed = frozenset(" ".join(words_of(line.partition("#")[0])) for line in lines) - {""}
    if not listed:
        raise DialometerError("the list names no words", where=str(path), remedy="write one word or phrase a line")
    return listed


def matcher(listed: Iterable[str]) -> re.Pattern[str] | None:
    """Finds whole listed words and phrases in the joined words of a text; None where nothing is listed."""
    ordered = sorted(listed, key=lambda phrase: (-len(phrase), phrase))
    return re.compile(r"(?<!\S)(?:" + "|".join(map(re.escape, ordered)) + r")(?!\S)") if ordered else None


@dataclass(slots=True)
class Filter:
    """Cuts dialogues into pieces of fit turns and counts what was taken out, by reason."""

    limits: Limits = field(default_factory=Limits)
    unwanted: frozenset[str] = frozenset()
    removed: Counter[str] = field(default_factory=Counter)
    _pattern: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        self._pattern = matcher(self.unwanted)

    def pieces(self, turns: Sequence[str]) -> list[list[str]]:
        """Runs of fit turns that are long enough; a dialogue without any is counted as too short."""
        runs: list[list[str]] = [[]]
        for text in turns:
            reason = self._reason(text)
            if reason:
                self.removed[reason] += 1
                runs.append([])
            else:
                runs[-1].append(plain(text))
        kept = [run for run in runs if len(run) >= self.limits.min_turns]
        self.removed["turns in pieces too short"] += sum(len(run) for run in runs) - sum(len(run) for run in kept)
        if not kept:
            self.removed["dialogues without enough turns"] += 1
        return kept

    def _reason(self, text: str) -> str:
        words = words_of(text)
        if len(words) < self.limits.min_words:
            return "turns too short"
        if len(words) > self.limits.max_words:
            return "turns too long"
        if self._pattern is not None and self._pattern.search(" ".join(words)):
            return "turns with unwanted words"
        return ""
