"""What the agents of a study cost: each response with its own amount, and a stop where the budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from dialometer.agents.interface import Reply
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn
from dialometer.model.live import Live
from dialometer.storage.store import Store

LOOK_AGAIN_S = 30.0
"""Other processes spend from the same budget; what they have stored is read this often."""
CHARACTERS_PER_TOKEN = 4
"""For providers that do not tell: a usual figure for English."""


class Spending:
    """The sum is taken from the stored turns, so that it holds over restarts and for all processes of a server."""

    def __init__(self, live: Live, store: Store) -> None:
        self.live = live
        self.store = store
        self._stored = 0.0
        self._own = 0.0
        self._suggested = 0.0
        """Suggestions to wizards, which are stored only with the wizard's own response."""
        self._looked_at = -math.inf
        self._counting = Lock()

    def check(self) -> None:
        """Raises :class:`AgentError` where the budget is spent."""
        budget = self.live.budget
        if budget is None:
            return
        spent = self._spent()
        if spent >= budget:
            raise AgentError(
                f"the budget for agents is spent: {self.amount(spent)} of {self.amount(budget)}",
                where="study.yaml, live.budget",
                remedy="raise it and serve the study again",
            )

    def amount(self, value: float) -> str:
        """An amount with its currency."""
        return f"{value:,.4f}".rstrip("0").rstrip(".") + (f" {self.live.currency}" if self.live.currency else "")

    def _spent(self) -> float:
        with self._counting:
            if time.monotonic() - self._looked_at > LOOK_AGAIN_S:
                self._stored, _ = self.store.conversations.agent_costs()
                self._own, self._looked_at = 0.0, time.monotonic()
            return self._stored + self._own + self._suggested

    def of_reply(self, model: str, turns: Sequence[Turn], reply: Reply) -> dict[str, Any]:
        """What a reply has cost, for its record; nothing where the model has no price."""
        return self._counted(cost_of(self.live, model, reply.details, turns, reply.text))

    def of_failure(self, model: str, turns: Sequence[Turn], text: str) -> dict[str, Any]:
        """What a reply that broke off has cost, as far as it came."""
        return self._counted(cost_of(self.live, model, {}, turns, text)) if text else {}

    def of_suggestion(self, model: str, turns: Sequence[Turn], reply: Reply) -> dict[str, Any]:
        """What a suggestion to a wizard has cost; it counts at once, and is stored later (:meth:`suggestions_stored`)."""
        cost = cost_of(self.live, model, reply.details, turns, reply.text)
        with self._counting:
            self._suggested += cost.get("cost", 0.0)
        return cost

    def suggestions_stored(self, costs: Sequence[Mapping[str, Any]]) -> None:
        """Notes that the costs of suggestions are now in the database."""
        amount = sum(cost.get("cost", 0.0) for cost in costs)
        with self._counting:
            self._suggested = max(0.0, self._suggested - amount)
            self._own += amount

    def _counted(self, cost: dict[str, Any]) -> dict[str, Any]:
        with self._counting:
            self._own += cost.get("cost", 0.0)
        return cost


def cost_of(live: Live, model: str, details: Mapping[str, Any], turns: Sequence[Turn], text: str) -> dict[str, Any]:
    """What a response to these turns has cost, by the tokens in its details; nothing where the model has no price."""
    price = live.prices.get(model)
    if price is None:
        return {}
    usage = details.get("usage") or {}
    n_in, n_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
    is_told = isinstance(n_in, int) and isinstance(n_out, int)
    if not isinstance(n_in, int):
        n_in = sum(len(turn.text) for turn in turns) // CHARACTERS_PER_TOKEN + 1
    if not isinstance(n_out, int):
        n_out = len(text) // CHARACTERS_PER_TOKEN + 1
    cost = {"cost": round(price.cost(n_in, n_out), 9), "currency": live.currency}
    return cost if is_told else {**cost, "is_estimated": True}
