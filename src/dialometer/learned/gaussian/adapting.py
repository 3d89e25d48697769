"""An evaluator taken to a new domain by few ratings: the posterior of its Gaussian process, with what it knew as the prior.

Quality in the new domain is taken to correlate with quality as the old evaluator knows it, by a number from nearly 0 (other
users want something else) to nearly 1 (they want the same): an intrinsic coregionalisation of two tasks (Bonilla, Chai and
Williams 2008). The ratings of the new domain tell that number, by restricted likelihood. Before the first rating the expected
quality is the old evaluator's score times the correlation; every rating pulls the scores of dialogues like it towards itself.
How high people rate in the new domain is estimated apart, so a stricter domain is no worse.

The old ratings are not needed: an evaluator's folder holds what they said. With a correlation of 1 and equal means the result
is that of training on both sets at once with the old settings, which the tests compare it with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dialometer.errors import DialometerError
from dialometer.learned.data.calibration import fit_temperature, reliability
from dialometer.learned.data.measures import accuracy_estimate, ends
from dialometer.learned.data.rated import RatedDialogue, check_rated
from dialometer.learned.data.splits import groups_of
from dialometer.learned.gaussian.evaluator import GaussianEvaluator
from dialometer.learned.gaussian.features import FeatureTable
from dialometer.learned.gaussian.kernel import HeldOut, Posterior, effect_kernel, left_out_familiarity, likeness
from dialometer.learned.gaussian.training import (
    GaussianFit,
    fingerprint_of,
    pairs_of,
    raters_of,
    usual_familiarity,
    verdicts_on,
)
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float64]
CORRELATIONS = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
MIN_RATINGS = 10
N_BEFORE = 100
"""New ratings that count as much for the probabilities as all the old ones."""


@dataclass(frozen=True)
class _Joint:
    """Old and new dialogues together under one correlation of their qualities."""

    correlation: float
    expected: Floats
    """What the old evaluator expects of the new ratings, apart from their mean."""
    known: Floats
    """How much of the new qualities' covariance the old ratings explain."""
    factor: Floats
    """Of the covariance of the new ratings once the old ones are known."""
    weights: Floats
    mean: float
    unit: float
    log_likelihood: float


def adapt_gaussian(
    old: GaussianEvaluator,
    rated: Sequence[RatedDialogue],
    *,
    seed: int = 0,
    table: FeatureTable | None = None,
    about: Mapping[str, Any] | None = None,
    work: Work = QUIET,
) -> GaussianFit:
    """The evaluator after some ratings of a new domain. ``about`` is what was kept of the old one's training."""
    check_rated(rated, at_least=MIN_RATINGS)
    if table is None:
        table = old.describe([row.dialogue for row in rated], work)
    described = old.describer(table)
    ratings = np.array([row.rating for row in rated], dtype=np.float64)
    groups = groups_of(rated)
    kernel = likeness(described, described).kernel(old.settings)
    own = kernel + np.diag(np.full(len(rated), old.settings.noise))
    own += old.settings.effect * effect_kernel(raters_of(rated, groups))
    cross = likeness(old.known, described).kernel(old.settings)
    projected = linalg.solve_triangular(old.posterior.factor[0], cross, lower=True)
    joint = _choose(old, projected, own, ratings)
    held_out = _left_out(joint, ratings, groups)
    judged, wide, kind = pairs_of(rated, (), seed)
    gaps = held_out.quality[wide.better] - held_out.quality[wide.worse]
    temperature = _temperature(old.temperature, fit_temperature(gaps), len(rated))
    unseen = left_out_familiarity((joint.factor, True), kernel - joint.known, np.diag(kernel))
    evaluator = GaussianEvaluator(
        old.describer,
        old.known.followed_by(described),
        old.settings,
        _posterior(old, projected, joint),
        centre=float(held_out.expected.mean()),
        temperature=temperature,
        usual_familiarity=usual_familiarity(unseen),
        word_vectors=old.word_vectors,
    )
    error = float(np.sqrt(np.mean((ratings - held_out.expected) ** 2)))
    verdicts = verdicts_on(rated, held_out.expected, error)
    adapted = accuracy_estimate(held_out.quality, judged, groups=groups, seed=seed)
    before = accuracy_estimate(old.expected_ratings(table), judged, groups=groups, seed=seed)
    measured = reliability(gaps, temperature)
    content = {
        "recipe": "adapted",
        "fingerprint": fingerprint_of(rated, seed) + str((about or {}).get("fingerprint", ""))[:16],
        "n_ratings": len(rated),
        "n_groups": len(set(groups)),
        "aspects": list(old.describer.aspects),
        "n_known_before": len(old.known),
        "correlation": joint.correlation,
        "settings": asdict(old.settings),
        "seed": seed,
        "pairs": kind,
        "n_stopping_pairs": len(judged),
        "accuracy_before": before.value,
        "interval_before": ends(before),
        "cross_validated_accuracy": adapted.value,
        "interval": ends(adapted),
        "error_points": error,
        "reliability": asdict(measured),
        "n_not_believed": sum(verdict.is_believed is False for verdict in verdicts),
    }
    return GaussianFit(evaluator, verdicts, adapted.value, measured, content)


