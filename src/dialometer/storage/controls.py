"""Steering a running study: pause, close, quotas. Every decision is logged with who, when and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from sqlalchemy import Connection, insert, select

from dialometer.errors import StorageError
from dialometer.storage.database import StorePart
from dialometer.storage.rows import to_json
from dialometer.storage.schema import controls

StudyState = Literal["running", "paused", "closed"]
Kind = Literal["study", "cell", "quota", "cell_quota"]
FROZEN = "frozen, not started yet"
"""The reason why a study is paused that was frozen on the dashboard, until somebody decides about it."""


@dataclass(frozen=True, slots=True)
class Controls:
    """What is in force now. A study that nobody has touched is running, without closed cells or quotas of its own."""

    state: StudyState = "running"
    closed_cells: frozenset[int] = frozenset()
    cell_quotas: Mapping[int, int] = field(default_factory=dict)
    quota: int | None = None
    is_new: bool = False
    """Whether the study is paused only because nobody has started it since it was frozen."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry of the log: ``value`` is the new state, or the new quota (None lifts it)."""

    kind: Kind
    cell: int | None
    value: str | int | None
    made_by: str
    reason: str
    at_ms: int


class StudyControl(StorePart):
    """Decisions about a running study; the newest of each kind is in force from the next arrival on."""

    def current(self) -> Controls:
        """What is in force now."""
        with self.database.reading() as connection:
            return current_controls(connection)

    def log(self) -> list[Decision]:
        """All decisions, the oldest first."""
        with self.database.reading() as connection:
            return _log(connection)

    def set_state(self, state: StudyState, *, by: str, reason: str, at_ms: int) -> None:
        """Start, pause or close the whole study."""
        if state not in get_args(StudyState):
            raise StorageError(
                f"unknown state of a study '{state}'", remedy=f"one of {', '.join(get_args(StudyState))}"
            )
        self._decide(Decision("study", None, state, by, reason, at_ms))

    def set_cell_open(self, cell: int, is_open: bool, *, by: str, reason: str, at_ms: int) -> None:
        """Open or close one cell."""
        self._decide(Decision("cell", cell, "open" if is_open else "closed", by, reason, at_ms))

    def set_quota(self, quota: int | None, *, by: str, reason: str, at_ms: int) -> None:
        """Set how many raters the study takes; None lifts the limit."""
        self._decide(Decision("quota", None, _checked(quota), by, reason, at_ms))

    def set_cell_quota(self, cell: int, quota: int | None, *, by: str, reason: str, at_ms: int) -> None:
        """Set how many raters one cell takes; None lifts the limit."""
        self._decide(Decision("cell_quota", cell, _checked(quota), by, reason, at_ms))

    def _decide(self, decision: Decision) -> None:
        row = {
            "kind": decision.kind,
            "cell": decision.cell,
            "value": to_json(decision.value),
            "made_by": decision.made_by,
            "reason": decision.reason,
            "at_ms": decision.at_ms,
        }
        with self.database.assigning() as connection:
            connection.execute(insert(controls), row)


def current_controls(connection: Connection) -> Controls:
    """What the log adds up to; as long as people decide, it is short enough to be read whole."""
    state: StudyState = "running"
    is_new = False
    closed: set[int] = set()
    quotas: dict[int, int | None] = {}
    quota: int | None = None
    for decision in _log(connection):
        match decision:
            case Decision(kind="study", value="running" | "paused" | "closed" as state, reason=reason):
                is_new = reason == FROZEN
            case Decision(kind="cell", cell=int(cell), value=value):
                (closed.add if value == "closed" else closed.discard)(cell)
            case Decision(kind="quota", value=int() | None as quota):
                pass
            case Decision(kind="cell_quota", cell=int(cell), value=int() | None as number):
                quotas[cell] = number
            case _:
                raise StorageError(f"the log of controls holds '{decision.kind}', which this version does not know")
    set_quotas = {cell: number for cell, number in quotas.items() if number is not None}
    return Controls(state, frozenset(closed), set_quotas, quota, is_new)


def _log(connection: Connection) -> list[Decision]:
    rows = connection.execute(select(controls).order_by(controls.c.id))
    return [Decision(r.kind, r.cell, json.loads(r.value), r.made_by, r.reason, r.at_ms) for r in rows]


def _checked(quota: int | None) -> int | None:
    if quota is not None and quota < 0:
        raise StorageError(f"a quota of {quota} makes no sense", remedy="give 0 or a larger number, or none")
    return quota
