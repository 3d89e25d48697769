"""dialometer retrieval: avatars and answer bots. One file per verb."""

from __future__ import annotations

import typer

from dialometer.cli.verbs import add_verbs


def add_to(app: typer.Typer) -> None:
    """Adds the group with the verbs of this folder."""
    family = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Find recorded answers: evaluate retrievers, let a crowd judge them, talk to the avatar.",
        epilog="Example: dialometer retrieval evaluate kb.csv dialogues.jsonl",
    )
    add_verbs(family, __name__)
    app.add_typer(family, name="retrieval")
