"""What every trained evaluator can do, whatever it was trained by, and the settings file of its folder."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Dialogue
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float64]
Report = Callable[[int, int], None]
FORM = 1
FILE = "evaluator.json"


@dataclass(frozen=True, slots=True)
class DialogueScores:
    """One row per dialogue: the score, and how far the models differ about it (nan for a single model)."""

    values: Floats
    deviations: Floats
    members: Floats
    """Models × dialogues."""
    familiarity: Floats
    """Share of the variance of each dialogue's quality that the training dialogues explain; nan where it is not known."""

    @classmethod
    def joined(cls, parts: Sequence[DialogueScores]) -> DialogueScores:
        """The scores of several parts, one after the other."""
        if not parts:
            return cls(np.empty(0), np.empty(0), np.empty((1, 0)), np.empty(0))
        return cls(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.deviations for part in parts]),
            np.concatenate([part.members for part in parts], axis=1),
            np.concatenate([part.familiarity for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class DialogueComparison:
    """Probability that the first dialogue is better; ``low`` and ``high`` are the extremes over the models.

    A single model that knows its own uncertainty gives the ends of a 95 % interval instead.
    """

    probability: float
    low: float
    high: float
    n_models: int


class Evaluator(ABC):
    """Scores any dialogue, and says with which probability one of two is better."""

    @property
    def has_quick_form(self) -> bool:
        """Whether it can score in 8 bits where it is."""
        return False

    @abstractmethod
    def score(self, dialogues: Sequence[Dialogue], report: Report | None = None) -> DialogueScores:
        """Scores of dialogues; 0 is a typical training dialogue, a difference is the logarithm of odds."""

    def score_agents(self, dialogues: Sequence[Dialogue]) -> DialogueScores:
        """Scores of dialogues; nan where no agent says anything, since it is the agent that is evaluated."""
        has_agent = np.array([bool(dialogue.said_by("agent")) for dialogue in dialogues], dtype=np.bool_)
        scores = self.score([dialogue for dialogue, is_in in zip(dialogues, has_agent, strict=True) if is_in])

        def among_all(numbers: Floats) -> Floats:
            row = np.full((*numbers.shape[:-1], len(dialogues)), np.nan)
            row[..., has_agent] = numbers
            return row

        return DialogueScores(*map(among_all, (scores.values, scores.deviations, scores.members, scores.familiarity)))

    @abstractmethod
    def compare(self, first: Dialogue, second: Dialogue) -> DialogueComparison:
        """Which of two dialogues is better."""

    @abstractmethod
    def features(self, dialogues: Sequence[Dialogue], work: Work = QUIET) -> NDArray[np.float32]:
        """Where dialogues lie in a space in which neighbours are alike in quality."""

    def is_unlike_training(self, scores: DialogueScores) -> NDArray[np.bool_]:
        """Which scored dialogues are unlike those it was trained on; none where the evaluator cannot tell."""
        return np.zeros(len(scores.values), dtype=np.bool_)

    def in_eight_bits(self) -> Evaluator:
        """The same evaluator with 8-bit weights, where it has a quick form."""
        return self


def write_about(folder: Path, content: Mapping[str, Any], *, indent: int | None = None) -> None:
    """Writes the settings of an evaluator, after everything else: a folder without them is not whole."""
    partial = folder / f"{FILE}.part"
    partial.write_text(json.dumps({"form": FORM, **content}, ensure_ascii=False, indent=indent), encoding="utf-8")
    partial.replace(folder / FILE)


def read_about(folder: Path | str) -> dict[str, Any]:
    """The settings of a saved evaluator, without loading its weights."""
    path = Path(folder) / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        remedy = "name the folder that 'dialometer learn train' wrote"
        raise DialometerError("there is no evaluator here", where=str(folder), remedy=remedy) from error
    if not isinstance(content, dict) or content.get("form") != FORM:
        remedy = "train it again, or use the version of dialometer that wrote it"
        raise DialometerError("this evaluator was written in another format", where=str(path), remedy=remedy)
    return content


def refuse_other(folder: Path | str, fingerprint: str) -> None:
    """An error where another evaluator stands already; the same one may be written again."""
    if (Path(folder) / FILE).is_file() and read_about(folder)["about"].get("fingerprint") != fingerprint:
        remedy = "name another folder, or delete this one"
        raise DialometerError("another evaluator is here already", where=str(folder), remedy=remedy)
