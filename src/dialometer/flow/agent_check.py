"""Checks the agents that a study's systems declare; apart from the loader, which knows nothing of agents."""

from __future__ import annotations

from pydantic import ValidationError

from dialometer.agents import AGENTS
from dialometer.design.load import STUDY_FILE
from dialometer.design.positions import explain, parse_yaml
from dialometer.errors import Problem
from dialometer.model.study import Study
from dialometer.registry import did_you_mean


def agent_problems(study: Study) -> list[Problem]:
    """Unknown agents and options that do not fit them, each at its place in study.yaml."""
    declared = [(i, system.agent) for i, system in enumerate(study.spec.systems) if system.agent is not None]
    if not declared or study.folder is None:
        return []
    source = parse_yaml((study.folder / STUDY_FILE).read_text(encoding="utf-8"), STUDY_FILE)
    problems: list[Problem] = []
    for i, agent in declared:
        path = ("systems", i, "agent")
        if agent.type not in AGENTS:
            line, column = source.at((*path, "type"))
            remedy = did_you_mean(agent.type, AGENTS.names())
            problems.append(
                Problem(f"unknown agent '{agent.type}'", remedy, STUDY_FILE, line, column, f"systems.{i}.agent.type")
            )
            continue
        kind = AGENTS.get(agent.type)
        try:
            kind.model_validate(agent.options, context={"folder": study.folder})
        except ValidationError as error:
            problems += explain(error, kind, source, STUDY_FILE, (*path, "options"))
    return problems
