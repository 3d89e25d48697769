"""How good retrievers are: every metric, by every judge, on answerable and on all questions, with paired tests.

``dialometer retrieval evaluate`` and the report on a study of candidates both compute here. All they need to know of a
retriever is at which ranks it puts the answers that a judge calls right.

==========  ===============  ======================================================================
``R@k``     Recall@k         share of a question's right answers among the first k
``MRR``                      mean of one over the rank of the first right answer
``MAP``                      mean of the precision at the rank of each right answer
``SR@k``    Success Rate@k   share of questions with at least one right answer among the first k
==========  ===============  ======================================================================
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.effects.multiplicity import adjust_estimates
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.retrieval.metrics import (
    RelevantRanks,
    ShareInterval,
    Unanswerable,
    average_precision,
    compare_questions,
    mean_over_questions,
    recall_at,
    reciprocal_rank,
    success_at,
)

if TYPE_CHECKING:
    from dialometer.retrieval.labels.crowd_ratings import CrowdRatings
    from dialometer.retrieval.queries import QuerySet
    from dialometer.retrieval.questions.question_groups import GroupScores

Marks = NDArray[np.bool_]

CUTOFFS = (1, 2, 10)
DEFINITIONS = {
    "R@k": "Recall@k: share of a question's right answers among the first k, mean over questions",
    "MRR": "Mean Reciprocal Rank: one over the rank of the first right answer, mean over questions; all answers are ranked",
    "MAP": "Mean Average Precision: precision at the rank of each right answer, mean over a question's right answers",
    "SR@k": "Success Rate@k: share of questions with at least one right answer among the first k",
}
MISLEADING = (
    "An avatar gives one answer, so SR@1 is what a visitor meets, and SR@k for larger k is what re-ranking could still win. "
    "R@1 cannot reach 100% where a question has several right answers, and MAP asks for all of them at the top: both fall when "
    "a more generous judge marks more answers, though the avatar has not changed. MRR credits answers that nobody hears, and "
    "changes with how many answers are right and how long the lists are. Compare them only on the same labels and lists."
)


def metric_names(cutoffs: Sequence[int] = CUTOFFS) -> tuple[str, ...]:
    """In the order of the published table."""
    return (*(f"R@{k}" for k in cutoffs), "MRR", "MAP", *(f"SR@{k}" for k in cutoffs))


def full_name(metric: str) -> str:
    """A metric's name written out, for reports: ``Success Rate@1`` for ``SR@1``."""
    if is_recall(metric):
        return metric.replace("R@", "Recall@")
    return metric.replace("SR@", "Success Rate@")


def is_recall(metric: str) -> bool:
    """Recall has no value for a question without a right answer, not even 0."""
    return metric.startswith("R@")


def metric_values(ranks: RelevantRanks, cutoffs: Sequence[int] = CUTOFFS) -> dict[str, Floats]:
    """Every metric of every question; nan where a question has no right answer."""
    return {
        **{f"R@{k}": recall_at(ranks, k) for k in cutoffs},
        "MRR": reciprocal_rank(ranks),
        "MAP": average_precision(ranks),
        **{f"SR@{k}": success_at(ranks, k) for k in cutoffs},
    }


def unknown_because(metric: str, depth: float) -> str:
    """Why a metric cannot be computed from lists that are known to a depth only; empty where it can."""
    if metric in ("MRR", "MAP"):
        return "its lists are known to rank 1 only, where MRR is nothing but Success Rate@1" if depth < 2 else ""
    is_known = int(metric.partition("@")[2]) <= depth
    return "" if is_known else f"its lists are known to rank {depth:.0f} only"


# Judges: whose labels count.

JudgeName = Literal["maker", "crowd", "both"]
GOOD_FROM = 3.5
"""Mean rating (of 1 to 5) from which the crowd calls an answer right (Chierici and Habash 2021, section 6.5)."""


@dataclass(frozen=True)
class RelevanceJudge:
    """The maker of the answers, the crowd, or both together, and what they call right.

    ``relevant`` marks the right answers: a matrix of questions by answers, or one entry for each candidate of a pool.
    """

    name: JudgeName
    label: str
    explained: str
    relevant: Marks
    n_relevant: Ints
    """Right answers of each question."""
    has_judged: Marks
    """The questions on which the judge said anything."""

    @property
    def n_answerable(self) -> int:
        """Judged questions with at least one right answer."""
        return int(((self.n_relevant > 0) & self.has_judged).sum())


def crowd_approves(mean_ratings: Floats, good_from: float) -> Marks:
    """Which answers the crowd calls right; what nobody rated (nan) is not among them."""
    return np.asarray(np.nan_to_num(mean_ratings, nan=-np.inf) >= good_from)


