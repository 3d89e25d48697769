"""dialometer bots: response generators, trained here. One file per verb."""

from __future__ import annotations

import typer

from dialometer.cli.verbs import add_verbs


def add_to(app: typer.Typer) -> None:
    """Adds the group with the verbs of this folder."""
    family = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Train response generators, measure them, let them answer for a study, talk to them.",
        epilog="Example: dialometer bots train hred dialogues.jsonl --out hred",
    )
    add_verbs(family, __name__)
    app.add_typer(family, name="bots")
