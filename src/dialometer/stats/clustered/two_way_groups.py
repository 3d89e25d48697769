"""Do groups of answers differ, for other raters and other items? Strategies with items of their own, or questions on the same.

Tests over raters alone take the items as fixed, "the language-as-fixed-effect fallacy" of Clark (1973). Here

- ``two_way_homogeneity`` joins the test by raters (F1) and the test by items (F2) into Clark's
  min F' = F1 F2 / (F1 + F2), with (F1 + F2)² / (F1²/d2 + F2²/d1) denominator degrees of freedom. F1 is
  :func:`homogeneity_clustered`. F2 is the same over items where groups share them; where each item belongs to one group, it is
  the analysis of variance of the items' means (of shares: their empirical logits, since few bounded means exceed the level of
  the test), which assumes that items vary alike in all groups;
- ``two_way_differences`` compares every two groups by the jackknife over raters and items of
  :mod:`dialometer.stats.clustered.two_way`, with Welch's degrees of freedom where groups have items of their own.

Checked in tests/stats/test_two_way_groups.py against ``scipy.stats.f_oneway``, ``scipy.stats.ttest_ind`` and, for the level of
the tests, by simulation.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.homogeneity import homogeneity_clustered, pairwise_clustered
from dialometer.stats.clustered.two_way import two_way_linear
from dialometer.stats.observations import Floats, Ints, check_confidence, codes, missing_note, numbers, same_length

FEW_ITEMS = "a group has fewer than two items: nothing can be said about other items; use more items in each group"
MIN_F = "homogeneity of group means over raters and items, min F'"
DIFFERENCE = "difference of group means, two-way jackknife over raters and items, t-test"


def two_way_homogeneity(
    answers: ArrayLike, groups: ArrayLike, raters: ArrayLike, items: ArrayLike | None, *, label: str = ""
) -> Estimate:
    """Are group means (or shares of 0/1 answers) equal for other raters and other items? ``items=None`` takes items as fixed."""
    by_raters = homogeneity_clustered(answers, groups, raters, label=label)
    if items is None or not by_raters.is_known:
        return by_raters
    y, group_ids, item_ids = numbers(answers), np.asarray(groups), np.asarray(items)
    same_length(answers=y, groups=group_ids, items=item_ids)
    is_rated = ~np.isnan(y)
    y, (group, _), (item, _) = y[is_rated], codes(group_ids[is_rated]), codes(item_ids[is_rated])
    joined = replace(
        by_raters, method=MIN_F, statistic=math.nan, df=(), p_value=math.nan,
        details={**by_raters.details, "n_items": int(item.max()) + 1},
    )  # fmt: skip
    if math.isnan(by_raters.p_value):
        return joined
    if own_group(group, item) is None:
        by_items = homogeneity_clustered(y, group, item)
        if math.isnan(by_items.p_value):
            return joined.with_note("no test for other items: there are too few items for so many groups; use more")
        f_items, (q, df_items) = by_items.statistic, by_items.df
    else:
        f_items, df_items = _anova_of_items(y, group, item)
        q = by_raters.df[0]
        if math.isnan(f_items):
            return joined.with_note(FEW_ITEMS)
    statistic, df = min_f(by_raters.statistic, by_raters.df[1], f_items, df_items)
    return replace(joined, statistic=statistic, df=(q, df), p_value=float(stats.f.sf(statistic, q, df)))


def min_f(by_raters: float, df_raters: float, by_items: float, df_items: float) -> tuple[float, float]:
    """Clark's min F' and its denominator degrees of freedom."""
    total = by_raters + by_items
    if total == 0:
        return 0.0, min(df_raters, df_items)
    if math.isinf(by_items):
        return by_raters, df_raters
    return by_raters * by_items / total, total**2 / (by_raters**2 / df_items + by_items**2 / df_raters)


def own_group(group: Ints, item: Ints) -> Ints | None:
    """The group of each item, where every item belongs to one; None where groups share items."""
    n_items = int(item.max(initial=-1)) + 1
    low, high = np.full(n_items, np.iinfo(np.int64).max), np.full(n_items, -1)
    np.minimum.at(low, item, group)
    np.maximum.at(high, item, group)
    return low if np.array_equal(low, high) else None


def _anova_of_items(y: Floats, group: Ints, item: Ints) -> tuple[float, float]:
    """F and denominator degrees of freedom of the items' means between groups; nan where a group has one item."""
    n = np.bincount(item)
    means = np.bincount(item, weights=y) / n
    if _is_share(y):
        means = np.log((means * n + 0.5) / ((1 - means) * n + 0.5))
    of_item = own_group(group, item)
    assert of_item is not None
    parts = [means[of_item == g] for g in np.unique(of_item)]
    df = len(means) - len(parts)
    if min(map(len, parts)) < 2:
        return math.nan, math.nan
    within = sum(float(np.sum((part - part.mean()) ** 2)) for part in parts) / df
    between = sum(len(part) * (float(part.mean()) - float(means.mean())) ** 2 for part in parts) / (len(parts) - 1)
    if between < 1e-15:
        return 0.0, float(df)
    return (between / within if within > 1e-15 else math.inf), float(df)


