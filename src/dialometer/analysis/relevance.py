"""Which candidates count as right, and for whom: the maker of the answers, the crowd, or either of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialometer.analysis.candidates import Marks, Pool
from dialometer.analysis.words import n_of, number
from dialometer.model.report import Column, Table
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.relevant_ranks import RelevantRanks


@dataclass(frozen=True)
class Verdict:
    """One judge's marks. ``is_open`` are candidates on which the judge has said nothing."""

    name: str
    label: str
    marks: Marks
    is_open: Marks
    explained: str

    def n_relevant(self, pool: Pool) -> Ints:
        """Right answers of each question."""
        return np.bincount(pool.question[self.marks], minlength=len(pool.questions)).astype(np.int64)

    def ranks(self, pool: Pool, rank: Floats) -> RelevantRanks:
        """Where a list put the right answers, as far as it is known."""
        found = self.marks & ~np.isnan(rank)
        return RelevantRanks(pool.question[found], rank[found].astype(np.int64), self.n_relevant(pool))


def verdicts(pool: Pool) -> list[Verdict]:
    """The maker's marks where there are any, the crowd's, and both together."""
    good = pool.is_judged & (np.nan_to_num(pool.mean, nan=-np.inf) >= pool.good_from)
    nothing = np.zeros(len(pool.items), dtype=bool)
    crowd = Verdict(
        "crowd",
        "the crowd",
        good,
        ~pool.is_judged,
        f"right is a candidate whose mean rating is {number(pool.good_from, 1)} or more",
    )
    if not pool.is_gold.any():
        return [crowd]
    maker = Verdict("maker", "the maker", pool.is_gold, nothing, "right is a candidate that the maker marked as gold")
    if not np.any(pool.is_gold & ~good):
        return [maker, crowd]  # what the maker calls right is right for the crowd too
    either = Verdict(
        "either",
        "either",
        pool.is_gold | good,
        ~pool.is_judged & ~pool.is_gold,
        "right is what the maker or the crowd calls right",
    )
    return [maker, crowd, either]


def crowd_as_retriever(pool: Pool, seed: int) -> Floats:
    """The rank that each candidate has within its question by mean rating; equal means are put in order by lot."""
    lot = np.random.default_rng(seed).random(len(pool.items))
    order = np.lexsort((lot, -np.nan_to_num(pool.mean, nan=-np.inf), pool.question))
    counts = np.bincount(pool.question, minlength=len(pool.questions))
    first = np.repeat(np.cumsum(counts) - counts, counts)
    rank = np.empty(len(pool.items))
    rank[order] = np.arange(len(order)) - first + 1
    rank[~pool.is_judged] = np.nan
    return rank


def overlap_table(name: str, pool: Pool, judges: list[Verdict]) -> Table:
    """How far the maker and the crowd call the same answers right."""
    maker, crowd = judges[0].marks, judges[1].marks
    judged = pool.is_judged
    rows = (
        ("both call it right", int(np.sum(maker & crowd))),
        ("only the maker", int(np.sum(maker & judged & ~crowd))),
        ("only the crowd", int(np.sum(crowd & ~maker))),
        ("neither", int(np.sum(judged & ~maker & ~crowd))),
    )
    n_all = max(1, int(judged.sum()))
    notes = () if judged.all() else (f"{n_of(int((~judged).sum()), 'candidate')} without ratings left out.",)
    return Table(
        f"{name}_overlap",
        "What the maker and the crowd call right",
        (Column("who", "Verdict"), Column("n", "Candidates", "count"), Column("share", "Share", "percent")),
        tuple((who, n, n / n_all) for who, n in rows),
        notes=notes,
    )
