"""The three stages of CMADE (Liang et al. 2020, section 5), each on a model that it trains further.

Where the paper leaves something open, or the code goes another way:

* Pairs are not sampled one by one; each step takes all pairs of a random group (:mod:`~dialometer.learned.cmade.training`).
* The epoch that is kept is the best on pairs of dialogues that serve nothing else; the paper does not say how it stopped.
* Iterating stages 2 and 3 (the paper does it once): ratings are smoothed over those that were kept before, and all ratings
  are valued anew with the better features, so that one may come back.
* Features are compared as they are. ``is_standardised`` gives every dimension the same weight; dead ones stay harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialometer.errors import NotEnoughData
from dialometer.learned.cmade.materials import Materials
from dialometer.learned.cmade.neighbours import DEFAULT_K, knn_smooth, standardise
from dialometer.learned.cmade.ranknet import RankNet
from dialometer.learned.cmade.shapley import knn_shapley
from dialometer.learned.cmade.training import AllPairs, CmadeTrainingOptions, Lesson, Pairs, StopPairs, train_ranknet
from dialometer.model.dialogue import Dialogue, Role
from dialometer.model.part import Part
from dialometer.neural.device import training_precision
from dialometer.neural.processes import ALONE, Processes
from dialometer.neural.training import History
from dialometer.neural.work import Report, silent

# Stage 1: fake dialogues whose flow is broken at one place (Liang et al. 2020, section 5.1).
#
# Each dialogue gives two fakes: one with a user utterance replaced by a random one of the training corpus, one with a system
# utterance replaced. The paper does not say whether the replacement may be the same text again or come from the same dialogue;
# here it may be neither, since such a fake would be no worse than the real dialogue.


REPLACED: tuple[Role, ...] = ("user", "agent")
_N_TRIES = 200


def fake_dialogues(dialogues: Sequence[Dialogue], rng: np.random.Generator) -> list[Dialogue]:
    """Two fakes of each dialogue in turn: a user utterance replaced, then a system utterance."""
    texts = {
        role: [
            (number, turn.text)
            for number, dialogue in enumerate(dialogues)
            for turn in dialogue.turns
            if turn.role == role
        ]
        for role in REPLACED
    }
    return [
        _with_replaced(dialogue, number, role, texts[role], rng)
        for number, dialogue in enumerate(dialogues)
        for role in REPLACED
    ]


def real_fake_pairs(n_dialogues: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Numbers of the real and the fake dialogue of each pair, where the fakes follow all the real ones."""
    real = np.repeat(np.arange(n_dialogues), len(REPLACED))
    return np.column_stack([real, n_dialogues + np.arange(len(real))])


def _with_replaced(
    dialogue: Dialogue, number: int, role: Role, utterances: list[tuple[int, str]], rng: np.random.Generator
) -> Dialogue:
    places = [place for place, turn in enumerate(dialogue.turns) if turn.role == role]
    if not places:
        raise NotEnoughData(f"dialogue '{dialogue.id}' has no turn by the {role}", remedy="leave such dialogues out")
    place = int(rng.choice(places))
    old = dialogue.turns[place]
    for _ in range(_N_TRIES):
        source, text = utterances[int(rng.integers(len(utterances)))]
        if source != number and text != old.text:
            turns = (*dialogue.turns[:place], replace(old, text=text), *dialogue.turns[place + 1 :])
            return replace(dialogue, id=f"{dialogue.id}~{role}", turns=turns)
    raise NotEnoughData(
        f"no other text by the {role} was found to break dialogue '{dialogue.id}' with", remedy="give more dialogues"
    )


Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Drop = Literal["negative", "nothing", "random", "lowest"]


class StageOptions(Part):
    """Which stages, and how. The defaults are the paper's where it names a value."""

    stages: tuple[Literal[1, 2, 3], ...] = (1, 2, 3)
    k: int = Field(default=DEFAULT_K, ge=1)
    n_rounds: int = Field(default=1, ge=1)
    """How often stages 2 and 3 are done in turn."""
    drop: Drop = "negative"
    """Ratings that stage 3 leaves out: of negative value, none, as many at random, or the ``drop_share`` of lowest value."""
    drop_share: float = Field(default=0.1, ge=0, lt=1)
    is_standardised: bool = False
    n_epochs: tuple[int, int, int] = (1, 3, 3)
    training: CmadeTrainingOptions = CmadeTrainingOptions()


@dataclass(frozen=True)
class StageRun:
    """Where and how a training runs: processes, who hears of it, and the folder of its checkpoints."""

    processes: Processes = ALONE
    report: Report = silent
    folder: Path | None = None
    fingerprint: str = ""

    def run(
        self, name: str, model: RankNet, lesson: Lesson, options: CmadeTrainingOptions, stop: StopPairs | None
    ) -> History:
        """Trains with a checkpoint of that name."""
        return train_ranknet(
            model,
            lesson,
            options,
            stop=stop,
            checkpoint=self.folder / f"{name}.checkpoint" if self.folder else None,
            fingerprint=f"{self.fingerprint} {name} {options.model_dump_json()}",
            processes=self.processes,
            report=self.report,
            what=name.replace("-", " ").capitalize(),
        )

    def progress_of(self, what: str) -> Callable[[int, int], None]:
        """Progress of one piece of work."""
        return lambda n_done, n_total: self.report(what, n_done, n_total)


PLAIN = StageRun()


@dataclass
class Outcome:
    """What the stages found out about the training ratings, and how the trainings went."""

    histories: dict[str, History] = field(default_factory=dict)
    smoothed: Floats | None = None
    values: Floats | None = None
    is_kept: Bools | None = None


