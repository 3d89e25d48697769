"""One-way ICC where items have unequal numbers of judgments by changing raters: the usual shape of crowd data.

Unbalanced one-way analysis of variance with k0 in place of k (Donner 1986): checked against independent values for the
RankME Likert ratings (914 judgments of 300 items, three to five each) and, balanced, against ``pingouin.intraclass_corr``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import WeightedStatistic, estimate_from, jackknife, replicate
from dialometer.stats.icc.forms import NEGATIVE, NO_MEAN, form_named, has_mean_reliability, spearman_brown
from dialometer.stats.observations import Floats, as_judgments

_ROUNDING = 1e-13


@dataclass(frozen=True)
class OneWay:
    """Counts, sums and sums of squares per item (resamples or 1, by items): all that the one-way analysis needs."""

    counts: Floats
    sums: Floats
    squares: Floats


def one_way_icc(data: OneWay, item_weights: Floats) -> Floats:
    """ICC(1,1) on resamples given by how often each item counts (resamples by items).

    Items without judgments do not count.
    """
    size = data.counts
    is_rated = size > 0
    safe = np.where(is_rated, size, 1.0)
    total, grand = _weighted(item_weights, size), _weighted(item_weights, data.sums)
    explained = _weighted(item_weights, data.sums**2 / safe)
    n_rated = _weighted(item_weights, is_rated.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = (_weighted(item_weights, data.squares) - explained) / (total - n_rated)
        expected_noise = (n_rated - 1) * noise
        between = explained - grand**2 / total
        item = (between - expected_noise) / (total - _weighted(item_weights, size**2) / total)
        return np.asarray(item / (item + noise))


def _weighted(item_weights: Floats, per_item: Floats) -> Floats:
    """Sum over items for every resample; one product where the per-item numbers are the same in all of them."""
    if len(per_item) == 1:
        return np.asarray(item_weights @ per_item[0])
    return np.asarray(np.einsum("bi,bi->b", np.broadcast_to(item_weights, per_item.shape), per_item))


def icc_one_way(
    values: ArrayLike,
    items: ArrayLike,
    form: str = "ICC(1,1)",
    *,
    k: float | None = None,
    interval: Literal["analytic", "percentile", "bca"] = "analytic",
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """ICC(1,1) or ICC(1,k) of judgments in rows. ``k`` is the number of ratings averaged; k0 of the data by default.

    The analytic interval puts k0 in McGraw & Wong's formula: exact when items have equally many judgments, approximate
    otherwise. The bootstrap draws items.
    """
    chosen = form_named(form)
    if chosen.model != "one_way":
        raise NotEnoughData(f"{chosen.name} needs the raters", remedy="use icc_crossed, which takes them")
    label = label or chosen.label()
    numbers, (item,), (ids,) = as_judgments(values, items)
    count = np.bincount(item, minlength=len(ids)).astype(np.float64)
    why = _not_computable(numbers, count)
    if why:
        return unknown(chosen.name, why, n=len(ids), label=label)
    n_all, n = len(numbers), len(ids)
    x = numbers - numbers.mean()
    sums = np.bincount(item, weights=x, minlength=n).astype(np.float64)
    data = OneWay(count[None], sums[None], np.bincount(item, weights=x**2, minlength=n).astype(np.float64)[None])
    k0 = float((n_all - (count**2).sum() / n_all) / (n - 1))
    average = (k0 if k is None else k) if chosen.is_average else 1.0
    square_items = float((sums**2 / count).sum()) / (n - 1)
    square_within = float(np.sum((x - (sums / count)[item]) ** 2)) / (n_all - n)
    details = {"k0": k0, "k": average, "n_judgments": n_all}
    single = float(one_way_icc(data, np.ones((1, n)))[0])
    if not has_mean_reliability(single, average):
        return unknown(chosen.name, NO_MEAN, n=n, label=label)
    result = Estimate(
        value=spearman_brown(single, average),
        n=n,
        method=chosen.name,
        confidence=confidence,
        df=(n - 1, n_all - n),
        label=label,
        notes=(NEGATIVE,) if single < -_ROUNDING else (),
        details={**details, "mean_square_items": square_items, "mean_square_within": square_within},
    )
    if square_within <= _ROUNDING * square_items:
        result = replace(result, value=1.0).with_note(
            "judgments of an item never differ, so no test and no analytic interval"
        )
    else:
        result = _tested(result, square_items / square_within, k0, average)
    if interval == "analytic":
        return result

    def statistic(weights: Floats) -> Floats:
        return spearman_brown(one_way_icc(data, weights), average)

    return _bootstrapped(result, statistic, is_bca=interval == "bca", n_resamples=n_resamples, seed=seed)


def _not_computable(numbers: Floats, count: Floats) -> str:
    if len(count) < 2:
        return f"{len(count)} items with judgments: at least 2 are needed; rate more items"
    if count.max() < 2:
        return "no item has two judgments; have items judged by more raters"
    if np.ptp(numbers) == 0:
        return f"every rating is {numbers[0]:g}: without differences between items reliability is not defined"
    return ""


def _tested(result: Estimate, ratio: float, k0: float, average: float) -> Estimate:
    df1, df2 = result.df
    upper = 1 - (1 - result.confidence) / 2
    ends = np.array([ratio / special.fdtri(df1, df2, upper), ratio * special.fdtri(df2, df1, upper)])
    low, high = spearman_brown((ends - 1) / (ends + k0 - 1), average)
    return replace(
        result,
        low=float(low),
        high=float(high),
        interval_method="analytic (McGraw & Wong 1996, k0)",
        statistic=ratio,
        p_value=float(stats.f.sf(ratio, df1, df2)),
    )


def _bootstrapped(
    result: Estimate, statistic: WeightedStatistic, *, is_bca: bool, n_resamples: int, seed: int
) -> Estimate:
    replicates = replicate(statistic, result.n, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    drawn = estimate_from(
        result.value,
        replicates,
        n=result.n,
        method=result.method,
        resampled="items",
        seed=seed,
        confidence=result.confidence,
        left_out=jackknife(statistic, result.n) if is_bca else None,
        label=result.label,
        notes=result.notes,
        details=result.details,
    )
    return replace(drawn, statistic=result.statistic, df=result.df, p_value=result.p_value)