def two_way_differences(
    answers: ArrayLike, groups: ArrayLike, raters: ArrayLike, items: ArrayLike | None, *, confidence: float = 0.95
) -> dict[tuple[str, str], Estimate]:
    """Difference of means (first minus second) of every two groups, for other raters and other items.

    ``items=None`` takes the items as fixed (:func:`pairwise_clustered`). P-values are not corrected for their number.
    """
    fixed = pairwise_clustered(answers, groups, raters, confidence=confidence)
    if items is None:
        return fixed
    y, (group, names), item_ids = numbers(answers), codes(np.asarray(groups)), np.asarray(items)
    same_length(answers=y, groups=group, items=item_ids)
    level = check_confidence(confidence)
    result = {}
    for first, second in itertools.combinations(range(len(names)), 2):
        pair = (str(names[first]), str(names[second]))
        kept = np.isin(group, (first, second)) & ~np.isnan(y)
        if not fixed[pair].is_known:
            result[pair] = unknown(DIFFERENCE, fixed[pair].notes[0])
            continue
        inside = (group[kept] == first).astype(np.float64)
        n_missing = int(np.sum(np.isin(group, (first, second)) & np.isnan(y)))
        difference = _difference(y[kept], inside, np.asarray(raters)[kept], item_ids[kept], level)
        result[pair] = replace(
            difference, label=f"{pair[0]} - {pair[1]}", notes=(*missing_note(n_missing), *difference.notes)
        )
    return result


def _difference(y: Floats, is_first: Floats, raters: ArrayLike, items: ArrayLike, level: float) -> Estimate:
    design = np.column_stack([is_first, 1 - is_first])
    means, variance = two_way_linear(y, design, raters, items)
    item, _ = codes(items)
    value = float(means[0] - means[1])
    error, df = variance.contrast([1.0, -1.0], own_group(is_first.astype(np.int64), item))
    details = {"standard_error": error, "n_raters": variance.n_raters, "n_items": variance.n_items}
    blank = Estimate(value, len(y), DIFFERENCE, confidence=level, details=details)
    if df <= 0 or variance.n_items < 2:
        return blank.with_note(FEW_ITEMS)
    if error < 1e-12:
        return blank.with_note("no test: neither raters nor items differ between the two")
    half = float(stats.t.isf((1 - level) / 2, df)) * error
    limit = 1.0 if _is_share(y) else math.inf
    return replace(
        blank,
        low=value - half,
        high=value + half,
        interval_method="Student's t with the degrees of freedom of the design",
        statistic=value / error,
        df=(df,),
        p_value=float(2 * stats.t.sf(abs(value) / error, df)),
    ).within(-limit, limit)


def _is_share(y: Floats) -> bool:
    return bool(np.all((y >= 0) & (y <= 1)))
