"""dialometer learn: an evaluator learned from self-reported ratings. One file per verb."""

from __future__ import annotations

import typer

from dialometer.cli.verbs import add_verbs


def add_to(app: typer.Typer) -> None:
    """Adds the group with the verbs of this folder."""
    learn_app = typer.Typer(
        no_args_is_help=True, rich_markup_mode="markdown", help="Learn to compare dialogues from people's own ratings."
    )
    add_verbs(learn_app, __name__)
    app.add_typer(learn_app, name="learn")
