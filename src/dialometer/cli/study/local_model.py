"""dialometer local-model: a language model on this machine as an endpoint for agents and judges."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from dialometer.cli.options import AsJson


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="local-model", epilog="Example: dialometer local-model --port 8080")
    def local_model(
        model: Annotated[
            str, typer.Option("--model", help="smollm2, a GGUF file, or owner/name in the cache of Hugging Face.")
        ] = "smollm2",
        port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0 takes a free one.")] = 8080,
        context_tokens: Annotated[
            int, typer.Option("--context-tokens", min=128, max=131_072, help="Longest conversation.")
        ] = 2048,
        threads: Annotated[
            int | None,
            typer.Option("--threads", min=1, max=256, help="Half of the cores by default.", show_default=False),
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Serve a language model on this machine, for agents of type openai and for dialometer judge. Ctrl+C ends it.

        It needs the extra local-model; only this machine can reach it.
        """
        from dialometer.agents.local_server import find_weights, start_server, usual_threads
        from dialometer.cli.console import results
        from dialometer.errors import DialometerError

        try:
            weights = find_weights(model)
        except ValueError as error:
            raise DialometerError(str(error), where="--model") from error
        server = start_server(weights, context_tokens, threads or usual_threads(), port=port)
        if as_json:
            typer.echo(json.dumps({"base_url": server.base_url, "model": server.name}))
        else:
            results.print(
                f"[bold]{server.name}[/] listens at [bold]{server.base_url}[/]. Ctrl+C ends it.", soft_wrap=True
            )
            results.print(
                f"Judge with it: dialometer judge my-study --endpoint {server.base_url} --model {server.name}",
                soft_wrap=True,
                highlight=False,
            )
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            results.print()
