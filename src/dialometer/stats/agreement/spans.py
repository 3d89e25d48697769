"""Agreement on marked spans: do raters mark the same characters, and with the same category?

Every character of a text is a unit, and what a rater says about it is its category, or that it is not marked. On these units
Krippendorff's alpha is computed as on any others (nominal; Krippendorff 2011), for marked or not, and for the category.
Alpha counts texts in which nobody marks anything as agreement, as it should, and corrects for how much is marked in all.

Beside it, the F1 of spans, as it is known from named-entity work (Hripcsak and Rothschild 2005): of all pairs of raters of a
text, twice the characters that both mark, over all characters that either marks. By chance two raters who mark a and b of n
characters, at places that have nothing to do with each other, share ab/n on average (over all cyclic shifts of one of them,
exactly); the corrected F1 is (F1 - chance) / (1 - chance).

By hand: in a text of 10 characters one rater marks 0-4 and another 2-6. They share 2 of 4 + 4, so F1 = 2 x 2 / 8 = 0.5;
chance is 2 x (4 x 4 / 10) / 8 = 0.4, and the corrected F1 is (0.5 - 0.4) / 0.6 = 1/6. Alpha: 4 of 10 characters disagree, 20
values are 8 marked and 12 not, so alpha = 1 - 19 x 8 / (20^2 - 8^2 - 12^2) = 1 - 152/192 = 0.208. Both values are tested,
and alpha also against the package ``krippendorff`` (``krippendorff.alpha(matrix, level_of_measurement="nominal")``) in
tests/stats/test_span_agreement.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.bootstrap.bootstrap import bootstrap
from dialometer.stats.observations import Floats, Ints

Span = tuple[int, int, str]
"""Beginning, end and category of a mark."""
TOO_FEW = "{n} texts with two or more raters: at least 2 are needed; let more raters mark the same texts"


@dataclass(frozen=True, slots=True)
class MarkedText:
    """One text and the marks of each rater who read it; a rater without marks has an empty list."""

    n_characters: int
    by_rater: Mapping[str, Sequence[Span]]


def labels_of(text: MarkedText, categories: Sequence[str]) -> Ints:
    """For each rater and character 0 where it is not marked, else 1 + the number of its category; later marks are on top."""
    place = {name: number for number, name in enumerate(categories, start=1)}
    rows = np.zeros((len(text.by_rater), text.n_characters), dtype=np.int64)
    for row, spans in enumerate(text.by_rater.values()):
        for start, end, category in spans:
            rows[row, start:end] = place[category]
    return rows


def span_alpha(
    texts: Sequence[MarkedText],
    categories: Sequence[str],
    *,
    by_category: bool = True,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Krippendorff's alpha over characters; without ``by_category`` only whether a character is marked."""
    method = "Krippendorff's alpha over characters, " + ("categories" if by_category else "marked or not")
    shared = [text for text in texts if len(text.by_rater) > 1 and text.n_characters]
    if len(shared) < 2:
        return unknown(method, TOO_FEW.format(n=len(shared)), n=len(shared))
    n_labels = len(categories) + 1 if by_category else 2
    disagreed = np.zeros(len(shared))
    totals = np.zeros((len(shared), n_labels))
    for k, text in enumerate(shared):
        labels = labels_of(text, categories)
        labels = labels if by_category else np.minimum(labels, 1)
        counts = np.stack([(labels == label).sum(axis=0) for label in range(n_labels)]).astype(np.float64)
        m = len(labels)
        disagreed[k] = float((m**2 - (counts**2).sum(axis=0)).sum()) / (m - 1)
        totals[k] = counts.sum(axis=1)

    def alpha(weights: Floats) -> Floats:
        label_totals = weights @ totals
        n = label_totals.sum(axis=1)
        expected = n**2 - (label_totals**2).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(expected > 0, 1 - (n - 1) * (weights @ disagreed) / expected, np.nan))

    if not totals[:, 1:].sum():
        return unknown(method, "nobody marked anything, so there is nothing to agree on", n=len(shared))
    return bootstrap(
        alpha,
        len(shared),
        method=method,
        resampled="texts",
        n_resamples=n_resamples,
        seed=seed,
        confidence=confidence,
    )


def span_f1(
    texts: Sequence[MarkedText],
    categories: Sequence[str],
    *,
    by_category: bool = False,
    is_corrected: bool = False,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """F1 of marked characters over all pairs of raters; with ``by_category`` both must name the same category.

    ``is_corrected`` takes off what chance would give.
    """
    method = "F1 of marked characters" + (" with the same category" if by_category else "")
    method += ", corrected for chance" if is_corrected else ""
    shared = [text for text in texts if len(text.by_rater) > 1 and text.n_characters]
    if len(shared) < 2:
        return unknown(method, TOO_FEW.format(n=len(shared)), n=len(shared))
    sums = np.array([_pair_sums(text, categories, by_category=by_category) for text in shared])
    if not sums[:, 1].sum():
        return unknown(method, "nobody marked anything, so there is nothing to agree on", n=len(shared))

    def f1(weights: Floats) -> Floats:
        common, marked, chance = (weights @ sums).T
        with np.errstate(invalid="ignore", divide="ignore"):
            observed, expected = 2 * common / marked, 2 * chance / marked
            return np.asarray((observed - expected) / (1 - expected) if is_corrected else observed)

    return bootstrap(
        f1, len(shared), method=method, resampled="texts", n_resamples=n_resamples, seed=seed, confidence=confidence
    )


def _pair_sums(text: MarkedText, categories: Sequence[str], *, by_category: bool) -> tuple[float, float, float]:
    """Over all pairs of raters: characters marked by both, marked by either (both counted), and shared by chance."""
    labels = labels_of(text, categories)
    common = marked = chance = 0.0
    for a, b in combinations(range(len(labels)), 2):
        both = (labels[a] == labels[b]) & (labels[a] > 0) if by_category else (labels[a] > 0) & (labels[b] > 0)
        common += float(both.sum())
        marked += float((labels[a] > 0).sum() + (labels[b] > 0).sum())
        for label in range(1, len(categories) + 1) if by_category else ():
            chance += float((labels[a] == label).sum()) * float((labels[b] == label).sum()) / text.n_characters
        if not by_category:
            chance += float((labels[a] > 0).sum()) * float((labels[b] > 0).sum()) / text.n_characters
    return common, marked, chance
