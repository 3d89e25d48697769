"""Verbs are found by their folder: a new file in a group's folder is a new verb."""

from __future__ import annotations

import importlib
import pkgutil

import typer


def add_verbs(app: typer.Typer, package: str) -> None:
    """Adds every verb below ``package`` in alphabetical order. Files that begin with an underscore are shared parts.

    A folder whose ``__init__`` has an ``add_to`` is a group with a name of its own, as ``dialometer learn``; the verbs of any
    other folder are directly below ``package``.
    """
    for _, module in sorted(_verbs(package)):
        importlib.import_module(module).add_to(app)


def _verbs(package: str) -> list[tuple[str, str]]:
    folder = importlib.import_module(package)
    verbs = []
    for module in pkgutil.iter_modules(folder.__path__):
        name = f"{package}.{module.name}"
        if module.name.startswith("_") or not (module.ispkg or hasattr(importlib.import_module(name), "add_to")):
            continue
        if module.ispkg and not hasattr(importlib.import_module(name), "add_to"):
            verbs += _verbs(name)
        else:
            verbs.append((module.name, name))
    return verbs