def judges_of(
    query_set: QuerySet, n_answers: int, crowd: CrowdRatings | None = None, good_from: float | None = None
) -> list[RelevanceJudge]:
    """The maker where there are labels; with ratings also the crowd and both."""
    threshold = GOOD_FROM if good_from is None else good_from
    gold = query_set.relevance(n_answers)
    everything = np.ones(len(query_set), dtype=bool)
    judges: list[RelevanceJudge] = []

    def add(name: JudgeName, explained: str, relevant: Marks, has_judged: Marks) -> None:
        judges.append(RelevanceJudge(name, name.capitalize(), explained, relevant, relevant.sum(axis=1), has_judged))

    if gold.any():
        add("maker", "an answer is right if the maker of the avatar marked it", gold, everything)
    if crowd is not None:
        means = crowd.matrix(query_set.queries, n_answers)
        if np.isnan(means).all():
            remedy = f"ratings name questions by id, such as '{query_set.queries[0].id}'"
            raise DialometerError("no rating belongs to a question of these dialogues", remedy=remedy)
        is_rated: Marks = np.asarray((~np.isnan(means)).any(axis=1))
        good = crowd_approves(means, threshold)
        add("crowd", f"an answer is right if its mean rating is {threshold:g} or more", good, is_rated)
        if gold.any():
            either = "an answer is right if the maker marked it or the crowd rated it well; only questions that the crowd judged"
            add("both", either, gold | good, is_rated)
    if not judges:
        remedy = "mark right answers in the dialogues, or give ratings with --crowd"
        raise DialometerError("nobody has said which answers are right", remedy=remedy)
    return judges


# Scores of retrievers, and differences between them.

ResampledUnit = Literal["questions", "dialogues"]


@dataclass(frozen=True)
class Resampling:
    """How intervals come about. Drawing whole dialogues allows for questions of one dialogue being alike."""

    by: ResampledUnit = "questions"
    n_resamples: int = 2000
    seed: int = 0
    confidence: float = 0.95


QUESTIONS = Resampling()


@dataclass(frozen=True)
class RetrieverScores:
    """One retriever by one judge."""

    retriever: str
    judge: JudgeName
    answerable: Mapping[str, Estimate]
    """Over questions that have a right answer."""
    everything: Mapping[str, Estimate]
    """Over all judged questions; one without a right answer counts as a failure. Recall has no value there."""
    values: Mapping[str, Floats]
    """Of each judged question."""


def score_retriever(
    retriever: str,
    judge: RelevanceJudge,
    ranks: RelevantRanks,
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    dialogues: NDArray[np.str_] | None = None,
    depth: float = math.inf,
    shares: ShareInterval = "bootstrap",
    resampling: Resampling = QUESTIONS,
) -> RetrieverScores:
    """Every metric of one retriever; ``depth`` is the rank to which its lists are known."""
    groups = dialogues[judge.has_judged] if dialogues is not None and resampling.by == "dialogues" else None
    values = {metric: value[judge.has_judged] for metric, value in metric_values(ranks, cutoffs).items()}

    def mean(metric: str, unanswerable: Unanswerable) -> Estimate:
        why = unknown_because(metric, depth)
        if why:
            return unknown("mean over questions", why, n=len(values[metric]), label=full_name(metric))
        return mean_over_questions(
            values[metric],
            groups,
            label=full_name(metric),
            unanswerable=unanswerable,
            shares=shares,
            n_resamples=resampling.n_resamples,
            seed=resampling.seed,
            confidence=resampling.confidence,
        )

    answerable = {metric: mean(metric, "exclude") for metric in values}
    everything = {metric: mean(metric, "zero") for metric in values if not is_recall(metric)}
    return RetrieverScores(retriever, judge.name, answerable, everything, values)


def paired_differences(
    scores: Sequence[RetrieverScores],
    metric: str,
    dialogues: NDArray[np.str_] | None = None,
    resampling: Resampling = QUESTIONS,
) -> dict[tuple[str, str], Estimate]:
    """Every two retrievers on the same questions by one judge: the first minus the second, before any correction.

    ``dialogues`` are those of the judged questions.
    """
    return {
        (score.retriever, other.retriever): compare_questions(
            score.values[metric],
            other.values[metric],
            dialogues if resampling.by == "dialogues" else None,
            seed=resampling.seed,
            confidence=resampling.confidence,
            label=f"{score.retriever} - {other.retriever}",
        )
        for score, other in itertools.combinations(scores, 2)
    }


# The evaluation of several retrievers by several judges.


@dataclass(frozen=True)
class RetrieverComparison:
    """Two retrievers on the same questions by one judge: the first minus the second."""

    first: str
    second: str
    judge: JudgeName
    metric: str
    difference: Estimate


