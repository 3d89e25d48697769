"""Retrieval metrics of every system in a study of candidates, by every judge's labels (Chierici and Habash 2021, table 4).

The metrics are those of ``dialometer retrieval evaluate``, computed by the same functions. What differs is what is known:
lists to the depth of the pool, and ratings of pooled candidates only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of, number
from dialometer.analysis.families.candidates.pool import Marks, Pool
from dialometer.analysis.shared.ranking import Lead, Pairs, adjusted_pairs, lead
from dialometer.model.estimate import Estimate
from dialometer.model.report import Column, Table
from dialometer.retrieval.evaluation import (
    CUTOFFS,
    JudgeName,
    RelevanceJudge,
    Resampling,
    RetrieverScores,
    crowd_approves,
    paired_differences,
    score_retriever,
    unknown_because,
)
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.observations import Floats
from dialometer.stats.retrieval.metrics import RelevantRanks

CROWD = "Crowd's mean rating"
FIRST = "SR@1"
COMPARED = (FIRST, "MRR", "MAP")


def judges_of_pool(pool: Pool) -> list[RelevanceJudge]:
    """The maker's labels where there are any, the crowd's, and both together."""
    good = pool.is_judged & crowd_approves(pool.mean, pool.good_from)
    gold = pool.is_gold
    rated_well = f"a candidate is right if its mean rating is {number(pool.good_from, 1)} or more"
    crowd = _judge(pool, "crowd", "the crowd", rated_well, good)
    if not gold.any():
        return [crowd]
    maker = _judge(pool, "maker", "the maker", "a candidate is right if the maker marked it as gold", gold)
    if not np.any(gold & ~good):
        return [maker, crowd]  # what the maker calls right is right for the crowd too
    either = _judge(
        pool, "both", "either", "a candidate is right if the maker or the crowd calls it right", gold | good
    )
    return [maker, crowd, either]


def _judge(pool: Pool, name: JudgeName, label: str, explained: str, relevant: Marks) -> RelevanceJudge:
    n_open = np.bincount(pool.question[is_unjudged(pool, name)], minlength=len(pool.questions))
    has_judged = n_open < np.bincount(pool.question, minlength=len(pool.questions))
    n_relevant = np.bincount(pool.question[relevant], minlength=len(pool.questions)).astype(np.int64)
    return RelevanceJudge(name, label, explained, relevant, n_relevant, has_judged)


def is_unjudged(pool: Pool, judge: JudgeName) -> Marks:
    """Candidates on which a judge has said nothing."""
    if judge == "maker":
        return np.zeros(len(pool.items), dtype=bool)
    return ~pool.is_judged if judge == "crowd" else ~pool.is_judged & ~pool.is_gold


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


def overlap_table(name: str, pool: Pool, judges: list[RelevanceJudge]) -> Table:
    """How far the maker and the crowd call the same answers right."""
    maker, crowd = judges[0].relevant, judges[1].relevant
    judged = pool.is_judged
    rows = (
        ("both call it right", int(np.sum(maker & crowd))),
        ("only the maker", int(np.sum(maker & judged & ~crowd))),
        ("only the crowd", int(np.sum(crowd & ~maker))),
        ("neither", int(np.sum(judged & ~maker & ~crowd))),
    )
    n_all = max(1, int(judged.sum()))
    notes = () if judged.all() else (f"{n_of(int((~judged).sum()), 'candidate')} without ratings excluded.",)
    return Table(
        f"{name}_overlap",
        "What the maker and the crowd call right",
        (Column("who", "Verdict"), Column("n", "Candidates", "count"), Column("share", "Share", "percent")),
        tuple((who, n, n / n_all) for who, n in rows),
        notes=notes,
    )


@dataclass(frozen=True)
class RankedLists:
    """One ranked list per question: a system's, or the crowd's. ``depth`` is the last rank that the pool knows of."""

    label: str
    rank: Floats
    depth: float


@dataclass(frozen=True)
class JudgeScores:
    """All metrics by one judge's labels."""

    judge: RelevanceJudge
    scores: dict[str, RetrieverScores]
    """By the label of the list."""
    pairs: dict[str, Pairs]
    """By metric: differences of every two systems, corrected together."""
    lead: Lead | None
    n_right: float
    """Mean number of right answers of an answerable question."""
    most_recall_at_1: float
    """What Recall@1 would be if every first answer were right."""

    @property
    def n_unanswerable(self) -> int:
        """Judged questions without a right answer."""
        return int(self.judge.has_judged.sum()) - self.judge.n_answerable

    def answerable(self, label: str, metric: str) -> Estimate:
        """Over questions with a right answer."""
        return self.scores[label].answerable[metric]


