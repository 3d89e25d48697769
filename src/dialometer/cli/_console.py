"""Where commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

from rich.console import Console

results = Console(highlight=False, emoji=False)
errors = Console(stderr=True, highlight=False, emoji=False)
