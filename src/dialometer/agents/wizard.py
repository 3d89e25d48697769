"""A person in place of an agent, at the wizard console of a running server (Wizard of Oz).

Kelley, An iterative design methodology for user-friendly natural language office information applications,
ACM Transactions on Information Systems 2 (1984).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError, field_validator

from dialometer.agents import AGENTS
from dialometer.agents.interface import Agent, Reply
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn
from dialometer.model.part import Part


class SuggestingAgent(Part):
    """An agent whose reply is shown to the wizard as a suggestion, to send as it is, to change or to ignore."""

    type: str = Field(description="Registered agent, such as scripted, http or openai.")
    options: dict[str, Any] = Field(default_factory=dict, description="Options of that agent, such as url or model.")

    @field_validator("type")
    @classmethod
    def _is_no_wizard(cls, name: str) -> str:
        if name == "wizard":
            raise ValueError("a wizard cannot suggest to a wizard")
        return name


@AGENTS.register("wizard")
class Wizard(Agent):
    """Answered by hand. ``canned`` replies are one click away; ``suggest`` names agents that propose one each."""

    instructions: str = Field(default="", description="How the wizard talks as this system; shown at the console.")
    canned: list[str] = Field(default_factory=list, description="Responses that are one click away.")
    suggest: list[SuggestingAgent] = Field(
        default_factory=list, max_length=4, description="Agents that propose responses."
    )

    _build: Callable[[SuggestingAgent], Agent] | None = PrivateAttr(default=None)

    def connect(self, build: Callable[[SuggestingAgent], Agent]) -> None:
        """Hands over how suggesting agents are built, with the models that they speak through."""
        self._build = build

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        raise AgentError(
            "this system is answered by a person, and nobody sits at the console",
            remedy="serve the study and open the wizard console",
        )

    def proposals(self, history: Sequence[Turn], *, seed: int = 0) -> Iterator[tuple[str, Reply]]:
        """What the suggesting agents would say, each with the name of its model; one that fails suggests nothing."""
        build = self._build or (lambda suggesting: AGENTS.get(suggesting.type).model_validate(suggesting.options))
        for suggesting in self.suggest:
            try:
                agent = build(suggesting)
                yield str(getattr(agent, "model", "")), agent.reply(history, seed=seed)
            except (AgentError, ValidationError):  # it does not answer, or its model is no longer there
                continue

    def suggestions(self, history: Sequence[Turn], *, seed: int = 0) -> list[str]:
        """The texts of the proposals, each once."""
        return different_texts(reply for _, reply in self.proposals(history, seed=seed))


def different_texts(replies: Iterable[Reply]) -> list[str]:
    """The texts of replies in their order, each once and none that is empty."""
    return list(dict.fromkeys(text for reply in replies if (text := reply.text.strip())))
