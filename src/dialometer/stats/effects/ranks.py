"""Ranks given by raters to the same objects: mean ranks, agreement, and tests that use order only.

Checked against ``pingouin.friedman(method="chisq" | "f")`` (which also gives Kendall's W), ``scipy.stats.wilcoxon``,
``pingouin.wilcoxon`` (rank-biserial correlation) and ``pingouin.kruskal``; exact p-values of Kruskal and Wallis's test against
``scipy.stats.kruskal`` on every division of small groups.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import bootstrap
from dialometer.stats.effects.permutation import MOST_DRAWS, TOLERANCE, batches
from dialometer.stats.observations import Floats, check_confidence, missing_note, numbers

FEW = "ranks of fewer than two raters or two objects: collect more complete rankings"


def _ranks(scores: ArrayLike) -> tuple[Floats, tuple[str, ...]]:
    """Complete rows ranked from 1 (smallest), ties sharing their mean rank; raters who left something out are dropped."""
    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim != 2:
        raise DialometerError("rankings are not a matrix", remedy="give one row per rater and one column per object")
    is_whole = ~np.isnan(matrix).any(axis=1)
    ranked = stats.rankdata(matrix[is_whole], axis=1) if is_whole.any() else np.empty((0, matrix.shape[1]))
    n_left_out = int(np.sum(~is_whole))
    return ranked, (f"{n_left_out} incomplete rankings excluded",) if n_left_out else ()


def mean_ranks(scores: ArrayLike, objects: Sequence[str], *, confidence: float = 0.95) -> dict[str, Estimate]:
    """Mean rank of each object over raters (rows), rank 1 for the smallest score, with a t interval over raters.

    Pass ranks with 1 for the most important as they are; pass ratings where more is better with a minus sign.
    """
    ranked, notes = _ranks(scores)
    if ranked.shape[1] != len(objects):
        raise DialometerError(f"{len(objects)} names for {ranked.shape[1]} columns", remedy="name every object once")
    n = len(ranked)
    method = "mean rank"
    if n == 0:
        return {name: unknown(method, "no complete ranking: collect at least one", label=name) for name in objects}
    quantile = float(stats.t.isf((1 - check_confidence(confidence)) / 2, n - 1)) if n > 1 else math.nan
    result = {}
    for name, column in zip(objects, ranked.T, strict=True):
        half = quantile * float(column.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        value = float(column.mean())
        result[name] = Estimate(
            value=value,
            n=n,
            method=method,
            low=value - half,
            high=value + half,
            confidence=confidence,
            interval_method="Student's t over raters" if n > 1 else "",
            label=name,
            notes=notes if n > 1 else (*notes, "one ranking: no confidence interval"),
        )
    return result


def _concordance(counts: Floats, ranked: Floats, ties: Floats) -> Floats:
    """Kendall's W with the correction for ties, for each row of counts of raters."""
    k = ranked.shape[1]
    sums = counts @ ranked
    m = counts.sum(axis=1)
    squares = np.sum((sums - sums.mean(axis=1, keepdims=True)) ** 2, axis=1)
    most = m * (m * (k**3 - k) - counts @ ties)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(most > 0, 12 * squares / most, np.nan))


def _tie_sums(ranked: Floats) -> Floats:
    """For each rater the sum of t^3 - t over groups of tied objects."""
    return np.array([float(np.sum(t**3 - t)) for t in (np.unique(row, return_counts=True)[1] for row in ranked)])


