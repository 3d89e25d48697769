"""The best recipe: a Gaussian process over words, behaviour and meaning, every setting chosen by grouped cross-validation.

Where it departs from Liang et al. (2020) and why: on public self-ratings neither smoothing nor dropping ratings of low value
helped, whereas the noise of single ratings is taken in by the model itself, as a variance that cross-validation chooses (all
ratings stay, each counts softly); raters' habits are random effects, in training only; what people complain and rejoice about is
looked at directly, beside the words; and the sentence encoder is not fine-tuned, which needs no accelerator and keeps what it
knows of other domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.learned.best_evaluator import BestEvaluator
from dialometer.learned.best_kernel import (
    ASPECTS,
    Aspect,
    Likeness,
    Settings,
    effect_kernel,
    fit_describer,
    likeness,
)
from dialometer.learned.calibration import Reliability, fit_temperature, reliability
from dialometer.learned.features import FeatureTable, describe
from dialometer.learned.fit import Verdict
from dialometer.learned.gaussian_process import fit_process
from dialometer.learned.measures import accuracy
from dialometer.learned.pairs import numbered_gap_pairs
from dialometer.learned.rated import Rated, check_rated
from dialometer.learned.splits import groups_of
from dialometer.retrieval.work import QUIET, Work

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
N_FOLDS = 5
MAX_DIALOGUES = 6000
"""The cost grows with the cube of the number of dialogues; of more, so many are drawn."""
MIN_DIALOGUES = 20
NEAR_WEIGHTS = (2.0, 4.0, 8.0)
SHARPNESSES = (1.0, 2.0, 4.0)
NOISES = (1.5, 3.0, 6.0)
EFFECTS = (0.0, 0.3, 1.0)
_TOO_FAR = 2.0  # usual errors between a rating and what the others let expect, beyond which it is not believed


@dataclass(frozen=True)
class BestFit:
    """A trained evaluator, what its cross-validation found, and a verdict on every rating."""

    evaluator: BestEvaluator
    verdicts: tuple[Verdict, ...]
    accuracy: float
    """On pairs 3 or more points apart, each dialogue scored by a model that has not seen its group."""
    reliability: Reliability
    about: dict[str, Any]


def fit_best(
    rated: Sequence[Rated],
    *,
    seed: int = 0,
    aspects: Sequence[Aspect] = ASPECTS,
    table: FeatureTable | None = None,
    weights: Floats | None = None,
    work: Work = QUIET,
) -> BestFit:
    """Trains on rated dialogues. ``table`` are their features where they are known already.

    ``weights`` say how much each rating counts (a rating of weight one half has twice the noise); all count alike if left out.
    """
    check_rated(rated, at_least=MIN_DIALOGUES)
    rng = np.random.default_rng(seed)
    if len(rated) > MAX_DIALOGUES:
        chosen = np.sort(rng.choice(len(rated), MAX_DIALOGUES, replace=False))
        rated = [rated[n] for n in chosen]
        table = table.rows(chosen) if table is not None else None
        weights = weights[chosen] if weights is not None else None
    table = describe([one.dialogue for one in rated], work) if table is None else table
    problem = _Problem(rated, table, aspects, np.ones(len(rated)) if weights is None else weights, rng)
    settings, held_out = choose_settings(problem)
    describer = fit_describer(table, aspects)
    described = describer(table)
    kernel = likeness(described, described).kernel(settings)
    posterior = fit_process(
        kernel, problem.ratings, settings.noise / problem.weights, settings.effect * problem.effects
    )
    # The kernel is known up to a factor, which the ratings themselves tell (restricted maximum likelihood).
    residual = problem.ratings - posterior.mean
    unit = float(np.sqrt(max(float(residual @ posterior.weights), 1e-12) / (len(rated) - 1)))
    wide = numbered_gap_pairs(rated, 1.0, max_pairs=200_000, rng=np.random.default_rng(seed))
    gaps = held_out[wide.better] - held_out[wide.worse]
    temperature = fit_temperature(gaps)
    evaluator = BestEvaluator(
        describer, described, settings, posterior, centre=float(held_out.mean()), temperature=temperature, unit=unit
    )
    error = float(np.sqrt(_error(problem, held_out)))
    far_apart = numbered_gap_pairs(rated, 3.0)
    right = accuracy(held_out, far_apart)
    measured = reliability(gaps, temperature)
    about = {
        "recipe": "best",
        "n_ratings": len(rated),
        "n_groups": len(set(problem.groups)),
        "aspects": list(aspects),
        "settings": asdict(settings),
        "seed": seed,
        "pairs": "held-out ratings 3 points or more apart",
        "n_stopping_pairs": len(far_apart),
        "cross_validated_accuracy": right,
        "error_points": error,
        "reliability": asdict(measured),
    }
    verdicts = _verdicts(rated, held_out, error)
    about["n_not_believed"] = sum(verdict.is_believed is False for verdict in verdicts)
    return BestFit(evaluator, verdicts, right, measured, about)


class _Problem:
    """Training ratings with their folds; the likeness of each fold is computed once and weighed by every setting."""

    def __init__(
        self,
        rated: Sequence[Rated],
        table: FeatureTable,
        aspects: Sequence[Aspect],
        weights: Floats,
        rng: np.random.Generator,
    ) -> None:
        self.ratings = np.array([one.rating for one in rated], dtype=np.float64)
        self.weights = np.asarray(weights, dtype=np.float64)
        if not (self.weights > 0).all():
            raise NotEnoughData("a rating's weight must be above 0", remedy="leave ratings that should not count out")
        self.groups = groups_of(rated)
        self.effects = effect_kernel(self.groups)
        fold = folds_of(self.groups, rng)
        self.folds: list[tuple[Ints, Ints, Likeness, Likeness]] = []
        for number in np.unique(fold):
            inside, outside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            describer = fit_describer(table.rows(inside), aspects)
            own, other = describer(table.rows(inside)), describer(table.rows(outside))
            self.folds.append((inside, outside, likeness(own, own), likeness(other, own)))

    def held_out(self, settings: Settings) -> Floats:
        """The rating expected of each dialogue by a model that has not seen its group."""
        expected = np.empty(len(self.ratings))
        for inside, outside, own, other in self.folds:
            posterior = fit_process(
                own.kernel(settings),
                self.ratings[inside],
                settings.noise / self.weights[inside],
                settings.effect * self.effects[np.ix_(inside, inside)],
            )
            expected[outside] = posterior.predict(other.kernel(settings))
        return expected


def folds_of(groups: Sequence[str], rng: np.random.Generator) -> Ints:
    """A fold for each dialogue, groups kept together; single dialogues where there are too few groups."""
    names = sorted(set(groups))
    if len(names) < 2 * N_FOLDS:
        return np.asarray(rng.permutation(len(groups)) % N_FOLDS, dtype=np.int64)
    fold = dict(zip(names, rng.permutation(len(names)) % N_FOLDS, strict=True))
    return np.array([fold[group] for group in groups], dtype=np.int64)


def choose_settings(problem: _Problem) -> tuple[Settings, Floats]:
    """The settings with the smallest squared error on held-out groups, one after the other, and what they predict."""
    best, expected = Settings(), problem.held_out(Settings())
    least = _error(problem, expected)
    has_near = problem.folds[0][2].distances is not None
    rounds: list[list[dict[str, float]]] = [
        [{"near_weight": w, "sharpness": s} for w in NEAR_WEIGHTS for s in SHARPNESSES] if has_near else [],
        [{"noise": value} for value in NOISES],
        [{"effect": value} for value in EFFECTS],
    ]
    for changes in rounds:
        start = best
        for change in changes:
            tried = replace(start, **change)
            if tried == best:
                continue
            found = problem.held_out(tried)
            error = _error(problem, found)
            if error < least:
                best, expected, least = tried, found, error
    return best, expected


def _error(problem: _Problem, expected: Floats) -> float:
    return float(np.average((problem.ratings - expected) ** 2, weights=problem.weights))


def _verdicts(rated: Sequence[Rated], expected: Floats, error: float) -> tuple[Verdict, ...]:
    """A rating is not believed where it is far from what other ratings let expect, by the usual error; it still counts.

    Its value is that distance with a minus: the detector that finds injected noise best.
    """
    distance = np.array([one.rating for one in rated]) - expected
    return tuple(
        Verdict(one.id, one.rating, float(one.rating - far), -abs(float(far)), abs(float(far)) <= _TOO_FAR * error)
        for one, far in zip(rated, distance, strict=True)
    )
