"""What every rating is worth, and a page of those that are worth least.

Values are Shapley values, from expert pairs or cross-fitted from the ratings themselves.

Without expert pairs, dialogues of one fold whose ratings lie far apart judge the ratings of the other folds, fold by fold, so
that every rating is valued by dialogues of other users than its own. What all raters have in common counts as truth then; see
:mod:`dialometer.learned.cmade.materials` for the risk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.learned.cmade.neighbours import DEFAULT_K, Features, Numbers, Report, nearest
from dialometer.learned.cmade.shapley import knn_shapley
from dialometer.learned.data.pairs import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    SUBSTITUTE_GAP,
    DialoguePair,
    numbered_gap_pairs,
    to_numbers,
)
from dialometer.learned.data.rated import HIGH, LOW, RatedDialogue
from dialometer.learned.data.splits import groups_of
from dialometer.neural.engines import LOCAL, Engine
from dialometer.report.numbers import write_number
from dialometer.report.theme import page_style

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Valued:
    """For every rated dialogue: the value of its rating, the mean rating of its neighbours, and who those are.

    ``values`` are nan for development dialogues of experts, which value others and not themselves.
    """

    values: Floats
    smoothed: Floats
    neighbours: Numbers
    is_expert: bool


def value_ratings(
    rated: Sequence[RatedDialogue],
    features: Features,
    pairs: Sequence[DialoguePair] = (),
    *,
    k: int = DEFAULT_K,
    n_folds: int = 5,
    seed: int = 0,
    engine: Engine = LOCAL,
    report: Report | None = None,
) -> Valued:
    """Values by ``pairs`` of experts where there are any, else cross-fitted."""
    ratings = np.array([row.rating for row in rated], dtype=np.float64)
    neighbours, _ = nearest(features, k)
    if pairs:
        values = _by_experts(rated, features, ratings, pairs, k, engine, report)
    else:
        groups = groups_of(rated)
        n_usable = max(2, min(n_folds, len(set(groups))))
        folds = fold_numbers(groups, n_usable, np.random.default_rng(seed))
        values = _cross_fitted(rated, features, ratings, folds, k, engine, report)
    return Valued(values, ratings[neighbours].mean(axis=1), neighbours, bool(pairs))


def fold_numbers(groups: Sequence[str], n_folds: int, rng: np.random.Generator) -> Numbers:
    """A fold for each dialogue; whole groups at a time, the largest first, each into the emptiest fold."""
    names, group, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    if len(names) < n_folds:
        raise NotEnoughData(
            f"{len(names)} groups of dialogues (users, or blocks of neighbours) are too few for {n_folds} folds",
            remedy="give expert pairs, or dialogues of more users",
        )
    filled = np.zeros(n_folds)
    fold = np.empty(len(names), dtype=np.int64)
    shuffled = rng.permutation(len(names))
    for name in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold[name] = int(np.argmin(filled))
        filled[fold[name]] += sizes[name]
    return np.asarray(fold[group], dtype=np.int64)


def _cross_fitted(
    rated: Sequence[RatedDialogue],
    features: Features,
    ratings: Floats,
    folds: Numbers,
    k: int,
    engine: Engine,
    report: Report | None,
) -> Floats:
    values, n_times = np.zeros(len(rated)), np.zeros(len(rated))
    n_folds = int(folds.max()) + 1
    for fold in range(n_folds):
        inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        pairs = numbered_gap_pairs(
            [rated[row] for row in inside.tolist()],
            SUBSTITUTE_GAP,
            max_pairs=MOST_PAIRS,
            rng=np.random.default_rng(fold),
        )
        if len(pairs) >= FEWEST_PAIRS:
            numbers = np.column_stack([pairs.better, pairs.worse])
            values[outside] += knn_shapley(
                features[outside], ratings[outside], features[inside], numbers, k, engine=engine
            )
            n_times[outside] += 1
        if report is not None:
            report(fold + 1, n_folds)
    if not n_times.all():
        raise NotEnoughData(
            f"too few pairs of ratings lie {SUBSTITUTE_GAP:g} points apart to value the others by",
            remedy="give expert pairs, or more dialogues",
        )
    return np.asarray(values / n_times)


def _by_experts(
    rated: Sequence[RatedDialogue],
    features: Features,
    ratings: Floats,
    pairs: Sequence[DialoguePair],
    k: int,
    engine: Engine,
    report: Report | None,
) -> Floats:
    numbered = to_numbers(pairs, [row.id for row in rated])
    named = np.unique(np.concatenate([numbered.better, numbered.worse]))
    others = np.setdiff1d(np.arange(len(rated)), named)
    place = np.searchsorted(named, np.column_stack([numbered.better, numbered.worse]))
    values = np.full(len(rated), np.nan)
    values[others] = knn_shapley(
        features[others], ratings[others], features[named], place, k, engine=engine, report=report
    )
    return values


# Ratings with the lowest value as one page to read through: each dialogue with its neighbours, light and dark, phone and desk.


N_NEIGHBOURS_SHOWN = 5


@dataclass(frozen=True)
class Noisy:
    """A rating that is doubted, and what its nearest dialogues were rated."""

    rated: RatedDialogue
    value: float
    smoothed: float
    neighbours: tuple[RatedDialogue, ...]
    n_by_rating: dict[float, int]
    """How many of all K neighbours have each rating."""

    @property
    def reason(self) -> str:
        """The doubt in words."""
        n = sum(self.n_by_rating.values())
        return (
            f"rated {self.rated.rating:g} of {HIGH:g}, while the {n} nearest dialogues are rated "
            f"{self.smoothed:.1f} on average; value {write_number(self.value, 4)}"
        )


def lowest(rated: Sequence[RatedDialogue], valued: Valued, n: int) -> list[Noisy]:
    """The ``n`` ratings that do most harm, worst first; ratings that help are never among them."""
    order = np.argsort(np.where(np.isnan(valued.values), np.inf, valued.values), kind="stable")
    noisy = []
    for row in order[:n].tolist():
        if not valued.values[row] < 0:
            break
        near = valued.neighbours[row].tolist()
        counted = Counter(rated[other].rating for other in near)
        noisy.append(
            Noisy(
                rated[row],
                float(valued.values[row]),
                float(valued.smoothed[row]),
                tuple(rated[other] for other in near[:N_NEIGHBOURS_SHOWN]),
                dict(sorted(counted.items())),
            )
        )
    return noisy


def noisy_rows(noisy: Sequence[Noisy]) -> list[dict[str, Any]]:
    """The list as plain data, for programs."""
    return [
        {
            "id": rating.rated.id,
            "rating": rating.rated.rating,
            "value": rating.value,
            "smoothed": rating.smoothed,
            "user": rating.rated.user,
            "bot": rating.rated.bot,
            "source": rating.rated.source,
            "neighbours": [{"id": near.id, "rating": near.rating} for near in rating.neighbours],
            "reason": rating.reason,
        }
        for rating in noisy
    ]


def noisy_page(noisy: Sequence[Noisy], valued: Valued, *, title: str, command: str) -> str:
    """The whole page, which needs nothing else."""
    known = valued.values[~np.isnan(valued.values)]
    return _template().render(
        style=Markup(page_style()),  # nosec B704  # our own stylesheet
        title=title,
        command=command,
        noisy=noisy,
        n_rated=len(valued.values),
        n_valued=len(known),
        n_negative=int((known < 0).sum()),
        k=valued.neighbours.shape[1],
        is_expert=valued.is_expert,
        low=LOW,
        high=HIGH,
        bars=_bars,
    )


def _bars(noisy: Noisy) -> list[dict[str, Any]]:
    """One bar for each whole rating: how many neighbours have it, and whether it is the rating in doubt."""
    points = sorted({*noisy.n_by_rating, noisy.rated.rating, *(float(p) for p in range(int(LOW), int(HIGH) + 1))})
    most = max(noisy.n_by_rating.values())
    return [
        asdict(
            _Bar(
                f"{point:g}",
                noisy.n_by_rating.get(point, 0),
                noisy.n_by_rating.get(point, 0) / most,
                point == noisy.rated.rating,
            )
        )
        for point in points
    ]


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    n: int
    share: float
    is_own: bool


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("dialometer.learned"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("noisy.html")
