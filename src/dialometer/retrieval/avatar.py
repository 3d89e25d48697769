"""An avatar that answers from its knowledge base, tells how sure it is, and rather asks for another question than guess."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Turn
from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import NO_ANSWER, FittedRetriever
from dialometer.retrieval.saving import load_retriever
from dialometer.retrieval.threshold import Calibration

CALIBRATION_FILE = "calibration.json"
DECLINING = (
    "I have no answer to that. Please ask me something else.",
    "I can't tell you about that. Ask me something else!",
)
N_SHOWN = 3


@dataclass(frozen=True, slots=True)
class AvatarReply:
    """What the avatar says. ``answer`` is the id of the recorded answer; empty where it declined."""

    text: str
    answer: str
    confidence: float | None
    """Probability that the best answer is right; None where nothing is known to tell it from."""
    best: tuple[tuple[str, float], ...]
    """The first answers with their scores, also where none of them was given."""

    @property
    def has_declined(self) -> bool:
        """Whether it asked for another question."""
        return not self.answer


class Avatar:
    """A retriever in conversation. Safe to be asked from several threads, one question at a time."""

    def __init__(
        self,
        fitted: FittedRetriever,
        calibration: Calibration | None = None,
        *,
        threshold: float | None = None,
        declining: Sequence[str] = DECLINING,
    ) -> None:
        self.fitted = fitted
        self.calibration = calibration
        self.threshold = threshold if threshold is not None else (calibration.threshold if calibration else 0.0)
        self.declining = tuple(declining)
        self._lock = Lock()

    def reply(self, history: Sequence[Turn], *, threshold: float | None = None) -> AvatarReply:
        """To the last turn of the user; the turns before it are its context. ``threshold`` replaces the avatar's own."""
        last = next((place for place in range(len(history) - 1, -1, -1) if history[place].role == "user"), None)
        if last is None:
            raise DialometerError("nothing was asked", remedy="ask first")
        query = Query(history[last].text, tuple(history[:last]))
        with self._lock:
            ranking = self.fitted.rank([query], N_SHOWN)
        answers = self.fitted.kb.answers
        best = tuple(
            (answers[number].text, float(score))
            for number, score in zip(ranking.answers[0].tolist(), ranking.scores[0].tolist(), strict=True)
            if number != NO_ANSWER
        )
        confidence = float(self.calibration.confidence(ranking)[0]) if self.calibration else None
        least = self.threshold if threshold is None else threshold
        if not best or (confidence is not None and confidence < least):
            return AvatarReply(self._decline(history), "", confidence, best)
        number = int(ranking.answers[0, 0])
        return AvatarReply(answers[number].text, answers[number].id, confidence, best)

    def _decline(self, history: Sequence[Turn]) -> str:
        """The ways of declining take turns, so that the avatar does not sound stuck."""
        n_before = sum(turn.text in self.declining for turn in history)
        return self.declining[n_before % len(self.declining)]


def load_avatar(folder: Path, *, threshold: float | None = None, work: Work = QUIET) -> Avatar:
    """A saved retriever with its calibration."""
    return Avatar(load_retriever(folder, work), read_calibration(folder), threshold=threshold)


def read_calibration(folder: Path) -> Calibration | None:
    """What was saved beside a retriever; None where it was never calibrated."""
    path = folder / CALIBRATION_FILE
    if not path.is_file():
        return None
    try:
        return Calibration.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        remedy = "train the retriever again, or remove the file: the avatar then answers everything"
        raise DialometerError("the calibration cannot be read", where=str(path), remedy=remedy) from error


def save_calibration(calibration: Calibration, folder: Path) -> None:
    """Beside the retriever it belongs to."""
    (folder / CALIBRATION_FILE).write_text(json.dumps(calibration.as_json(), indent=1) + "\n", encoding="utf-8")
