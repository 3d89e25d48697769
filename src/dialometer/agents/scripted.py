"""A scripted agent: patterns and replies from the study file. Good for pilots, demos and Wizard-of-Oz baselines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import Field, field_validator

from dialometer.agents import AGENTS
from dialometer.agents.interface import Agent, Reply
from dialometer.model.dialogue import Turn
from dialometer.model.part import Part
from dialometer.patterns import matches, problem_of


class Rule(Part):
    """What to say when the last message matches a regular expression (upper and lower case are the same)."""

    match: str = Field(description="What is found in the last message, as a regular expression.")
    say: list[str] = Field(min_length=1, description="Responses, used in turn.")

    @field_validator("match")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        if problem := problem_of(pattern):
            raise ValueError(f"'{pattern[:200]}' is not a regular expression: {problem}")
        return pattern


@AGENTS.register("scripted")
class Scripted(Agent):
    """The first rule that matches answers; its replies are used in turn, so that a conversation does not repeat itself."""

    replies: list[Rule] = Field(default_factory=list, description="Rules, tried from first to last.")
    otherwise: list[str] = Field(min_length=1, description="Said, in turn, when no rule matches.")

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        last = next((turn.text for turn in reversed(history) if turn.role == "user"), "")
        spoken = {turn.text for turn in history if turn.role == "agent"}
        for number, rule in enumerate(self.replies):
            if matches(rule.match, last, flags=re.IGNORECASE):
                return Reply(_fresh(rule.say, spoken), {"rule": number})
        return Reply(_fresh(self.otherwise, spoken), {"rule": None})


def _fresh(options: Sequence[str], spoken: set[str]) -> str:
    """The first option not said yet; when all were, they begin again in an order that still varies."""
    unsaid = [option for option in options if option not in spoken]
    return unsaid[0] if unsaid else options[len(spoken) % len(options)]
