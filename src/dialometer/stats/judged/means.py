"""Means, shares and differences of people's judgments, corrected by a judge who scored everything.

Prediction-powered inference with power tuning (PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453). People judged a
random part of the items, the judge all of them. The estimate is

    people's mean + weight * (judge's mean of the items without people - judge's mean of the items with people)

The bracket is zero on average whatever the judge is worth, so the estimate is as unbiased as people alone, and an informative
judge takes away the chance by which people got easy or hard items. The weight that makes the variance smallest is estimated, and
kept within 0 (people alone) and 1.

Beyond the paper: items may come from strata with shares of their own (each stratum's mean counts by its number of items; Fisch et
al. 2024, StratPPI) or have known unequal probabilities (weights 1/probability). Judgments of one rater, and judgments on one item,
are dependent: variances are those of :mod:`dialometer.stats.clustered.two_way` (jackknife over raters and items), and intervals
are Student's with Satterthwaite's degrees of freedom. With independent judgments, point and weight are those of
``ppi_py.ppi_mean_pointestimate`` and of ``truescore.ppi_estimate``, and the standard error is truescore's
(``tests/stats/test_judged.py``). Coverage by simulation:
``python -m bench.calibrate_judges``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.proportion import wilson_interval
from dialometer.stats.observations import Floats, Ints, check_confidence, codes, numbers, same_length

METHOD = "raters corrected by a judge (PPI++)"
FEWEST = 3
"""Items with judgments below which nothing is said."""
FEWEST_DF = 8
"""Degrees of freedom over items and over raters from which on their estimated shares in the variance are trusted."""
ONE_RATER = "one rater says nothing about others; recruit more"
NO_WEIGHT = "the judge adds nothing here: its weight is zero, and the estimate is that of raters alone"


@dataclass(frozen=True, slots=True)
class Corrected:
    """One quantity three ways: by human raters alone, by the judge alone, and by human raters corrected by the judge."""

    people: Estimate
    judge: Estimate
    both: Estimate
    weight: float
    n_worth: float
    """How many human judgments would have given people alone the variance of the corrected estimate. The interval can gain less,
    as the estimated weight costs a degree of freedom."""
    n_worth_low: float = math.nan
    n_worth_high: float = math.nan
    """Between which numbers this lies; few items say little about how well the judge goes with people."""

    @property
    def narrower(self) -> float:
        """By which share the interval became narrower."""
        before, after = self.people.high - self.people.low, self.both.high - self.both.low
        return 1 - after / before if before > 0 else 0.0


@dataclass(frozen=True, eq=False)
class JudgedRatings:
    """Ratings of people and scores of a judge, coded. ``cell`` is group times stratum; scores are one per item and group."""

    groups: tuple[str, ...]
    n_strata: int
    value: Floats
    rater: Ints | None
    item: Ints
    cell: Ints
    weight: Floats
    own_score: Floats  # the judge's on the rated thing, nan where it gave none
    score: Floats
    score_item: Ints
    score_cell: Ints
    is_rated: np.ndarray
    has_fixed_items: bool = False
    has_prompts: bool = False
    """Whether ``item`` is the prompt, of which there may be several things in a group."""


def judged_ratings(
    values: ArrayLike,
    items: ArrayLike,
    judge_scores: ArrayLike,
    judge_items: ArrayLike,
    *,
    raters: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    judge_groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    strata: Mapping[str, str] | None = None,
    prompts: Mapping[str, str] | None = None,
    has_fixed_items: bool = False,
) -> JudgedRatings:
    """People's ratings and the judge's scores of all things. ``groups`` are what is compared, such as systems.

    ``probabilities`` say how likely each judgment's item was to be given to people, ``strata`` to which stratum an item belongs,
    ``prompts`` of which prompt it is, where several items are of one prompt: these are then dependent.
    """
    y, f = numbers(values), numbers(judge_scores)
    item_ids, judged = np.asarray(items), np.asarray(judge_items)
    of_group = np.zeros(len(y), dtype=np.int64) if groups is None else np.asarray(groups)
    of_score = np.zeros(len(f), dtype=np.int64) if judge_groups is None else np.asarray(judge_groups)
    same_length(values=y, items=item_ids, groups=of_group)
    same_length(scores=f, items=judged, groups=of_score)
    is_given, is_scored = ~np.isnan(y), ~np.isnan(f)
    item, levels = codes(np.concatenate([item_ids[is_given], judged[is_scored]]))
    group, names = codes(np.concatenate([of_group[is_given], of_score[is_scored]]))
    n, n_items = int(is_given.sum()), len(levels)
    stratum = np.zeros(n_items, dtype=np.int64)
    if strata is not None:
        stratum, _ = codes([strata.get(str(level), "") for level in levels])
    n_strata = int(stratum.max(initial=0)) + 1
    cell = group * n_strata + stratum[item]
    thing = group * n_items + item
    if len(np.unique(thing[n:])) < len(thing) - n:
        raise NotEnoughData("the judge scored a thing twice", remedy="average its scores of a thing first")
    place = np.full(len(names) * n_items, -1, dtype=np.int64)
    place[thing[n:]] = np.arange(len(thing) - n)
    own = place[thing[:n]]
    is_rated = np.zeros(len(thing) - n, dtype=bool)
    is_rated[own[own >= 0]] = True
    if prompts:
        item = codes([prompts.get(str(level), str(level)) for level in levels])[0][item]
    f = f[is_scored]
    chance = np.ones(n) if probabilities is None else numbers(probabilities)[is_given]
    rater = None if raters is None else codes(np.asarray(raters)[is_given])[0]
    return JudgedRatings(
        tuple(map(str, names)), n_strata, y[is_given], rater, item[:n], cell[:n], 1 / chance,
        np.where(own >= 0, f[np.maximum(own, 0)] if len(f) else np.nan, np.nan), f, item[n:], cell[n:], is_rated,
        has_fixed_items, bool(prompts),
    )  # fmt: skip


def judged_mean(
    values: ArrayLike,
    own_scores: ArrayLike,
    other_scores: ArrayLike,
    *,
    is_share: bool = False,
    confidence: float = 0.95,
) -> Corrected:
    """The mean of human judgments corrected by a judge (PPI++), for independent judgments.

    ``values`` are people's, ``own_scores`` the judge's of the same things, ``other_scores`` the judge's of things that people
    did not judge; people must have judged a random part. With ``is_share`` the values are 0 or 1. The result has three
    estimates, ``people``, ``judge`` and ``both``, the judge's ``weight``, and as ``n_worth`` how many human judgments would
    give the same variance alone.
    """
    y, own, other = numbers(values), numbers(own_scores), numbers(other_scores)
    n = same_length(values=y, own_scores=own)
    things = np.arange(n + len(other))
    data = judged_ratings(y, things[:n], np.concatenate([own, other]), things)
    return corrected(data, {"0": 1.0}, null=0.5 if is_share else 0.0, is_share=is_share, confidence=confidence)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Variances and covariance of people's mean and of the judge's correction: over items, raters, and meetings of both."""

    items: Floats
    raters: Floats | None = None
    meetings: Floats | None = None
    fixed_share: float | None = None

    def variance(self, weight: float) -> float:
        """Of the estimate with this weight; never below that over raters or over items alone."""
        mix = np.array([1.0, weight])
        of_items = float(mix @ self.items @ mix)
        if self.raters is None or self.meetings is None:
            return of_items * (1 - (self.fixed_share or 0.0))
        of_raters, of_meetings = float(mix @ self.raters @ mix), float(mix @ self.meetings @ mix)
        if self.fixed_share is not None:
            return of_raters + (1 - self.fixed_share) * max(0.0, of_items - of_meetings)
        return max(of_items + of_raters - of_meetings, of_items, of_raters)

    def df(self, weight: float, of_items: float, of_raters: float) -> float:
        """Degrees of freedom of this variance, from those over items and over raters.

        Satterthwaite's, in which the part that varies more counts more, and never fewer than the smaller of the two. Estimated parts
        can be near zero by chance where items or raters are few: there it is the smaller.
        """
        fewest = min(of_items, of_raters)
        if self.raters is None or self.fixed_share is not None or fewest < FEWEST_DF:
            return fewest
        mix = np.array([1.0, weight])
        over_items, over_raters = float(mix @ self.items @ mix), float(mix @ self.raters @ mix)
        spread = over_items**2 / of_items + over_raters**2 / of_raters
        return max(fewest, self.variance(weight) ** 2 / spread) if spread > 0 else fewest


