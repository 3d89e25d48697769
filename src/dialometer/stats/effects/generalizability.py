"""Generalisability theory: where the variance of ratings comes from, and how many raters and items would be enough.

A G study splits the variance of ratings of systems (s) on items (i) by raters (r) into s, i, r, si, sr, ir and what is left
(sir with error). A D study says what a design with other numbers would give. With n_i items, n_r raters and m items per rater:

relative error  d = si / (a n_i) + sr / (b n_r) + rest / (c n_r m)
absolute error  D = d + i / (a n_i) + r / (b n_r) + ir / (c n_r m)
G = s / (s + d),  Phi = s / (s + D),  standard error of the difference of two systems = sqrt(2 d)

a, b and c are the shares of the items, of the raters and of the items that a rater judges which one system has, as in the design
studied: 1 where everything is crossed with systems, 1 / 2 where two systems have half of the items each.

Parts that a design cannot tell apart are one: items that show one system each have no own i beside si. Complete designs are
solved by the analysis of variance as long as no part is negative; everything else by restricted maximum likelihood, where
no variance can be negative, and very large designs by Henderson's first method (moments), negative parts set to zero.

Checked against the variance components that Brennan (2001, Generalizability Theory, synthetic data sets 3 and 4) publishes,
against ``lme4::lmer`` 1.1.31 on ratings with holes, and, where items show one system each, against simulated differences.
Source: Brennan (2001); Shavelson and Webb (1991).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from dialometer.errors import NotEnoughData
from dialometer.stats.effects.random_blocks import RandomBlocks
from dialometer.stats.observations import Floats, Ints, as_judgments, codes, missing_note, n_distinct

PARTS = ("system", "system:item", "system:rater", "item:rater", "item", "rater")
REST = "residual"
MOST_CELLS = 250_000
_ROUNDING = 1e-12
"""Items times raters times squared systems up to which REML takes a second; the moments of larger designs are precise."""
_LARGE = 1e3
"""The mean counts as an effect with this many residual standard deviations: as good as unlimited."""


@dataclass(frozen=True, repr=False)
class GStudy:
    """Variance components of ratings. A part that the design cannot tell from another is missing, and a note says so."""

    components: dict[str, float]
    n: int
    n_systems: int
    n_items: int
    n_raters: int
    items_per_rater: float
    method: str
    notes: tuple[str, ...] = ()
    joined: tuple[tuple[str, str], ...] = ()
    """Components that cannot be separated from another, which holds them."""
    share_of_items: float = 1.0
    """Of all items, how many show a system on average: 1 where each item shows every system."""
    share_of_raters: float = 1.0
    """Of all raters, how many judge a system on average."""
    share_of_load: float = 1.0
    """Of the items that a rater judges, on how many a system is judged on average."""

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {value:.3g}" for name, value in self.components.items())
        return f"GStudy({self.n_systems} systems, {self.n_items} items, {self.n_raters} raters; variances by {self.method}: {parts})"

    def _part(self, name: str) -> float:
        return self.components.get(name, 0.0)

    def _error(
        self, parts: tuple[str, str, str], n_raters: float, n_items: float, items_per_rater: float | None
    ) -> float:
        """The variance that parts of items, of raters and of single ratings leave in a system's mean."""
        m = min(n_items, items_per_rater or n_items)
        of_items, of_raters, of_ratings = (self._part(name) for name in parts)
        error = of_items / (self.share_of_items * n_items) + of_raters / (self.share_of_raters * n_raters)
        return error + of_ratings / (self.share_of_load * n_raters * m)

    def relative_error(self, n_raters: float, n_items: float, items_per_rater: float | None = None) -> float:
        """The variance of a system's mean that matters for comparing systems."""
        return self._error(("system:item", "system:rater", REST), n_raters, n_items, items_per_rater)

    def absolute_error(self, n_raters: float, n_items: float, items_per_rater: float | None = None) -> float:
        """The variance of a system's mean around the value over all raters and items."""
        shared = self._error(("item", "rater", "item:rater"), n_raters, n_items, items_per_rater)
        return self.relative_error(n_raters, n_items, items_per_rater) + shared

    def generalizability(self, n_raters: float, n_items: float, items_per_rater: float | None = None) -> float:
        """G: how far the order of systems would be the same with other raters and items (0 to 1)."""
        return _ratio(self._part("system"), self.relative_error(n_raters, n_items, items_per_rater))

    def dependability(self, n_raters: float, n_items: float, items_per_rater: float | None = None) -> float:
        """Phi: how far the systems' means themselves would be the same."""
        return _ratio(self._part("system"), self.absolute_error(n_raters, n_items, items_per_rater))

    def contrast_error(self, n_raters: float, n_items: float, items_per_rater: float | None = None) -> float:
        """The standard error of the difference between two systems."""
        return math.sqrt(2 * self.relative_error(n_raters, n_items, items_per_rater))


