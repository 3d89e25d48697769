"""An avatar as a system under test: it answers from a knowledge base, or asks for another question where it is not sure.

How an avatar is loaded is not this room's business: :func:`connect` is told (by ``dialometer.flow``) who does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from pydantic import Field, ValidationInfo, field_validator

from dialometer.agents import AGENTS
from dialometer.agents.interface import Agent, Reply
from dialometer.errors import AgentError, DialometerError
from dialometer.model.dialogue import Turn


class Spoken(Protocol):
    """What an avatar says, and how sure it is."""

    @property
    def text(self) -> str:
        """The words."""

    @property
    def answer(self) -> str:
        """Id of the recorded answer; empty where the avatar asks for another question."""

    @property
    def confidence(self) -> float | None:
        """Probability that the answer is right, where it is known."""


class Avatar(Protocol):
    """Anything that answers a conversation from recorded answers."""

    def reply(self, history: Sequence[Turn]) -> Spoken:
        """To the last turn of the user."""


Loader = Callable[[Path, float | None], Avatar]
_loaders: list[Loader] = []


def connect(loader: Loader) -> None:
    """Says how avatars are loaded from a folder, with the confidence from which they answer."""
    if _loaders != [loader]:
        _loaders[:] = [loader]
        _avatar.cache_clear()


@lru_cache(maxsize=8)
def _avatar(folder: str, threshold: float | None) -> Avatar:
    """Loaded once: the model behind it takes seconds and much memory."""
    if not _loaders:
        raise AgentError("no retrieval is connected", remedy="serve the study with 'dialometer serve'")
    return _loaders[0](Path(folder), threshold)


@AGENTS.register("retriever")
class RetrieverAgent(Agent):
    """A retriever that ``dialometer retrieval train --out FOLDER`` wrote."""

    folder: str = Field(
        min_length=1, description="Folder of the trained retriever; a relative one starts at the study's folder."
    )
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="Confidence from which it answers; the calibrated one if left out."
    )

    @field_validator("folder")
    @classmethod
    def _is_there(cls, folder: str, info: ValidationInfo) -> str:
        """The whole path; a relative one starts at the study's folder, which whoever reads the study names as context."""
        path = Path((info.context or {}).get("folder") or ".", folder).resolve()
        if not (path / "retriever.json").is_file():
            raise ValueError(f"'{folder}' holds no trained retriever; write one with 'dialometer retrieval train'")
        return str(path)

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        try:
            spoken = _avatar(self.folder, self.threshold).reply(history)
        except AgentError:
            raise
        except DialometerError as error:
            raise AgentError(f"the avatar cannot answer: {error}", remedy="train the retriever again") from error
        details = {"answer": spoken.answer or None, "confidence": spoken.confidence, "has_declined": not spoken.answer}
        return Reply(spoken.text, details)