def corrected(
    data: JudgedRatings,
    contrast: Mapping[str, float],
    *,
    null: float = 0.0,
    is_share: bool = False,
    confidence: float = 0.95,
    label: str = "",
) -> Corrected:
    """A combination of the groups' means (``{"a": 1}`` is a mean, ``{"a": 1, "b": -1}`` a difference) in three ways."""
    level = check_confidence(confidence)
    coefficients = np.array([contrast.get(group, 0.0) for group in data.groups])
    per_cell = np.repeat(coefficients, data.n_strata)
    used, judged = per_cell[data.cell] != 0, per_cell[data.score_cell] != 0
    n = int(used.sum())
    n_rated = len(np.unique(data.item[used]))
    judge = _judge_alone(data, per_cell, judged, level, label)
    if is_share and judge.has_interval:
        judge = replace(judge, low=max(judge.low, 0.0), high=min(judge.high, 1.0))
    has_all = set(np.flatnonzero(coefficients)) <= set(data.cell[used] // data.n_strata)
    if n_rated < FEWEST or not has_all:
        nothing = unknown(METHOD, f"fewer than {FEWEST} items with human judgments", n=n, label=label)
        return Corrected(nothing, judge, nothing, 0.0, float(n))
    part = _Contrast.of(data, per_cell, used, judged)
    tuned = part.tuned_weight()
    if part.rater is not None and len(np.unique(part.rater)) < 2:
        people, both = (
            Estimate(value, n, method, confidence=level, label=label, notes=(ONE_RATER,))
            for value, method in ((part.people, "raters alone"), (part.people + tuned * part.shift, METHOD))
        )
        return Corrected(people, judge, both, tuned, math.nan)
    spread = part.spread()
    before, after = spread.variance(0.0), spread.variance(tuned)
    weight = tuned if after < before else 0.0
    of_items, of_raters = part.df()
    df = spread.df(0.0, of_items, of_raters)
    people = _estimate(part.people, before, df, n, "raters alone", null, level, label, is_share=is_share)
    if not weight:
        both = _estimate(part.people, before, df, n, METHOD, null, level, label, is_share=is_share).with_note(NO_WEIGHT)
        return Corrected(people, judge, both, 0.0, float(n))
    # As in regression, the estimated weight costs a degree of freedom of what is left over items.
    slack, df = of_items / (of_items - 1), spread.df(weight, of_items - 1, of_raters)
    value = part.people + weight * part.shift
    both = _estimate(value, after, df, n, METHOD, null, level, label, is_share=is_share, slack=slack)
    worth = [
        n * times for times in times_worth(before, after, part.share_rest, 1 / (1 / of_items + 1 / of_raters), level)
    ]
    return Corrected(people, judge, both, weight, *worth)


def times_worth(before: float, after: float, share_rest: float, df: float, level: float) -> tuple[float, float, float]:
    """How many times as many judgments the corrected variance is worth, and between which numbers this lies.

    The judge takes away the share ``share_rest`` times the squared correlation of its scores with people's judgments. So the ends
    are those of Fisher's interval of a correlation; the reciprocals of the degrees of freedom over items and over raters add up. They
    are rough: where each rater judges once they hold the true factor in 90 to 94 % of simulated studies, else in 95 % or more.
    """
    if not after > 0:
        return math.inf, 1.0, math.inf
    times = before / after
    if df <= FEWEST or not share_rest:
        return times, math.nan, math.nan
    correlation = math.sqrt(min(max((1 - after / before) / share_rest, 0.0), 1 - 1e-9))
    margin = float(stats.t.isf((1 - level) / 2, df)) / math.sqrt(df - 2)
    low, high = (math.tanh(max(math.atanh(correlation) + side * margin, 0.0)) for side in (-1, 1))
    return times, 1 / (1 - share_rest * low**2), 1 / max(1 - share_rest * high**2, 1e-12)


@dataclass(frozen=True, eq=False)
class _Contrast:
    """One combination of means, row by row: what each judgment and each score of an unrated thing weighs in it.

    A row's weight times its distance from the mean of its cell (group and stratum) is its influence on the estimate.
    """

    data: JudgedRatings
    cell: Ints
    item: Ints
    rater: Ints | None
    weight: Floats  # 1 / probability
    people_rows: Floats
    own_rows: Floats
    rest_rows: Floats
    rest_item: Ints
    share: Floats  # of each judgment in people's mean
    people: float
    shift: float
    share_rest: float
    score_variance: float

    @classmethod
    def of(cls, data: JudgedRatings, per_cell: Floats, used: np.ndarray, judged: np.ndarray) -> _Contrast:
        """For coefficients by cell, from the judgments and scores that it uses."""
        k, cell, w, y = len(per_cell), data.cell[used], data.weight[used], data.value[used]
        f, item = data.own_score[used], data.item[used]
        at, score = data.score_cell[judged], data.score[judged]
        rest, has = ~data.is_rated[judged], ~np.isnan(f)
        n_all, n_rest = _count(at, k), _count(at[rest], k)
        total, own_total = _count(cell, k, w), _count(cell[has], k, w[has])
        scale = per_cell * _shares(np.where(n_all > 0, n_all, total), data.n_strata)
        is_open = (n_rest > 0) & (own_total > 0)  # cells in which the judge can correct anything
        mean, own_mean = _mean(cell, y, total, w), _mean(cell[has], f[has], own_total, w[has])
        all_mean, rest_mean = _mean(at, score, n_all), _mean(at[rest], score[rest], n_rest)
        share_rest = float(n_rest.sum() / n_all.sum()) if n_all.sum() else 0.0
        factor = np.where(is_open, scale / max(share_rest, 1e-300), 0.0)
        # With one probability per cell the parts are centred at their own means, which is PPI++; else at that of all scores.
        is_equal = bool(np.allclose(w, _mean(cell, w, total, w)[cell]))
        centre, rest_centre = (own_mean, rest_mean) if is_equal else (all_mean, all_mean)
        share = scale[cell] * w / total[cell]
        own_rows = np.zeros(len(y))
        n_here = _per_thing(cell[has], item[has])
        lever = w[has] / own_total[cell[has]] - 1 / (np.maximum(n_all[cell[has]], 1) * n_here)
        own_rows[has] = -factor[cell[has]] * (f[has] - centre[cell[has]]) * lever
        rest_rows = factor[at[rest]] * (score[rest] - rest_centre[at[rest]]) / np.maximum(n_all, 1)[at[rest]]
        part = cls(
            data, cell, item, None if data.rater is None else data.rater[used], w, share * (y - mean[cell]), own_rows,
            rest_rows, data.score_item[judged][rest], share, float(scale @ mean),
            float(factor @ np.where(is_open, all_mean - own_mean, 0.0)), share_rest, 0.0,
        )  # fmt: skip
        return replace(part, score_variance=_score_variance(data, part, per_cell, judged, factor, n_all, n_rest))

    def spread(self) -> _Spread:
        """How both parts vary over items and raters, each cluster left out in turn."""
        rows = np.stack([self.people_rows, self.own_rows], axis=1)
        fixed = 1 - self.share_rest if self.data.has_fixed_items else None
        n_items = int(max(self.item.max(initial=0), self.rest_item.max(initial=0))) + 1
        sums = _sums(self._left_out(rows, self.item), self.item, n_items)
        n_rest = len(np.unique(self.rest_item))
        if n_rest > 1 and fixed is None:
            without = self.rest_rows * math.sqrt(n_rest / (n_rest - 1))
            sums[:, 1] += np.bincount(self.rest_item, weights=without, minlength=n_items)
        of_items = sums.T @ sums
        if self.rater is None:
            return _Spread(of_items, fixed_share=fixed)
        meeting, levels = codes(self.rater * n_items + self.item)
        of_raters = _sums(self._left_out(rows, self.rater), self.rater, int(self.rater.max()) + 1)
        n = len(levels)
        of_meetings = _sums(rows, meeting, n) * math.sqrt(n / max(n - 1, 1))
        return _Spread(of_items, of_raters.T @ of_raters, of_meetings.T @ of_meetings, fixed)

    def _left_out(self, rows: Floats, cluster: Ints) -> Floats:
        """Rows enlarged to what leaving their cluster out would change (the jackknife of means)."""
        n = int(cluster.max()) + 1
        key, levels = codes(self.cell * n + cluster)
        taken = np.bincount(key, weights=self.weight, minlength=len(levels))[key]
        total = np.bincount(self.cell, weights=self.weight)[self.cell]
        rest = total - taken
        n_clusters = len(np.unique(cluster))
        enlarged = np.where(rest > 1e-12 * total, total / np.where(rest > 0, rest, 1), 1.0)
        return np.asarray(rows * (enlarged * math.sqrt((n_clusters - 1) / n_clusters))[:, None])

    def tuned_weight(self) -> float:
        """The judge's weight that makes the variance over items smallest (PPI++, equation 11), within 0 and 1."""
        if self.score_variance <= 0 or not self.share_rest:
            return 0.0
        if self.data.has_prompts:
            of_prompts = self.spread().items
            return float(np.clip(-of_prompts[0, 1] / of_prompts[1, 1], 0.0, 1.0)) if of_prompts[1, 1] > 0 else 0.0
        n = int(self.item.max()) + 1
        people, own = (np.bincount(self.item, weights=rows, minlength=n) for rows in (self.people_rows, self.own_rows))
        return float(np.clip(-(people @ own) / self.score_variance, 0.0, 1.0))

    def df(self) -> tuple[float, float]:
        """Degrees of freedom by how many equally weighty items there are (Welch's over strata), and by how many raters."""
        stratum, above, below = self.cell % self.data.n_strata, 0.0, 0.0
        for h in np.unique(stratum):
            here = stratum == h
            weight = np.bincount(self.item[here], weights=np.abs(self.share[here]))
            part = float(np.sum(weight**2))
            above, below = above + part, below + part**2 / max(weight.sum() ** 2 / part - 1, 0.5)
        of_items = max(above**2 / below, 2.0)
        return of_items, math.inf if self.rater is None else max(_effective(self.share, self.rater) - 1, 1.0)


def _score_variance(
    data: JudgedRatings,
    part: _Contrast,
    per_cell: Floats,
    judged: np.ndarray,
    factor: Floats,
    n_all: Floats,
    n_rest: Floats,
) -> float:
    """The variance of the judge's correction, from the scores of all things: those with and without people come from one lot."""
    at, item, score = data.score_cell[judged], data.score_item[judged], data.score[judged]
    if not len(at):
        return 0.0
    groups = np.unique(part.cell // data.n_strata)
    stratum = at % data.n_strata
    n_items = int(item.max()) + 1
    lever = factor / np.where(
        per_cell != 0, np.maximum(np.abs(per_cell), 1e-300), 1.0
    )  # the stratum's part of the factor
    n_rated = np.array([
        _effective(np.abs(part.share[part.cell == c]), part.item[part.cell == c]) if (part.cell == c).any() else 0.0
        for c in range(len(per_cell))
    ])  # fmt: skip
    # Where people who get an item judge all of its systems, the systems' scores of an item go together.
    rated = np.unique(part.item)
    is_whole = len(groups) == 1 or len(np.unique(part.cell // data.n_strata * n_items + part.item)) == len(
        groups
    ) * len(rated)
    variance = 0.0
    for h in range(data.n_strata):
        cells = [
            g * data.n_strata + h
            for g in groups
            if n_rest[g * data.n_strata + h] > 0 and n_rated[g * data.n_strata + h] > 0
        ]
        if not cells:
            continue
        here = stratum == h
        if is_whole:
            whole = np.bincount(item[here], weights=per_cell[at[here]] * score[here], minlength=n_items)[
                np.unique(item[here])
            ]
            c = cells[0]
            variance += lever[c] ** 2 * _var(whole) * (n_rest[c] / n_all[c]) ** 2 * (1 / n_rated[c] + 1 / n_rest[c])
        else:
            for c in cells:
                spread = factor[c] ** 2 * _var(score[at == c])
                variance += spread * (n_rest[c] / n_all[c]) ** 2 * (1 / n_rated[c] + 1 / n_rest[c])
    return variance


def _judge_alone(data: JudgedRatings, per_cell: Floats, judged: np.ndarray, level: float, label: str) -> Estimate:
    """The judge's own mean; its interval is over items and knows nothing of the judge's error."""
    at, score, item = data.score_cell[judged], data.score[judged], data.score_item[judged]
    method = "judge alone"
    n_all = _count(at, len(per_cell))
    if not len(score) or np.any((n_all == 0) & (per_cell != 0) & (data.n_strata == 1)):
        return unknown(method, "the judge scored nothing here", label=label)
    scale = per_cell * _shares(n_all, data.n_strata)
    mean = _mean(at, score, n_all)
    rows = scale[at] * (score - mean[at]) / n_all[at]
    n = len(np.unique(item))
    value = float(scale @ mean)
    if data.has_fixed_items or n < 2:
        return Estimate(value, len(score), method, confidence=level, label=label)
    error = math.sqrt(float(np.sum(np.bincount(item, weights=rows) ** 2)) * n / (n - 1))
    margin = float(stats.t.isf((1 - level) / 2, n - 1)) * error
    return Estimate(
        value, len(score), method, low=value - margin, high=value + margin, confidence=level, label=label,
        interval_method="Student's t over items; the judge's error is not in it",
    )  # fmt: skip


def _estimate(
    value: float,
    variance: float,
    df: float,
    n: int,
    method: str,
    null: float,
    level: float,
    label: str,
    *,
    is_share: bool,
    slack: float = 1.0,
) -> Estimate:
    """With Student's interval, or Wilson's with the effective number of judgments for a share; ``slack`` widens the variance."""
    details = {"standard_error": math.sqrt(max(variance, 0.0))}
    variance = max(variance, 0.0) * slack
    error, quantile = math.sqrt(variance), float(stats.t.isf((1 - level) / 2, df))
    if is_share:
        value = min(max(value, 0.0), 1.0)
    if not error > 0:
        return Estimate(
            value, n, method, confidence=level, label=label, details=details, notes=("all judgments are equal",)
        )
    low, high, statistic = value - quantile * error, value + quantile * error, (value - null) / error
    interval = "Student's t over raters and items"
    if is_share and 0 < value < 1:
        n_effective = value * (1 - value) / variance
        low, high = wilson_interval(value * n_effective, n_effective, quantile=quantile)
        statistic = (value - null) / math.sqrt(null * (1 - null) / n_effective)
        interval = "Wilson with effective number of judgments and Student's t"
    return Estimate(
        value, n, method, low=low, high=high, confidence=level, interval_method=interval, statistic=statistic, df=(df,),
        p_value=float(2 * stats.t.sf(abs(statistic), df)), label=label, details=details,
    )  # fmt: skip


def _count(cell: Ints, n: int, weights: Floats | None = None) -> Floats:
    return np.bincount(cell, weights=weights, minlength=n).astype(np.float64)


def _mean(cell: Ints, values: Floats, total: Floats, weights: Floats | None = None) -> Floats:
    """Means by cell; 0 where there is nothing, which nothing then looks at."""
    sums = _count(cell, len(total), values if weights is None else values * weights)
    return np.divide(sums, total, out=np.zeros(len(total)), where=total > 0)


def _shares(size: Floats, n_strata: int) -> Floats:
    """Each cell's share of the things of its group."""
    table = size.reshape(-1, n_strata)
    total = table.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(table, total, out=np.zeros_like(table), where=total > 0).reshape(-1))


def _per_thing(cell: Ints, item: Ints) -> Floats:
    """For each judgment, how many there are on the same thing."""
    key, levels = codes(cell * (int(item.max(initial=0)) + 1) + item)
    return _count(key, len(levels))[key]


def _sums(rows: Floats, cluster: Ints, n: int) -> Floats:
    return np.stack([np.bincount(cluster, weights=column, minlength=n) for column in rows.T], axis=1)


def _effective(share: Floats, cluster: Ints) -> float:
    """How many equally weighty clusters weigh as much as these."""
    weight = np.bincount(cluster, weights=np.abs(share))
    return float(weight.sum() ** 2 / np.sum(weight**2)) if weight.any() else 0.0


def _var(values: Floats) -> float:
    return float(np.var(values, ddof=1)) if len(values) > 1 else 0.0