@dataclass(frozen=True)
class PlannedDesign:
    """A design of a D study: what it costs and how precise it is."""

    n_raters: int
    n_items: int
    items_per_rater: int
    error: float
    """Standard error of the difference between two systems."""
    cost: float


def _ratio(part: float, error: float) -> float:
    return part / (part + error) if part + error > 0 else math.nan


def g_study(ratings: ArrayLike, systems: ArrayLike, items: ArrayLike, raters: ArrayLike) -> GStudy:
    """The variance components of ratings in rows; missing ratings (``nan``) are left out."""
    n_missing = int(np.sum(np.isnan(np.asarray(ratings, dtype=np.float64))))
    y, (system, item, rater), names = as_judgments(ratings, systems, items, raters)
    del ratings, systems, items, raters  # of a million ratings each takes 8 MB
    sizes = [len(levels) for levels in names]
    if len(y) < 4 or min(sizes) < 2:
        raise NotEnoughData(
            f"{sizes[0]} systems, {sizes[1]} items and {sizes[2]} rater{'' if sizes[2] == 1 else 's'} with {len(y)} ratings",
            remedy="at least two of each are needed",
        )
    if np.ptp(y) == 0:
        raise NotEnoughData("all ratings are equal: nothing varies", remedy="collect more ratings")
    factors, joined = _parts(system, item, rater, sizes)
    moments = _moments(y, list(factors.values()))
    is_complete = len(y) == sizes[0] * sizes[1] * sizes[2] and len(factors) == len(PARTS)
    if (is_complete or _is_balanced(list(factors.values()))) and min(moments) >= 0:
        components, method = moments, "analysis of variance"
    elif sizes[0] ** 2 * sizes[1] * sizes[2] > MOST_CELLS:
        components, method = np.maximum(moments, 0.0), "Henderson's method 1 (moments)"
    else:
        components, method = _reml(y, list(factors.values()), moments), "REML"
    cell_ids = rater * sizes[1] + item
    n_given = n_distinct(cell_ids)
    return GStudy(
        components=dict(zip((*factors, REST), map(float, components), strict=True)),
        n=len(y),
        n_systems=sizes[0],
        n_items=sizes[1],
        n_raters=sizes[2],
        items_per_rater=n_given / sizes[2],
        method=method,
        notes=missing_note(n_missing),
        joined=joined,
        share_of_items=n_distinct(system * sizes[1] + item) / (sizes[0] * sizes[1]),
        share_of_raters=n_distinct(system * sizes[2] + rater) / (sizes[0] * sizes[2]),
        share_of_load=n_distinct(cell_ids * sizes[0] + system) / (sizes[0] * n_given),
    )


def _parts(
    system: Ints, item: Ints, rater: Ints, sizes: Sequence[int]
) -> tuple[dict[str, Ints], tuple[tuple[str, str], ...]]:
    """Every factor and interaction that says something of its own, coded without holes."""
    _, n_items, n_raters = sizes
    # Made one after the other: of a million ratings each takes 8 MB.
    code_builders: dict[str, Callable[[], Ints]] = {
        "system": lambda: system,
        "system:item": lambda: codes(system * n_items + item)[0],
        "system:rater": lambda: codes(system * n_raters + rater)[0],
        "item:rater": lambda: codes(item * n_raters + rater)[0],
        "item": lambda: item,
        "rater": lambda: rater,
    }
    kept: dict[str, Ints] = {}
    joined = []
    for name, coded in code_builders.items():
        code = coded()
        n_levels = int(code.max()) + 1
        same = REST if n_levels == len(code) else next((k for k, other in kept.items() if _is_same(code, other)), None)
        if same is None:
            kept[name] = code
        else:
            joined.append((name, same))
    return kept, tuple(joined)


def _is_same(code: Ints, other: Ints) -> bool:
    n, m = int(code.max()) + 1, int(other.max()) + 1
    return n == m and n_distinct(code * m + other) == n


def _is_balanced(factors: list[Ints]) -> bool:
    """Whether all levels of each part have equally many ratings, and all pairs of parts that meet meet equally often."""
    return all(np.ptp(np.bincount(_paired(a, b))) == 0 for a in factors for b in factors)


def _paired(a: Ints, b: Ints) -> Ints:
    return codes(a * (int(b.max()) + 1) + b)[0]


