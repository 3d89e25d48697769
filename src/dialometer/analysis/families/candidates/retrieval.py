"""Retrieval measures of every system against every judge's labels, with paired tests (Chierici and Habash 2021, table 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of, number
from dialometer.analysis.families.candidates.pool import Marks, Pool
from dialometer.analysis.shared.ranking import Lead, Pairs, adjusted_pairs, every_pair, lead
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Column, Table
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.retrieval.metrics import (
    RelevantRanks,
    Unanswerable,
    average_precision,
    compare_questions,
    mean_over_questions,
    recall_at,
    reciprocal_rank,
    success_at,
)

# Which candidates count as right, and for whom: the maker of the answers, the crowd, or either of them.


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


CUTS = (1, 2, 10)
CROWD = "Crowd's mean rating"
MEASURES: dict[str, Callable[[RelevantRanks], Floats]] = {
    **{f"recall@{k}": partial(recall_at, k=k) for k in CUTS},
    "MRR": reciprocal_rank,
    "MAP": average_precision,
    **{f"success_rate@{k}": partial(success_at, k=k) for k in CUTS},
}
FIRST = "success_rate@1"
COMPARED = (FIRST, "MRR", "MAP")


@dataclass(frozen=True)
class Ranking:
    """One ranked list per question: a system's, or the crowd's. ``deepest`` is the last rank that the pool knows of."""

    label: str
    rank: Floats
    deepest: float

    def unknown_because(self, measure: str) -> str:
        """Why a measure cannot be told from what is known of the lists; empty where it can."""
        if measure in ("MRR", "MAP"):
            if self.deepest < 2:
                return "its lists are known to rank 1 only, where MRR is nothing but Success Rate @1"
            return ""
        k = int(measure.partition("@")[2])
        if k <= self.deepest:
            return ""
        return f"its lists are known to rank {self.deepest:.0f} only"


@dataclass(frozen=True)
class Judged:
    """All measures against one judge's labels, by list and measure."""

    verdict: Verdict
    keep: Marks
    """Questions on which the judge has said anything."""
    values: dict[str, dict[str, Floats]]
    answerable: dict[str, dict[str, Estimate]]
    everything: dict[str, dict[str, Estimate]]
    """With questions that have no right answer counted as failures."""
    pairs: dict[str, Pairs]
    lead: Lead | None
    n_unanswerable: int
    n_right: float
    """Mean number of right answers of an answerable question."""
    most_recall_at_1: float
    """What Recall@1 would be if every first answer were right."""


@dataclass(frozen=True)
class Retrieval:
    """The whole of table 4: rankings in file order, the crowd's last, and one entry for each judge."""

    pool: Pool
    rankings: tuple[Ranking, ...]
    judged: tuple[Judged, ...]

    @property
    def systems(self) -> tuple[str, ...]:
        """Labels of the systems, without the crowd."""
        return self.pool.labels


def retrieval_scores(pool: Pool, options: Options) -> Retrieval:
    """Measures and paired tests, on questions that have a right answer and on all of them."""
    rankings = [
        Ranking(label, pool.rank[:, k], float(np.nanmax(pool.rank[:, k], initial=0)))
        for k, label in enumerate(pool.labels)
    ]
    rankings.append(Ranking(CROWD, crowd_as_retriever(pool, options.seed), np.inf))
    found = tuple(_judged(pool, verdict, rankings, options) for verdict in verdicts(pool))
    return Retrieval(pool, tuple(rankings), found)


def _judged(pool: Pool, verdict: Verdict, rankings: list[Ranking], options: Options) -> Judged:
    n_open = np.bincount(pool.question[verdict.is_open], minlength=len(pool.questions))
    keep = n_open < np.bincount(pool.question, minlength=len(pool.questions))
    n_relevant = verdict.n_relevant(pool)[keep]
    values: dict[str, dict[str, Floats]] = {}
    answerable: dict[str, dict[str, Estimate]] = {}
    everything: dict[str, dict[str, Estimate]] = {}
    for ranking in rankings:
        ranks = verdict.ranks(pool, ranking.rank)
        own = {name: measure(ranks)[keep] for name, measure in MEASURES.items()}
        values[ranking.label] = own
        answerable[ranking.label] = {n: _mean(ranking, n, own[n], "exclude", options) for n in MEASURES}
        everything[ranking.label] = {n: _mean(ranking, n, own[n], "zero", options) for n in MEASURES}
    pairs: dict[str, Pairs] = {name: _pairs(name, rankings[:-1], values, options) for name in COMPARED}
    scores = {label: answerable[label][FIRST] for label in pool.labels}
    has_right = n_relevant > 0
    return Judged(
        verdict=verdict,
        keep=keep,
        values=values,
        answerable=answerable,
        everything=everything,
        pairs=pairs,
        lead=lead(scores, pairs[FIRST], confidence=options.confidence),
        n_unanswerable=int((~has_right).sum()),
        n_right=float(n_relevant[has_right].mean()) if has_right.any() else np.nan,
        most_recall_at_1=float((1 / n_relevant[has_right]).mean()) if has_right.any() else np.nan,
    )


def _mean(ranking: Ranking, name: str, values: Floats, unanswerable: Unanswerable, options: Options) -> Estimate:
    why = ranking.unknown_because(name)
    if why:
        return unknown("mean over questions", why, n=len(values), label=name)
    is_yes_no = bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())
    found = mean_over_questions(
        values,
        label=FIRST if is_yes_no else name,  # a measure that is only ever 0 or 1 is a share of questions
        unanswerable="exclude" if name.startswith("recall") else unanswerable,
        n_resamples=options.n_resamples,
        seed=options.seed,
        confidence=options.confidence,
    )
    return replace(found, label=name)


def _pairs(
    measure: str, systems: list[Ranking], values: dict[str, dict[str, Floats]], options: Options
) -> dict[tuple[str, str], Estimate]:
    """Differences of every two systems on one measure, corrected together."""
    known = [ranking.label for ranking in systems if not ranking.unknown_because(measure)]
    found = {
        (one, two): compare_questions(
            values[one][measure],
            values[two][measure],
            n_resamples=options.n_resamples,
            seed=options.seed,
            confidence=options.confidence,
            label=f"{one} - {two}",
        )
        for one, two in every_pair(known)
    }
    return adjusted_pairs(found, options.correction)


@dataclass(frozen=True)
class Bound:
    """What Success Rate @k could be: every answer that nobody judged taken as wrong, and as right."""

    system: str
    k: int
    whole: Estimate
    """Questions whose first k answers are all judged."""
    least: Estimate
    most: Estimate


def success_bounds(retrieval: Retrieval, judged: Judged, options: Options) -> list[Bound]:
    """How far answers outside the pool, or in it without a rating, could move Success Rate @k; on all questions."""
    pool, keep = retrieval.pool, judged.keep
    bounds = []
    for ranking in retrieval.rankings[:-1]:
        for k in CUTS:
            within = (ranking.rank <= k) & ~judged.verdict.is_open
            n_told = np.bincount(pool.question[within], minlength=len(pool.questions))[keep]
            hit = within & judged.verdict.marks
            is_hit = np.bincount(pool.question[hit], minlength=len(pool.questions))[keep] > 0
            is_whole = n_told >= k
            n = int(keep.sum())
            shares = [
                proportion(int(one.sum()), n, confidence=options.confidence)
                for one in (is_whole, is_hit, is_hit | ~is_whole)
            ]
            bounds.append(Bound(ranking.label, k, *shares))
    return bounds