def kendalls_w(
    scores: ArrayLike, *, n_resamples: int = 2000, seed: int = 0, confidence: float = 0.95, label: str = ""
) -> Estimate:
    """Agreement of rankings, 0 (none) to 1 (the same order by all), with Friedman's chi-square as its test.

    The interval is a percentile bootstrap over raters; resamples repeat raters, so it leans upwards for few raters.
    """
    ranked, notes = _ranks(scores)
    n, k = ranked.shape
    method = "Kendall's W, corrected for ties"
    if n < 2 or k < 2:
        return unknown(method, FEW, n=n, label=label)
    ties = _tie_sums(ranked)
    value = float(_concordance(np.ones((1, n)), ranked, ties)[0])
    if math.isnan(value):
        return unknown(method, "every rater ties all objects: there is no order to agree on", n=n, label=label)
    resampled = bootstrap(
        lambda counts: _concordance(counts, ranked, ties),
        n,
        method=method,
        resampled="raters",
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
    )
    statistic = n * (k - 1) * value
    return Estimate(
        value=value,
        n=n,
        method=method,
        low=resampled.low,
        high=resampled.high,
        confidence=confidence,
        interval_method=resampled.interval_method,
        statistic=statistic,
        df=(float(k - 1),),
        p_value=float(stats.chi2.sf(statistic, k - 1)),
        seed=seed,
        n_resamples=n_resamples,
        label=label,
        notes=(*notes, *resampled.notes),
        details={"mean_ranks": ranked.mean(axis=0).tolist()},
    )


def friedman(scores: ArrayLike, *, label: str = "") -> Estimate:
    """Do raters (rows) order the objects (columns) alike? Friedman's test in Iman and Davenport's (1980) F form.

    The value is Kendall's W. The F form is closer to nominal than the chi-square for few raters.
    """
    ranked, notes = _ranks(scores)
    n, k = ranked.shape
    method = "Friedman's test, Iman-Davenport F"
    if n < 2 or k < 2:
        return unknown(method, FEW, n=n, label=label)
    w = float(_concordance(np.ones((1, n)), ranked, _tie_sums(ranked))[0])
    if math.isnan(w):
        return unknown(method, "every rater ties all objects: there is no order to test", n=n, label=label)
    df = (k - 1 - 2 / n, (n - 1) * (k - 1 - 2 / n))
    statistic = w * (n - 1) / (1 - w) if w < 1 else math.inf
    p_value = float(stats.f.sf(statistic, *df)) if df[0] > 0 else math.nan
    return Estimate(
        value=w,
        n=n,
        method=method,
        statistic=statistic,
        df=df,
        p_value=p_value,
        label=label,
        notes=notes,
        details={"chi2": n * (k - 1) * w, "chi2_p_value": float(stats.chi2.sf(n * (k - 1) * w, k - 1))},
    )


def wilcoxon_signed_rank(differences: ArrayLike, *, label: str = "") -> Estimate:
    """Are paired differences symmetric about zero? The value is the matched rank-biserial correlation, -1 to 1.

    Zeros are dropped (Wilcoxon). Exact for up to 50 differences without ties, else normal with both corrections.
    """
    values = numbers(differences)
    is_missing = np.isnan(values)
    moving = values[~is_missing & (values != 0)]
    n = len(moving)
    method = "Wilcoxon signed-rank test"
    if n == 0:
        return unknown(method, "no difference from zero: the test needs at least one", label=label)
    sizes = stats.rankdata(np.abs(moving))
    above, below = float(sizes[moving > 0].sum()), float(sizes[moving < 0].sum())
    is_exact = n <= 50 and len(np.unique(np.abs(moving))) == n
    tested = stats.wilcoxon(moving, method="exact" if is_exact else "asymptotic", correction=not is_exact)
    zeros = int(np.sum(values == 0))
    notes = missing_note(int(is_missing.sum())) + (
        (f"{zeros} zero difference{'s' if zeros > 1 else ''} excluded",) if zeros else ()
    )
    return Estimate(
        value=(above - below) / (above + below),
        n=n,
        method=f"{method}, {'exact' if is_exact else 'normal approximation with tie and continuity corrections'}",
        statistic=min(above, below),
        p_value=float(tested.pvalue),
        label=label,
        notes=notes,
        details={"effect": "matched rank-biserial correlation"},
    )


