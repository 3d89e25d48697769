"""The learned evaluator in a few calls: trained on ratings, reported on, and asked about dialogues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from dialometer.learned.data.evaluator import Evaluator
from dialometer.learned.data.rated import RatedDialogue, RatingSet, clean, read_ratings
from dialometer.learned.evaluators import load_evaluator as load_folder
from dialometer.learned.experiments.evaluator_report import evaluator_report
from dialometer.learned.gaussian.kernel import ASPECTS, Aspect
from dialometer.learned.gaussian.training import GaussianFit, fit_gaussian, save_gaussian
from dialometer.model.dialogue import Dialogue
from dialometer.model.report import Report
from dialometer.public.extras import needs_extra
from dialometer.simulate.rated_conversations import UserHabits, simulate_conversations


def simulate_ratings(n_dialogues: int = 400, *, seed: int = 1, careless_share: float = 0.15) -> RatingSet:
    """Simulated conversations that their users rated, some carelessly, to try an evaluator on; their truth is known."""
    talks = simulate_conversations(n_dialogues, seed, UserHabits(careless_share=careless_share))
    return clean(
        RatedDialogue(
            talk, float(talk.metadata["rating"]), talk.metadata["user"], "simulation", talk.metadata["system"]
        )
        for talk in talks
    )


@needs_extra("learn")
def train_evaluator(
    ratings: RatingSet | str | Path,
    *,
    aspects: Sequence[Aspect] = ASPECTS,
    seed: int = 0,
    out: str | Path | None = None,
) -> GaussianFit:
    """Trains an evaluator by the best recipe on rated dialogues (a file, a folder, a study, or what ``read_ratings`` gave).

    The result holds the ``evaluator``, its cross-validated ``accuracy`` and a verdict on every rating (``verdicts``). With
    ``out`` it is also written to a folder. Without ``meaning`` among the aspects no sentence encoder is needed.
    """
    fitted = fit_gaussian(_read(ratings).rated, seed=seed, aspects=tuple(aspects))
    if out is not None:
        save_gaussian(out, fitted)
    return fitted


@needs_extra("learn")
def load_evaluator(folder: str | Path) -> Evaluator:
    """An evaluator from the folder that ``train_evaluator`` or ``dialometer learn train`` wrote."""
    return load_folder(folder)


@needs_extra("learn")
def score_dialogues(evaluator: Evaluator | GaussianFit, dialogues: Iterable[Dialogue]) -> pl.DataFrame:
    """A score for each dialogue and how uncertain it is; 0 is a typical training dialogue, differences are log odds.

    Without a turn of an agent there is nothing to score: the score is null.
    """
    chosen = list(dialogues)
    scores = (evaluator.evaluator if isinstance(evaluator, GaussianFit) else evaluator).score_agents(chosen)
    columns = {"id": [dialogue.id for dialogue in chosen], "score": scores.values, "deviation": scores.deviations}
    return pl.DataFrame(
        columns, schema={"id": pl.String, "score": pl.Float64, "deviation": pl.Float64}, nan_to_null=True
    )


@needs_extra("learn")
def report_evaluator(
    ratings: RatingSet | str | Path, *, aspects: Sequence[Aspect] = ASPECTS, seed: int = 0, name: str = ""
) -> Report:
    """How often an evaluator of these ratings is right on held-out users, beside simpler judges, and whom it doubts."""
    rating_set = _read(ratings)
    data = name or (Path(ratings).name if isinstance(ratings, str | Path) else "ratings")
    command = f"dialometer learn report {data} --aspects {','.join(aspects)} --seed {seed}"
    return evaluator_report(
        rating_set.rated, aspects=tuple(aspects), data=data, command=command, left_out=rating_set.n_left_out, seed=seed
    )


def _read(ratings: RatingSet | str | Path) -> RatingSet:
    return ratings if isinstance(ratings, RatingSet) else read_ratings(ratings)
