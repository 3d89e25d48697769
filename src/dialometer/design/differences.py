"""What differs between two lists of lines or words, in a time that nobody who writes them can stretch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

MOST_PAIRS = 10_000_000
"""Pairs of equal entries that are looked at; a text of three thousand words has so many, for the spaces between them."""


def differences(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """What became of which entries, as :meth:`difflib.SequenceMatcher.get_opcodes` says it.

    It takes at least as many steps as there are pairs of equal entries: hours for two files of empty lines. Where there are too
    many, all between the first and the last difference counts as replaced.
    """
    n_equal = Counter(before)
    if sum(n_equal[entry] for entry in after) <= MOST_PAIRS:
        return list(SequenceMatcher(None, before, after, autojunk=False).get_opcodes())
    n = min(len(before), len(after))
    start = next((place for place in range(n) if before[place] != after[place]), n)
    end = next((place for place in range(n - start) if before[-1 - place] != after[-1 - place]), n - start)
    i, j = len(before) - end, len(after) - end
    parts = (("equal", 0, start, 0, start), ("replace", start, i, start, j), ("equal", i, i + end, j, j + end))
    return [part for part in parts if part[2] > part[1] or part[4] > part[3]]
