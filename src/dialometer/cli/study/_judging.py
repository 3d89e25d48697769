"""What ``dialometer judge`` does: which judges there are, how each is reached, and what is said about a run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import ValidationError
from rich.markup import escape

from dialometer.agents import AGENTS
from dialometer.agents.chat_model import ChatModel
from dialometer.cli.audit import log_action
from dialometer.cli.console import ProgressBar, results
from dialometer.cli.options import open_store
from dialometer.cli.study.simulate import _left_key
from dialometer.errors import DialometerError, UnknownName
from dialometer.flow.engine import Flow
from dialometer.judges.access import JudgeAccess, LocalAccess, ServerAccess
from dialometer.judges.asking import Prompting
from dialometer.judges.batches import BatchRead, check_has_batches, read_batch, write_batch
from dialometer.judges.guidance import guidance
from dialometer.judges.items import ItemJudge, JudgingProgress, missing_in_words
from dialometer.judges.model_client import ModelClient, Usage
from dialometer.judges.run import JudgeProgress, ModelRater
from dialometer.model.item import Item
from dialometer.model.judges import Judge
from dialometer.model.study import Study
from dialometer.registry import did_you_mean

JUDGE_FOLDER = "judge"
ANTHROPIC_TOKENS = 2048
"""Longest answer without --max-tokens: these endpoints want a number."""
ORDERS = ("both", "one")


@dataclass(frozen=True)
class JudgeSettings:
    """The options of the command."""

    study: Study
    folder: Path
    endpoint: str
    models: Sequence[str]
    names: Sequence[str]
    provider: str
    api_key_env: str
    temperature: float | None
    max_tokens: int | None
    timeout_s: float
    extra: Sequence[str]
    seed: int | None
    json_schema: bool | None
    has_reasons: bool
    persona: str
    n_asks: int
    is_asked_again: bool
    price_in: float
    price_out: float
    budget: float | None
    n_parallel: int
    n_samples: int | None
    orders: str
    language: str

    def __post_init__(self) -> None:
        if self.language and self.language not in self.study.spec.all_languages:
            known = self.study.spec.all_languages
            raise UnknownName(f"the study has no language '{self.language}'", remedy=did_you_mean(self.language, known))
        if self.orders not in ("", *ORDERS):
            raise UnknownName(f"unknown orders '{self.orders}'", remedy=did_you_mean(self.orders, list(ORDERS)))
        if self.budget is not None and not (self.price_in or self.price_out):
            raise DialometerError("a budget needs prices", remedy="add --price-in and --price-out")

    @property
    def declared(self) -> dict[str, Judge]:
        """The language models among the study's judges."""
        return {judge.name: judge for judge in self.study.spec.judges if judge.kind == "model"}

    def judges(self) -> list[tuple[Judge, ChatModel]]:
        """Each judge that is asked, and how it is reached: those named on the command line, or all that are declared."""
        for name in self.names:
            if name not in self.declared:
                raise UnknownName(
                    f"the study declares no language model '{name}' as a judge",
                    remedy=did_you_mean(name, list(self.declared)) if self.declared else "declare it under judges:",
                )
        if self.names or not self.models:
            return [self._declared_judge(self.declared[name]) for name in self.names or self.declared] or self._none()
        known = self.declared
        # Names of models may be other than those that a study file takes.
        return [
            (known.get(model) or Judge.model_construct(name=model, kind="model"), self._agent(model))
            for model in self.models
        ]

    def _none(self) -> list[tuple[Judge, ChatModel]]:
        raise DialometerError(
            "no judge is named", remedy="give --endpoint and --model, or declare judges in the study file (judges:)"
        )

    def _declared_judge(self, judge: Judge) -> tuple[Judge, ChatModel]:
        if judge.agent is None or self.models:
            if len(self.models) != 1:
                raise DialometerError(
                    f"the study file does not say how the judge '{judge.name}' is reached",
                    remedy=f"give it an agent, or add --judge {judge.name} --endpoint … --model …",
                )
            return judge, self._agent(self.models[0])
        return judge, self._made(judge.agent.type, dict(judge.agent.options))

    def _agent(self, model: str) -> ChatModel:
        if not self.endpoint:
            raise DialometerError("the model's address is missing", remedy="add --endpoint")
        return self._made(self.provider, {"base_url": self.endpoint, "model": model})

    def _made(self, provider: str, options: dict[str, Any]) -> ChatModel:
        """The model with the options of the command line over those of the study file."""
        providers = {name: kind for name in AGENTS.names() if issubclass(kind := AGENTS.get(name), ChatModel)}
        if provider not in providers:
            raise UnknownName(f"unknown provider '{provider}'", remedy=did_you_mean(provider, list(providers)))
        if provider == "anthropic":
            options.setdefault("max_tokens", ANTHROPIC_TOKENS)
        values = {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "timeout_s": self.timeout_s,
            "api_key_env": self.api_key_env or None,
        }
        options |= {name: value for name, value in values.items() if value is not None}
        unseeded = {"seed": None} if self.seed is None else {}
        options["extra"] = {**unseeded, **options.get("extra", {}), **extra_fields(self.extra)}
        try:
            return providers[provider](**options)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise DialometerError(
                f"the model cannot be called: {where}: {error.errors()[0]['msg']}",
                remedy="check --endpoint, --model and the agent in the study file",
            ) from error

    def prompting(self, judge: Judge, model: ChatModel, budget: float | None) -> Prompting:
        """How this judge is asked."""
        study = self.study.in_language(self.language or judge.language)
        client = ModelClient(
            model,
            self.folder / JUDGE_FOLDER,
            price_in=self.price_in,
            price_out=self.price_out,
            budget=budget,
            takes_schema=self.json_schema,
        )
        return Prompting(
            client, self.persona, self.n_asks, self.has_reasons, guidance(study, judge), self.is_asked_again
        )


