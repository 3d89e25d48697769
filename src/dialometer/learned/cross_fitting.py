"""A learned evaluator as a judge of the study whose ratings it learns from, by cross-fitting.

The recipe ``best`` is trained several times, each time without the ratings of a part of the items, and every item is scored by a
model that did not see its ratings (:mod:`dialometer.stats.judged.folds`). Scores are expected ratings on the criterion's scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from dialometer.design.load import load_study
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.learned.data.rated import HIGH, LOW, RatedDialogue, to_five_points
from dialometer.learned.data.rated_study import counted_ratings, rated_scale
from dialometer.learned.gaussian.features import describe
from dialometer.learned.gaussian.kernel import ASPECTS, Aspect
from dialometer.learned.gaussian.training import fit_gaussian
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.model.item import DialogueItem, ResponsesItem
from dialometer.model.study import Study
from dialometer.neural.work import QUIET, Work
from dialometer.stats.judged.folds import N_FOLDS, cross_fitted
from dialometer.stats.observations import Floats, Ints
from dialometer.storage.store import open_collected
from dialometer.storage.table import long_table

Key = tuple[str, str]
"""An item and the system judged."""


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Scores of all things of a study, and how far those of the rated ones go with their ratings."""

    criterion: str
    scores: dict[Key, float]
    n_folds: int
    n_ratings: int
    n_rated: int
    correlation: float
    """Of the scores of rated things with the means of their ratings, which the models did not see; nan where nothing varies."""


def cross_fit(
    folder: Path,
    *,
    criterion: str = "",
    database: str = "",
    n_folds: int = N_FOLDS,
    seed: int = 0,
    aspects: Sequence[Aspect] = ASPECTS,
    work: Work = QUIET,
) -> CrossFit:
    """Trains on the study's ratings in folds over its items, and scores every response or dialogue of the study."""
    study = load_study(folder)
    name, scale = rated_scale(study, criterion, where=str(folder))
    things = dict(_things(study))
    if not things or study.spec.items.rate == "turns":
        raise DialometerError(
            "an evaluator can be trained on ratings of whole dialogues or of responses only",
            where=str(folder),
            remedy="use a study whose items are of the kind 'dialogue' (rated as a whole) or 'responses'",
        )
    with open_collected(folder, database) as store:
        table = counted_ratings(long_table(store.records.judgment_batches(), study), name)
    keys = list(things)
    rated, thing_of = _rated(study, things, table, scale)
    if not rated:
        raise NotEnoughData(
            f"no human rater has given a judgment on '{name}' that counts",
            where=str(folder),
            remedy="collect judgments first",
        )
    known = describe(list(things.values()), work, has_meaning="meaning" in aspects)

    def predict(training: Ints) -> Floats:
        chosen = np.flatnonzero(np.isin(thing_of, training))
        own = known.rows(thing_of[chosen])
        fitted = fit_gaussian([rated[n] for n in chosen], seed=seed, aspects=aspects, table=own, work=work)
        return fitted.evaluator.expected_ratings(known)

    is_rated = np.isin(np.arange(len(keys)), thing_of)
    scores = cross_fitted(is_rated, predict, groups=[item for item, _ in keys], n_folds=n_folds, seed=seed)
    low, high = scale
    on_scale = np.clip(low + (high - low) * (scores - LOW) / (HIGH - LOW), low, high)
    ratings = np.array([row.rating for row in rated])
    return CrossFit(
        name,
        dict(zip(keys, map(float, on_scale), strict=True)),
        n_folds,
        len(rated),
        int(is_rated.sum()),
        _correlation(ratings, thing_of, scores),
    )


def _things(study: Study) -> Iterator[tuple[Key, Dialogue]]:
    """What can be judged, as dialogues: a response is the last turn of its context."""
    for item in study.rated_items:
        if isinstance(item, DialogueItem):
            yield (item.id, item.system), Dialogue(item.id, item.turns)
        elif isinstance(item, ResponsesItem):
            for system, text in item.responses.items():
                turns = (*item.context, Turn("Agent", text, "agent"))
                yield (item.id, system), Dialogue(f"{item.id}/{system}", turns)


def _rated(
    study: Study, things: dict[Key, Dialogue], table: pl.DataFrame, scale: tuple[float, float]
) -> tuple[list[RatedDialogue], Ints]:
    """One rated dialogue for each judgment, and the number of the thing it is about."""
    place = {key: number for number, key in enumerate(things)}
    rated, thing_of = [], []
    for rater, item, system, value in table.select("rater", "item", "system", "value").iter_rows():
        if (item, system) in place:
            dialogue = Dialogue(f"{rater}/{item}/{system}", things[item, system].turns, {"item": item})
            rated.append(RatedDialogue(dialogue, to_five_points(value, scale), rater, study.spec.name, system))
            thing_of.append(place[item, system])
    return rated, np.array(thing_of, dtype=np.int64)


def _correlation(ratings: Floats, thing_of: Ints, scores: Floats) -> float:
    things, code = np.unique(thing_of, return_inverse=True)
    means = np.bincount(code, weights=ratings) / np.bincount(code)
    varies = np.ptp(means) > 0 and np.ptp(scores[things]) > 0
    return float(np.corrcoef(means, scores[things])[0, 1]) if varies else float("nan")
