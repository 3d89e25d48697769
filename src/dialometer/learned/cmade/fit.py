"""From ratings to an evaluator: one model per seed through the stages, calibrated together, with a verdict on each rating."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialometer.errors import DialometerError
from dialometer.learned.cmade.encoder import Pooling, load_encoder
from dialometer.learned.cmade.evaluator import RankNetEvaluator, calibrated, load_ranknets, save_evaluator
from dialometer.learned.cmade.materials import Materials, PairSet, TrainingData
from dialometer.learned.cmade.ranknet import RankNet
from dialometer.learned.cmade.stages import Outcome, StageOptions, StageRun, check_neighbours, run_stages
from dialometer.learned.data.calibration import CalibrationQuality, reliability
from dialometer.learned.data.evaluator import FILE, read_about
from dialometer.learned.data.measures import accuracy as accuracy_of
from dialometer.learned.data.measures import accuracy_estimate, ends, kappa_with_error
from dialometer.learned.data.pairs import NumberedPairs
from dialometer.learned.data.rated import RatingVerdict, read_verdicts, write_verdicts
from dialometer.model.part import Part
from dialometer.neural.pretrained import PACKAGED
from dialometer.neural.processes import join
from dialometer.neural.training import History
from dialometer.neural.work import Report, silent

Floats = NDArray[np.float64]
CHECKPOINTS = "checkpoints"


class FitOptions(Part):
    """What is trained: the encoder, the stages, and one model for each seed."""

    encoder: str = PACKAGED
    window: int = Field(default=0, ge=0)
    """Tokens that are read at once; 0 takes all the encoder can."""
    pooling: Pooling = "mean"
    stages: StageOptions = StageOptions()
    n_models: int = Field(default=1, ge=1)


@dataclass(frozen=True)
class CmadeFit:
    """A trained evaluator and what its training found out."""

    evaluator: RankNetEvaluator
    verdicts: tuple[RatingVerdict, ...]
    accuracy: float
    """On the pairs that stopped the training: a little flattering, since the best epoch was chosen by them."""
    reliability: CalibrationQuality
    """Of the probabilities of the pairs that the temperature was fitted to: flattering for the same reason."""
    about: dict[str, Any]


def fit_evaluator(
    data: TrainingData,
    options: FitOptions,
    folder: Path | None = None,
    *,
    device: str = "auto",
    report: Report = silent,
) -> CmadeFit:
    """Trains, calibrates and, with a ``folder``, saves. Called again after an interruption, it goes on where it was.

    Everything that could be wrong with the data is refused before the first step.
    """
    check_neighbours(len(data.train), options.stages)
    processes, place = join(device)
    fingerprint = f"{data.fingerprint()} {options.model_dump_json()}"
    if folder is not None and (folder / FILE).is_file():
        return _found(folder, fingerprint, place)
    models: list[RankNet] = []
    outcomes: list[Outcome] = []
    materials: Materials | None = None
    for number in range(options.n_models):
        seed = options.stages.training.seed + number
        encoder = load_encoder(options.encoder, device=place, window=options.window, pooling=options.pooling)
        materials = materials or Materials.of(data, encoder)
        model = RankNet(encoder, seed=seed)
        stages = options.stages.model_copy(
            update={"training": options.stages.training.model_copy(update={"seed": seed})}
        )
        name = f"model {number + 1} of {options.n_models}: " if options.n_models > 1 else ""
        setting = StageRun(
            processes,
            _named(report if processes.is_first else silent, name),
            folder / CHECKPOINTS / f"model-{number + 1}" if folder else None,
            fingerprint,
        )
        outcomes.append(run_stages(model, materials, stages, setting))
        models.append(model)
    assert materials is not None
    fitted = _fitted(models, outcomes, materials, data, options, fingerprint)
    if folder is not None and processes.is_first:
        _save(folder, fitted)
    processes.wait()
    return fitted


def _fitted(
    models: Sequence[RankNet],
    outcomes: Sequence[Outcome],
    materials: Materials,
    data: TrainingData,
    options: FitOptions,
    fingerprint: str,
) -> CmadeFit:
    train_scores = [model.scores(materials.tokens) for model in models]
    stop_scores = [model.scores(materials.stopping.tokens) for model in models]
    pairs = data.calibration_pairs
    evaluator = calibrated(models, train_scores, stop_scores, pairs)
    rows = [
        (scores - member.centre) / member.temperature
        for scores, member in zip(stop_scores, evaluator.members, strict=True)
    ]
    together = np.mean(rows, axis=0) / evaluator.temperature
    measured = reliability(together[pairs[:, 0]] - together[pairs[:, 1]], 1.0)
    stopping = NumberedPairs(materials.stopping.pairs[:, 0], materials.stopping.pairs[:, 1])
    accuracy = accuracy_estimate(together, stopping, groups=data.stopping.groups)
    verdicts = _verdicts(data, outcomes)
    tested = None if data.test is None else _tested(evaluator, data.test)
    about = {
        "fingerprint": fingerprint,
        "n_ratings": len(data.train),
        "n_not_believed": sum(verdict.is_believed is False for verdict in verdicts) if _is_valued(outcomes) else None,
        "pairs": "expert" if data.is_expert else f"held-out ratings {data.gap:g} points or more apart",
        "n_development_pairs": len(data.development.pairs),
        "n_stopping_pairs": len(data.stopping.pairs),
        "stopping_accuracy": accuracy.value,
        "interval": ends(accuracy),
        "test": tested,
        "reliability": asdict(measured),
        "options": json.loads(options.model_dump_json()),
        "histories": [{name: _record(history) for name, history in outcome.histories.items()} for outcome in outcomes],
    }
    return CmadeFit(evaluator, verdicts, accuracy.value, measured, about)


def _tested(evaluator: RankNetEvaluator, test: PairSet) -> dict[str, float | int]:
    """Accuracy and kappa on expert pairs that nothing was chosen by."""
    scores = evaluator.score(test.dialogues).values
    pairs = NumberedPairs(test.pairs[:, 0], test.pairs[:, 1])
    kappa, error = kappa_with_error(scores, pairs)
    return {
        "n_pairs": len(pairs),
        "accuracy": accuracy_of(scores, pairs),
        "kappa": kappa,
        "kappa_standard_error": error,
    }


def _verdicts(data: TrainingData, outcomes: Sequence[Outcome]) -> tuple[RatingVerdict, ...]:
    """Means over the models; a rating is believed if most models keep it."""
    values = _mean([outcome.values for outcome in outcomes])
    smoothed = _mean([outcome.smoothed for outcome in outcomes])
    kept = _mean([None if outcome.is_kept is None else outcome.is_kept.astype(np.float64) for outcome in outcomes])
    verdicts = []
    for number, outcome in enumerate(data.train):
        verdicts.append(
            RatingVerdict(
                outcome.id,
                outcome.rating,
                None if smoothed is None or np.isnan(smoothed[number]) else float(smoothed[number]),
                None if values is None else float(values[number]),
                None if kept is None else bool(kept[number] >= 0.5),
            )
        )
    return tuple(verdicts)


def _record(history: History) -> dict[str, Any]:
    record = dict(vars(history))
    return {"losses": record.pop("losses"), "accuracies": record.pop("scores"), **record}


def _is_valued(outcomes: Sequence[Outcome]) -> bool:
    return outcomes[0].values is not None


def _mean(rows: Sequence[Floats | None]) -> Floats | None:
    given = [row for row in rows if row is not None]
    return np.asarray(np.mean(given, axis=0)) if given else None


def _found(folder: Path, fingerprint: str, device: str) -> CmadeFit:
    """The evaluator in the folder, if it is the one asked for; another one is not overwritten."""
    about = read_about(folder)["about"]
    if about.get("fingerprint") != fingerprint:
        raise DialometerError(
            "another evaluator is here already", where=str(folder), remedy="name another folder, or delete this one"
        )
    return CmadeFit(
        load_ranknets(folder, device),
        tuple(read_verdicts(folder)),
        about["stopping_accuracy"],
        CalibrationQuality(**about["reliability"]),
        about,
    )


def _save(folder: Path, fitted: CmadeFit) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_verdicts(folder, fitted.verdicts)
    save_evaluator(folder, fitted.evaluator, fitted.about)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def _named(report: Report, name: str) -> Report:
    return lambda what, n_done, n_total: report(name + what, n_done, n_total)
