"""How often the experimental version was preferred, at the two reaches of a claim.

A claim about a strategy must hold for other raters and for other transcript pairs that carry it: both are samples. A claim
about these very texts holds for other raters who read them, and is usually much more certain. Both are computed from the same
answers and have the same value; they differ in interval and test, and every sentence says which of the two it is about. A study
that declares ``items: fixed`` makes claims of the second kind only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.families.pairs.choices import PairChoices
from dialometer.analysis.shared.comparisons import corrected, is_significant, p_adjusted, primary_comparison
from dialometer.analysis.shared.equivalence import differences_of
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Study
from dialometer.stats.clustered.clustered import clustered_preference
from dialometer.stats.clustered.preference import NO_DECISIVE, chi2_goodness_of_fit, preference_of
from dialometer.stats.clustered.two_way import two_way_share
from dialometer.stats.clustered.two_way_groups import two_way_differences, two_way_homogeneity

Reach = Literal["general", "here", "open", "untested", "unknown"]
NO_PREFERENCE = 0.5


@dataclass(frozen=True, eq=False)
class Result:
    """One result: ``general`` holds for other raters and other pairs, ``here`` for other raters who read these pairs.

    ``general`` is None where the study declares its pairs as fixed, and has no test where there are too few pairs for one.
    """

    label: str
    here: Estimate
    general: Estimate | None
    n_pairs: int

    @property
    def declared(self) -> Estimate:
        """The estimate whose test decides a declared comparison."""
        return self.here if self.general is None else self.general

    @property
    def shown(self) -> Estimate:
        """The estimate that stands for the result: about these pairs where nothing can be said about others."""
        return self.declared if self.declared.has_interval else self.here

    @property
    def value(self) -> float:
        """The share or difference, which is the same at both reaches."""
        return self.here.value

    @property
    def has_general_test(self) -> bool:
        """Whether the data allow a test for other pairs."""
        return self.general is not None and not math.isnan(self.general.p_value)

    @property
    def reach(self) -> Reach:
        """How far the result is significant: in general, for these pairs, or not at all."""
        if not self.here.is_known:
            return "unknown"
        if self.general is not None and is_significant(self.general):
            return "general"
        if is_significant(self.here):
            return "here"
        is_tested = self.has_general_test or not math.isnan(p_adjusted(self.here))
        return "open" if is_tested else "untested"


def corrected_results(results: Sequence[Result], options: Options) -> tuple[Result, ...]:
    """Results as one family of tests, at each reach by itself."""
    here = corrected([result.here for result in results], options)
    general = iter(corrected([result.general for result in results if result.general is not None], options))
    return tuple(
        replace(result, here=test, general=None if result.general is None else next(general))
        for result, test in zip(results, here, strict=True)
    )


# Shares. A cell (one strategy, one question) holds one answer of each rater: on these pairs it is tested exactly, as in the
# published studies. Marginals, and cells in which raters judged several pairs, take each rater as one cluster.


def share_here(choices: PairChoices, *, confidence: float, label: str = "") -> Estimate:
    """The share among answers on these very pairs, with each rater as one cluster."""
    return _as_share(clustered_preference(choices.signed, choices.rater, confidence=confidence, label=label))


def cell_here(choices: PairChoices, *, confidence: float, label: str = "") -> Estimate:
    """The share of one cell on these pairs: exact where every rater answered once, else by rater. χ² is in the details."""
    if choices.is_repeated:
        return share_here(choices, confidence=confidence, label=label)
    share = _as_share(preference_of(choices.signed, confidence=confidence, label=label))
    n_for, n_against = int(np.sum(choices.signed == 1)), int(np.sum(choices.signed == -1))
    if not share.is_known:
        return share
    chi2 = chi2_goodness_of_fit([n_for, n_against])
    return replace(share, details={**share.details, "chi2": chi2.statistic, "chi2_p": chi2.p_value})


def share_in_general(choices: PairChoices, *, confidence: float, label: str = "") -> Estimate:
    """The same share, with raters and transcript pairs as samples."""
    share = choices.share
    decided = ~np.isnan(share)
    if not decided.any():
        return unknown("share, two-way jackknife over raters and items", NO_DECISIVE, label=label)
    estimate = two_way_share(
        share[decided], choices.rater[decided], choices.drawn[decided], confidence=confidence, label=label
    )
    return _as_share(estimate)


def share_result(choices: PairChoices, options: Options, *, label: str = "", is_cell: bool = False) -> Result:
    """The preference among some answers, at both reaches; not yet corrected."""
    of = cell_here if is_cell else share_here
    here = of(choices, confidence=options.confidence, label=label)
    general = None if options.has_fixed_items else share_in_general(choices, confidence=options.confidence, label=label)
    return Result(label, here, general, choices.n_pairs)


def _as_share(estimate: Estimate) -> Estimate:
    """Marked as a share whose test is about one half, so that it is written and drawn as such."""
    return replace(estimate, unit="share", details={**estimate.details, "null": NO_PREFERENCE})


@dataclass(frozen=True, eq=False)
class Shares:
    """Every share of a study: cells by strategy and question, and the marginals; p-values are corrected by family."""

    cells: dict[tuple[int, int], Result]
    by_strategy: tuple[Result, ...]
    by_question: tuple[Result, ...]
    overall: Result

    @property
    def cells_here(self) -> dict[tuple[int, int], Estimate]:
        """The shares of single cells on these pairs, as the published tables show them."""
        return {place: result.here for place, result in self.cells.items()}


def all_shares(choices: PairChoices, options: Options) -> Shares:
    """Cells, marginals and the whole. Cells that the design does not ask are absent, those without answers unknown."""
    strategies, questions = range(len(choices.strategies)), range(len(choices.questions))
    places = [(s, q) for s in strategies for q in questions]
    cells = [
        share_result(
            choices.where((choices.strategy == s) & (choices.question == q)),
            options,
            label=f"{choices.strategy_labels[s]}, {choices.question_labels[q]}",
            is_cell=True,
        )
        for s, q in places
    ]
    by_question = [
        share_result(choices.where(choices.question == q), options, label=choices.question_labels[q]) for q in questions
    ]
    (overall,) = corrected_results([share_result(choices, options, label="all")], options)
    return Shares(
        cells=dict(zip(places, corrected_results(cells, options), strict=True)),
        by_strategy=strategy_results(choices, options),
        by_question=corrected_results(by_question, options),
        overall=overall,
    )


def strategy_results(
    choices: PairChoices, options: Options, strategies: Sequence[int] | None = None
) -> tuple[Result, ...]:
    """The share of each strategy (or of some) over the given answers, corrected as one family."""
    chosen = range(len(choices.strategies)) if strategies is None else strategies
    results = [
        share_result(choices.where(choices.strategy == s), options, label=choices.strategy_labels[s]) for s in chosen
    ]
    return corrected_results(results, options)


@dataclass(frozen=True, eq=False)
class DeclaredShares:
    """One declared comparison: the share of each strategy over the comparison's questions, tested as one family."""

    comparison: Comparison
    is_primary: bool
    strategies: tuple[int, ...]
    questions: tuple[str, ...]
    results: tuple[Result, ...]

    def covers(self, choices: PairChoices) -> bool:
        """Whether it is about all strategies and all questions, as the marginals are."""
        return self.questions == choices.questions and len(self.strategies) == len(choices.strategies)


