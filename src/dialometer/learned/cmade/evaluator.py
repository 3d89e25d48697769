"""A trained evaluator: scores for any dialogue, and the probability that one of two is better, with its uncertainty.

Several models, trained with different seeds, make one evaluator. Each is calibrated by itself, so that a difference of
scores is the logarithm of odds, and centred on its training dialogues: a score of 0 is a typical dialogue. Their mean is
calibrated once more, because an average is surer than its parts. How far the models differ is the uncertainty that comes
from training; it says nothing about errors that they share.

The folder of a saved one holds weights as safetensors, and the encoder's settings and tokenizer: all that is needed to score
dialogues. Nothing is fetched, and nothing in it is executed when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.learned.cmade.encoder import DialogueEncoder, has_quick_form, quick_features
from dialometer.learned.cmade.ranknet import QuickRankNet, RankNet
from dialometer.learned.data.calibration import fit_temperature, posterior
from dialometer.learned.data.evaluator import (
    DialogueComparison,
    DialogueScores,
    Evaluator,
    Report,
    read_about,
    write_about,
)
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.neural.device import choose_device
from dialometer.neural.pretrained import check_sizes, first_line
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float64]
KIND = "ranknet"
_TRIED = Dialogue("tried", (Turn("User", "hello", "user"), Turn("Agent", "hello", "agent")))


@dataclass(frozen=True)
class Member:
    """One model with the centre and the temperature of its outputs."""

    model: RankNet
    centre: float
    temperature: float


class RankNetEvaluator(Evaluator):
    """The mean of several models."""

    def __init__(self, members: Sequence[Member], temperature: float = 1.0) -> None:
        self.members = tuple(members)
        self.temperature = temperature
        self._quick: tuple[QuickRankNet, ...] = ()

    @property
    def has_quick_form(self) -> bool:
        """Whether it can score in 8 bits where it is: BERT encoders on a processor, with ONNX Runtime."""
        return bool(self.members) and all(has_quick_form(member.model.encoder) for member in self.members)

    def in_eight_bits(self) -> RankNetEvaluator:
        """The same evaluator with 8-bit weights: about twice as quick, scores a little different."""
        quick = RankNetEvaluator(self.members, self.temperature)
        quick._quick = tuple(QuickRankNet(member.model) for member in self.members)
        return quick

    def score(self, dialogues: Sequence[Dialogue], report: Report | None = None) -> DialogueScores:
        """Scores of dialogues; all models read them with one tokeniser."""
        tokens = self.members[0].model.encoder.tokens(dialogues)
        total = len(self.members) * len(tokens)
        rows = []
        for number, member in enumerate(self.members):

            def report_part(n_done: int, _: int, start: int = number * len(tokens)) -> None:
                if report is not None:
                    report(start + n_done, total)

            model = self._quick[number] if self._quick else member.model
            rows.append((model.scores(tokens, report=report_part) - member.centre) / member.temperature)
        members = np.array(rows).reshape(len(self.members), len(tokens)) / self.temperature
        alone = len(self.members) < 2
        deviations = np.full(len(tokens), np.nan) if alone else members.std(axis=0, ddof=1)
        return DialogueScores(members.mean(axis=0), deviations, members, np.full(members.shape[1], np.nan))

    def compare(self, first: Dialogue, second: Dialogue) -> DialogueComparison:
        """Which of two dialogues is better."""
        scores = self.score([first, second])
        single = posterior(scores.members[:, 0], scores.members[:, 1])
        chance = float(posterior(scores.values[0], scores.values[1]))
        return DialogueComparison(chance, float(single.min()), float(single.max()), len(self.members))

    def features(self, dialogues: Sequence[Dialogue], work: Work = QUIET) -> NDArray[np.float32]:
        """Those of the first model's encoder."""
        encoder = self.members[0].model.encoder
        tokens = encoder.tokens(dialogues)
        return quick_features(encoder, tokens, report=lambda n, total: work.report("Encoding", n, total))


def calibrated(
    models: Sequence[RankNet],
    train_scores: Sequence[Floats],
    stop_scores: Sequence[Floats],
    pairs: NDArray[np.int64],
) -> RankNetEvaluator:
    """An evaluator of models, from their scores of the training dialogues and of the dialogues of ``pairs`` (better, worse)."""
    members = []
    for model, own, stopping in zip(models, train_scores, stop_scores, strict=True):
        temperature = fit_temperature(stopping[pairs[:, 0]] - stopping[pairs[:, 1]])
        members.append(Member(model, float(np.mean(own)), temperature))
    mean = np.mean([s / m.temperature for s, m in zip(stop_scores, members, strict=True)], axis=0)
    together = fit_temperature(mean[pairs[:, 0]] - mean[pairs[:, 1]]) if len(members) > 1 else 1.0
    return RankNetEvaluator(members, together)


def save_evaluator(folder: Path | str, evaluator: RankNetEvaluator, about: Mapping[str, Any]) -> None:
    """Writes an evaluator; ``about`` says what it was trained on and how. The settings come last: with them it is whole."""
    from safetensors.torch import save_file  # noqa: PLC0415 - an extra

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    first = evaluator.members[0].model
    first.encoder.network.config.save_pretrained(folder / "encoder")
    first.encoder.tokeniser.tokenizer.save_pretrained(folder / "encoder")
    members = []
    for number, member in enumerate(evaluator.members):
        name = f"member-{number + 1}.safetensors"
        weights = {key: value.detach().cpu().contiguous() for key, value in member.model.state_dict().items()}
        save_file(weights, folder / name)
        members.append({"weights": name, "centre": member.centre, "temperature": member.temperature})
    content = {
        "kind": KIND,
        "window": first.encoder.window,
        "pooling": first.encoder.pooling,
        "levels": first.levels,
        "temperature": evaluator.temperature,
        "members": members,
        "about": dict(about),
    }
    write_about(folder, content, indent=1)


def load_ranknets(folder: Path | str, device: str = "auto") -> RankNetEvaluator:
    """An evaluator that :func:`save_evaluator` wrote."""
    from safetensors.torch import load_file  # noqa: PLC0415 - an extra
    from transformers import AutoConfig, AutoModel, AutoTokenizer  # noqa: PLC0415 - very heavy

    folder, place, content = Path(folder), choose_device(device), read_about(folder)
    make: Any = AutoModel.from_config
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder / "encoder")  # nosec B615  # a local folder
        members = []
        for member in content["members"]:
            config = AutoConfig.from_pretrained(folder / "encoder")  # nosec B615  # a local folder
            check_sizes(config, [folder / member["weights"]])
            network = make(config)
            if max(tokenizer.get_vocab().values()) >= network.get_input_embeddings().num_embeddings:
                raise ValueError("its tokenizer has words that its encoder does not know")
            encoder = DialogueEncoder(tokenizer, network, window=content["window"], pooling=content["pooling"])
            model = RankNet(encoder, levels=content["levels"])
            model.load_state_dict(load_file(folder / member["weights"]))
            members.append(Member(model.to(place).eval(), _finite(member["centre"]), _finite(member["temperature"])))
        evaluator = RankNetEvaluator(members, _finite(content["temperature"]))
        evaluator.score([_TRIED])  # settings that contradict each other show here, and not in the middle of a study
        return evaluator
    except Exception as error:  # a damaged folder makes the libraries raise anything, bare Exception included
        remedy = "copy the folder again, or train the evaluator again"
        raise DialometerError(
            f"the evaluator is damaged: {first_line(error)}", where=str(folder), remedy=remedy
        ) from error


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not a number")
    return number
