"""Models of labels that weigh raters by their reliability: Dawid and Skene's, and MACE.

Dawid and Skene (1979) give each rater a table of how often a true class is called what; the true classes are weighed by these
tables and the tables by the classes, in turn, until nothing changes (expectation-maximisation, started from shares of votes).

MACE (Hovy et al. 2013) asks how far to trust each rater when some answer without looking: a rater either knows the true label
and gives it, or does not and draws from a habit of their own. Competence is the probability of knowing. It is fitted by
variational Bayes with the published priors (Beta ½, ½ on competence; Dirichlet 10 on habits) or by plain
expectation-maximisation, from several random starts of which the likeliest is kept.

Checked in ``tests/stats/test_raters_models.py`` against ``crowdkit.aggregation.DawidSkene(n_iter=…, tol=0)`` and
``crowdkit.aggregation.MACE(method="vb" | "em")`` 1.4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import betaincinv, digamma, logsumexp

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.registry import did_you_mean
from dialometer.stats import statistic
from dialometer.stats.clustered.proportion import wilson_interval
from dialometer.stats.observations import Floats

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """One entry for each label given; ``rater``, ``item`` and ``label`` are numbers in the tuples of names."""

    raters: tuple[str, ...]
    items: tuple[str, ...]
    classes: tuple[str, ...]
    rater: Codes
    item: Codes
    label: Codes

    @property
    def n(self) -> int:
        """How many labels were given."""
        return len(self.label)

    @property
    def labels_per_rater(self) -> Codes:
        """How many labels each rater gave."""
        return np.bincount(self.rater, minlength=len(self.raters))


def code_labels(
    rater: Sequence[str], item: Sequence[str], label: Sequence[str], *, classes: Sequence[str] | None = None
) -> Labels:
    """Labels from names. ``classes`` lists what could have been given; left out, it is what was given, sorted."""
    if not len(rater) == len(item) == len(label):
        raise DialometerError(
            f"{len(rater)} raters, {len(item)} items, {len(label)} labels", where="labels", remedy="give one of each"
        )
    if not len(label):
        raise NotEnoughData("no labels", where="labels", remedy="collect judgments first")
    known = tuple(classes) if classes is not None else tuple(sorted(set(map(str, label))))
    place = {name: k for k, name in enumerate(known)}
    for unknown_label in set(map(str, label)) - set(known):
        raise DialometerError(
            f"unknown label '{unknown_label}'", where="labels", remedy=did_you_mean(unknown_label, list(known))
        )
    raters, rater_codes = np.unique(np.asarray(rater, dtype=np.str_), return_inverse=True)
    items, item_codes = np.unique(np.asarray(item, dtype=np.str_), return_inverse=True)
    return Labels(
        raters=tuple(raters.tolist()),
        items=tuple(items.tolist()),
        classes=known,
        rater=rater_codes.astype(np.intp),
        item=item_codes.astype(np.intp),
        label=np.array([place[str(name)] for name in label], dtype=np.intp),
    )


def check_informative(labels: Labels, method: str) -> None:
    """Models of reliability learn from agreement and disagreement; without either there is nothing to learn."""
    if len(labels.raters) < 2:
        raise NotEnoughData("one rater", where=method, remedy="reliability shows only beside other raters")
    if len(np.unique(labels.label)) < 2:
        raise NotEnoughData(
            f"every label is '{labels.classes[labels.label[0]]}'", where=method, remedy="at least two labels must occur"
        )
    raters_per_item = np.bincount(np.unique(labels.item * len(labels.raters) + labels.rater) // len(labels.raters))
    if raters_per_item.max() < 2:
        raise NotEnoughData("no item was labelled by two raters", where=method, remedy="let raters overlap")


def _likeliest(items: tuple[str, ...], classes: tuple[str, ...], posterior: Floats) -> dict[str, str]:
    return {item: classes[k] for item, k in zip(items, posterior.argmax(axis=1).tolist(), strict=True)}


_LEAST = 1e-10  # probabilities are kept above it, so that one vote never rules a class out for good


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DawidSkene:
    """``posterior`` is items by classes; ``confusion`` is raters by true class by given class."""

    items: tuple[str, ...]
    classes: tuple[str, ...]
    raters: tuple[str, ...]
    posterior: Floats
    confusion: Floats
    prior: Floats
    accuracy: Mapping[str, Estimate]
    """Share of each rater's labels that are right, as the model sees it."""
    log_likelihood: float
    n_iterations: int
    is_converged: bool

    @property
    def consensus(self) -> dict[str, str]:
        """The likeliest class of every item."""
        return _likeliest(self.items, self.classes, self.posterior)

    def __repr__(self) -> str:
        return f"DawidSkene({len(self.items)} items, share of right labels: {_by_rater(self.accuracy)})"


