"""An avatar as a system under test: it answers from a knowledge base, or asks for another question where it is not sure.

The agent does not know how an avatar is loaded: whoever builds it hands over the function that does (``dialometer.flow.agents``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator

from dialometer.agents import AGENTS
from dialometer.agents.access import check_loadable
from dialometer.agents.interface import Agent, Reply
from dialometer.errors import AgentError, DialometerError
from dialometer.folder_files import is_file
from dialometer.model.dialogue import Turn


class AvatarReply(Protocol):
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

    def reply(self, history: Sequence[Turn]) -> AvatarReply:
        """To the last turn of the user."""


@AGENTS.register("retriever")
class RetrieverAgent(Agent):
    """A retriever that ``dialometer retrieval train --out FOLDER`` wrote."""

    folder: str = Field(
        min_length=1, description="Folder of the trained retriever; a relative one starts at the study's folder."
    )
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="Confidence from which it answers; the calibrated one by default."
    )

    _load: Callable[[str, float | None], Avatar] | None = PrivateAttr(default=None)

    def connect(self, load: Callable[[str, float | None], Avatar]) -> None:
        """Hands over how an avatar is loaded from its folder, with the confidence from which it answers."""
        self._load = load

    @field_validator("folder")
    @classmethod
    def _is_there(cls, folder: str, info: ValidationInfo) -> str:
        """The whole path; a relative one starts at the study's folder, which the validation context names."""
        path = Path((info.context or {}).get("folder") or ".", folder).resolve()
        check_loadable(path, folder, info.context or {})
        if not is_file(path / "retriever.json"):
            raise ValueError(f"'{folder}' holds no trained retriever; write one with 'dialometer retrieval train'")
        return str(path)

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        if self._load is None:
            raise AgentError("no retrieval is connected", remedy="serve the study with 'dialometer serve'")
        try:
            spoken = self._load(self.folder, self.threshold).reply(history)
        except AgentError:
            raise
        except DialometerError as error:
            raise AgentError(f"the avatar cannot answer: {error}", remedy="train the retriever again") from error
        details = {"answer": spoken.answer or None, "confidence": spoken.confidence, "has_declined": not spoken.answer}
        return Reply(spoken.text, details)
