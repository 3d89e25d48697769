"""Ctrl+C: a command says that it was interrupted, and how its work continues where it does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

INTERRUPTED = 130
"""The exit status of programs that Ctrl+C ended."""


class InterruptibleCommands(TyperGroup):
    """All verbs; one that is interrupted ends with a line about it."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the verb."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interruption:
            from dialometer.cli.console import errors

            if errors.is_terminal:
                errors.print()  # after the ^C that the terminal shows
            errors.print(f"Interrupted. {interruption}".strip(), soft_wrap=True)
            sys.exit(INTERRUPTED)


@contextmanager
def continues(how: str = "The same command continues from here.", *, kept: Path | None = None) -> Iterator[None]:
    """What is said when the work inside is interrupted; only if the file is there in which the work is kept."""
    try:
        yield
    except KeyboardInterrupt:
        if kept is None or kept.exists():
            raise KeyboardInterrupt(how) from None
        raise