def _choose(old: GaussianEvaluator, projected: Floats, own: Floats, ratings: Floats) -> _Joint:
    """The correlation expected after the new ratings, all being equally likely before them.

    Its mean, not the likeliest one: twenty ratings may prefer any.
    """
    tried = [_joint(old, projected, own, ratings, value) for value in CORRELATIONS]
    likelihoods = np.array([one.log_likelihood for one in tried])
    weights = np.exp(likelihoods - likelihoods.max())
    return _joint(old, projected, own, ratings, float(np.average(CORRELATIONS, weights=weights)))


def _joint(old: GaussianEvaluator, projected: Floats, own: Floats, ratings: Floats, correlation: float) -> _Joint:
    expected = correlation * projected.T @ (old.posterior.factor[0].T @ old.posterior.weights)
    known = correlation**2 * projected.T @ projected
    factor = linalg.cholesky(own - known, lower=True)
    n = len(ratings)
    solved = linalg.cho_solve((factor, True), np.column_stack([ratings - expected, np.ones(n)]))
    total = float(solved[:, 1].sum())
    mean = float(solved[:, 0].sum() / total)
    weights = solved[:, 0] - mean * solved[:, 1]
    unit = float(np.sqrt(max(float((ratings - expected - mean) @ weights), 1e-12) / (n - 1)))
    log_likelihood = -(n - 1) * np.log(unit) - np.log(np.diag(factor)).sum() - 0.5 * np.log(total)
    return _Joint(correlation, expected, known, factor, weights, mean, unit, float(log_likelihood))


def _temperature(before: float, fitted: float, n: int) -> float:
    """Between the old temperature and that of the new ratings, of which few say little: as if the old one had come from more."""
    return (N_BEFORE + n) / (N_BEFORE / before + n / fitted)


def _left_out(joint: _Joint, ratings: Floats, groups: Sequence[str]) -> HeldOut:
    """What the model expects of each new dialogue that has not seen its group's ratings, in closed form (Dubrule 1983)."""
    inverse = linalg.cho_solve((joint.factor, True), np.eye(len(ratings)))
    sums, answers = inverse.sum(axis=1), inverse @ (ratings - joint.expected)
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    if group.max() < 1:
        group = np.arange(len(ratings))
    means, apart = np.empty(len(ratings)), np.empty(len(ratings))
    for number in range(int(group.max()) + 1):
        rows = np.flatnonzero(group == number)
        own, ones = np.linalg.solve(inverse[np.ix_(rows, rows)], np.column_stack([answers[rows], sums[rows]])).T
        means[rows] = (answers.sum() - sums[rows] @ own) / (sums.sum() - sums[rows] @ ones)
        apart[rows] = own - means[rows] * ones
    return HeldOut(ratings - apart, ratings - apart - means)


def _posterior(old: GaussianEvaluator, projected: Floats, joint: _Joint) -> Posterior:
    """Of old and new dialogues; the correlation is taken into the weights and the factor of the old ones."""
    root = old.posterior.factor[0]
    moved = linalg.solve_triangular(root, projected @ joint.weights, lower=True, trans="T")
    weights = joint.correlation * (old.posterior.weights - joint.correlation * moved)
    factor = np.block(
        [
            [root / joint.correlation, np.zeros_like(projected)],
            [joint.correlation * projected.T, joint.factor],
        ]
    )
    return Posterior(np.concatenate([weights, joint.weights]), joint.mean, (factor, True), joint.unit)


def require_gaussian(evaluator: object, where: str) -> GaussianEvaluator:
    """The evaluator, if it is one that can be adapted."""
    if isinstance(evaluator, GaussianEvaluator):
        return evaluator
    remedy = "train it with --recipe best"
    raise DialometerError("only evaluators of the best recipe can be adapted", where=where, remedy=remedy)
