"""Adaptive assignment: how open every comparison of two systems is, to which systems the next rater goes, and what answers weigh.

The question is which system is best. A system is a contender as long as it may be the best: its score is the two-sided p-value
of its comparison with the one that leads so far, from all answers and without regard to raters and items, and 1 for the leader.
A pair is as open as the weaker contender of the two. So raters go to the leaders, in the manner of top-two sampling (Russo 2020,
*Simple Bayesian algorithms for best-arm identification*), and not to systems that are alike but far behind. Where the study
names the comparisons of its hypothesis, each of these is as open as its own p-value, and the others are not.

A set of systems (a pair that meets, or those that a screen shows) is drawn in proportion to how open the pairs within it are. A
share of the draws (the floor) goes to all sets alike, so that each keeps a chance.

The rule follows the answers, so how often a set was drawn says something about them, and plain means are then not normal even in
large studies: simulated, plain 95% confidence intervals of equal systems held in 90% of cases. Each answer therefore weighs one
over the square root of its probability, the variance-stabilising weights of Hadad, Hirshberg, Zhan, Wager and Athey (2021,
*Confidence intervals for policy evaluation in adaptive experiments*, PNAS 118; "constant allocation rate"). The weighted errors
then have the same variance at every draw, whatever the rule did, which is what the central limit theorem for martingales asks
for. One over the probability itself (Horvitz and Thompson 1952) is unbiased too, but gives most weight where fewest answers
are, which undoes the saving.

Any rule that looks at earlier answers only is valid with these weights; how well it finds what is open decides on the saving
alone. Checked by simulation: ``python -m bench.adaptive``, docs/benchmarks/adaptive.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dialometer.stats.observations import Floats

Bools = NDArray[np.bool_]

PRIOR_VOTES = 2.0
"""Every pair counts as if one vote had been won and one lost already, so that nothing is certain after the first votes."""
PRIOR_RATINGS = 2.0
"""Every system counts as if it had so many ratings at the mean of all, with their variance."""
LEAST = 1e-6
"""What is decided counts as open to this degree, so that nothing hangs on p-values next to zero."""


def openness_of_votes(won: Floats, tied: Floats, is_compared: Bools | None = None) -> Floats:
    """How open every comparison is, systems by systems, from how often the row won against the column and how often the two tied.

    Strengths are fitted by least squares to the share of votes won minus lost, so that systems which never met are compared
    through others; the variance is that of a vote between equals. ``is_compared`` marks the comparisons of a hypothesis.
    """
    n = won + won.T + tied + PRIOR_VOTES
    np.fill_diagonal(n, 0.0)
    inverse = np.linalg.pinv(np.diag(n.sum(axis=1)) - n)
    strength = inverse @ (won - won.T).sum(axis=1)
    return _openness(strength, np.diag(inverse)[:, None] + np.diag(inverse) - 2 * inverse, is_compared)


def openness_of_ratings(n: Floats, total: Floats, squares: Floats, is_compared: Bools | None = None) -> Floats:
    """The same from the number of ratings of each system, their sum and their sum of squares."""
    if n.sum() < 2:
        return np.ones((len(n), len(n))) - np.eye(len(n))
    centre = total.sum() / n.sum()
    spread = max(float(squares.sum() / n.sum() - centre**2), 1e-12)
    known = n + PRIOR_RATINGS
    mean = (total + PRIOR_RATINGS * centre) / known
    within = squares - 2 * mean * total + n * mean**2
    variance = (within + PRIOR_RATINGS * spread) / known**2
    return _openness(mean, variance[:, None] + variance, is_compared)


def _openness(level: Floats, variance: Floats, is_compared: Bools | None) -> Floats:
    z = np.abs(level[:, None] - level) / np.sqrt(np.maximum(variance, 1e-300))
    p_values = np.maximum(2 * stats.norm.sf(z), LEAST)
    if is_compared is not None:
        return np.where(is_compared, p_values, 0.0)
    contends = p_values[int(np.argmax(level))]
    openness = np.minimum(contends[:, None], contends)
    np.fill_diagonal(openness, 0.0)
    return np.asarray(openness)


def set_chances(openness: Floats, sets: Sequence[Sequence[int]], floor: float) -> Floats:
    """The probability of each set of systems: by how open the comparisons within it are, for a single system all of its own."""
    open_ = np.array(
        [
            openness[systems[0]].sum() if len(systems) == 1 else openness[np.ix_(systems, systems)].sum() / 2
            for systems in sets
        ]
    )
    if not open_.sum() > 0:
        return np.full(len(sets), 1 / len(sets))
    return np.asarray(floor / len(sets) + (1 - floor) * open_ / open_.sum())


def draw_weight(probability: float, n_sets: int) -> float:
    """How much an answer weighs whose set was drawn with this probability; 1 where all sets were equally likely."""
    return float((probability * n_sets) ** -0.5)