def declared_comparison(
    study: Study, choices: PairChoices, comparison: Comparison, options: Options
) -> DeclaredShares | None:
    """The tests of one comparison between systems; None where it is about no strategy or question of these choices."""
    if comparison.between != "systems":
        return None
    questions = tuple(q for q in choices.questions if not comparison.criteria or q in comparison.criteria)
    strategies = tuple(
        s for s, name in enumerate(choices.strategies) if not comparison.blocks or name in comparison.blocks
    )
    if not questions or not strategies:
        return None
    results = strategy_results(choices.for_questions(list(questions)), options, strategies)
    is_primary = comparison.name == primary_comparison(study).name
    return DeclaredShares(comparison, is_primary, strategies, questions, results)


def declared_shares(study: Study, choices: PairChoices, options: Options) -> tuple[DeclaredShares, ...]:
    """The comparisons between systems that the study declares, in the order they were declared, the primary one first."""
    found = (declared_comparison(study, choices, difference, options) for difference in differences_of(study))
    return tuple(sorted((one for one in found if one is not None), key=lambda one: not one.is_primary))


# Differences. Strategies have transcript pairs of their own, which are samples of them. Questions are asked about the same
# pairs, which takes out how well a pair does altogether; that a pair does better on one question than on another remains,
# so pairs are a sample there too.


def difference_test(choices: PairChoices, by: Literal["strategy", "question"], options: Options, label: str) -> Result:
    """Whether the preference differs between strategies or questions."""
    share, groups = choices.share, getattr(choices, by)
    here = two_way_homogeneity(share, groups, choices.rater, None, label=label)
    general = (
        None
        if options.has_fixed_items
        else two_way_homogeneity(share, groups, choices.rater, choices.drawn, label=label)
    )
    level = options.confidence
    here = replace(here, confidence=level)
    return Result(label, here, None if general is None else replace(general, confidence=level), choices.n_pairs)


def pairs_differ(choices: PairChoices, *, label: str = "") -> Estimate:
    """Whether the preference depends on which pair was read: a question about these pairs, each rater as one cluster."""
    return two_way_homogeneity(choices.share, choices.item, choices.rater, None, label=label)


def strategy_differences(choices: PairChoices, options: Options) -> dict[tuple[str, str], Result]:
    """Every two strategies: difference of their shares, corrected as one family."""
    share, labels = choices.share, choices.strategy_labels
    here = two_way_differences(share, choices.strategy, choices.rater, None, confidence=options.confidence)
    general: Mapping[tuple[str, str], Estimate] = {}
    if not options.has_fixed_items:
        general = two_way_differences(
            share, choices.strategy, choices.rater, choices.drawn, confidence=options.confidence
        )
    n_pairs = [choices.where(choices.strategy == s).n_pairs for s in range(len(labels))]
    names = [(labels[int(first)], labels[int(second)]) for first, second in here]
    results = [
        Result(f"{a} − {b}", here[key], general.get(key), min(n_pairs[int(k)] for k in key))
        for (a, b), key in zip(names, here, strict=True)
    ]
    return dict(zip(names, corrected_results(results, options), strict=True))
