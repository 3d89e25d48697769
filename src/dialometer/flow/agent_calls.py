"""Trying the agents of a study: each gets one message, and what it says, or why it does not, is shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dialometer.agents.calling import Caller, WrongOption, keys_of
from dialometer.agents.chat_model import ChatModel
from dialometer.agents.interface import Agent, Reply, timed
from dialometer.agents.wizard import Wizard
from dialometer.design.positions import parse_yaml
from dialometer.errors import AgentError, Problem
from dialometer.flow.agents import build_agent
from dialometer.folder_files import read_text_inside
from dialometer.model.dialogue import Turn
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.study import Study

MESSAGE = "Hello! Please answer in one short sentence."


@dataclass
class AgentCall:
    """What a system's agent answered to one message. ``keys`` are those of the answer as it came."""

    system: str
    agent: str
    message: str
    reply: str = ""
    keys: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    problem: Problem | None = None
    is_person: bool = False


def call_agents(study: Study) -> Iterator[AgentCall]:
    """Calls the agent of every system that has one, in order; a failure is part of the result."""
    for i, system in enumerate(study.spec.systems):
        if system.agent is None:
            continue
        call = AgentCall(system.name, system.agent.type, MESSAGE)
        agent = build_agent(system.agent.type, system.agent.options, study.folder)
        if isinstance(agent, Wizard):
            call.is_person = True
        else:
            try:
                reply = _reply(agent, call.keys)
            except AgentError as error:
                call.problem = _placed(study, i, error)
            else:
                call.reply, call.details = reply.text, dict(reply.details)
        yield call


def _reply(agent: Agent, keys: list[str]) -> Reply:
    """The reply, asked for as the pages do: word by word where the agent can."""
    history = [Turn("User", MESSAGE, "user")]
    if isinstance(agent, ChatModel):
        return next(delta.reply for delta in agent.stream(history) if delta.reply is not None)
    if isinstance(agent, Caller):
        agent = agent.watched(lambda content: keys.extend(keys_of(content)))
    began = time.monotonic()
    reply = agent.reply(history)
    return Reply(reply.text, timed(reply.details, time.monotonic() - began))


def _placed(study: Study, i: int, error: AgentError) -> Problem:
    """The error at the system's place in the study file, or at the option that is to blame."""
    path: tuple[str | int, ...] = ("systems", i, "agent")
    if isinstance(error, WrongOption):
        path = (*path, "options", error.option)
    line = column = 0
    if study.folder is not None:
        line, column = parse_yaml(read_text_inside(study.folder, STUDY_FILE), STUDY_FILE).at(path)
    name = study.spec.systems[i].name
    where = f" ({error.where})" if error.where else ""
    message = f"the system '{name}': {error.message}{where}"
    return Problem(message, error.remedy, STUDY_FILE, line, column, ".".join(map(str, path)))
