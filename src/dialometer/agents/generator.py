"""A trained response generator as a system under test.

The agent does not know how a bot is loaded: whoever builds it hands over the function that does (``dialometer.flow.agents``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator

from dialometer.agents import AGENTS
from dialometer.agents.access import check_loadable
from dialometer.agents.interface import Agent, Reply
from dialometer.errors import AgentError, DialometerError
from dialometer.folder_files import is_file
from dialometer.model.dialogue import Turn


class ConversingBot(Protocol):
    """A bot that continues a conversation."""

    def say(self, history: Sequence[Turn], options: Mapping[str, Any], seed: int) -> tuple[str, Mapping[str, Any]]:
        """The next turn and what is known about it."""


@AGENTS.register("generator")
class GeneratorAgent(Agent):
    """A bot that ``dialometer bots train`` wrote. It answers the end of the conversation that its model can see."""

    bot: str = Field(
        min_length=1, description="Folder or file of the trained bot; a relative one starts at the study's folder."
    )
    strategy: Literal["greedy", "beam", "sample"] = Field(default="beam", description="How a response is chosen.")
    n_beams: int = Field(default=5, ge=1, le=64, description="Beams, with strategy beam.")
    length_penalty: float = Field(default=1.0, ge=0, description="Power of the length that divides a beam's score.")
    diversity_penalty: float = Field(default=0.0, ge=0, description="Taken off a beam's later children.")
    top_p: float = Field(default=0.9, gt=0, le=1, description="Share of the probability that is drawn from.")
    top_k: int = Field(default=0, ge=0, description="Number of likeliest tokens that are drawn from; 0 for all.")
    temperature: float = Field(default=1.0, gt=0, description="Below 1 draws more of the likely, above 1 less.")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field(default="cpu", description="Where the model runs.")

    _load: Callable[[str, str], ConversingBot] | None = PrivateAttr(default=None)

    def connect(self, load: Callable[[str, str], ConversingBot]) -> None:
        """Hands over how a bot is loaded from its file onto a device."""
        self._load = load

    @field_validator("bot")
    @classmethod
    def _is_there(cls, bot: str, info: ValidationInfo) -> str:
        """The whole path; a relative one starts at the study's folder, which the validation context names."""
        path = Path((info.context or {}).get("folder") or ".", bot).resolve()
        check_loadable(path, bot, info.context or {})
        file = path if is_file(path) else path / "bot.safetensors"
        if not is_file(file):
            raise ValueError(f"'{bot}' holds no trained bot; write one with 'dialometer bots train'")
        return str(file)

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        if self._load is None:
            raise AgentError("no generators are connected", remedy="serve the study with 'dialometer serve'")
        options = self.model_dump(exclude={"bot", "device"})
        try:
            text, details = self._load(self.bot, self.device).say(history, options, seed)
        except AgentError:
            raise
        except DialometerError as error:
            raise AgentError(
                f"the bot cannot answer: {error}", remedy="check the bot with 'dialometer bots chat'"
            ) from error
        return Reply(text, details)
