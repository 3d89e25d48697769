"""Where commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import sys

from rich.console import Console


class _Quiet(Console):
    """A reader who has seen enough, such as ``head``, is no problem of the command."""

    def on_broken_pipe(self) -> None:
        try:
            super().on_broken_pipe()
        except SystemExit:
            sys.exit(0)


results = _Quiet(highlight=False, emoji=False)
errors = _Quiet(stderr=True, highlight=False, emoji=False)
