"""Table 2 of the study of interaction strategies, tested again from its published ratios and number of subjects."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

from dialometer.analysis.reproduce.compared import (
    REPRODUCTIONS,
    ComparedNumber,
    NumberComparison,
    Reproduction,
    expected,
)
from dialometer.model.estimate import Estimate
from dialometer.stats.clustered.homogeneity import homogeneity
from dialometer.stats.clustered.preference import binomial_test, chi2_goodness_of_fit
from dialometer.stats.clustered.proportion import proportion, wilson_interval
from dialometer.stats.effects.multiplicity import adjust_estimates

N_SUBJECTS = 143
QUESTIONS = ("ease", "satisfaction", "utility", "interaction")
RATIOS = {
    "alignment": (0.60, 0.61, 0.67, 0.65),
    "empathy": (0.73, 0.78, 0.73, 0.76),
    "facing": (0.64, 0.71, 0.70, 0.66),
    "formal": (0.74, 0.80, 0.73, 0.66),
    "vocabulary": (0.74, 0.71, 0.73, 0.77),
}
"""Share of the 143 subjects who preferred the experimental transcript, by strategy and question (Table 2).

For formality it is the share of the control transcript, which is the formal one (footnote 2).
"""
MARGINALS = {"alignment": 0.63, "empathy": 0.75, "facing": 0.68, "formal": 0.73, "vocabulary": 0.74}
BY_GENDER = {
    "alignment": (0.68, 0.61),
    "empathy": (0.77, 0.74),
    "facing": (0.76, 0.64),
    "formal": (0.76, 0.72),
    "vocabulary": (0.72, 0.75),
}
"""Marginals of the 50 women and the 93 men (Table 3)."""
N_WOMEN, N_MEN = 50, 93
HALF_UNIT = 0.005
"""What is lost by printing two digits."""
NOT_APART = ("empathy", "formal", "vocabulary")
"""Strategies between which the paper finds no significant difference."""
CITATION = (
    "Guerini, Falcone and Magnini, A Methodology for Evaluating Interaction Strategies, SCAI 2018, Tables 2 and 3"
)


def count_of(ratio: float) -> int:
    """The number of subjects behind a printed ratio, rounded half up."""
    return math.floor(ratio * N_SUBJECTS + 0.5)


COUNTS = {
    (strategy, question): count_of(ratio)
    for strategy, ratios in RATIOS.items()
    for question, ratio in zip(QUESTIONS, ratios, strict=True)
}


@REPRODUCTIONS.register("guerini")
def guerini(_data: Path | None = None) -> Reproduction:
    """Needs no data: the table itself is the data."""
    other = expected("guerini")
    return Reproduction(
        "guerini",
        "Controlled transcript pairs: five strategies, four questions, 143 subjects",
        CITATION,
        (_printed(), _claims(), *_cells(other), _marginals(other), _homogeneity(other)),
        (
            "For formality the paper prints the share of the control transcript (its footnote 2): 73% prefer the formal control to "
            "the informal version, so the informal strategy is not preferred.",
            "Counts are the printed ratios times 143, rounded; where two counts fit a ratio the nearer one is taken.",
            "The same subjects answered all questions, so tests of marginals that pool answers are too optimistic; they "
            "are shown because the published test pools. dialometer's own reports test marginals by rater.",
            "The published tests take the transcript pairs as fixed: they are about these very texts. dialometer's own reports say "
            "so, and test a strategy in general over raters and transcript pairs.",
        ),
    )


def _printed() -> NumberComparison:
    """What the paper prints, within what rounding to two digits allows."""
    rows = [
        ComparedNumber(f"{strategy}, {question}: ratio", COUNTS[strategy, question] / N_SUBJECTS, ratio, HALF_UNIT)
        for strategy, ratios in RATIOS.items()
        for question, ratio in zip(QUESTIONS, ratios, strict=True)
    ]
    rows += [
        ComparedNumber(f"{strategy}: marginal", _strategy_count(strategy) / (4 * N_SUBJECTS), printed, 2 * HALF_UNIT)
        for strategy, printed in MARGINALS.items()
    ]
    rows += [
        ComparedNumber(
            f"{strategy}: marginal of women and men together",
            (N_WOMEN * women + N_MEN * men) / (N_WOMEN + N_MEN),
            MARGINALS[strategy],
            2 * HALF_UNIT,
        )
        for strategy, (women, men) in BY_GENDER.items()
    ]
    return NumberComparison("Printed ratios and marginals", "the paper, two digits", tuple(rows))


def _claims() -> NumberComparison:
    """Sentences of the paper as numbers."""
    tested = [chi2_goodness_of_fit([k, N_SUBJECTS - k]) for k in COUNTS.values()]
    apart = [
        homogeneity([_strategy_count(a), _strategy_count(b)], [4 * N_SUBJECTS] * 2)
        for a, b in itertools.combinations(NOT_APART, 2)
    ]
    rows = (
        ComparedNumber(
            "cells with a significant preference (χ², p < .05)", sum(t.p_value < 0.05 for t in tested), 20, 0
        ),
        ComparedNumber(
            f"significant differences among {', '.join(NOT_APART)}", sum(test.p_value < 0.05 for test in apart), 0, 0
        ),
        ComparedNumber("judgments collected", len(COUNTS) * N_SUBJECTS, 2860, 0),
    )
    return NumberComparison("What the paper says", "the paper, sections 4.3 and 4.4", rows)


def _cells(other: dict[str, dict[str, dict[str, float]]]) -> list[NumberComparison]:
    exact, chi2, wilson = [], [], []
    for (strategy, question), k in COUNTS.items():
        label, there = f"{strategy}, {question}", other["cells"][f"{strategy}|{question}"]
        exact.append(
            ComparedNumber(f"{label}: p", binomial_test(k, N_SUBJECTS).p_value, there["binomial_p"], is_relative=True)
        )
        fit = chi2_goodness_of_fit([k, N_SUBJECTS - k])
        chi2.append(ComparedNumber(f"{label}: χ²", fit.statistic, there["chi2"]))
        chi2.append(ComparedNumber(f"{label}: p", fit.p_value, there["chi2_p"], is_relative=True))
        low, high = wilson_interval(k, N_SUBJECTS)
        wilson += [
            ComparedNumber(f"{label}: low", low, there["wilson_low"]),
            ComparedNumber(f"{label}: high", high, there["wilson_high"]),
        ]
    return [
        NumberComparison(
            "Exact binomial test of each cell, in these transcript pairs", "scipy.stats.binomtest", tuple(exact)
        ),
        NumberComparison("χ² test of each cell", "scipy.stats.chisquare", tuple(chi2)),
        NumberComparison(
            "Wilson intervals of each cell", "statsmodels proportion_confint(method='wilson')", tuple(wilson)
        ),
    ]


def _marginals(other: dict[str, dict[str, dict[str, float]]]) -> NumberComparison:
    """Pooled as in the paper: every answer counts as independent."""
    rows = []
    counts = {strategy: (_strategy_count(strategy), 4 * N_SUBJECTS) for strategy in RATIOS}
    counts |= {question: (sum(COUNTS[s, question] for s in RATIOS), 5 * N_SUBJECTS) for question in QUESTIONS}
    for family in (tuple(RATIOS), QUESTIONS):
        tested: list[Estimate] = [binomial_test(*counts[name]) for name in family]
        for name, test in zip(family, adjust_estimates(tested, "holm"), strict=True):
            there = other["marginals"][name]
            share = proportion(*counts[name])
            rows += [
                ComparedNumber(f"{name}: share", share.value, there["share"]),
                ComparedNumber(f"{name}: p, Holm", test.details["p_adjusted"], there["p_holm"], is_relative=True),
            ]
    return NumberComparison("Marginals, answers pooled", "scipy.stats.binomtest, Holm's procedure", tuple(rows))


def _homogeneity(other: dict[str, dict[str, dict[str, float]]]) -> NumberComparison:
    tests = {
        "between strategies": homogeneity([_strategy_count(s) for s in RATIOS], [4 * N_SUBJECTS] * 5),
        "between questions": homogeneity([sum(COUNTS[s, q] for s in RATIOS) for q in QUESTIONS], [5 * N_SUBJECTS] * 4),
        "all 20 cells": homogeneity(list(COUNTS.values()), [N_SUBJECTS] * 20),
    }
    for question in QUESTIONS:
        tests[f"between strategies, {question}"] = homogeneity([COUNTS[s, question] for s in RATIOS], [N_SUBJECTS] * 5)
    for strategy in RATIOS:
        tests[f"between questions, {strategy}"] = homogeneity(
            [COUNTS[strategy, q] for q in QUESTIONS], [N_SUBJECTS] * 4
        )
    rows = []
    for name, test in tests.items():
        there = other["homogeneity"][name]
        rows += [
            ComparedNumber(f"{name}: χ²", test.statistic, there["chi2"]),
            ComparedNumber(f"{name}: p", test.p_value, there["p"], is_relative=True),
        ]
    return NumberComparison("Homogeneity", "scipy.stats.chi2_contingency(correction=False)", tuple(rows))


def _strategy_count(strategy: str) -> int:
    return sum(COUNTS[strategy, question] for question in QUESTIONS)
