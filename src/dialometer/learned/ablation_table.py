"""The finished ablation for people (Markdown, terminal) and programs (JSON)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dialometer.learned.ablation import MEASURES, Line


def head(lines: Sequence[Line]) -> list[str]:
    """The names of the columns."""
    measures = [MEASURES[name] for name in lines[0].accuracies] if lines else []
    return ["row", *measures, "95% interval", "kappa", "dropped", "− pairwise", "published"]


def cells(line: Line) -> list[str]:
    """One line of the table as texts; what is not known stays empty."""
    found = [_plus_minus(line.accuracies[name], line.standard_errors[name]) for name in line.accuracies]
    interval = f"{100 * line.primary.low:.1f}–{100 * line.primary.high:.1f}" if line.primary.has_interval else ""
    kappa = f"{line.kappa:.2f}" + (f" ± {line.kappa_error:.2f}" if not math.isnan(line.kappa_error) else "")
    dropped = "" if line.dropped is None else f"{line.dropped:.0%}"
    apart = line.differences.get("pairwise")
    difference = ""
    if apart is not None and apart.is_known:
        difference = f"{100 * apart.value:+.1f} ± {100 * float(apart.details['standard_error']):.1f}"
    published = "" if line.row.published is None else f"{100 * line.row.published:.1f}"
    return [line.row.label, *found, interval, kappa, dropped, difference, published]


def as_markdown(lines: Sequence[Line]) -> str:
    """The table as Markdown."""
    names = head(lines)
    rows = [names, ["---"] * len(names), *(cells(line) for line in lines)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def record(line: Line) -> dict[str, Any]:
    """One line for programs; a number that is not known is null."""
    return {
        "row": line.row.name,
        "label": line.row.label,
        "accuracy": {name: _known(value) for name, value in line.accuracies.items()},
        "standard_error": {name: _known(value) for name, value in line.standard_errors.items()},
        "interval": [_known(line.primary.low), _known(line.primary.high)],
        "kappa": _known(line.kappa),
        "kappa_standard_error": _known(line.kappa_error),
        "dropped": line.dropped,
        "differences": {
            name: {
                "value": _known(one.value),
                "standard_error": _known(float(one.details.get("standard_error", math.nan))),
                "corrected_standard_error": _known(float(one.details.get("corrected_standard_error", math.nan))),
            }
            for name, one in line.differences.items()
        },
        "published": line.row.published,
        "n_runs": line.n_runs,
    }


def _plus_minus(value: float, error: float) -> str:
    if math.isnan(value):
        return ""
    return f"{100 * value:.1f}" + (f" ± {100 * error:.1f}" if not math.isnan(error) else "")


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
