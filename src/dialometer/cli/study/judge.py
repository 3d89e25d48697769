"""dialometer judge: language models as judges of a study's items, or as raters that take part in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.interruption import continues
from dialometer.cli.options import AsJson, Database, StudyDir, open_study

EXAMPLE = "dialometer judge my-study --endpoint http://127.0.0.1:8080/v1 --model my-model"


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="judge", epilog=f"Example: {EXAMPLE}")
    def judge(
        folder: StudyDir,
        endpoint: Annotated[
            str, typer.Option("--endpoint", help="Address of the model, up to /v1.", show_default=False)
        ] = "",
        model: Annotated[
            list[str] | None,
            typer.Option("--model", help="Name of the model there; repeat it for several judges.", show_default=False),
        ] = None,
        judge_names: Annotated[
            list[str] | None,
            typer.Option("--judge", help="A judge that the study file declares; all of them by default."),
        ] = None,
        raters: Annotated[
            int,
            typer.Option(
                "--raters", min=0, help="Take part as this many raters, screen by screen, instead of judging items."
            ),
        ] = 0,
        samples: Annotated[
            int | None,
            typer.Option("--samples", min=1, max=100, help="How often each item is asked.", show_default="1"),
        ] = None,
        orders: Annotated[
            str,
            typer.Option(
                "--orders", help="Choices: asked in both orders of the responses, or in one.", show_default="both"
            ),
        ] = "",
        language: Annotated[
            str,
            typer.Option("--language", help="Which of the study's languages it reads; the first by default."),
        ] = "",
        temperature: Annotated[
            float | None, typer.Option("--temperature", min=0, max=2, help="Of the model; its own by default.")
        ] = None,
        max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=1, help="Longest answer.")] = None,
        extra: Annotated[
            list[str] | None,
            typer.Option(
                "--extra",
                help="A further field of every request as key=value, in JSON unless it is text; key=null removes a field.",
                show_default=False,
            ),
        ] = None,
        seed: Annotated[
            int | None, typer.Option("--seed", help="Send a seed with every request: this number plus the sample's.")
        ] = None,
        json_schema: Annotated[
            bool | None,
            typer.Option(
                "--json-schema/--no-json-schema",
                help="Send a JSON schema, so that the model can only write valid answers; tried by default.",
                show_default=False,
            ),
        ] = None,
        reasons: Annotated[
            bool, typer.Option("--reasons/--no-reasons", help="Let the model write its reasons before the verdict.")
        ] = True,
        parallel: Annotated[
            int, typer.Option("--parallel", min=1, max=64, help="Questions that are asked at the same time.")
        ] = 1,
        persona: Annotated[str, typer.Option("--persona", help="A sentence that tells the model who it is.")] = "",
        asks: Annotated[int, typer.Option("--asks", min=1, max=10, help="How often a screen is asked at most.")] = 3,
        again: Annotated[
            bool, typer.Option("--again", help="Ask again what had no usable answer in an earlier run.")
        ] = False,
        price_in: Annotated[float, typer.Option(min=0, help="Price of a million input tokens.")] = 0.0,
        price_out: Annotated[float, typer.Option(min=0, help="Price of a million output tokens.")] = 0.0,
        budget: Annotated[float | None, typer.Option(min=0, help="Stop when this run has cost this much.")] = None,
        provider: Annotated[
            str, typer.Option("--provider", help="API of the endpoint: openai, anthropic or ollama.")
        ] = "openai",
        api_key_env: Annotated[
            str,
            typer.Option(
                "--api-key-env",
                help="Environment variable that holds the endpoint's key; the provider's usual one by default.",
                show_default=False,
            ),
        ] = "",
        timeout_s: Annotated[float, typer.Option("--timeout", min=1, max=600, help="Seconds for one answer.")] = 120.0,
        write_batch: Annotated[
            Path | None,
            typer.Option(
                "--write-batch", help="Send nothing: write the questions into a file for a batch.", show_default=False
            ),
        ] = None,
        read_batch: Annotated[
            Path | None,
            typer.Option("--read-batch", help="Read the answers of a batch; nothing is sent.", show_default=False),
        ] = None,
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
        """Let language models judge a study's items (LLM-as-a-judge), or take part in it as raters (--raters).

        A judge reads each item with the study's instructions and criteria, choices in both orders, and never a system's name.
        Its judgments are marked as a model's and count in no result of human raters. The report says whether it can be trusted.

        Run it again after an interruption: it continues, and asks only what is missing.
        """
        from dialometer.cli.study._judging import JudgeSettings, judge_items, take_part

        study = open_study(folder)
        settings = JudgeSettings(
            study=study,
            folder=folder,
            endpoint=endpoint,
            models=tuple(model or ()),
            names=tuple(judge_names or ()),
            provider=provider,
            api_key_env=api_key_env,
            temperature=temperature,
            max_tokens=max_tokens,
            timeout_s=timeout_s,
            extra=tuple(extra or ()),
            seed=seed,
            json_schema=json_schema,
            has_reasons=reasons,
            persona=persona,
            n_asks=asks,
            is_asked_again=again,
            price_in=price_in,
            price_out=price_out,
            budget=budget,
            n_parallel=parallel,
            n_samples=samples,
            orders=orders,
            language=language,
        )
        with continues():
            if raters:
                take_part(settings, raters, url=url, api_key=api_key, database=database, as_json=as_json)
            else:
                judge_items(
                    settings, url=url, write_to=write_batch, read_from=read_batch, database=database, as_json=as_json
                )