def run_stages(model: RankNet, materials: Materials, options: StageOptions, setting: StageRun = PLAIN) -> Outcome:
    """The chosen stages in order; without any, the model is trained on all pairs of raw ratings (the paper's third row)."""
    check_neighbours(len(materials.ratings), options)
    outcome = Outcome()
    if not options.stages:
        outcome.histories["pairwise"] = on_ratings(model, materials, options, setting, "pairwise", None)
    if 1 in options.stages:
        outcome.histories["stage-1"] = stage_1(model, materials, options, setting)
    for number in range(options.n_rounds):
        suffix = f"-round-{number + 1}" if options.n_rounds > 1 else ""
        if 2 in options.stages:
            stage_2(model, materials, options, setting, outcome, f"stage-2{suffix}")
        if 3 in options.stages:
            stage_3(model, materials, options, setting, outcome, f"stage-3{suffix}")
    return outcome


def check_neighbours(n_rated: int, options: StageOptions) -> None:
    """Refuses too few dialogues for K neighbours, before any training starts."""
    if n_rated <= options.k and {2, 3} & set(options.stages):
        raise NotEnoughData(
            f"{n_rated} rated dialogues to train on are too few for {options.k} neighbours",
            remedy=f"give more dialogues, or a K below {n_rated}",
        )


def stage_1(model: RankNet, materials: Materials, options: StageOptions, setting: StageRun) -> History:
    """Real dialogues against their fakes; the fakes stay the same in all epochs, as in the paper."""
    rng = np.random.default_rng([options.training.seed, 1])
    parts = []
    for dialogues, tokens in (
        (materials.dialogues, materials.tokens),
        (materials.stopping_dialogues, materials.stopping.tokens),
    ):
        fakes = model.encoder.tokens(fake_dialogues(dialogues, rng))
        parts.append(([*tokens, *fakes], real_fake_pairs(len(dialogues))))
    (tokens, pairs), (stop_tokens, stop_pairs) = parts
    training = _training(options, 1)
    lesson = Pairs(tokens, pairs, training.group_size, together=len(REPLACED))
    return setting.run("stage-1", model, lesson, training, StopPairs(stop_tokens, stop_pairs))


def stage_2(
    model: RankNet, materials: Materials, options: StageOptions, setting: StageRun, outcome: Outcome, name: str
) -> None:
    """All pairs of ratings smoothed over the nearest neighbours; equal ones make no pair."""
    kept = outcome.is_kept if outcome.is_kept is not None else np.ones(len(materials.ratings), dtype=np.bool_)
    rows = np.flatnonzero(kept)
    features = _features(model, materials, options, setting)[0][rows]
    smoothed = setting.processes.agree(
        knn_smooth(features, materials.ratings[rows], options.k, report=setting.progress_of("Smoothing"))
    )
    outcome.smoothed = np.full(len(kept), np.nan)
    outcome.smoothed[rows] = smoothed
    training = _training(options, 2)
    lesson = AllPairs([materials.tokens[row] for row in rows], smoothed, training.group_size)
    outcome.histories[name] = setting.run(name, model, lesson, training, materials.stopping)


def stage_3(
    model: RankNet, materials: Materials, options: StageOptions, setting: StageRun, outcome: Outcome, name: str
) -> None:
    """Ratings valued by the development pairs, some left out, and all pairs of the raw ratings that are left."""
    features, development = _features(model, materials, options, setting)
    pairs = [(int(better), int(worse)) for better, worse in materials.development.pairs]
    outcome.values = setting.processes.agree(
        knn_shapley(
            features, materials.ratings, development, pairs, options.k, report=setting.progress_of("Valuing ratings")
        )
    )
    outcome.is_kept = kept_ratings(outcome.values, options)
    outcome.histories[name] = on_ratings(model, materials, options, setting, name, outcome.is_kept)


def on_ratings(
    model: RankNet, materials: Materials, options: StageOptions, setting: StageRun, name: str, is_kept: Bools | None
) -> History:
    """All pairs of raw ratings, of those that are kept."""
    rows = np.arange(len(materials.ratings)) if is_kept is None else np.flatnonzero(is_kept)
    if len(set(materials.ratings[rows])) < 2:
        raise NotEnoughData(
            f"{len(rows)} ratings are left after dropping, and they make no pair",
            remedy="drop fewer, or give more pairs",
        )
    training = _training(options, 3)
    lesson = AllPairs([materials.tokens[row] for row in rows], materials.ratings[rows], training.group_size)
    return setting.run(name, model, lesson, training, materials.stopping)


def kept_ratings(values: Floats, options: StageOptions) -> Bools:
    """Which ratings stage 3 trains on."""
    n = len(values)
    if options.drop == "nothing":
        return np.ones(n, dtype=np.bool_)
    if options.drop == "lowest":
        kept = np.ones(n, dtype=np.bool_)
        kept[np.argsort(values, kind="stable")[: int(options.drop_share * n)]] = False
        return kept
    is_kept = values >= 0
    if options.drop == "random":
        return np.asarray(np.random.default_rng([options.training.seed, 3]).permutation(is_kept))
    return np.asarray(is_kept)


def _features(
    model: RankNet, materials: Materials, options: StageOptions, setting: StageRun
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Of the training and the development dialogues, by the model as it is now."""
    precision = training_precision(model.encoder.device.type, options.training.precision)
    features = model.encoder.features(materials.tokens, precision=precision, report=setting.progress_of("Encoding"))
    development = model.encoder.features(materials.development.tokens, precision=precision)
    if options.is_standardised:
        return standardise(features), standardise(development, features)
    return features, development


def _training(options: StageOptions, stage: int) -> CmadeTrainingOptions:
    return options.training.model_copy(update={"n_epochs": options.n_epochs[stage - 1]})