FEW_IN_GROUP = 5
"""Below so many in a group the chi-square distribution is too rough for Kruskal and Wallis's H (Kruskal & Wallis 1952)."""
MOST_DIVISIONS = 10_000
MOST_DIVIDED = 500_000
"""Numbers in all divisions together, as of one rater beside thousands."""
N_DRAWN = 9999


def kruskal_wallis(groups: Sequence[ArrayLike], *, seed: int = 0, label: str = "") -> Estimate:
    """Do several independent groups come from the same distribution? The value is epsilon squared, H / (n - 1).

    Where a group has fewer than five, p is exact, from all divisions of the ranks into such groups, or from divisions drawn
    at random where these are many; else the chi-square approximation.
    """
    arrays = [array[~np.isnan(array)] for array in (numbers(group) for group in groups)]
    n = sum(len(array) for array in arrays)
    method = "Kruskal-Wallis test"
    if len(arrays) < 2 or any(len(array) == 0 for array in arrays):
        return unknown(method, "a group is empty: leave it out or recruit raters for it", n=n, label=label)
    if np.ptp(np.concatenate(arrays)) == 0:
        return unknown(method, "all values are equal: ranks cannot distinguish the groups", n=n, label=label)
    tested = stats.kruskal(*arrays)
    p_value, how, n_drawn = float(tested.pvalue), "chi-square approximation", 0
    if min(len(array) for array in arrays) < FEW_IN_GROUP and n * N_DRAWN <= MOST_DRAWS:
        p_value, how, n_drawn = _p_of_divisions(arrays, seed)
    return Estimate(
        value=float(tested.statistic) / (n - 1),
        n=n,
        method=f"{method}, {how}",
        statistic=float(tested.statistic),
        df=(float(len(arrays) - 1),),
        p_value=p_value,
        label=label,
        seed=seed if n_drawn else None,
        n_resamples=n_drawn,
        notes=missing_note(sum(len(numbers(group)) for group in groups) - n),
        details={"effect": "epsilon squared"},
    )


def _p_of_divisions(arrays: Sequence[Floats], seed: int) -> tuple[float, str, int]:
    """The share of divisions of the ranks with an H as large; what it comes from, and how many were drawn at random."""
    ranks = stats.rankdata(np.concatenate(arrays))
    sizes = [len(array) for array in arrays]
    starts = np.cumsum([0, *sizes[:-1]])

    def spread(ranked: Floats) -> Floats:
        """What H grows with: the squared sums of ranks, each over the size of its group."""
        return np.asarray((np.add.reduceat(ranked, starts, axis=1) ** 2 / sizes).sum(axis=1))

    bound = float(spread(ranks[None])[0]) * (1 - TOLERANCE)
    n_all = math.factorial(len(ranks)) // math.prod(math.factorial(size) for size in sizes)
    if n_all <= MOST_DIVISIONS and n_all * len(ranks) <= MOST_DIVIDED:
        every = np.array(list(_divisions(tuple(range(len(ranks))), sizes)))
        return float(np.mean(spread(ranks[every]) >= bound)), f"exact, all {n_all:,} divisions", 0
    rng = np.random.default_rng(seed)
    hits = 0
    for size in batches(len(ranks), N_DRAWN):
        drawn = rng.permuted(np.broadcast_to(ranks, (size, len(ranks))), axis=1)
        hits += int(np.sum(spread(drawn) >= bound))
    return (1 + hits) / (1 + N_DRAWN), f"{N_DRAWN:,} random divisions", N_DRAWN


def _divisions(places: tuple[int, ...], sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every way to divide the places into groups of these sizes, group after group."""
    if len(sizes) == 1:
        yield places
        return
    for chosen in itertools.combinations(places, sizes[0]):
        rest = tuple(place for place in places if place not in chosen)
        for rest_division in _divisions(rest, sizes[1:]):
            yield (*chosen, *rest_division)
