"""Interim looks: every time somebody saw results while data came in, and what they saw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select

from dialometer.storage.database import StorePart
from dialometer.storage.rows import to_json
from dialometer.storage.schema import looks


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the results while data came in. ``seen`` are the numbers: label, value, low, high."""

    made_by: str
    n_judgments: int
    n_raters: int
    seen: Sequence[dict[str, Any]]
    at_ms: int


class LookLog(StorePart):
    """The log of looks."""

    def add(self, look: Look) -> None:
        """Keep that somebody looked, and what there was to see."""
        row = {
            "made_by": look.made_by,
            "n_judgments": look.n_judgments,
            "n_raters": look.n_raters,
            "seen": to_json(list(look.seen)),
            "at_ms": look.at_ms,
        }
        with self.database.writing() as connection:
            connection.execute(insert(looks), row)

    def all(self) -> list[Look]:
        """All looks, the oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(select(looks).order_by(looks.c.id))
            return [Look(r.made_by, r.n_judgments, r.n_raters, json.loads(r.seen), r.at_ms) for r in rows]