def dawid_skene(
    labels: Labels,
    *,
    smoothing: float = 0.0,
    max_iterations: int = 1000,
    tolerance: float = 1e-8,
    confidence: float = 0.95,
    known: Mapping[str, str] | None = None,
) -> DawidSkene:
    """Fit the model. ``smoothing`` is added to every count of the confusion tables, which steadies raters with few labels.

    ``known`` gives the true class of some items, such as what people said where the raters are judges: these stay as they are, and
    the tables of the raters are anchored by them.
    """
    check_informative(labels, "Dawid-Skene")
    n_raters, n_classes = len(labels.raters), len(labels.classes)
    column = labels.rater * n_classes + labels.label
    indicators = csr_array((np.ones(labels.n), (column, labels.item)), shape=(n_raters * n_classes, len(labels.items)))
    votes = np.zeros((len(labels.items), n_classes))
    np.add.at(votes, (labels.item, labels.label), 1)
    posterior = votes / votes.sum(axis=1, keepdims=True)
    is_known, truth = _known_classes(labels, known or {})
    posterior[is_known] = truth
    log_likelihood, is_converged, iteration = float("nan"), False, 0
    while not is_converged and iteration < max_iterations:
        iteration += 1
        prior = np.maximum(posterior.mean(axis=0), _LEAST)
        confusion = _confusion(indicators, posterior, n_raters, smoothing)
        joint = np.log(prior) + indicators.T @ np.log(confusion).reshape(n_raters * n_classes, n_classes)
        total = logsumexp(joint, axis=1, keepdims=True)
        log_likelihood = float(total.sum())
        before, posterior = posterior, np.exp(joint - total)
        posterior[is_known] = truth
        is_converged = bool(np.abs(posterior - before).max() < tolerance)
    accuracy = _accuracy(labels, posterior, confidence, "" if is_converged else f"not settled after {iteration} rounds")
    return DawidSkene(
        items=labels.items,
        classes=labels.classes,
        raters=labels.raters,
        posterior=posterior,
        confusion=_confusion(indicators, posterior, n_raters, smoothing).transpose(0, 2, 1),
        prior=posterior.mean(axis=0),
        accuracy=accuracy,
        log_likelihood=log_likelihood,
        n_iterations=iteration,
        is_converged=is_converged,
    )


def _known_classes(labels: Labels, known: Mapping[str, str]) -> tuple[Codes, Floats]:
    """The places of items whose class is known, and the classes as rows of a posterior."""
    places = [place for place, item in enumerate(labels.items) if item in known]
    for unknown_label in {known[labels.items[place]] for place in places} - set(labels.classes):
        raise DialometerError(
            f"unknown label '{unknown_label}'", where="known", remedy=did_you_mean(unknown_label, list(labels.classes))
        )
    classes = [labels.classes.index(known[labels.items[place]]) for place in places]
    return np.array(places, dtype=np.intp), np.eye(len(labels.classes))[np.array(classes, dtype=np.intp)]


@statistic("dawid_skene", title="Accuracy of each rater by Dawid and Skene's model", source="Dawid & Skene 1979")
def dawid_skene_accuracy(
    rater: Sequence[str], target: Sequence[str], category: Sequence[str], *, confidence: float = 0.95
) -> Mapping[str, Estimate]:
    """Share of each rater's answers that are right, where the true answers are estimated along with the raters."""
    return dawid_skene(code_labels(rater, target, category), confidence=confidence).accuracy


def _confusion(indicators: csr_array, posterior: Floats, n_raters: int, smoothing: float) -> Floats:
    """Raters by given class by true class; each true class's column sums to 1."""
    n_classes = posterior.shape[1]
    counts = (indicators @ posterior).reshape(n_raters, n_classes, n_classes) + smoothing
    counts = np.maximum(counts, _LEAST)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _accuracy(labels: Labels, posterior: Floats, confidence: float, note: str) -> dict[str, Estimate]:
    right = np.bincount(labels.rater, weights=posterior[labels.item, labels.label], minlength=len(labels.raters))
    accuracy = {}
    for name, n_right, n in zip(labels.raters, right.tolist(), labels.labels_per_rater.tolist(), strict=True):
        low, high = wilson_interval(min(n_right, n), n, confidence=confidence)
        accuracy[name] = Estimate(
            value=n_right / n,
            n=n,
            method="Dawid-Skene, expected share of right labels",
            low=low,
            high=high,
            confidence=confidence,
            interval_method="wilson, the true labels taken as the model estimates them",
            label=name,
            notes=(note,) if note else (),
        )
    return accuracy


Fitting = Literal["variational", "em"]

_HABIT_PRIOR = 10.0
_EM_SMOOTHING = 0.01


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mace:
    """``posterior`` is items by classes, ``habit`` raters by classes (what a rater gives when not knowing)."""

    items: tuple[str, ...]
    classes: tuple[str, ...]
    raters: tuple[str, ...]
    posterior: Floats
    habit: Floats
    competence: Mapping[str, Estimate]
    """Probability that a rater knows the label rather than guesses; usable as a weight."""
    log_likelihood: float
    n_iterations: int
    is_converged: bool
    seed: int

    @property
    def consensus(self) -> dict[str, str]:
        """The likeliest class of every item."""
        return _likeliest(self.items, self.classes, self.posterior)

    def __repr__(self) -> str:
        return f"Mace({len(self.items)} items, competence: {_by_rater(self.competence)})"


def _by_rater(values: Mapping[str, Estimate]) -> str:
    """Raters from the lowest value to the highest."""
    ordered = sorted(values.items(), key=lambda pair: pair[1].value)
    return ", ".join(f"{rater} {estimate.value:.2f}" for rater, estimate in ordered)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    knows: Floats  # raters: weight of knowing
    guesses: Floats  # raters: weight of guessing
    habit: Floats  # raters by classes


@dataclass(frozen=True, slots=True, eq=False)
class _Expected:
    posterior: Floats
    n_known: Floats  # raters
    n_habit: Floats  # raters by classes: guesses of each class
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


@statistic("mace", title="Competence of each rater by MACE", source="Hovy et al. 2013")
def mace_competence(
    rater: Sequence[str], target: Sequence[str], category: Sequence[str], *, confidence: float = 0.95, seed: int = 0
) -> Mapping[str, Estimate]:
    """Probability that a rater knows the right answer rather than guesses."""
    return mace(code_labels(rater, target, category), confidence=confidence, seed=seed).competence


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


def _geometric(counts: Floats) -> Floats:
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