@dataclass(frozen=True)
class Retrieval:
    """The whole of table 4: lists in file order, the crowd's last, and one entry for each judge."""

    pool: Pool
    lists: tuple[RankedLists, ...]
    judged: tuple[JudgeScores, ...]

    @property
    def systems(self) -> tuple[str, ...]:
        """Labels of the systems, without the crowd."""
        return self.pool.labels


def retrieval_scores(pool: Pool, options: Options) -> Retrieval:
    """Metrics and paired tests, on questions that have a right answer and on all of them."""
    lists = [
        RankedLists(label, pool.rank[:, k], float(np.nanmax(pool.rank[:, k], initial=0)))
        for k, label in enumerate(pool.labels)
    ]
    lists.append(RankedLists(CROWD, crowd_as_retriever(pool, options.seed), np.inf))
    return Retrieval(
        pool, tuple(lists), tuple(_by_judge(pool, judge, lists, options) for judge in judges_of_pool(pool))
    )


def _by_judge(pool: Pool, judge: RelevanceJudge, lists: list[RankedLists], options: Options) -> JudgeScores:
    resampling = Resampling("questions", options.n_resamples, options.seed, options.confidence)
    scores = {
        ranked.label: score_retriever(
            ranked.label,
            judge,
            relevant_ranks_of_pool(pool, judge, ranked.rank),
            depth=ranked.depth,
            shares="wilson",
            resampling=resampling,
        )
        for ranked in lists
    }
    pairs: dict[str, Pairs] = {}
    for metric in COMPARED:
        known = [scores[ranked.label] for ranked in lists[:-1] if not unknown_because(metric, ranked.depth)]
        pairs[metric] = adjusted_pairs(paired_differences(known, metric, resampling=resampling), options.correction)
    first = {label: scores[label].answerable[FIRST] for label in pool.labels}
    n_relevant = judge.n_relevant[judge.has_judged & (judge.n_relevant > 0)]
    return JudgeScores(
        judge=judge,
        scores=scores,
        pairs=pairs,
        lead=lead(first, pairs[FIRST], confidence=options.confidence),
        n_right=float(n_relevant.mean()) if len(n_relevant) else np.nan,
        most_recall_at_1=float((1 / n_relevant).mean()) if len(n_relevant) else np.nan,
    )


def relevant_ranks_of_pool(pool: Pool, judge: RelevanceJudge, rank: Floats) -> RelevantRanks:
    """Where a list put the right answers, as far as it is known."""
    is_listed = judge.relevant & ~np.isnan(rank)
    return RelevantRanks(pool.question[is_listed], rank[is_listed].astype(np.int64), judge.n_relevant)


@dataclass(frozen=True)
class SuccessBound:
    """What Success Rate@k could be: every answer that nobody judged taken as wrong, and as right."""

    system: str
    k: int
    whole: Estimate
    """Questions whose first k answers are all judged."""
    least: Estimate
    most: Estimate


def success_bounds(retrieval: Retrieval, judge: RelevanceJudge, options: Options) -> list[SuccessBound]:
    """How far answers outside the pool, or in it without a rating, could move Success Rate@k; on all questions."""
    pool, is_judged = retrieval.pool, ~is_unjudged(retrieval.pool, judge.name)
    bounds = []
    for ranked in retrieval.lists[:-1]:
        for k in CUTOFFS:
            within = (ranked.rank <= k) & is_judged
            n_within, n_hits = (
                np.bincount(pool.question[marks], minlength=len(pool.questions))[judge.has_judged]
                for marks in (within, within & judge.relevant)
            )
            is_whole, is_hit = n_within >= k, n_hits > 0
            shares = [
                proportion(int(marks.sum()), len(marks), confidence=options.confidence)
                for marks in (is_whole, is_hit, is_hit | ~is_whole)
            ]
            bounds.append(SuccessBound(ranked.label, k, *shares))
    return bounds