def _moments(y: Floats, factors: list[Ints]) -> Floats:
    """Henderson's first method: sums of squares of the means of each part set equal to what they are expected to be."""
    n, k = len(y), len(factors)
    y = y - y.mean()
    # Rows: all ratings together, each part, each rating by itself. Columns: each part, what is left, the squared mean.
    left = np.full((k + 2, k + 2), float(n))
    right = np.zeros(k + 2)
    right[0], right[-1] = float(y.sum()) ** 2 / n, float(y @ y)
    left[0, :k] = [float(np.sum(np.bincount(part) ** 2 / n)) for part in factors]
    left[0, k] = 1
    for row, group in enumerate(factors):
        count = np.bincount(group)
        right[row + 1] = float(np.sum(np.bincount(group, weights=y) ** 2 / count))
        left[row + 1, k] = len(count)
        for column, part in enumerate(factors):
            if column == row:
                continue
            cell = _paired(group, part)
            meet = np.bincount(cell)
            home = np.zeros(len(meet), dtype=np.int64)
            home[cell] = group
            left[row + 1, column] = float(np.sum(meet**2 / count[home]))
    moments = np.asarray(np.linalg.lstsq(left, right, rcond=None)[0][:-1])
    moments[np.abs(moments) <= _ROUNDING * right[-1] / n] = 0.0  # else the sign of nothing would decide on the method
    return moments


def _reml(y: Floats, factors: list[Ints], start: Floats) -> Floats:
    """Restricted maximum likelihood over the ratios of standard deviations, each held at zero or above."""
    y = y - y.mean()
    n = len(y)
    layout = RandomBlocks([np.zeros(n, dtype=np.int64), *factors])
    square, sums = float(y @ y), layout.sums(np.ones(n))

    def criterion(ratios: Floats) -> tuple[float, Floats]:
        deviations = np.concatenate([[_LARGE], ratios])
        factorised = layout.factorise(sums, deviations)
        right = layout.gather(y, deviations)
        effects = factorised.solve(right)
        rest = square - right.dot(effects)
        traces = factorised.traces()
        gradient = np.empty(len(ratios))
        for j in range(len(ratios)):
            own = np.zeros(layout.sizes[j + 1])
            own[factors[j]] = layout.of_factor(effects, j + 1)
            lost = layout.sizes[j + 1] - traces[j + 1]
            gradient[j] = 2 * (lost - (n - 1) * float(own @ own) / rest) / ratios[j]
        return factorised.logdet + (n - 1) * math.log(rest), gradient

    smallest = 1e-4
    first = np.sqrt(np.clip(start[:-1] / max(start[-1], 1e-3 * square / n), 0.01, 100))
    result = optimize.minimize(
        criterion, first, jac=True, method="L-BFGS-B", bounds=[(smallest, 1e3)] * len(first),
        options={"ftol": 1e-12, "gtol": 1e-5, "maxiter": 200},
    )  # fmt: skip
    ratios = np.asarray(result.x)
    deviations = np.concatenate([[_LARGE], ratios])
    right = layout.gather(y, deviations)
    rest = (square - right.dot(layout.factorise(sums, deviations).solve(right))) / (n - 1)
    return np.append(np.where(ratios <= 2 * smallest, 0.0, rest * ratios**2), rest)


FEWEST = 5
"""Raters and items that a plan has at least: intervals from fewer are wider than the formula says."""


def raters_needed(
    study: GStudy, wanted_error: float, n_items: int, items_per_rater: int, *, most_raters: int = 5000
) -> int | None:
    """Raters with whom the standard error of a difference is as wanted; None where only more items would help."""
    # The error is a part that raters leave as it is, and one that falls with their number.
    of_items = study.relative_error(math.inf, n_items, items_per_rater)
    per_rater = study.relative_error(1, n_items, items_per_rater) - of_items
    left = wanted_error**2 / 2 - of_items
    if left <= 0 or per_rater > left * most_raters:
        return None
    return max(FEWEST, math.ceil(per_rater / left - 1e-9))


def cheapest_design(
    study: GStudy, wanted_error: float, *, items_per_rater: int, most_items: int, cost_per_item: float = 1.0
) -> PlannedDesign | None:
    """The design with the lowest cost whose standard error of a difference is small enough; None where there is none.

    A rater judges every item, but at most ``items_per_rater``, and is paid ``cost_per_item`` for each. Of designs that cost the
    same the one with fewer items is chosen.
    """
    best: PlannedDesign | None = None
    for n_items in range(FEWEST, most_items + 1):
        n_raters = raters_needed(study, wanted_error, n_items, items_per_rater)
        if n_raters is None:
            continue
        m = min(n_items, items_per_rater)
        cost = n_raters * m * cost_per_item
        if best is None or cost < best.cost - 1e-9:
            best = PlannedDesign(n_raters, n_items, m, study.contrast_error(n_raters, n_items, items_per_rater), cost)
    return best
