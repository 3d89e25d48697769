"""The agents that a study's systems declare: checked with their place in the file, and built with what they speak through.

Agents, retrieval and generators know nothing of each other. Here, one level above them, an agent that speaks through a
trained model is handed the function that loads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from dialometer.agents import AGENTS, Agent
from dialometer.agents.access import AgentAccess
from dialometer.agents.calling import Caller
from dialometer.agents.generator import GeneratorAgent
from dialometer.agents.retriever import RetrieverAgent
from dialometer.agents.wizard import SuggestingAgent, Wizard
from dialometer.design.positions import Positioned, explain, parse_yaml
from dialometer.errors import Problem
from dialometer.folder_files import read_text_inside
from dialometer.model.dialogue import Turn
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.judges import Agent as Declared
from dialometer.model.live import Live
from dialometer.model.study import Study, System
from dialometer.registry import did_you_mean

if TYPE_CHECKING:
    from dialometer.generators.bot import Bot
    from dialometer.retrieval.avatar import Avatar


def build_agent(kind: str, options: Mapping[str, Any], folder: Path | None, access: AgentAccess | None = None) -> Agent:
    """The agent of that registered name, ready to reply; relative paths in its options start at ``folder``."""
    access = access or AgentAccess.of_environment()
    agent = AGENTS.get(kind).model_validate(dict(options), context={"folder": folder, "access": access})
    match agent:
        case Caller():
            agent.restrict(access)
        case RetrieverAgent():
            agent.connect(_avatar)
        case GeneratorAgent():
            agent.connect(_bot)
        case Wizard():
            agent.connect(lambda suggesting: build_agent(suggesting.type, suggesting.options, folder, access))
    return agent


@lru_cache(maxsize=8)
def _avatar(folder: str, threshold: float | None) -> Avatar:
    """Loaded once for all studies of this process: the model behind it takes seconds and much memory."""
    from dialometer.retrieval.avatar import load_avatar  # noqa: PLC0415 - numpy only where an avatar speaks

    return load_avatar(Path(folder), threshold=threshold)


@lru_cache(maxsize=8)
def _bot(file: str, device: str) -> _ConversingBot:
    from dialometer.generators.bot import Bot  # noqa: PLC0415 - torch only where a bot speaks

    return _ConversingBot(Bot.load(Path(file), device))


class _ConversingBot:
    """A bot in a conversation that may grow longer than its window: it reads the end of it."""

    def __init__(self, bot: Bot) -> None:
        self.bot = bot

    def say(self, history: Sequence[Turn], options: Mapping[str, Any], seed: int) -> tuple[str, Mapping[str, Any]]:
        from dialometer.generators.decoding import Decoding  # noqa: PLC0415 - torch only where a bot speaks

        decoding = Decoding(**options)
        # Each turn of a drawn conversation has its own seed, or a bot would say the same thing again and again.
        turn_seed = seed * 1000 + len(history)
        spoken = self.bot.respond([[turn.text for turn in history]], decoding, seeds=[turn_seed], is_cut=True)[0]
        checkpoint = self.bot.checkpoint
        details = {
            "model": checkpoint.name,
            "bot_sha256": checkpoint.sha256,
            "decoding": decoding.as_json(),
            "seed": turn_seed,
            "log_prob": round(spoken.log_prob, 4),
            "n_turns_read": spoken.n_turns_read,
        }
        return spoken.text, details


def agent_problems(study: Study, access: AgentAccess | None = None) -> list[Problem]:
    """Unknown agents, options that do not fit them or are not allowed here, each at its place in study.yaml."""
    if study.folder is None or not any(system.agent for system in study.spec.systems):
        return []
    source = parse_yaml(read_text_inside(study.folder, STUDY_FILE), STUDY_FILE)
    problems = problems_of_systems(study.spec.systems, source, STUDY_FILE, study.folder, access)
    return _price_problems(study.spec.systems, study.spec.live, source) + problems


def problems_of_systems(
    systems: Sequence[System], source: Positioned, file: str, folder: Path, access: AgentAccess | None = None
) -> list[Problem]:
    """What is wrong with the agents of systems that a file declares, each at its place there."""
    context = {"folder": folder, "access": access or AgentAccess.of_environment()}
    problems: list[Problem] = []
    for i, agent in ((i, system.agent) for i, system in enumerate(systems) if system.agent is not None):
        problems += _problems_of_agent(agent, ("systems", i, "agent"), source, file, context)
    return problems


def _problems_of_agent(
    agent: Declared | SuggestingAgent,
    path: tuple[str | int, ...],
    source: Positioned,
    file: str,
    context: dict[str, Any],
) -> list[Problem]:
    """What is wrong with one agent, and with those that suggest replies to a wizard."""

    def problem(message: str, remedy: str, *place: str) -> Problem:
        whole = (*path, *place)
        return Problem(message, remedy, file, *source.at(whole), ".".join(map(str, whole)))

    if agent.type not in AGENTS:
        return [problem(f"unknown agent '{agent.type}'", did_you_mean(agent.type, AGENTS.names()), "type")]
    kind = AGENTS.get(agent.type)
    try:
        built = kind.model_validate(agent.options, context=context)
    except ValidationError as error:
        return explain(error, kind, source, file, (*path, "options"))
    problems: list[Problem] = []
    if isinstance(built, Caller):
        refusals = built.refusals(context["access"])
        problems += [problem(message, remedy, "options", option) for option, message, remedy in refusals]
    if isinstance(built, Wizard):
        for j, suggesting in enumerate(built.suggest):
            problems += _problems_of_agent(suggesting, (*path, "options", "suggest", j), source, file, context)
    return problems


def _models(options: Mapping[str, Any]) -> Iterator[str]:
    """The models that an agent asks, and those of agents that suggest to a wizard."""
    if model := options.get("model"):
        yield str(model)
    suggest = options.get("suggest")
    for suggesting in suggest if isinstance(suggest, list) else ():
        own = suggesting.get("options") if isinstance(suggesting, dict) else None
        yield from _models(own) if isinstance(own, dict) else ()


def _price_problems(systems: Sequence[System], live: Live, source: Positioned) -> list[Problem]:
    """Prices of models that no system uses, and models without a price where a budget needs it."""
    asked = (model for system in systems if system.agent is not None for model in _models(system.agent.options))
    models = list(dict.fromkeys(asked))
    problems = []
    for name in live.prices:
        if name not in models:
            line, column = source.at(("live", "prices", name))
            remedy = did_you_mean(name, models)
            message = f"no agent has the model '{name}'"
            problems.append(Problem(message, remedy, STUDY_FILE, line, column, f"live.prices.{name}"))
    if live.budget is None:
        return problems
    line, column = source.at(("live", "budget"))
    for name in models:
        if name not in live.prices:
            message = f"the budget needs the price of the model '{name}'"
            remedy = f"add it to live.prices: {{{name}: {{input: …, output: …}}}}; 0 for a model of your own"
            problems.append(Problem(message, remedy, STUDY_FILE, line, column, "live.budget"))
    if not models:
        message, remedy = "no agent of this study has a model that costs anything", "remove live.budget"
        problems.append(Problem(message, remedy, STUDY_FILE, line, column, "live.budget"))
    return problems
