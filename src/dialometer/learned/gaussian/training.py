"""Training the recipe ``best``: a Gaussian process over words, behaviour and meaning, settings chosen by grouped cross-validation.

Where it departs from Liang et al. (2020) and why: on public self-ratings neither smoothing nor dropping ratings of low value
helped, whereas the noise of single ratings is taken in by the model itself, as a variance that cross-validation chooses (all
ratings stay, each counts softly); raters' habits are random effects, in training only; what people complain and rejoice about is
looked at directly, beside the words; and the sentence encoder is not fine-tuned, which needs no accelerator and keeps what it
knows of other domains.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.learned.data.calibration import CalibrationQuality, fit_temperature, reliability
from dialometer.learned.data.evaluator import refuse_other
from dialometer.learned.data.measures import accuracy_estimate, ends
from dialometer.learned.data.pairs import DialoguePair, NumberedPairs, numbered_gap_pairs, to_numbers
from dialometer.learned.data.rated import RatedDialogue, RatingVerdict, check_rated, same_text, write_verdicts
from dialometer.learned.data.splits import groups_of
from dialometer.learned.gaussian.evaluator import GaussianEvaluator
from dialometer.learned.gaussian.features import FeatureTable, describe, describe_many, learn_word_vectors
from dialometer.learned.gaussian.inducing import InducingProcess
from dialometer.learned.gaussian.kernel import (
    ASPECTS,
    Aspect,
    Described,
    Describer,
    HeldOut,
    KernelSettings,
    Likeness,
    Posterior,
    effect_kernel,
    familiarity,
    fit_describer,
    fit_process,
    left_out_familiarity,
    likeness,
    own_kernel,
)
from dialometer.neural.word_vectors import WordVectors
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
N_FOLDS = 5
NEAR_WEIGHTS = (2.0, 4.0, 8.0)
SHARPNESSES = (1.0, 2.0, 4.0)
NOISES = (1.5, 3.0, 6.0)
EFFECTS = (0.0, 0.3, 1.0)
STRONG_EFFECTS = (3.0, 9.0)
"""Tried where users are known: people differ more in how they rate than blocks of neighbours do."""


class CrossValidation:
    """Training ratings with their folds; the likeness of each fold is computed once and weighed by every setting."""

    def __init__(
        self,
        rated: Sequence[RatedDialogue],
        table: FeatureTable,
        aspects: Sequence[Aspect],
        weights: Floats,
        rng: np.random.Generator,
    ) -> None:
        self.ratings = np.array([row.rating for row in rated], dtype=np.float64)
        self.weights = weights
        self.has_users = any(row.user is not None for row in rated)
        groups = groups_of(rated)
        self.effects = effect_kernel(raters_of(rated, groups))
        fold = folds_of(groups, rng)
        self.folds: list[tuple[Ints, Ints, Likeness, Likeness]] = []
        for number in np.unique(fold):
            inside, outside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            describer = fit_describer(table.rows(inside), aspects)
            own, other = describer(table.rows(inside)), describer(table.rows(outside))
            self.folds.append((inside, outside, likeness(own, own), likeness(other, own)))

    def held_out(self, settings: KernelSettings) -> HeldOut:
        """What is expected of each dialogue by a model that has not seen its group."""
        expected, quality = np.empty(len(self.ratings)), np.empty(len(self.ratings))
        for inside, outside, own, other in self.folds:
            posterior = fit_process(
                own.kernel(settings),
                self.ratings[inside],
                settings.noise / self.weights[inside],
                settings.effect * self.effects[np.ix_(inside, inside)],
            )
            expected[outside] = posterior.predict(other.kernel(settings))
            quality[outside] = expected[outside] - posterior.mean
        return HeldOut(expected, quality)


def raters_of(rated: Sequence[RatedDialogue], groups: Sequence[str]) -> list[str]:
    """Whose habit is explained away: of an item that several raters judged, the group is the item, but this the rater."""
    return [group if row.user is None else f"user {row.user}" for row, group in zip(rated, groups, strict=True)]


def folds_of(groups: Sequence[str], rng: np.random.Generator) -> Ints:
    """A fold for each dialogue, groups kept together; single dialogues where there are too few groups."""
    names = sorted(set(groups))
    if len(names) < 2 * N_FOLDS:
        return np.asarray(rng.permutation(len(groups)) % N_FOLDS, dtype=np.int64)
    fold = dict(zip(names, rng.permutation(len(names)) % N_FOLDS, strict=True))
    return np.array([fold[group] for group in groups], dtype=np.int64)


def choose_settings(problem: CrossValidation) -> tuple[KernelSettings, HeldOut]:
    """The settings with the smallest squared error on held-out groups, one after the other, and what they predict."""
    best, held_out = KernelSettings(), problem.held_out(KernelSettings())
    least = squared_error(problem.ratings, held_out.expected, problem.weights)
    has_near = problem.folds[0][2].distances is not None
    rounds: list[list[dict[str, float]]] = [
        [{"sharpness": value} for value in SHARPNESSES] if has_near else [],
        [{"near_weight": value} for value in NEAR_WEIGHTS] if has_near else [],
        [{"noise": value} for value in NOISES],
        [{"effect": value} for value in (*EFFECTS, *(STRONG_EFFECTS if problem.has_users else ()))],
    ]
    for changes in rounds:
        start = best
        for change in changes:
            tried = replace(start, **change)
            if tried == best:
                continue
            predicted = problem.held_out(tried)
            error = squared_error(problem.ratings, predicted.expected, problem.weights)
            if error < least:
                best, held_out, least = tried, predicted, error
    return best, held_out


def squared_error(ratings: Floats, expected: Floats, weights: Floats) -> float:
    """Mean squared error of expected ratings, each counted by its weight."""
    return float(np.average((ratings - expected) ** 2, weights=weights))


MAX_DIALOGUES = 6000
"""The cost of the exact process grows with the cube of the number of dialogues; of more, likeness is taken with some only."""
N_INDUCING = 2000
N_CHOOSING = 2000
"""Dialogues of a large set on which settings are chosen, by the exact process."""
MIN_DIALOGUES = 20
MIN_EXPERT_PAIRS = 20
"""Fewer pairs of experts say too little about probabilities; they are then fitted to the ratings."""
FAR_APART = 3.0
MAX_PAIRS = 500_000
USUAL = 0.95
"""Share of the training dialogues that are as familiar as a new one must be to be like them."""
_TOO_FAR = 2.0  # usual errors between a rating and what similar dialogues predict, beyond which it is not believed


@dataclass(frozen=True, repr=False)
class GaussianFit:
    """A trained evaluator, what its cross-validation found, and a verdict on every rating."""

    evaluator: GaussianEvaluator
    verdicts: tuple[RatingVerdict, ...]
    accuracy: float
    """On the pairs that ``about`` names, each dialogue scored by a model that has not seen its group."""
    reliability: CalibrationQuality
    about: dict[str, Any]

    def __repr__(self) -> str:
        n_doubted = self.about["n_not_believed"]
        return (
            f"GaussianFit(evaluator of {self.about['n_ratings']} ratings by {', '.join(self.about['aspects'])}; right on "
            f"{self.accuracy:.1%} of {self.about['n_stopping_pairs']:,} pairs ({self.about['pairs']}); "
            f"{n_doubted} ratings not trusted)"
        )


def fit_gaussian(
    rated: Sequence[RatedDialogue],
    *,
    seed: int = 0,
    aspects: Sequence[Aspect] = ASPECTS,
    table: FeatureTable | None = None,
    weights: Floats | None = None,
    experts: Sequence[DialoguePair] = (),
    work: Work = QUIET,
) -> GaussianFit:
    """Trains on rated dialogues. ``table`` are their features where they are known already.

    ``weights`` say how much each rating counts (a rating of weight one half has twice the noise); all count alike by default.
    With pairs judged by ``experts``, probabilities are calibrated to them and the accuracy is theirs; both by models that have
    not seen the two dialogues' groups.
    """
    check_rated(rated, at_least=MIN_DIALOGUES)
    fingerprint = fingerprint_of(rated, seed, experts, aspects)
    rng = np.random.default_rng(seed)
    word_vectors = None
    if table is None:
        table, word_vectors = _described(rated, aspects, seed, work)
    weights = np.ones(len(rated)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not (weights > 0).all():
        raise NotEnoughData("a rating's weight must be above 0", remedy="leave ratings that should not count out")
    learn = _learn_exactly if len(rated) <= MAX_DIALOGUES else _learn_by_inducing
    learned = learn(rated, table, aspects, weights, rng, work)
    held_out = learned.held_out
    judged, wide, kind = pairs_of(rated, experts, seed)
    gaps = held_out.quality[wide.better] - held_out.quality[wide.worse]
    temperature = fit_temperature(gaps)
    evaluator = GaussianEvaluator(
        learned.describer,
        learned.known,
        learned.settings,
        learned.posterior,
        centre=float(held_out.expected.mean()),
        temperature=temperature,
        usual_familiarity=usual_familiarity(learned.familiarity),
        word_vectors=word_vectors,
    )
    ratings = np.array([row.rating for row in rated], dtype=np.float64)
    error = float(np.sqrt(squared_error(ratings, held_out.expected, weights)))
    verdicts = verdicts_on(rated, held_out.expected, error)
    right = accuracy_estimate(held_out.quality, judged, groups=groups_of(rated), seed=seed)
    measured = reliability(gaps, temperature)
    about: dict[str, Any] = {
        "recipe": "best",
        "fingerprint": fingerprint,
        "n_ratings": len(rated),
        "n_groups": len(set(groups_of(rated))),
        "aspects": list(aspects),
        "meaning_by": None if "meaning" not in aspects else "encoder" if word_vectors is None else "words",
        "n_inducing": len(learned.known) if len(learned.known) < len(rated) else None,
        "settings": asdict(learned.settings),
        "seed": seed,
        "pairs": kind,
        "n_stopping_pairs": len(judged),
        "cross_validated_accuracy": right.value,
        "interval": ends(right),
        "error_points": error,
        "reliability": asdict(measured),
        "n_not_believed": sum(verdict.is_believed is False for verdict in verdicts),
    }
    return GaussianFit(evaluator, verdicts, right.value, measured, about)


def _described(
    rated: Sequence[RatedDialogue], aspects: Sequence[Aspect], seed: int, work: Work
) -> tuple[FeatureTable, WordVectors | None]:
    """Features of the dialogues. Of many, the encoder reads some, and vectors of words fitted to it describe all."""
    dialogues, has_meaning = [row.dialogue for row in rated], "meaning" in aspects
    if len(rated) <= MAX_DIALOGUES:
        return describe(dialogues, work, has_meaning=has_meaning), None
    word_vectors = None
    if has_meaning:
        some = np.random.default_rng(seed).choice(len(rated), MAX_DIALOGUES, replace=False)
        word_vectors = learn_word_vectors([dialogues[int(n)] for n in np.sort(some)], work)
    return describe_many(dialogues, work, has_meaning=has_meaning, word_vectors=word_vectors), word_vectors


def usual_familiarity(known: Floats) -> float:
    """What most training dialogues reach; a dialogue below it is unlike them."""
    return float(np.quantile(known, 1 - USUAL))


@dataclass(frozen=True)
class _Learned:
    """What was learned, and what is expected of each dialogue by a model that has not seen its group."""

    describer: Describer
    known: Described
    settings: KernelSettings
    posterior: Posterior
    held_out: HeldOut
    familiarity: Floats
    """Of training dialogues (or some of them), their own ratings being unknown."""


def _learn_exactly(
    rated: Sequence[RatedDialogue],
    table: FeatureTable,
    aspects: Sequence[Aspect],
    weights: Floats,
    rng: np.random.Generator,
    work: Work,  # noqa: ARG001 - done before a report would come
) -> _Learned:
    problem = CrossValidation(rated, table, aspects, weights, rng)
    settings, held_out = choose_settings(problem)
    describer = fit_describer(table, aspects)
    known = describer(table)
    kernel = likeness(known, known).kernel(settings)
    posterior = fit_process(kernel, problem.ratings, settings.noise / weights, settings.effect * problem.effects)
    unseen = left_out_familiarity(posterior.factor, kernel, np.diag(kernel))
    return _Learned(describer, known, settings, posterior, held_out, unseen)


def _learn_by_inducing(
    rated: Sequence[RatedDialogue],
    table: FeatureTable,
    aspects: Sequence[Aspect],
    weights: Floats,
    rng: np.random.Generator,
    work: Work,
) -> _Learned:
    """All ratings count. Words, ranks and settings come from some of the dialogues, likeness is with others drawn from them."""
    groups = groups_of(rated)
    sample = np.sort(rng.choice(len(rated), MAX_DIALOGUES, replace=False))
    some = np.sort(rng.choice(sample, N_CHOOSING, replace=False))
    chosen = [rated[int(n)] for n in some]
    settings, _ = choose_settings(CrossValidation(chosen, table.rows(some), aspects, weights[some], rng))
    describer = fit_describer(table.rows(sample), aspects)
    described = describer(table)
    inducing = np.sort(rng.choice(sample, N_INDUCING, replace=False))
    process = InducingProcess(
        described,
        inducing,
        settings,
        np.array([row.rating for row in rated], dtype=np.float64),
        settings.noise / weights,
        raters_of(rated, groups),
        folds_of(groups, rng),
        work,
    )
    posterior = process.posterior()
    # Of so many ratings a dialogue's own says little, so that it need not be left out; inducing ones are better known than others.
    others = described.rows(np.setdiff1d(sample, inducing))
    cross = likeness(others, process.known).kernel(settings)
    own = own_kernel(others, settings)
    known = familiarity(posterior.deviations(cross, own), own)
    return _Learned(describer, process.known, settings, posterior, process.held_out(), known)


def save_gaussian(folder: Path | str, fitted: GaussianFit) -> None:
    """Writes the evaluator and its verdicts, as the published recipe does; another evaluator is not written over."""
    folder = Path(folder)
    refuse_other(folder, fitted.about["fingerprint"])
    folder.mkdir(parents=True, exist_ok=True)
    write_verdicts(folder, fitted.verdicts)
    fitted.evaluator.save(folder, fitted.about)


def pairs_of(
    rated: Sequence[RatedDialogue], experts: Sequence[DialoguePair], seed: int
) -> tuple[NumberedPairs, NumberedPairs, str]:
    """Pairs that accuracy is measured on, those that probabilities are fitted to, and who judged the first."""
    rng = np.random.default_rng(seed)
    ids = [row.id for row in rated]
    known = set(ids)
    drawn = np.sort(rng.choice(len(rated), min(len(rated), MAX_DIALOGUES), replace=False))
    some = [rated[int(n)] for n in drawn]
    wide = _places(numbered_gap_pairs(some, 0.0, max_pairs=MAX_PAIRS, rng=rng), drawn)
    inside = [pair for pair in experts if pair.first in known and pair.second in known]
    if inside:
        judged = to_numbers(inside, ids)
        return judged, (judged if len(judged) >= MIN_EXPERT_PAIRS else wide), "expert"
    far_apart = _places(numbered_gap_pairs(some, FAR_APART, max_pairs=MAX_PAIRS, rng=rng), drawn)
    if len(far_apart):
        return far_apart, wide, "held-out ratings 3 points or more apart"
    return wide, wide, "held-out ratings that differ"


def _places(pairs: NumberedPairs, drawn: Ints) -> NumberedPairs:
    """Pairs of the drawn dialogues as pairs of all."""
    return NumberedPairs(drawn[pairs.better], drawn[pairs.worse])


def fingerprint_of(
    rated: Sequence[RatedDialogue], seed: int, experts: Sequence[DialoguePair] = (), aspects: Sequence[Aspect] = ASPECTS
) -> str:
    """Equal for two trainings that must give the same evaluator."""
    chosen = "" if tuple(aspects) == ASPECTS else f" {' '.join(aspects)}"
    digest = hashlib.sha256(f"best {seed}{chosen}".encode())
    for row in rated:
        digest.update(repr((row.id, row.rating, row.user, same_text(row.dialogue))).encode())
    for pair in experts:
        digest.update(repr(pair).encode())
    return digest.hexdigest()


def verdicts_on(rated: Sequence[RatedDialogue], expected: Floats, error: float) -> tuple[RatingVerdict, ...]:
    """A rating is not believed where it is far from what similar dialogues predict, by the usual error; it still counts.

    Its value is that distance with a minus: the detector that finds injected noise best.
    """
    distance = np.array([row.rating for row in rated]) - expected
    return tuple(
        RatingVerdict(
            row.id, row.rating, float(row.rating - far), -abs(float(far)), abs(float(far)) <= _TOO_FAR * error
        )
        for row, far in zip(rated, distance, strict=True)
    )
