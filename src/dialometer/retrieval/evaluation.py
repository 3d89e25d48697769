"""How good retrievers are: every measure, by every judge, on answerable and on all questions, with paired tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.retrieval.crowd_ratings import CrowdRatings
from dialometer.retrieval.queries import Query, QuerySet
from dialometer.retrieval.retriever import FittedRetriever
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.effects.multiplicity import adjust_estimates
from dialometer.stats.effects.permutation import permutation_paired
from dialometer.stats.observations import Floats
from dialometer.stats.retrieval.metrics import (
    RelevantRanks,
    average_precision,
    ranks_from_lists,
    ranks_from_scores,
    recall_at,
    reciprocal_rank,
    success_at,
)

# Whose labels count: the maker's, the crowd's, or both together.


Marks = NDArray[np.bool_]
JudgeName = Literal["maker", "crowd", "both"]
GOOD_FROM = 3.5
"""Mean rating (of 1 to 5) from which the crowd calls an answer right (Chierici and Habash 2021, section 6.5)."""


@dataclass(frozen=True)
class Judge:
    """Right answers by one judge, questions by answers, and the questions on which the judge said anything."""

    name: JudgeName
    label: str
    explained: str
    marks: Marks
    has_judged: Marks

    @property
    def n_answerable(self) -> int:
        """Judged questions with at least one right answer."""
        return int((self.marks.any(axis=1) & self.has_judged).sum())


def judges_of(
    asked: QuerySet, n_answers: int, crowd: CrowdRatings | None = None, good_from: float | None = None
) -> list[Judge]:
    """The maker where there are labels; with ratings also the crowd and both."""
    least = GOOD_FROM if good_from is None else good_from
    marks = asked.relevance(n_answers)
    everything = np.ones(len(asked), dtype=bool)
    found: list[Judge] = []
    if marks.any():
        found.append(Judge("maker", "Maker", "right is what the maker of the avatar marked", marks, everything))
    if crowd is not None:
        means = crowd.matrix(asked.queries, n_answers)
        if np.isnan(means).all():
            remedy = f"ratings name questions by id, such as '{asked.queries[0].id}'"
            raise DialometerError("no rating belongs to a question of these dialogues", remedy=remedy)
        is_rated: Marks = np.asarray((~np.isnan(means)).any(axis=1))
        good = np.nan_to_num(means, nan=-np.inf) >= least
        told = f"right is an answer with a mean rating of {least:g} or more"
        found.append(Judge("crowd", "Crowd", told, good, is_rated))
        if marks.any():
            either = "right is what the maker marked or the crowd rated well; questions the crowd judged"
            found.append(Judge("both", "Both", either, marks | good, is_rated))
    if not found:
        remedy = "mark right answers in the dialogues, or give ratings with --crowd"
        raise DialometerError("nobody has said which answers are right", remedy=remedy)
    return found


MOST_CELLS = 60_000_000
"""Questions times answers up to which every answer is ranked; beyond it the first 1,000 are, and MRR and MAP end there."""
DEEPEST = 1000
CUTS = (1, 2, 10)

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

Resampled = Literal["questions", "dialogues"]


@dataclass(frozen=True)
class Resampling:
    """How intervals come about. Drawing whole dialogues allows for questions of one dialogue being alike."""

    by: Resampled = "questions"
    n_resamples: int = 2000
    seed: int = 0
    confidence: float = 0.95


QUESTIONS = Resampling()


@dataclass(frozen=True)
class Scored:
    """One retriever by one judge."""

    retriever: str
    judge: str
    answerable: Mapping[str, Estimate]
    """Over questions that have a right answer."""
    everything: Mapping[str, Estimate]
    """Over all judged questions; one without a right answer counts as a failure. Recall has no value there."""
    values: Mapping[str, Floats]


@dataclass(frozen=True)
class Compared:
    """Two retrievers on the same questions by one judge: the first minus the second."""

    first: str
    second: str
    judge: str
    measure: str
    difference: Estimate


@dataclass(frozen=True)
class Evaluation:
    """The whole table."""

    judges: tuple[Judge, ...]
    scored: tuple[Scored, ...]
    compared: tuple[Compared, ...]
    measures: tuple[str, ...]
    n_questions: int
    n_dialogues: int
    resampling: Resampling
    rated: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """For each retriever and cut the share of its first k answers that the crowd has rated, on questions it judged."""

    def of(self, retriever: str, judge: str) -> Scored:
        """One cell."""
        return next(s for s in self.scored if s.retriever == retriever and s.judge == judge)

    def retrievers(self) -> tuple[str, ...]:
        """Names in the order they were given."""
        return tuple(dict.fromkeys(scored.retriever for scored in self.scored))


def measure_names(cuts: Sequence[int]) -> tuple[str, ...]:
    """In the order of the published table."""
    return (*(f"R@{k}" for k in cuts), "MRR", "MAP", *(f"SR@{k}" for k in cuts))


def relevant_ranks(fitted: FittedRetriever, asked: QuerySet, marked: Sequence[Marks]) -> list[RelevantRanks]:
    """At which ranks a retriever puts marked answers, for each of several ways of marking; the questions are asked once."""
    if len(asked) * len(fitted.kb.answers) <= MOST_CELLS:
        scores = fitted.scores(asked.queries)
        return [ranks_from_scores(scores, marks) for marks in marked]
    lists = fitted.rank(asked.queries, min(DEEPEST, len(fitted.kb.answers))).answers
    return [ranks_from_lists(lists, marks) for marks in marked]


def rated_share(ranks: RelevantRanks, has_judged: Marks, cuts: Sequence[int]) -> dict[int, float]:
    """From the ranks of rated answers: which share of the first k was rated. What nobody rated counts as wrong."""
    n = int(has_judged.sum())
    is_judged = has_judged[ranks.question]
    return {k: float((ranks.rank[is_judged] <= k).sum() / (k * n)) if n else np.nan for k in cuts}


def values_of(ranks: RelevantRanks, cuts: Sequence[int]) -> dict[str, Floats]:
    """Every measure of every question; nan where a question has no right answer."""
    return {
        **{f"R@{k}": recall_at(ranks, k) for k in cuts},
        "MRR": reciprocal_rank(ranks),
        "MAP": average_precision(ranks),
        **{f"SR@{k}": success_at(ranks, k) for k in cuts},
    }


def measure(
    ranks: Mapping[str, Sequence[RelevantRanks]],
    asked: QuerySet,
    judges: Sequence[Judge],
    *,
    cuts: Sequence[int] = CUTS,
    compared_on: str = "",
    resampling: Resampling = QUESTIONS,
    rated: Mapping[str, Mapping[int, float]] | None = None,
) -> Evaluation:
    """The evaluation of retrievers given by name with their ranks, one for each judge; compared on SR@1 if not told."""
    names = measure_names(cuts)
    on = compared_on or f"SR@{min(cuts)}"
    if on not in names:
        raise DialometerError(f"'{on}' is not measured", remedy=f"compare on one of {', '.join(names)}")
    groups = np.asarray(asked.dialogues)
    scored = []
    for name, of_judges in ranks.items():
        for judge, found in zip(judges, of_judges, strict=True):
            own = groups[judge.has_judged]
            values = {label: value[judge.has_judged] for label, value in values_of(found, cuts).items()}
            answerable = {label: _mean(value, own, label, resampling) for label, value in values.items()}
            everything = {
                label: _mean(np.nan_to_num(value, nan=0.0), own, label, resampling)
                for label, value in values.items()
                if not label.startswith("R@")
            }
            scored.append(Scored(name, judge.name, answerable, everything, values))
    compared = [pair for judge in judges for pair in _pairs(scored, judge, on, groups, resampling)]
    n_dialogues = len(set(asked.dialogues))
    return Evaluation(
        tuple(judges), tuple(scored), tuple(compared), names, len(asked), n_dialogues, resampling, rated or {}
    )


def _mean(values: Floats, groups: NDArray[np.str_], label: str, how: Resampling) -> Estimate:
    """The mean with a bootstrap interval; Wilson's where every question has the same 0 or 1, which no resample can change."""
    is_given = ~np.isnan(values)
    y, g = values[is_given], groups[is_given]
    if not len(y):
        return unknown("mean over questions", "no question has a right answer: mark right answers first", label=label)
    if np.ptp(y) == 0 and y[0] in (0.0, 1.0):
        found = proportion(float(y.sum()), len(y), confidence=how.confidence, label=label)
    else:
        found = bootstrap_mean(
            y,
            g if how.by == "dialogues" else None,
            n_resamples=how.n_resamples,
            seed=how.seed,
            confidence=how.confidence,
            label=label,
        )
    words = found.interval_method.replace("values", "questions").replace("raters", "dialogues")
    return replace(found, method="mean over questions", interval_method=words)


