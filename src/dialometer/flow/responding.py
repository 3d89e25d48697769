"""Responses of agents to given contexts: the items of a study without raters talking to anybody.

Every reply is appended to a file with how it was made. A run that was interrupted continues from there, and nothing that was
answered is asked or paid for twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import Field

from dialometer.agents.access import AgentAccess
from dialometer.agents.interface import Agent
from dialometer.errors import AgentError, DialometerError
from dialometer.flow.agents import build_agent
from dialometer.flow.spending import cost_of
from dialometer.model.dialogue import Turn, clean_text, usual_role
from dialometer.model.live import Live
from dialometer.model.part import Part
from dialometer.model.study import System

Context = Mapping[str, Any]
KEPT_SUFFIX = ".replies.jsonl"
"""Of the file beside the items that keeps every reply with model, parameters, latency and cost."""


class RespondingSystems(Part):
    """Systems with their agents, written as in a study file; ``live`` may hold prices and a budget."""

    systems: list[System] = Field(min_length=1)
    live: Live = Field(default_factory=Live)


@dataclass
class Responding:
    """Agents that answer contexts, and the file that keeps their replies. ``spent`` is what this run has cost."""

    declared: RespondingSystems
    kept: Path
    folder: Path | None = None
    access: AgentAccess | None = None
    seed: int = 0
    n_parallel: int = 1
    spent: float = 0.0
    n_asked: int = 0
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        for system in self.declared.systems:
            if system.agent is None:
                raise DialometerError(f"the system '{system.name}' has no agent", remedy="add 'agent:' with a type")
            self._agents[system.name] = build_agent(system.agent.type, system.agent.options, self.folder, self.access)
        self._known, self._spent_before = _read(self.kept)
        self._lock = Lock()

    def run(
        self, contexts: Sequence[Context], report: Callable[[int, int], None] | None = None
    ) -> list[dict[str, Any]]:
        """The contexts with a response of every system. Those that did not come are in ``failures``, without their item."""
        asked = [(context, system) for context in contexts for system in self.declared.systems]
        texts: dict[tuple[str, str], str] = {}
        with ThreadPoolExecutor(self.n_parallel, thread_name_prefix="respond") as pool:
            jobs = {pool.submit(self._response, context, system): (context, system) for context, system in asked}
            try:
                for n, job in enumerate(as_completed(jobs), start=1):
                    context, system = jobs[job]
                    try:
                        texts[context["id"], system.name] = job.result()
                    except AgentError as error:
                        self.failures.append(f"{context['id']}, {system.name}: {error}")
                    if report is not None:
                        report(n, len(jobs))
            except BaseException:  # whoever stops the run waits for the requests under way, not for all
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        names = [system.name for system in self.declared.systems]
        return [
            {**context, "responses": {name: texts[context["id"], name] for name in names}}
            for context in contexts
            if all((context["id"], name) in texts for name in names)
        ]

    def _response(self, context: Context, system: System) -> str:
        history = [
            Turn(turn["speaker"], turn["text"], usual_role(turn["speaker"]) or "user") for turn in context["context"]
        ]
        key = self._key(history, system)
        if key in self._known:
            return self._known[key]
        self._check_budget()
        reply = self._agents[system.name].reply(history, seed=self.seed)
        text = clean_text(reply.text)
        model = str(system.agent.options.get("model", "")) if system.agent else ""
        cost = cost_of(self.declared.live, model, reply.details, history, text)
        details = {**reply.details, **cost}
        entry = {"key": key, "item": context["id"], "system": system.name, "text": text, "details": details}
        with self._lock:
            self.n_asked += 1
            self.spent += cost.get("cost", 0.0)
            self._known[key] = text
            with self.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        return text

    def _check_budget(self) -> None:
        """Raises where the budget is spent, by this run and those before it."""
        budget, spent = self.declared.live.budget, self._spent_before + self.spent
        if budget is not None and spent >= budget:
            raise AgentError(f"the budget is spent: {spent:.4f} of {budget:g}", remedy="raise live.budget")

    def _key(self, history: Sequence[Turn], system: System) -> str:
        agent = system.agent.model_dump() if system.agent else None
        asked = [agent, [(turn.role, turn.text) for turn in history], self.seed]
        return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def about(self) -> dict[str, Any]:
        """The systems for the record beside the items."""
        return {
            system.name: {
                "label": system.label or system.name,
                "about": system.description,
                "agent": system.agent.model_dump() if system.agent else None,
            }
            for system in self.declared.systems
        }


def _read(kept: Path) -> tuple[dict[str, str], float]:
    """Replies of earlier runs and what they have cost; a line that a crash cut off is skipped."""
    known: dict[str, str] = {}
    spent = 0.0
    if kept.exists():
        for line in kept.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
                known[str(entry["key"])] = str(entry["text"])
                spent += float(entry["details"].get("cost", 0.0))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
    return known, spent