def extra_fields(entries: Sequence[str]) -> dict[str, Any]:
    """Fields of a request from ``key=value``: JSON where it is, else a text."""
    fields: dict[str, Any] = {}
    for text in entries:
        key, is_there, value = text.partition("=")
        if not is_there or not key.strip():
            raise DialometerError(
                f"'{text}' is not of the form key=value", where="--extra", remedy="write --extra top_p=0.9"
            )
        try:
            fields[key.strip()] = json.loads(value)
        except ValueError:
            fields[key.strip()] = value
    return fields


# As a rater: screen by screen


def take_part(settings: JudgeSettings, raters: int, *, url: str, api_key: str, database: str, as_json: bool) -> None:
    """Lets models take part in the study as raters."""
    outcomes = []
    for judge, model in settings.judges():
        prompting = settings.prompting(judge, model, settings.budget)

        def run(access: JudgeAccess, prompting: Prompting = prompting, judge: Judge = judge) -> JudgeProgress:
            language = settings.language or judge.language
            rater = ModelRater(settings.study, access, prompting, settings.n_parallel, judge.name, language)
            with _reporting_raters(raters) as report:
                return rater.run(raters, report)

        if url:
            with ServerAccess(url, api_key or _left_key(settings.folder, url)) as access:
                outcomes.append((judge.name, prompting, run(access)))
        else:
            with open_store(settings.folder, database) as store:
                outcomes.append((judge.name, prompting, run(LocalAccess(Flow(settings.study, store)))))
            log_action(settings.folder, database, "let a model judge", judge.name)
    if as_json:
        summary = [
            {**asdict(progress), "cost": _cost(settings, progress.spent), "folder": str(settings.folder / JUDGE_FOLDER)}
            for _, _, progress in outcomes
        ]
        typer.echo(json.dumps(summary[0] if len(summary) == 1 else summary, indent=2, ensure_ascii=False))
    else:
        for name, prompting, progress in outcomes:
            _print_rated(name, prompting, progress, settings)
        _print_next(settings.folder)
    if not any(progress.n_judgments or "completed" in progress.states for _, _, progress in outcomes):
        raise typer.Exit(1)


