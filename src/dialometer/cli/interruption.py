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
def continues(kept: Path | None = None) -> Iterator[None]:
    """Says how interrupted work continues; where ``kept`` names the file that holds it, only if that is there."""
    try:
        yield
    except KeyboardInterrupt:
        if kept is None or kept.exists():
            raise KeyboardInterrupt("The same command continues from here.") from None
        raise
