"""dialometer bots: response generators, trained here. Its verbs stand beside it as ``bots_<verb>.py``."""

from __future__ import annotations

import importlib
import pkgutil

import typer

import dialometer.cli


def add_to(app: typer.Typer) -> None:
    """Adds the family of verbs, one per file whose name begins with ``bots_``."""
    family = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Train response generators, measure them, let them answer for a study, talk to them.",
        epilog="Example: dialometer bots train hred dialogues.jsonl --out hred",
    )
    for module in sorted(pkgutil.iter_modules(dialometer.cli.__path__), key=lambda module: module.name):
        if module.name.startswith("bots_"):
            importlib.import_module(f"dialometer.cli.{module.name}").add_to(family)
    app.add_typer(family, name="bots")
