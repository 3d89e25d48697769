"""The name of a line in the tables of evaluators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. ``published`` is the accuracy that the paper reports for it, on its own expert pairs."""

    name: str
    label: str
    published: float | None = None
