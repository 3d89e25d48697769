"""dialometer retrieval: avatars and answer bots. Its verbs stand beside it as ``retrieval_<verb>.py``."""

from __future__ import annotations

import importlib
import pkgutil

import typer

import dialometer.cli


def add_to(app: typer.Typer) -> None:
    """Adds the family of verbs, one per file whose name begins with ``retrieval_``."""
    family = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Find recorded answers: evaluate retrievers, let a crowd judge them, talk to the avatar.",
        epilog="Example: dialometer retrieval evaluate kb.csv dialogues.jsonl",
    )
    for module in sorted(pkgutil.iter_modules(dialometer.cli.__path__), key=lambda module: module.name):
        if module.name.startswith("retrieval_"):
            importlib.import_module(f"dialometer.cli.{module.name}").add_to(family)
    app.add_typer(family, name="retrieval")
