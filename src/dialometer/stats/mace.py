"""How far to trust each rater when some answer without looking (MACE; Hovy et al. 2013).

A rater either knows the true label and gives it, or does not and draws from a habit of their own. Competence is the
probability of knowing. Fitted by variational Bayes with the published priors (Beta ½, ½ on competence; Dirichlet 10 on
habits) or by plain expectation-maximisation, from several random starts of which the likeliest is kept.

Checked in ``tests/stats/test_raters_models.py`` against ``crowdkit.aggregation.MACE(method="vb" | "em")`` 1.4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, digamma, logsumexp

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.stats.labels import Labels, check_informative

Array = npt.NDArray[np.float64]
Fitting = Literal["variational", "em"]

_HABIT_PRIOR = 10.0
_EM_SMOOTHING = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Mace:
    """``posterior`` is items by classes, ``habit`` raters by classes (what a rater gives when not knowing)."""

    items: tuple[str, ...]
    classes: tuple[str, ...]
    raters: tuple[str, ...]
    posterior: Array = field(repr=False)
    habit: Array = field(repr=False)
    competence: Mapping[str, Estimate]
    """Probability that a rater knows the label rather than guesses; usable as a weight."""
    log_likelihood: float
    n_iterations: int
    is_converged: bool
    seed: int

    @property
    def consensus(self) -> dict[str, str]:
        """The likeliest class of every item."""
        return {
            item: self.classes[k] for item, k in zip(self.items, self.posterior.argmax(axis=1).tolist(), strict=True)
        }


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    knows: Array  # raters: weight of knowing
    guesses: Array  # raters: weight of guessing
    habit: Array  # raters by classes


@dataclass(frozen=True, slots=True, eq=False)
class _Expected:
    posterior: Array
    n_known: Array  # raters
    n_habit: Array  # raters by classes: guesses of each class
    log_likelihood: float


def mace(
    labels: Labels,
    *,
    fitting: Fitting = "variational",
    prior_guess: float = 0.5,
    prior_know: float = 0.5,
    n_starts: int = 10,
    max_iterations: int = 500,
    tolerance: float = 1e-8,
    confidence: float = 0.95,
    seed: int = 0,
) -> Mace:
    """Fit the model. The interval of a competence is the Beta posterior's (flat priors stand in for it under ``em``)."""
    check_informative(labels, "MACE")
    rng = np.random.default_rng(seed)
    best: tuple[_State, _Expected, int, bool] | None = None
    for _ in range(n_starts):
        state = _start(labels, rng)
        expected, is_settled, iteration = _expect(labels, state), False, 0
        while not is_settled and iteration < max_iterations:
            iteration += 1
            state = _maximise(expected, fitting, prior_guess, prior_know)
            before, expected = expected, _expect(labels, state)
            is_settled = bool(np.abs(expected.posterior - before.posterior).max() < tolerance)
        if best is None or expected.log_likelihood > best[1].log_likelihood:
            best = (state, expected, iteration, is_settled)
    if best is None:
        raise DialometerError(f"{n_starts} starts", where="MACE", remedy="ask for at least one")
    state, expected, iteration, is_settled = best
    competence = _competence(labels, state, expected, fitting, prior_guess, prior_know, confidence)
    return Mace(
        items=labels.items,
        classes=labels.classes,
        raters=labels.raters,
        posterior=expected.posterior,
        habit=state.habit / state.habit.sum(axis=1, keepdims=True),
        competence={name: replace(estimate, seed=seed) for name, estimate in competence.items()},
        log_likelihood=expected.log_likelihood,
        n_iterations=iteration,
        is_converged=is_settled,
        seed=seed,
    )


def _start(labels: Labels, rng: np.random.Generator) -> _State:
    """Near even odds, with enough noise that starts differ."""
    odds = rng.uniform(1, 2.5, size=(len(labels.raters), 2))
    habit = rng.uniform(1, 2.5, size=(len(labels.raters), len(labels.classes)))
    odds /= odds.sum(axis=1, keepdims=True)
    return _State(knows=odds[:, 1], guesses=odds[:, 0], habit=habit / habit.sum(axis=1, keepdims=True))


def _expect(labels: Labels, state: _State) -> _Expected:
    """True labels given the raters, and from them how many labels each rater knew or guessed.

    A label counts ``guess + knows`` if it is the true one and ``guess`` if not; all classes are equally likely at first.
    """
    rater, item, label = labels.rater, labels.item, labels.label
    n_items, n_classes = len(labels.items), len(labels.classes)
    guess = state.guesses[rater] * state.habit[rater, label]
    right = guess + state.knows[rater]
    base = np.bincount(item, weights=np.log(guess), minlength=n_items)
    gain = np.bincount(item * n_classes + label, weights=np.log(right / guess), minlength=n_items * n_classes)
    joint = base[:, None] + gain.reshape(n_items, n_classes) - np.log(n_classes)
    total = logsumexp(joint, axis=1, keepdims=True)
    posterior = np.exp(joint - total)
    known = posterior[item, label] * state.knows[rater] / right
    n_raters = len(labels.raters)
    cell = rater * n_classes + label
    n_habit = np.bincount(cell, weights=1 - known, minlength=n_raters * n_classes)
    return _Expected(
        posterior=posterior,
        n_known=np.bincount(rater, weights=known, minlength=n_raters).astype(np.float64),
        n_habit=n_habit.reshape(n_raters, n_classes).astype(np.float64),
        log_likelihood=float(total.sum()),
    )


def _maximise(expected: _Expected, fitting: Fitting, prior_guess: float, prior_know: float) -> _State:
    counts = np.stack([expected.n_habit.sum(axis=1), expected.n_known], axis=1)
    if fitting == "variational":
        # Geometric means under the Beta and Dirichlet posteriors; they sum to less than 1 on purpose.
        odds = _geometric(counts + np.array([prior_guess, prior_know]))
        habit = _geometric(expected.n_habit + _HABIT_PRIOR)
    else:
        smoothing = _EM_SMOOTHING / expected.n_habit.shape[1]
        odds, habit = counts + smoothing, expected.n_habit + smoothing
        odds, habit = odds / odds.sum(axis=1, keepdims=True), habit / habit.sum(axis=1, keepdims=True)
    return _State(knows=odds[:, 1], guesses=odds[:, 0], habit=habit)


def _geometric(counts: Array) -> Array:
    return np.asarray(np.exp(digamma(counts) - digamma(counts.sum(axis=1, keepdims=True))))


def _competence(
    labels: Labels,
    state: _State,
    expected: _Expected,
    fitting: Fitting,
    prior_guess: float,
    prior_know: float,
    confidence: float,
) -> dict[str, Estimate]:
    is_variational = fitting == "variational"
    known = expected.n_known + (prior_know if is_variational else 1.0)
    guessed = expected.n_habit.sum(axis=1) + (prior_guess if is_variational else 1.0)
    value = known / (known + guessed) if is_variational else state.knows
    tail = (1 - confidence) / 2
    low, high = betaincinv(known, guessed, tail), betaincinv(known, guessed, 1 - tail)
    return {
        name: Estimate(
            value=float(value[k]),
            n=int(labels.labels_per_rater[k]),
            method=f"MACE competence, {fitting}",
            low=float(min(low[k], value[k])),
            high=float(max(high[k], value[k])),
            confidence=confidence,
            interval_method="Beta posterior, the true labels taken as the model estimates them",
            label=name,
            details={"weight": float(state.knows[k])},
        )
        for k, name in enumerate(labels.raters)
    }
