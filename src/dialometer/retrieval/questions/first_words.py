"""With which words questions and answers begin (Chierici and Habash 2021, figure 2).

As in the program of its authors: every different text counts once, words are runs of letters and digits in lower case, and only
beginnings that occur a few times are shown. Theirs also reduces words to a dictionary form, which changes no count of their figure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dialometer.model.report import Cell, Column, Figure, Table
from dialometer.report.charts.word_tree import WordBranch, word_tree

N_WORDS = 3
MOST_SHOWN = 45
"""Beginnings that a figure has room for."""
_WORD = re.compile(r"(?<=\w)['’]\w+|\w+")


@dataclass(frozen=True)
class FirstWords:
    """Beginnings of texts by how often they occur, and the number of different texts."""

    counts: tuple[tuple[tuple[str, ...], int], ...]
    n_texts: int

    def shown(self, fewest: int = 0) -> list[tuple[tuple[str, ...], int]]:
        """Beginnings that occur at least so often; without a number, as many as there is room for."""
        if fewest:
            return [(words, n) for words, n in self.counts if n >= fewest]
        least = next((n for n in range(1, 1000) if len(self.shown(n)) <= MOST_SHOWN), 1)
        return self.shown(least)

    def totals(self, fewest: int = 1) -> dict[str, int]:
        """The first word alone, most frequent first, over beginnings that occur at least so often."""
        totals: Counter[str] = Counter()
        for words, n in self.shown(max(1, fewest)):
            totals[words[0]] += n
        return dict(sorted(totals.items(), key=lambda entry: (-entry[1], entry[0])))


def first_words(texts: Iterable[str], n_words: int = N_WORDS) -> FirstWords:
    """How often different texts begin with which words."""
    counts: Counter[tuple[str, ...]] = Counter()
    distinct = {text.strip(): None for text in texts}
    for text in distinct:
        words = tuple(word.lower().replace("’", "'") for word in _WORD.findall(text)[:n_words])
        if words:
            counts[words] += 1
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return FirstWords(tuple(ordered), sum(counts.values()))


def joined(words: Iterable[str]) -> str:
    """Words as they are written, with what an apostrophe begins joined to the word before."""
    return " ".join(words).replace(" '", "'")


def words_figure(name: str, title: str, words: FirstWords, fewest: int = 0) -> Figure:
    """The beginnings as a tree: the first word, then what follows it, as high as they are frequent."""
    shown = words.shown(fewest)
    n_shown = sum(n for _, n in shown)
    least = min((n for _, n in shown), default=0)
    totals = FirstWords(tuple(shown), n_shown).totals()
    most = "; ".join(f"{word} {n}" for word, n in list(totals.items())[:8])
    drawn = f"All {words.n_texts:,} different texts."
    if least > 1:
        drawn = f"Of {words.n_texts:,} different texts, the {n_shown:,} whose first three words occur {least} times or more."
    return Figure(
        name,
        title,
        word_tree([WordBranch(beginning, n) for beginning, n in shown]),
        alt=f"Tree of the first three words. Most frequent first words: {most}.",
        caption=f"{drawn} Heights are numbers of texts; narrow blocks are not labelled.",
    )


def words_table(name: str, title: str, words: FirstWords, fewest: int = 0) -> Table:
    """The same in numbers."""
    rows: list[tuple[Cell, ...]] = []
    for beginning, n in words.shown(fewest):
        first, second, third = (*beginning, "", "")[:N_WORDS]
        rows.append((first, second, third, n, n / max(1, words.n_texts)))
    return Table(
        name,
        title,
        (
            Column("first", "First word"),
            Column("second", "Second"),
            Column("third", "Third"),
            Column("n", "Texts", "count"),
            Column("share", "Share of all", "percent"),
        ),
        tuple(rows),
    )
