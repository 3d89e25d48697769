"""A trained evaluator: scores for any dialogue, and the probability that one of two is better, with its uncertainty.

Several models, trained with different seeds, make one evaluator. Each is calibrated by itself, so that a difference of
scores is the logarithm of odds, and centred on its training dialogues: a score of 0 is a typical dialogue. Their mean is
calibrated once more, because an average is surer than its parts. How far the models differ is the uncertainty that comes
from training; it says nothing about errors that they share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.cmade.encoder import has_quick_form
from dialometer.learned.cmade.pairwise import fit_temperature, posterior
from dialometer.learned.cmade.ranknet import QuickRankNet
from dialometer.model.dialogue import Dialogue

if TYPE_CHECKING:
    from dialometer.learned.cmade.ranknet import RankNet


Floats = NDArray[np.float64]
Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Scores:
    """One row per dialogue: the score, and how far the models differ about it (nan for a single model)."""

    values: Floats
    deviations: Floats
    members: Floats
    """Models × dialogues."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Probability that the first dialogue is better; ``low`` and ``high`` are the extremes over the models.

    A single model that knows its own uncertainty gives the ends of a 95 % interval instead.
    """

    probability: float
    low: float
    high: float
    n_models: int


@dataclass(frozen=True)
class Member:
    """One model with the centre and the temperature of its outputs."""

    model: RankNet
    centre: float
    temperature: float


class Evaluator:
    """Models that speak with one voice."""

    def __init__(self, members: Sequence[Member], temperature: float = 1.0) -> None:
        self.members = tuple(members)
        self.temperature = temperature
        self._quick: tuple[QuickRankNet, ...] = ()

    @property
    def has_quick_form(self) -> bool:
        """Whether it can score in 8 bits where it is: BERT encoders on a processor, with ONNX Runtime."""
        return bool(self.members) and all(has_quick_form(member.model.encoder) for member in self.members)

    def in_eight_bits(self) -> Evaluator:
        """The same evaluator with 8-bit weights: about twice as quick, scores a little different."""
        quick = Evaluator(self.members, self.temperature)
        quick._quick = tuple(QuickRankNet(member.model) for member in self.members)
        return quick

    def score(self, dialogues: Sequence[Dialogue], report: Report | None = None) -> Scores:
        """Scores of dialogues; all models read them with one tokeniser."""
        tokens = self.members[0].model.encoder.tokens(dialogues)
        total = len(self.members) * len(tokens)
        rows = []
        for number, member in enumerate(self.members):

            def told(n_done: int, _: int, start: int = number * len(tokens)) -> None:
                if report is not None:
                    report(start + n_done, total)

            model = self._quick[number] if self._quick else member.model
            rows.append((model.scores(tokens, report=told) - member.centre) / member.temperature)
        members = np.array(rows).reshape(len(self.members), len(tokens)) / self.temperature
        alone = len(self.members) < 2
        deviations = np.full(len(tokens), np.nan) if alone else members.std(axis=0, ddof=1)
        return Scores(members.mean(axis=0), deviations, members)

    def compare(self, first: Dialogue, second: Dialogue) -> Comparison:
        """Which of two dialogues is better."""
        found = self.score([first, second])
        single = posterior(found.members[:, 0], found.members[:, 1])
        chance = float(posterior(found.values[0], found.values[1]))
        return Comparison(chance, float(single.min()), float(single.max()), len(self.members))


def calibrated(
    models: Sequence[RankNet],
    train_scores: Sequence[Floats],
    stop_scores: Sequence[Floats],
    pairs: NDArray[np.int64],
) -> Evaluator:
    """An evaluator of models, from their scores of the training dialogues and of the dialogues of ``pairs`` (better, worse)."""
    members = []
    for model, own, stopping in zip(models, train_scores, stop_scores, strict=True):
        temperature = fit_temperature(stopping[pairs[:, 0]] - stopping[pairs[:, 1]])
        members.append(Member(model, float(np.mean(own)), temperature))
    mean = np.mean([s / m.temperature for s, m in zip(stop_scores, members, strict=True)], axis=0)
    together = fit_temperature(mean[pairs[:, 0]] - mean[pairs[:, 1]]) if len(members) > 1 else 1.0
    return Evaluator(members, together)
