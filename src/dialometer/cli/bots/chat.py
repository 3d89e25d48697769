"""dialometer bots chat: talk to a trained bot in the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from dialometer.cli.bots._shared import DecodingOptions
from dialometer.cli.options import AsJson, Device, Seed, with_option_groups


def add_to(app: typer.Typer) -> None:
    """Adds the verb."""

    @app.command(name="chat", epilog="Example: dialometer bots chat hred --strategy sample --top-p 0.8")
    @with_option_groups
    def chat(
        bot: Annotated[Path, typer.Argument(help="Folder or file of a trained bot.", show_default=False)],
        *,
        options: DecodingOptions,
        device: Device = "cpu",
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Talk to a bot. An empty line or Ctrl+D ends the conversation; turns may also come from a pipe, one per line."""
        from rich.markup import escape

        from dialometer.cli.console import results
        from dialometer.generators.bot import Bot

        decoding = options.decoding()
        partner = Bot.load(bot, device)
        is_person = sys.stdin.isatty() and not as_json
        if is_person:
            shape = partner.model.shape
            results.print(
                f"{partner.model.label}, {partner.model.n_parameters:,} parameters, reads the last {shape.n_turns} "
                f"turn{'' if shape.n_turns == 1 else 's'}. [dim]An empty line ends the conversation.[/]\n",
                soft_wrap=True,
            )
        history: list[str] = []
        while text := _next(is_person=is_person):
            history.append(text)
            spoken = partner.respond([history], decoding, seeds=[seed * 1000 + len(history)], is_cut=True)[0]
            history.append(spoken.text)
            if as_json:
                typer.echo(
                    json.dumps(
                        {"said": text, "reply": spoken.text, "log_prob": spoken.log_prob, "seed": seed},
                        ensure_ascii=False,
                    )
                )
            else:
                results.print(f"[bold green]{partner.model.label}:[/] {escape(spoken.text)}", soft_wrap=True)


def _next(*, is_person: bool) -> str:
    """What is said next; empty at the end."""
    from dialometer.cli.console import results
    from dialometer.errors import DialometerError
    from dialometer.model.dialogue import clean_text

    try:
        text = results.input("[bold]You:[/] ") if is_person else sys.stdin.readline()
        return clean_text(text)
    except EOFError:
        return ""
    except ValueError as error:
        raise DialometerError(f"this cannot be said: {error}", remedy="write plain text") from error
