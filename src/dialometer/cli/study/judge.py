"""dialometer judge: a language model takes part in a study as a rater."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialometer.cli.options import AsJson, Database, StudyDir, open_store, open_study

if TYPE_CHECKING:
    from pathlib import Path

    from dialometer.agents.chat_model import ChatModel
    from dialometer.judges.access import JudgeAccess
    from dialometer.judges.run import JudgeProgress
    from dialometer.model.study import Study


JUDGE_FOLDER = "judge"
ANTHROPIC_TOKENS = 2048
"""Longest answer without --max-tokens: these endpoints want a number."""
EXAMPLE = "dialometer judge my-study --endpoint http://127.0.0.1:8080/v1 --model my-model --raters 5"


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="judge", epilog=f"Example: {EXAMPLE}")
    def judge(
        folder: StudyDir,
        endpoint: Annotated[
            str, typer.Option("--endpoint", help="Address of the model, up to /v1.", show_default=False)
        ],
        model: Annotated[str, typer.Option("--model", help="Name of the model there.", show_default=False)],
        raters: Annotated[int, typer.Option("--raters", min=1, help="How many raters the model plays.")] = 1,
        temperature: Annotated[
            float | None, typer.Option("--temperature", min=0, max=2, help="Of the model; its own if left out.")
        ] = None,
        max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=1, help="Longest answer.")] = None,
        json_mode: Annotated[
            bool, typer.Option("--json-mode", help="Ask the endpoint for JSON (response_format), where it can.")
        ] = False,
        json_schema: Annotated[
            bool,
            typer.Option(
                "--json-schema", help="Let the model write nothing but fitting answers, where the endpoint can."
            ),
        ] = False,
        parallel: Annotated[
            int, typer.Option("--parallel", min=1, max=64, help="Raters that are asked at the same time.")
        ] = 1,
        persona: Annotated[str, typer.Option("--persona", help="A sentence for the model about itself.")] = "",
        asks: Annotated[int, typer.Option("--asks", min=1, max=10, help="Times a screen is asked at most.")] = 3,
        price_in: Annotated[float, typer.Option(min=0, help="Price of a million tokens that are read.")] = 0.0,
        price_out: Annotated[float, typer.Option(min=0, help="Price of a million tokens that are written.")] = 0.0,
        budget: Annotated[
            float | None, typer.Option(min=0, help="Stop when this run has cost so much at these prices.")
        ] = None,
        provider: Annotated[
            str, typer.Option("--provider", help="What the endpoint speaks: openai, anthropic or ollama.")
        ] = "openai",
        api_key_env: Annotated[
            str,
            typer.Option(
                "--api-key-env",
                help="Environment variable that holds the endpoint's key; the provider's usual one if left out.",
                show_default=False,
            ),
        ] = "",
        timeout_s: Annotated[float, typer.Option("--timeout", min=1, max=600, help="Seconds for one answer.")] = 120.0,
        url: Annotated[str, typer.Option("--url", help="Address of a running server of this study.")] = "",
        api_key: Annotated[
            str,
            typer.Option(
                "--api-key", envvar="DIALOMETER_API_KEY", help="The server's key; by default the one it left in DIR."
            ),
        ] = "",
        database: Database = "",
        as_json: AsJson = False,
    ) -> None:
        """Let a language model rate, by the same screens, conditions, orders and sides as human raters.

        Its raters are marked as models in every table and stay out of the report on human raters (see report --source model).
        Run it again after an interruption: it continues, and what was answered is not asked again.
        """
        from dialometer.judges.model_client import ModelClient

        study = open_study(folder)
        extra = {"response_format": {"type": "json_object"}} if json_mode else {}
        settings = {"temperature": temperature, "max_tokens": max_tokens, "timeout_s": timeout_s, "extra": extra}
        agent = _agent(provider, base_url=endpoint, model=model, api_key_env=api_key_env or None, **settings)
        _check_prices(budget, price_in, price_out)
        client = ModelClient(agent, folder / JUDGE_FOLDER, price_in=price_in, price_out=price_out, budget=budget)

        def run(access: JudgeAccess) -> JudgeProgress:
            from dialometer.judges.run import ModelRater

            with _reporting(raters) as report:
                return ModelRater(study, access, client, persona, asks, parallel, json_schema).run(raters, report)

        progress = _at_server(run, folder, url, api_key) if url else _here(run, folder, study, database)
        _tell(progress, folder, price_in, price_out, as_json=as_json)


def _agent(provider: str, **settings: Any) -> ChatModel:
    from pydantic import ValidationError

    from dialometer.agents import AGENTS
    from dialometer.agents.chat_model import ChatModel
    from dialometer.errors import DialometerError, UnknownName
    from dialometer.registry import did_you_mean

    providers = {name: kind for name in AGENTS.names() if issubclass(kind := AGENTS.get(name), ChatModel)}
    if provider not in providers:
        raise UnknownName(f"unknown provider '{provider}'", remedy=did_you_mean(provider, list(providers)))
    if provider == "anthropic":
        settings["max_tokens"] = settings["max_tokens"] or ANTHROPIC_TOKENS
    try:
        return providers[provider](**{name: value for name, value in settings.items() if value is not None})
    except ValidationError as error:
        raise DialometerError(
            f"the model cannot be called: {error.errors()[0]['msg']}", remedy="check --endpoint and --model"
        ) from error


def _check_prices(budget: float | None, price_in: float, price_out: float) -> None:
    if budget is not None and not (price_in or price_out):
        from dialometer.errors import DialometerError

        raise DialometerError("a budget needs prices", remedy="add --price-in and --price-out")


def _here(run: Callable[[JudgeAccess], JudgeProgress], folder: Path, study: Study, database: str) -> JudgeProgress:
    from dialometer.flow.engine import Flow
    from dialometer.judges.access import LocalAccess

    with open_store(folder, database) as store:
        return run(LocalAccess(Flow(study, store)))


def _at_server(run: Callable[[JudgeAccess], JudgeProgress], folder: Path, url: str, api_key: str) -> JudgeProgress:
    from dialometer.cli.study.simulate import _left_key
    from dialometer.judges.access import ServerAccess

    with ServerAccess(url, api_key or _left_key(folder, url)) as access:
        return run(access)


@contextmanager
def _reporting(n_raters: int) -> Iterator[Callable[[JudgeProgress], None]]:
    """A bar on a terminal; elsewhere a line of JSON for each rater."""
    from dialometer.cli.console import ProgressBar

    n_reported = 0

    def report(progress: JudgeProgress) -> None:
        nonlocal n_reported
        line = {"raters_done": progress.n_done, "judgments_stored": progress.n_judgments}
        what, is_due = f"{progress.n_judgments:,} judgments", progress.n_done > n_reported
        bar.report(what, progress.n_done, n_raters, label="judgments", line=line, is_due=is_due)
        n_reported = progress.n_done

    with ProgressBar("raters", pause_s=math.inf) as bar:
        yield report


def _tell(progress: JudgeProgress, folder: Path, price_in: float, price_out: float, *, as_json: bool) -> None:
    from rich.markup import escape

    from dialometer.cli.console import results

    spent = progress.spent
    cost = spent.cost(price_in, price_out) if price_in or price_out else None
    if as_json:
        outcome: dict[str, Any] = {**asdict(progress), "cost": cost, "folder": str(folder / JUDGE_FOLDER)}
        typer.echo(json.dumps(outcome, indent=2, ensure_ascii=False))
        return
    states = ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in sorted(progress.states.items()))
    results.print(f"{progress.n_judgments:,} judgments stored by {progress.n_raters:,} raters: {states or 'none came'}")
    if progress.n_refused:
        results.print(f"{progress.n_refused:,} found no free slot: the study is full, paused or closed.")
    results.print(
        f"{spent.n_requests:,} requests, {spent.n_cached:,} answers kept from before, {spent.n_unusable:,} answers "
        "could not be used",
        soft_wrap=True,
    )
    price = f", {cost:,.4f} at the given prices" if cost is not None else ""
    untold = f" ({spent.n_untold:,} requests told no tokens)" if spent.n_untold else ""
    results.print(f"{spent.n_tokens_in:,} tokens read, {spent.n_tokens_out:,} written{untold}{price}")
    for why in progress.given_up:
        results.print(f"[yellow]given up:[/] {escape(why)}", soft_wrap=True)
    shown = escape(str(folder))
    results.print(f"Answers and log: {escape(str(folder / JUDGE_FOLDER))}", soft_wrap=True)
    results.print(f"Next: [bold]dialometer report {shown} --source model[/]", soft_wrap=True)