def _pairs(
    scored: Sequence[Scored], judge: Judge, label: str, groups: NDArray[np.str_], how: Resampling
) -> list[Compared]:
    """Every two retrievers, the better one first, p values corrected together (Holm)."""
    own = sorted(
        (one for one in scored if one.judge == judge.name),
        key=lambda one: -float(np.nan_to_num(one.answerable[label].value)),
    )
    couples = list(itertools.combinations(own, 2))
    found = [
        _difference(
            one.values[label] - two.values[label],
            groups[judge.has_judged],
            f"{one.retriever} - {two.retriever}",
            how,
        )
        for one, two in couples
    ]
    return [
        Compared(one.retriever, two.retriever, judge.name, label, difference)
        for (one, two), difference in zip(couples, adjust_estimates(found), strict=True)
    ]


def _difference(difference: Floats, groups: NDArray[np.str_], label: str, how: Resampling) -> Estimate:
    """A paired permutation test (Smucker, Allan and Carterette 2007): signs are flipped by question, or by dialogue."""
    is_given = ~np.isnan(difference)
    y, g = difference[is_given], groups[is_given]
    flipped: Floats = y
    if how.by == "dialogues":
        flipped = np.bincount(np.unique(g, return_inverse=True)[1], weights=y).astype(np.float64)
    tested = permutation_paired(flipped, np.zeros(len(flipped)), seed=how.seed, label=label)
    if not tested.is_known:
        return tested
    spread = _mean(y, g, label, how)
    return replace(
        tested,
        value=spread.value,
        n=len(y),
        low=spread.low,
        high=spread.high,
        confidence=how.confidence,
        interval_method=spread.interval_method,
    )


