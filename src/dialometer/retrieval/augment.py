"""More questions from few: the four operations of easy data augmentation.

Wei and Zou, "EDA: Easy Data Augmentation Techniques for Boosting Performance on Text Classification Tasks", EMNLP 2019.
With ``share`` of a sentence's words: replaced by synonyms, synonyms of them inserted, swapped in place, or deleted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")

_FUNCTION_WORDS = """
a about after all also am an and any are as at be been before being but by can could did do does doing for
from had has have he her here hers him his how i if in into is it its just me more most my no nor not of off
on or other our out over own she should so some such than that the their them then there these they this those
to too under until up very was we were what when where which while who whom why will with would you your yours
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that are never replaced: a question is told by them."""


OPENERS = (
    "Okay.",
    "Oh nice.",
    "That's cool.",
    "So",
    "And",
    "I see.",
    "Yes.",
    "Oh really?",
    "Wow.",
    "Right.",
    "Great.",
    "Interesting.",
    "Yeah.",
    "Well,",
)
"""What people say before they ask; recorded questions come without it."""


class Synonyms(Protocol):
    """Where other words for a word come from."""

    def synonyms(self, word: str) -> list[str]:
        """Other words, the best first; empty where none is known."""


class NoSynonyms:
    """Knows none: augmentation then only swaps and deletes."""

    def synonyms(self, word: str) -> list[str]:
        return []


Operation = Callable[[list[str], int, Synonyms, np.random.Generator], list[str]]


def replace_words(words: list[str], n: int, source: Synonyms, rng: np.random.Generator) -> list[str]:
    """Synonym replacement: up to ``n`` distinct content words, everywhere they occur."""
    out = list(words)
    content = _content(words)
    n_replaced = 0
    for number in rng.permutation(len(content)):
        others = source.synonyms(content[number])
        if others:
            new = others[int(rng.integers(len(others)))]
            out = [_WORD.sub(new, word, count=1) if _bare(word) == content[number] else word for word in out]
            n_replaced += 1
        if n_replaced >= n:
            break
    return out


def insert_words(words: list[str], n: int, source: Synonyms, rng: np.random.Generator) -> list[str]:
    """Random insertion: ``n`` times a synonym of one of the content words, anywhere."""
    out = list(words)
    content = [word for word in _content(words) if source.synonyms(word)]
    for _ in range(n if content else 0):
        others = source.synonyms(content[int(rng.integers(len(content)))])
        out.insert(int(rng.integers(len(out) + 1)), others[int(rng.integers(len(others)))])
    return out


def swap_words(words: list[str], n: int, _source: Synonyms, rng: np.random.Generator) -> list[str]:
    """Random swap: ``n`` times two words change places."""
    out = list(words)
    for _ in range(n if len(out) > 1 else 0):
        one, other = rng.choice(len(out), size=2, replace=False)
        out[one], out[other] = out[other], out[one]
    return out


def delete_words(words: list[str], n: int, _source: Synonyms, rng: np.random.Generator) -> list[str]:
    """Random deletion: every word goes with the same probability, so that ``n`` go on average; one always stays."""
    share = n / len(words)
    kept = [word for word in words if rng.random() >= share]
    return kept or [words[int(rng.integers(len(words)))]]


OPERATIONS: tuple[Operation, ...] = (replace_words, insert_words, swap_words, delete_words)


def augment(
    text: str, n: int, rng: np.random.Generator, source: Synonyms | None = None, *, share: float = 0.1
) -> list[str]:
    """``n`` variants of a text, the operations taking turns; the same generator state gives the same variants."""
    words = text.split()
    if not words:
        return [text] * n
    n_changed = max(1, int(share * len(words)))
    known = source or NoSynonyms()
    return [" ".join(OPERATIONS[k % len(OPERATIONS)](words, n_changed, known, rng)) for k in range(n)]


def one_variant(text: str, rng: np.random.Generator, source: Synonyms | None = None, *, share: float = 0.1) -> str:
    """One variant by an operation drawn by lot."""
    words = text.split()
    if not words:
        return text
    operation = OPERATIONS[int(rng.integers(len(OPERATIONS)))]
    return " ".join(operation(words, max(1, int(share * len(words))), source or NoSynonyms(), rng))


def _bare(word: str) -> str:
    found = _WORD.search(word)
    return found.group().lower() if found else ""


def _content(words: Sequence[str]) -> list[str]:
    """Distinct content words in order, without punctuation."""
    return [word for word in dict.fromkeys(map(_bare, words)) if word and word not in FUNCTION_WORDS]