@dataclass(frozen=True)
class Evaluation:
    """The whole table."""

    judges: tuple[RelevanceJudge, ...]
    scores: tuple[RetrieverScores, ...]
    comparisons: tuple[RetrieverComparison, ...]
    metrics: tuple[str, ...]
    n_questions: int
    n_dialogues: int
    resampling: Resampling
    rated: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """For each retriever and cutoff the share of its first k answers that the crowd has rated, on questions it judged."""
    first: Mapping[str, Ints] = field(default_factory=dict)
    """For each retriever and question the answer in the first place; -1 where there is none."""

    def of(self, retriever: str, judge: str) -> RetrieverScores:
        """One cell."""
        return next(s for s in self.scores if s.retriever == retriever and s.judge == judge)

    def retrievers(self) -> tuple[str, ...]:
        """Names in the order they were given."""
        return tuple(dict.fromkeys(scores.retriever for scores in self.scores))


def rated_share(ranks: RelevantRanks, has_judged: Marks, cutoffs: Sequence[int]) -> dict[int, float]:
    """From the ranks of rated answers: which share of the first k was rated. What nobody rated counts as wrong."""
    n = int(has_judged.sum())
    is_judged = has_judged[ranks.question]
    return {k: float((ranks.rank[is_judged] <= k).sum() / (k * n)) if n else np.nan for k in cutoffs}


def evaluate(
    ranks: Mapping[str, Sequence[RelevantRanks]],
    query_set: QuerySet,
    judges: Sequence[RelevanceJudge],
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    compare_on: str = "",
    resampling: Resampling = QUESTIONS,
    rated: Mapping[str, Mapping[int, float]] | None = None,
    first: Mapping[str, Ints] | None = None,
) -> Evaluation:
    """Retrievers by name with their ranks, one for each judge; compared on Success Rate at the first cutoff by default."""
    names = metric_names(cutoffs)
    metric = compare_on or f"SR@{min(cutoffs)}"
    if metric not in names:
        raise DialometerError(f"'{metric}' is not measured", remedy=f"compare on one of {', '.join(names)}")
    dialogues = np.asarray(query_set.dialogues)
    scores = [
        score_retriever(name, judge, own, cutoffs=cutoffs, dialogues=dialogues, resampling=resampling)
        for name, by_judge in ranks.items()
        for judge, own in zip(judges, by_judge, strict=True)
    ]
    comparisons: list[RetrieverComparison] = []
    for judge in judges:
        own = [score for score in scores if score.judge == judge.name]
        best_first = sorted(own, key=lambda score: -float(np.nan_to_num(score.answerable[metric].value)))
        differences = paired_differences(best_first, metric, dialogues[judge.has_judged], resampling)
        comparisons += [
            RetrieverComparison(first, second, judge.name, metric, difference)
            for (first, second), difference in zip(
                differences, adjust_estimates(list(differences.values())), strict=True
            )
        ]
    return Evaluation(
        tuple(judges),
        tuple(scores),
        tuple(comparisons),
        names,
        len(query_set),
        len(set(query_set.dialogues)),
        resampling,
        rated or {},
        first or {},
    )


def as_json(evaluation: Evaluation, groups: Sequence[GroupScores] = ()) -> dict[str, Any]:
    """An evaluation as plain values, for ``--json`` and files. What could not be computed is null, with the reason in its notes."""
    return {
        "n_questions": evaluation.n_questions,
        "n_dialogues": evaluation.n_dialogues,
        "resampling": asdict(evaluation.resampling),
        "definitions": DEFINITIONS,
        "where_measures_mislead": MISLEADING,
        "judges": [
            {
                "name": judge.name,
                "right": judge.explained,
                "n_judged": int(judge.has_judged.sum()),
                "n_answerable": judge.n_answerable,
            }
            for judge in evaluation.judges
        ],
        "retrievers": [
            {
                "retriever": scores.retriever,
                "judge": scores.judge,
                "answerable": {name: _plain(estimate) for name, estimate in scores.answerable.items()},
                "all": {name: _plain(estimate) for name, estimate in scores.everything.items()},
            }
            for scores in evaluation.scores
        ],
        **({"groups": [_group(scores) for scores in groups]} if groups else {}),
        "rated_share_of_first_k": {
            name: {str(k): _number(share) for k, share in shares.items()} for name, shares in evaluation.rated.items()
        },
        "comparisons": [
            {
                "first": pair.first,
                "second": pair.second,
                "judge": pair.judge,
                "measure": pair.metric,
                **_plain(pair.difference),
                "p": _number(pair.difference.p_value),
                "p_adjusted": _number(pair.difference.details.get("p_adjusted", math.nan)),
            }
            for pair in evaluation.comparisons
        ],
    }


def _group(scores: GroupScores) -> dict[str, Any]:
    return {
        "group": scores.group,
        "retriever": scores.retriever,
        "judge": scores.judge,
        "n_answerable": scores.n_answerable,
        "answerable": {name: _plain(estimate) for name, estimate in scores.answerable.items()},
    }


def _plain(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": _number(estimate.value),
        "low": _number(estimate.low),
        "high": _number(estimate.high),
        "interval": estimate.interval_method,
        "n": estimate.n,
        "notes": list(estimate.notes),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
