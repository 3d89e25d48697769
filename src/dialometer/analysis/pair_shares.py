"""How often the experimental version was preferred: cells, marginals and declared comparisons, each with its test.

A cell (one strategy, one question) holds one answer of each rater and is tested exactly. A marginal holds several answers
of each rater, so it is tested with each rater as one cluster; a cell is treated so too where raters judged several of its
pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dialometer.analysis.family import Options
from dialometer.analysis.pair_choices import PairChoices
from dialometer.model.estimate import Estimate
from dialometer.model.study import Comparison, Study
from dialometer.stats.clustered_preference import clustered_preference
from dialometer.stats.homogeneity import homogeneity_clustered, pairwise_clustered
from dialometer.stats.multiplicity import adjust_estimates
from dialometer.stats.preference import chi2_goodness_of_fit, preference_of


def cell_share(choices: PairChoices, *, confidence: float, label: str = "") -> Estimate:
    """The share of one cell: exact where every rater answered once, else by rater. χ² stands in the details."""
    if choices.is_repeated:
        return marginal_share(choices, confidence=confidence, label=label)
    found = _as_share(preference_of(choices.signed, confidence=confidence, label=label))
    n_for, n_against = int(np.sum(choices.signed == 1)), int(np.sum(choices.signed == -1))
    if not found.is_known:
        return found
    chi2 = chi2_goodness_of_fit([n_for, n_against])
    return replace(found, details={**found.details, "chi2": chi2.statistic, "chi2_p": chi2.p_value})


def marginal_share(choices: PairChoices, *, confidence: float, label: str = "") -> Estimate:
    """The share over several answers of each rater, with a test that takes each rater as one cluster."""
    return _as_share(clustered_preference(choices.signed, choices.rater, confidence=confidence, label=label))


def _as_share(found: Estimate) -> Estimate:
    """Marked as a share whose test is about one half, so that it is written and drawn as such."""
    return replace(found, unit="share", details={**found.details, "null": 0.5})


def corrected(estimates: Sequence[Estimate], options: Options) -> tuple[Estimate, ...]:
    """One family of tests under the declared correction."""
    return adjust_estimates(estimates, options.correction)  # type: ignore[arg-type]  # declared by the study


@dataclass(frozen=True, eq=False)
class Shares:
    """Every share of a study: cells by strategy and question, and the marginals; p values are corrected by family."""

    cells: dict[tuple[int, int], Estimate]
    by_strategy: tuple[Estimate, ...]
    by_question: tuple[Estimate, ...]
    overall: Estimate


def all_shares(choices: PairChoices, options: Options) -> Shares:
    """Cells, marginals and the whole. Cells that the design does not ask are absent, those without answers unknown."""
    strategies, questions = range(len(choices.strategies)), range(len(choices.questions))
    places = [(s, q) for s in strategies for q in questions]
    cells = [
        cell_share(
            choices.where((choices.strategy == s) & (choices.question == q)),
            confidence=options.confidence,
            label=f"{choices.strategy_labels[s]}, {choices.question_labels[q]}",
        )
        for s, q in places
    ]
    by_strategy = [
        marginal_share(
            choices.where(choices.strategy == s), confidence=options.confidence, label=choices.strategy_labels[s]
        )
        for s in strategies
    ]
    by_question = [
        marginal_share(
            choices.where(choices.question == q), confidence=options.confidence, label=choices.question_labels[q]
        )
        for q in questions
    ]
    return Shares(
        cells=dict(zip(places, corrected(cells, options), strict=True)),
        by_strategy=corrected(by_strategy, options),
        by_question=corrected(by_question, options),
        overall=marginal_share(choices, confidence=options.confidence, label="all"),
    )


@dataclass(frozen=True, eq=False)
class Declared:
    """One declared comparison: the share of each strategy over the comparison's questions, tested as one family."""

    comparison: Comparison
    is_primary: bool
    strategies: tuple[int, ...]
    questions: tuple[str, ...]
    shares: tuple[Estimate, ...]

    def covers(self, choices: PairChoices) -> bool:
        """Whether it is about all strategies and all questions, as the marginals are."""
        return self.questions == choices.questions and len(self.strategies) == len(choices.strategies)


def declared_shares(study: Study, choices: PairChoices, options: Options) -> tuple[Declared, ...]:
    """The comparisons between systems that the study declares, in the order they were declared, the primary one first."""
    analysis = study.spec.analysis
    found = []
    for comparison in analysis.comparisons:
        if comparison.between != "systems":
            continue
        questions = tuple(q for q in choices.questions if not comparison.criteria or q in comparison.criteria)
        strategies = tuple(
            s for s, name in enumerate(choices.strategies) if not comparison.blocks or name in comparison.blocks
        )
        if not questions or not strategies:
            continue
        inside = choices.asked(list(questions))
        shares = [
            marginal_share(
                inside.where(inside.strategy == s), confidence=options.confidence, label=choices.strategy_labels[s]
            )
            for s in strategies
        ]
        is_primary = comparison.name == analysis.primary
        found.append(Declared(comparison, is_primary, strategies, questions, corrected(shares, options)))
    return tuple(sorted(found, key=lambda one: not one.is_primary))


def differs(choices: PairChoices, by: str, *, label: str = "") -> Estimate:
    """Whether the preference differs between strategies, questions or items, each rater as one cluster."""
    return homogeneity_clustered(choices.share, getattr(choices, by), choices.rater, label=label)


def strategy_differences(choices: PairChoices, options: Options) -> dict[tuple[str, str], Estimate]:
    """Every two strategies: difference of their shares, corrected as one family."""
    found = pairwise_clustered(choices.share, choices.strategy, choices.rater, confidence=options.confidence)
    labels = choices.strategy_labels
    named = {(labels[int(first)], labels[int(second)]): one for (first, second), one in found.items()}
    return dict(zip(named, corrected(list(named.values()), options), strict=True))
