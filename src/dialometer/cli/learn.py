"""dialometer learn: an evaluator learned from self-reported ratings. Its verbs stand beside it as ``learn_<verb>.py``."""

from __future__ import annotations

import importlib
import pkgutil

import typer

import dialometer.cli


def add_to(app: typer.Typer) -> None:
    """Adds the family of verbs, one per file whose name begins with ``learn_``."""
    learn_app = typer.Typer(
        no_args_is_help=True, rich_markup_mode="markdown", help="Learn to compare dialogues from people's own ratings."
    )
    for module in sorted(pkgutil.iter_modules(dialometer.cli.__path__), key=lambda module: module.name):
        if module.name.startswith("learn_"):
            importlib.import_module(f"dialometer.cli.{module.name}").add_to(learn_app)
    app.add_typer(learn_app, name="learn")
