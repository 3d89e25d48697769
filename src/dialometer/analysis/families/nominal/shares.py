"""Shares of categories by system (or condition), and whether they differ.

For every two groups and every category the difference of shares is tested, with raters and items as samples, and all these
tests are one family. That groups differ at all is said where one of them is significant after correction: with some dozen
raters and items a joint test of all shares (Hotelling's T² of the same variances) has hardly any degrees of freedom left,
and it would not say which category differs.

Equal groups were called different in at most 5 % of simulated studies: tests/analysis/test_nominal.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.families.nominal.categories import Answers, Groups, compared_groups
from dialometer.analysis.shared.comparisons import between, corrected_by_name, is_significant
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Study
from dialometer.stats.clustered.two_way import two_way_share
from dialometer.stats.clustered.two_way_contrasts import TwoWayContrasts


class CategoryContrast(NamedTuple):
    """One difference: two groups and a category."""

    criterion: str
    first: str
    second: str
    category: str


CategoryContrasts = Mapping[CategoryContrast, Estimate]
"""Differences of shares (first minus second) with ``p_adjusted`` in their details."""


@dataclass(frozen=True, eq=False)
class CategoryShares:
    """One criterion by groups."""

    answers: Answers
    groups: Groups
    options: Options

    @cached_property
    def shares(self) -> dict[tuple[str, str], Estimate]:
        """The share of each category in each group, by group and category."""
        shares = {}
        for code, group in enumerate(self.groups.names):
            inside = self.groups.code == code
            for category, name in enumerate(self.answers.categories):
                share = two_way_share(
                    (self.answers.category[inside] == category).astype(np.float64),
                    self.answers.rater[inside],
                    None if self.options.has_fixed_items else self.answers.item[inside],
                    confidence=self.options.confidence,
                    label=name,
                )
                # Nobody asks whether a category has half of all answers.
                method = share.method.partition(", score t-test")[0]
                shares[group, name] = replace(share, method=method, statistic=math.nan, p_value=math.nan, unit="share")
        return shares

    def differences(self, *, has_fixed_items: bool) -> dict[CategoryContrast, Estimate]:
        """Every two groups in every category that anybody chose; of two categories the first says it all."""
        groups, answers = self.groups, self.answers
        pairs = list(combinations(range(len(groups.names)), 2))
        if not pairs:
            return {}
        inside = groups.is_inside
        code, rater, item = groups.code[inside], answers.rater[inside], answers.item[inside]
        design = np.zeros((len(code), len(groups.names)))
        design[np.arange(len(code)), code] = 1.0
        sizes = np.bincount(code, minlength=len(groups.names))
        used = answers.used if len(answers.used) > 2 else answers.used[:1]
        contrasts: dict[CategoryContrast, Estimate] = {}
        for category in used if len(answers.used) > 1 else ():
            fit = TwoWayContrasts(
                (answers.category[inside] == category).astype(np.float64),
                design,
                rater,
                None if has_fixed_items else item,
                self.options.confidence,
            )
            for a, b in pairs:
                name = CategoryContrast(answers.label, groups.names[a], groups.names[b], answers.categories[category])
                weights = np.zeros(len(groups.names))
                weights[a], weights[b] = 1.0, -1.0
                n = int(sizes[a] + sizes[b])
                test = unknown("difference of shares", "one of the two has no answers", n=n)
                if sizes[a] and sizes[b]:
                    test = fit.contrast(weights, limit=1.0, n=n, label=f"{name.first} - {name.second}")
                contrasts[name] = between(
                    test,
                    groups.keys[a],
                    groups.keys[b],
                    about=name.criterion,
                    part=name.category,
                    quantity="percentage points",
                )
        return contrasts

    @cached_property
    def tests(self) -> dict[CategoryContrast, Estimate]:
        """The differences as one family of tests, for other raters and (unless declared as fixed) other items."""
        return corrected_by_name(self.differences(has_fixed_items=self.options.has_fixed_items), self.options)


def declared_tests(
    study: Study, answers: Sequence[Answers], comparison: Comparison, options: Options, *, has_fixed_items: bool
) -> dict[CategoryContrast, Estimate]:
    """The tests of a declared comparison: groups two by two, category by category, over its criteria as one family."""
    contrasts: dict[CategoryContrast, Estimate] = {}
    for given in answers:
        if comparison.criteria and given.criterion not in comparison.criteria:
            continue
        shares = CategoryShares(given, compared_groups(study, given, comparison), options)
        contrasts |= shares.differences(has_fixed_items=has_fixed_items)
    return corrected_by_name(contrasts, options)


def significant(tests: CategoryContrasts) -> dict[CategoryContrast, Estimate]:
    """The differences that are significant after correction, the largest first."""
    clear = {name: test for name, test in tests.items() if is_significant(test)}
    return dict(sorted(clear.items(), key=lambda pair: -abs(pair[1].value)))