# An evaluation as plain values, for ``--json`` and for files.


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """What could not be computed is null, with the reason in its notes."""
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
                "retriever": one.retriever,
                "judge": one.judge,
                "answerable": {name: _plain(estimate) for name, estimate in one.answerable.items()},
                "all": {name: _plain(estimate) for name, estimate in one.everything.items()},
            }
            for one in evaluation.scored
        ],
        "rated_share_of_first_k": {
            name: {str(k): _number(share) for k, share in shares.items()} for name, shares in evaluation.rated.items()
        },
        "comparisons": [
            {
                "first": one.first,
                "second": one.second,
                "judge": one.judge,
                "measure": one.measure,
                **_plain(one.difference),
                "p": _number(one.difference.p_value),
                "p_adjusted": _number(one.difference.details.get("p_adjusted", math.nan)),
            }
            for one in evaluation.compared
        ],
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


# What each retriever would answer, with scores and what they rest on.


@dataclass(frozen=True)
class Explained:
    """One answer of one retriever."""

    rank: int
    answer: str
    text: str
    score: float
    because: str


def explain(fitted: Mapping[str, FittedRetriever], query: Query, k: int = 3) -> dict[str, list[Explained]]:
    """The first k answers of every retriever."""
    found: dict[str, list[Explained]] = {}
    for name, one in fitted.items():
        ranking = one.rank([query], k)
        pairs = zip(ranking.answers[0].tolist(), ranking.scores[0].tolist(), strict=True)
        found[name] = [
            Explained(rank, one.kb.answers[answer].id, one.kb.answers[answer].text, score, one.explain(query, answer))
            for rank, (answer, score) in enumerate(pairs, start=1)
            if answer >= 0
        ]
    return found