def _print_rated(name: str, prompting: Prompting, progress: JudgeProgress, settings: JudgeSettings) -> None:
    states = ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in sorted(progress.states.items()))
    results.print(
        f"{escape(name)}: {progress.n_judgments:,} judgments stored by {progress.n_raters:,} raters: {states or 'none came'}"
    )
    if progress.n_refused:
        results.print(f"{progress.n_refused:,} found no free slot: the study is full, paused or closed.")
    for why in progress.given_up:
        results.print(f"[yellow]given up:[/] {escape(why)}", soft_wrap=True)
    _print_usage(prompting, progress.spent, settings)


@contextmanager
def _reporting_raters(n_raters: int) -> Iterator[Callable[[JudgeProgress], None]]:
    """A bar on a terminal; elsewhere a line of JSON for each rater."""
    n_reported = 0

    def report(progress: JudgeProgress) -> None:
        nonlocal n_reported
        line = {"raters_done": progress.n_done, "judgments_stored": progress.n_judgments}
        message, is_due = f"{progress.n_judgments:,} judgments", progress.n_done > n_reported
        bar.report(message, progress.n_done, n_raters, label="judgments", line=line, is_due=is_due)
        n_reported = progress.n_done

    with ProgressBar("raters", pause_s=math.inf) as bar:
        yield report


# As a judge: item by item


def judge_items(
    settings: JudgeSettings,
    *,
    url: str,
    write_to: Path | None,
    read_from: Path | None,
    database: str,
    as_json: bool,
) -> None:
    """Lets each judge answer every item, or writes and reads files for a batch."""
    if url:
        raise DialometerError("a running server takes raters", remedy="add --raters, or leave --url out")
    judges = settings.judges()
    is_batch = write_to is not None or read_from is not None
    if is_batch and len(judges) > 1:
        raise DialometerError("a batch is for one judge", remedy="name one with --judge or --model")
    outcomes: list[tuple[Prompting, JudgingProgress, BatchRead | None]] = []
    with open_store(settings.folder, database) as store:
        for judge, model in judges:
            spent = sum(_cost(settings, progress.spent) or 0.0 for _, progress, _ in outcomes)
            left = None if settings.budget is None else max(0.0, settings.budget - spent)
            prompting = settings.prompting(judge, model, left)
            prompting.client.is_offline = is_batch
            if is_batch:
                check_has_batches(prompting.client)
            read = read_batch(prompting.client, read_from) if read_from is not None else None
            item_judge = ItemJudge(
                settings.study,
                store,
                prompting,
                judge.name,
                n_samples=settings.n_samples or judge.samples,
                has_both_orders=(settings.orders or judge.orders) == "both",
                items=_items(settings.study, judge),
                n_parallel=settings.n_parallel,
                seed=settings.seed or 0,
                language=settings.language or judge.language,
            )
            with _reporting_items(judge.name) as report:
                progress = item_judge.run(report)
            if write_to is not None:
                write_batch(prompting.client, write_to)
            outcomes.append((prompting, progress, read))
    log_action(settings.folder, database, "let a model judge", ", ".join(judge.name for judge, _ in judges))
    _print_judged(outcomes, settings, write_to=write_to, as_json=as_json)
    was_judged = any(progress.n_judgments or progress.n_known for _, progress, _ in outcomes)
    if any(progress.stopped for _, progress, _ in outcomes) or not (was_judged or write_to is not None):
        raise typer.Exit(1)


def _items(study: Study, judge: Judge) -> list[Item]:
    """The items that a judge judges: all or those declared, without its examples."""
    examples = {example.item for example in judge.examples}
    items = study.rated_items if judge.items == "all" else [study.items_by_id[item] for item in judge.items]
    return [item for item in items if item.id not in examples]


