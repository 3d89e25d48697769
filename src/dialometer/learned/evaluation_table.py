"""The table of evaluators for people: accuracies, the interval of the primary one, and differences to what must be beaten."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dialometer.learned.ablation import MEASURES, Line

AGAINST = {"tfidf-ridge": "− TF-IDF", "pairwise": "− pairwise"}


def head(lines: Sequence[Line]) -> list[str]:
    """The names of the columns."""
    measures = [MEASURES[name] for name in lines[0].accuracies] if lines else []
    return ["row", *measures, "95% interval", *(AGAINST[name] for name in against(lines))]


def against(lines: Sequence[Line]) -> list[str]:
    """The rows that others are compared with, as far as they are in the table."""
    return [name for name in AGAINST if any(name in line.differences for line in lines)]


def cells(line: Line, others: Sequence[str]) -> list[str]:
    """One line as texts; what is not known stays empty."""
    found = [_percent(line.accuracies[name], line.standard_errors[name]) for name in line.accuracies]
    interval = f"{100 * line.primary.low:.1f}–{100 * line.primary.high:.1f}" if line.primary.has_interval else ""
    return [line.row.label, *found, interval, *(_difference(line, name) for name in others)]


def as_markdown(lines: Sequence[Line]) -> str:
    """The table as Markdown."""
    names = head(lines)
    rows = [names, ["---"] * len(names), *(cells(line, against(lines)) for line in lines)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _difference(line: Line, other: str) -> str:
    apart = line.differences.get(other)
    if apart is None or not apart.is_known:
        return ""
    return f"{100 * apart.value:+.1f} ± {100 * float(apart.details['standard_error']):.1f}"


def _percent(value: float, error: float) -> str:
    if math.isnan(value):
        return ""
    return f"{100 * value:.1f}" + (f" ± {100 * error:.1f}" if not math.isnan(error) else "")
