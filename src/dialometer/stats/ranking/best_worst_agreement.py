"""Agreement of raters on best-worst choices, and how far two halves of the raters give the same scores.

Alpha is Krippendorff's, of marks: each system on a screen gets 1 (best), 0 (neither) or -1 (worst), the unit is one system on
one item, and distances are those of an interval scale, because the score of a system is the mean of its marks. It works where
screens hold different systems, and for raters who choose at random it is 0. Marks of one screen depend on each other, so its
confidence interval draws items. The share of two raters who pick the same best (or worst) is given beside it, for screens with
the same systems.

Split-half reliability is that of Kiritchenko and Mohammad (2017, section 3): raters are split at random, each half gives
scores, and their correlation is averaged over many splits. The Spearman-Brown formula makes it that of all raters.

Checked in ``tests/stats/test_best_worst_agreement.py`` against ``krippendorff.alpha`` 0.9.0 and ``pingouin.cronbach_alpha``
(the mean over all splits, Cronbach 1951).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.agreement.fleiss import share_of_agreeing_pairs
from dialometer.stats.agreement.krippendorff_alpha import interval_alpha
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.ranking.best_worst import BestWorstChoices

N_SPLITS = 200
MOST_CELLS = 40_000_000  # marks times splits: what splitting may cost
FEWEST_SPLITS = 20
FEWEST_SCORES = 3


def best_worst_alpha(
    choices: BestWorstChoices,
    *,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Krippendorff's alpha of the marks, with a percentile interval over items."""
    screen, system, mark = _long(choices)
    item = _items(choices)[screen]
    return interval_alpha(
        mark,
        item * len(choices.systems) + system,
        clusters=item,
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        label=label,
    )


def agreeing_picks(
    choices: BestWorstChoices,
    end: Literal["best", "worst"],
    *,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """The share of two raters of the same systems on the same item who picked the same one."""
    sets = np.sort(choices.shown, axis=1)
    _, unit = np.unique(np.column_stack([_items(choices), sets]), axis=0, return_inverse=True)
    unit, n = unit.ravel(), len(choices.systems)
    cell = unit * n + getattr(choices, end)
    counts = np.bincount(cell, minlength=(int(unit.max()) + 1) * n).reshape(-1, n).astype(np.float64)
    return share_of_agreeing_pairs(counts, n_resamples=n_resamples, seed=seed, confidence=confidence, label=label)


def split_half(
    choices: BestWorstChoices, *, of: Literal["systems", "responses"], seed: int = 0, label: str = ""
) -> Estimate:
    """How far two halves of the raters give the same scores, of systems or of single responses (a system on an item).

    ``details`` hold the plain correlation of the halves and the number of splits. Scores are plain means of the marks.
    """
    method = f"split-half correlation of the scores of {of}, Spearman-Brown"
    screen, system, mark = _long(choices)
    thing = system if of == "systems" else _items(choices)[screen] * len(choices.systems) + system
    _, thing = np.unique(thing, return_inverse=True)
    n_things, n_raters = int(thing.max()) + 1, len(choices.raters)
    if n_raters < 4:
        return unknown(method, "splitting needs four raters; collect more", label=label)
    if n_things < FEWEST_SCORES:
        return unknown(method, f"only {n_things} scores to correlate", n=n_things, label=label)
    n_splits = int(np.clip(MOST_CELLS // len(mark), FEWEST_SPLITS, N_SPLITS))
    rng = np.random.default_rng(seed)
    correlate = _correlation(thing, n_things, mark)
    correlations = []
    for _ in range(n_splits):
        is_first = np.zeros(n_raters, dtype=bool)
        is_first[rng.permutation(n_raters)[: n_raters // 2]] = True
        correlations.append(correlate(is_first[choices.rater][screen]))
    known = [value for value in correlations if not math.isnan(value)]
    if not known:
        return unknown(
            method, "no two halves share three scores that differ; have items judged by more raters", label=label
        )
    plain = float(np.mean(known))
    stepped = 2 * plain / (1 + plain) if plain > 0 else 0.0  # halves that do not agree have no reliability
    return Estimate(stepped, n_things, method, label=label, details={"correlation": plain, "n_splits": len(known)})


def _correlation(thing: Ints, n_things: int, mark: Floats) -> Callable[[np.ndarray], float]:
    """The correlation of the mean marks of two halves over what both judged."""

    def correlate(is_first: np.ndarray) -> float:
        means = []
        for half in (is_first, ~is_first):
            size = np.bincount(thing[half], minlength=n_things)
            total = np.bincount(thing[half], weights=mark[half], minlength=n_things)
            means.append(np.divide(total, size, out=np.full(n_things, np.nan), where=size > 0))
        a, b = np.array(means)[:, ~np.isnan(means).any(axis=0)]
        if len(a) < FEWEST_SCORES or np.ptp(a) == 0 or np.ptp(b) == 0:
            return math.nan
        return float(np.corrcoef(a, b)[0, 1])

    return correlate


def _long(choices: BestWorstChoices) -> tuple[Ints, Ints, Floats]:
    """Every mark with its screen and system."""
    marks = choices.marks()
    screen, system = np.nonzero(~np.isnan(marks))
    return screen, system, marks[screen, system]


def _items(choices: BestWorstChoices) -> Ints:
    """The item of each choice; without items all choices are about one."""
    return np.zeros(choices.n, dtype=np.int64) if choices.item is None else choices.item.astype(np.int64)
