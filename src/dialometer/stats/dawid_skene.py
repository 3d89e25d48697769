"""True labels and raters' confusions, estimated together (Dawid and Skene 1979).

Each rater has a table of how often a true class is called what; the true classes are weighed by these tables and the tables
by the classes, in turn, until nothing changes (expectation-maximisation, started from shares of votes).

Checked in ``tests/stats/test_raters_models.py`` against ``crowdkit.aggregation.DawidSkene(n_iter=…, tol=0)`` 1.4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import logsumexp

from dialometer.model.estimate import Estimate
from dialometer.stats.labels import Labels, check_informative
from dialometer.stats.proportion import wilson_interval

Array = npt.NDArray[np.float64]

_LEAST = 1e-10  # probabilities are kept above it, so that one vote never rules a class out for good


@dataclass(frozen=True, slots=True, eq=False)
class DawidSkene:
    """``posterior`` is items by classes; ``confusion`` is raters by true class by given class."""

    items: tuple[str, ...]
    classes: tuple[str, ...]
    raters: tuple[str, ...]
    posterior: Array = field(repr=False)
    confusion: Array = field(repr=False)
    prior: Array
    accuracy: Mapping[str, Estimate]
    """Share of each rater's labels that are right, as the model sees it."""
    log_likelihood: float
    n_iterations: int
    is_converged: bool

    @property
    def consensus(self) -> dict[str, str]:
        """The likeliest class of every item."""
        return {
            item: self.classes[k] for item, k in zip(self.items, self.posterior.argmax(axis=1).tolist(), strict=True)
        }


def dawid_skene(
    labels: Labels,
    *,
    smoothing: float = 0.0,
    max_iterations: int = 1000,
    tolerance: float = 1e-8,
    confidence: float = 0.95,
) -> DawidSkene:
    """Fit the model. ``smoothing`` is added to every count of the confusion tables, which steadies raters with few labels."""
    check_informative(labels, "Dawid-Skene")
    n_raters, n_classes = len(labels.raters), len(labels.classes)
    column = labels.rater * n_classes + labels.label
    given = csr_array((np.ones(labels.n), (column, labels.item)), shape=(n_raters * n_classes, len(labels.items)))
    votes = np.zeros((len(labels.items), n_classes))
    np.add.at(votes, (labels.item, labels.label), 1)
    posterior = votes / votes.sum(axis=1, keepdims=True)
    log_likelihood, is_converged, iteration = float("nan"), False, 0
    while not is_converged and iteration < max_iterations:
        iteration += 1
        prior = np.maximum(posterior.mean(axis=0), _LEAST)
        confusion = _confusion(given, posterior, n_raters, smoothing)
        joint = np.log(prior) + given.T @ np.log(confusion).reshape(n_raters * n_classes, n_classes)
        total = logsumexp(joint, axis=1, keepdims=True)
        log_likelihood = float(total.sum())
        before, posterior = posterior, np.exp(joint - total)
        is_converged = bool(np.abs(posterior - before).max() < tolerance)
    accuracy = _accuracy(labels, posterior, confidence, "" if is_converged else f"not settled after {iteration} rounds")
    return DawidSkene(
        items=labels.items,
        classes=labels.classes,
        raters=labels.raters,
        posterior=posterior,
        confusion=_confusion(given, posterior, n_raters, smoothing).transpose(0, 2, 1),
        prior=posterior.mean(axis=0),
        accuracy=accuracy,
        log_likelihood=log_likelihood,
        n_iterations=iteration,
        is_converged=is_converged,
    )


def _confusion(given: csr_array, posterior: Array, n_raters: int, smoothing: float) -> Array:
    """Raters by given class by true class; each true class's column sums to 1."""
    n_classes = posterior.shape[1]
    counts = (given @ posterior).reshape(n_raters, n_classes, n_classes) + smoothing
    counts = np.maximum(counts, _LEAST)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _accuracy(labels: Labels, posterior: Array, confidence: float, note: str) -> dict[str, Estimate]:
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
