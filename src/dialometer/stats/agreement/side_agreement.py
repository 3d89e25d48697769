"""Agreement of raters on which of two sides is better, where it is chance which side is named first.

Krippendorff's alpha sets disagreement against that expected from how often each label was chosen. Which of two systems is
"the first" of a pair is arbitrary, so each pair is entered both ways: the two sides are then equally frequent, and the
coefficient does not depend on the order of the systems in a file. Ties and "cannot tell" are labels of their own.

Checked in ``tests/stats/test_side_agreement.py`` against ``krippendorff.alpha`` 0.9.0 on pairs entered both ways.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import bootstrap, weighted_sums
from dialometer.stats.observations import Floats, as_matrix

_FEWEST_UNITS = 2


def side_alpha(
    counts: ArrayLike, *, n_resamples: int = 2000, seed: int = 0, confidence: float = 0.95, label: str = ""
) -> Estimate:
    """Nominal alpha from how often each pair got each label (pairs by labels); the first two labels are the sides.

    The percentile interval draws pairs. Pairs that fewer than two raters judged are left out.
    """
    table = as_matrix(counts)
    is_pairable = table.sum(axis=1) >= 2
    table = table[is_pairable]
    method = "Krippendorff's alpha, nominal, each pair entered both ways"
    if len(table) < _FEWEST_UNITS:
        why = "fewer than two pairs were judged by two raters; have items judged by more raters"
        return unknown(method, why, n=len(table), label=label)
    size = table.sum(axis=1)
    disagreement = (size**2 - (table**2).sum(axis=1)) / (size - 1)
    columns = np.column_stack([table, disagreement])

    def alpha(weights: Floats) -> Floats:
        sums = weighted_sums(weights, columns)
        both = 2 * sums[:, :-1]
        both[:, :2] = both[:, :2].mean(axis=1, keepdims=True)
        n = both.sum(axis=1)
        expected = n**2 - (both**2).sum(axis=1)
        ratio = np.divide(2 * sums[:, -1], expected, out=np.full(len(n), np.nan), where=expected > 0)
        return np.asarray(1 - (n - 1) * ratio)

    estimate = bootstrap(
        alpha,
        len(table),
        method=method,
        resampled="pairs",
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
        label=label,
    )
    n_alone = int((~is_pairable).sum())
    return (
        estimate.with_note(f"{n_alone} pair{'s' * (n_alone != 1)} judged by one rater excluded")
        if n_alone
        else estimate
    )
