"""What every agent can do: answer a conversation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialometer.model.dialogue import Turn
from dialometer.model.part import Part


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent says, with whatever it tells about how it came to it (latency, tokens, confidence)."""

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Agent(Part):
    """An agent's options as a study file gives them. Raises :class:`~dialometer.errors.AgentError` when it cannot answer."""

    @abstractmethod
    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        """The agent's next turn. The same history and seed give the same reply where the agent is its own master."""