@contextmanager
def _reporting_items(name: str) -> Iterator[Callable[[JudgingProgress], None]]:
    def report(progress: JudgingProgress) -> None:
        line = {"judge": name, "questions_done": progress.n_done, "questions": progress.n_questions}
        n_missing = sum(progress.missing.values())
        message = f"{name}: {n_missing:,} missing" if n_missing else name
        bar.report(message, progress.n_done, progress.n_questions, label="questions", line=line)

    with ProgressBar("questions", pause_s=5.0) as bar:
        yield report


def _print_judged(
    outcomes: Sequence[tuple[Prompting, JudgingProgress, BatchRead | None]],
    settings: JudgeSettings,
    *,
    write_to: Path | None,
    as_json: bool,
) -> None:
    if as_json:
        summary = [
            {
                **asdict(progress),
                "cost": _cost(settings, progress.spent),
                "schema_refused": prompting.client.schema_refused,
                **({"batch": asdict(read)} if read else {}),
            }
            for prompting, progress, read in outcomes
        ]
        content = {"judges": summary, "folder": str(settings.folder / JUDGE_FOLDER)}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    for prompting, progress, read in outcomes:
        if read is not None:
            results.print(f"{read.n_read:,} answers read from the batch")
            for why, n in read.failed.items():
                results.print(f"[yellow]failed there:[/] {n:,}: {escape(why)}", soft_wrap=True)
        n_missing = sum(progress.missing.values())
        known = f", {progress.n_known:,} from before" if progress.n_known else ""
        results.print(
            f"{escape(progress.judge)}: {progress.n_judgments:,} judgments stored; {progress.n_questions:,} questions{known}, "
            f"{n_missing:,} without a usable answer",
            soft_wrap=True,
        )
        for words in missing_in_words(progress.missing):
            results.print(f"[yellow]missing:[/] {escape(words)}", soft_wrap=True)
        if progress.stopped:
            results.print(f"[yellow]stopped:[/] {escape(progress.stopped)}; run the command again to continue")
        if progress.n_unanswered and write_to is None:
            results.print(f"{progress.n_unanswered:,} questions wait for an answer: write them with --write-batch")
        _print_usage(prompting, progress.spent, settings)
    if write_to is not None:
        n = sum(progress.n_unanswered for _, progress, _ in outcomes)
        results.print(f"{n:,} questions written to {escape(str(write_to))}", soft_wrap=True)
        results.print(
            "Next: hand the file to the provider, then [bold]--read-batch[/] with its results", soft_wrap=True
        )
    else:
        _print_next(settings.folder)


# What both say


def _cost(settings: JudgeSettings, spent: Usage) -> float | None:
    has_prices = settings.price_in or settings.price_out
    return spent.cost(settings.price_in, settings.price_out) if has_prices else None


def _print_usage(prompting: Prompting, spent: Usage, settings: JudgeSettings) -> None:
    if prompting.client.schema_refused:
        why = escape(prompting.client.schema_refused)
        results.print(f"The endpoint takes no schema of the answers and was asked without: {why}", soft_wrap=True)
    results.print(
        f"{spent.n_requests:,} requests, {spent.n_cached:,} answers kept from before, {spent.n_unusable:,} answers "
        "could not be used",
        soft_wrap=True,
    )
    cost = _cost(settings, spent)
    price = f", {cost:,.4f} at the given prices" if cost is not None else ""
    untold = f" ({spent.n_untold:,} requests reported no tokens)" if spent.n_untold else ""
    results.print(f"{spent.n_tokens_in:,} tokens read, {spent.n_tokens_out:,} written{untold}{price}")


def _print_next(folder: Path) -> None:
    results.print(f"Answers and log: {escape(str(folder / JUDGE_FOLDER))}", soft_wrap=True)
    results.print(f"Next: [bold]dialometer report {escape(str(folder))}[/]", soft_wrap=True)
