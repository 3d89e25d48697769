"""What every agent can do: answer a conversation, at once or word by word."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from dialometer.model.dialogue import Turn
from dialometer.model.part import Part


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent says, with whatever it tells about how it came to it (latency, tokens, confidence)."""

    text: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply as it comes. The last of a stream has no new text but the whole ``reply``, which counts."""

    text: str = ""
    reply: Reply | None = None


class Agent(Part):
    """An agent's options as a study file gives them. Raises :class:`~dialometer.errors.AgentError` when it cannot answer."""

    @abstractmethod
    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        """The agent's next turn. The same history and seed give the same reply where the agent is its own master."""

    def stream(self, history: Sequence[Turn], *, seed: int = 0) -> Iterator[Delta]:
        """The next turn piece by piece; an agent that cannot do so gives all of it as one piece.

        The details of the finished reply say how long it took (``latency_s``), how long its first words took
        (``first_token_s``), and the ``model`` and ``parameters`` where it has them.
        """
        began = time.monotonic()
        reply = self.reply(history, seed=seed)
        yield Delta(reply.text)
        yield Delta(reply=Reply(reply.text, timed(reply.details, time.monotonic() - began)))

    def in_conversation(self, conversation_id: str) -> Self:
        """The same agent, which tells the system behind it which conversation this is."""
        return self


def timed(details: Mapping[str, Any], latency_s: float) -> dict[str, Any]:
    """Details with the times in them; those that the agent gave itself stay."""
    measured = round(latency_s, 3)
    latency = details.get("latency_s", measured)
    return {**details, "latency_s": latency, "first_token_s": details.get("first_token_s", latency)}
