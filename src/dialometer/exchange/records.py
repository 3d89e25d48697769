"""What a file of judgments says, before any study has looked at it."""

from __future__ import annotations

from dataclasses import dataclass

from dialometer.model.session import Source, State

Condition = tuple[tuple[str, str], ...]
"""Factor and level, in the order of the file; a tuple so that equal ones are looked up as one."""
UNKNOWN_MS = 0
"""Stands for a time that the file does not tell; the store keeps it so, and tables show it as empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """One judgment. ``raw`` is the answer as it stands in the file; ``shown`` the systems in the order on the screen.

    ``hint`` is the type of scale that the form of file suggests, ``scale`` the one that the file itself states.
    """

    line: int
    rater: str
    item: str
    criterion: str
    raw: object
    system: str = ""
    shown: tuple[str, ...] = ()
    side: int | None = None
    turn: int | None = None
    block: str = ""
    position: int = 0
    shown_at_ms: int = UNKNOWN_MS
    answered_at_ms: int = UNKNOWN_MS
    is_late: bool = False
    is_practice: bool = False
    condition: Condition = ()
    hint: str = ""
    scale: str = ""
    column: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One answer to a question about the rater; ``part`` is empty where the file does not tell where it was asked."""

    line: int
    rater: str
    question: str
    raw: object
    part: str = ""
    shown_at_ms: int = UNKNOWN_MS
    answered_at_ms: int = UNKNOWN_MS
    column: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Texts of an item: what came before, and what a system said. Needed only where a study is written from the file."""

    line: int
    item: str
    system: str
    context: str = ""
    response: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TookPart:
    """What is known of a whole session, where the file tells it."""

    line: int
    rater: str
    condition: Condition = ()
    state: State = "completed"
    source: Source = "imported"
    exclusion_reason: str | None = None
    started_at_ms: int = UNKNOWN_MS
    finished_at_ms: int = UNKNOWN_MS
    last_seen_at_ms: int = UNKNOWN_MS
    consent_version: str = ""
    session: str = ""


Record = Rated | Answered | Shown | TookPart
