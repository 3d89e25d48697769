"""Sessions: one rater's way through a study, what was drawn for it, and what came back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dialometer.model.scale import Value

State = Literal["active", "completed", "screened_out", "declined", "stale", "withdrawn"]
Source = Literal["person", "simulated", "model", "imported", "adjudicator", "simulated_adjudicator"]
ADJUDICATORS: tuple[Source, ...] = ("adjudicator", "simulated_adjudicator")
"""Who settles what raters disagree about. Their slots and judgments never count among those of raters."""
LIVE_STATES: tuple[State, ...] = ("active", "completed")
ERASED_STATES: tuple[State, ...] = ("declined", "withdrawn")
"""Nothing is left of such a session but its row, without a rater and with times that tell only the day."""

LAST_MS = 4_102_444_800_000
"""The year 2100. A later time is no date that export and dashboard could write, and no time that a study is from."""
NO_DATE_MS = 1
"""When imported sessions begin of which only the length is known; a time of 0 means that nothing is known."""


ANONYMOUS = "anonymous-"
"""How the names begin that are made up for raters of an open link, for one session alone."""


@dataclass(frozen=True, slots=True)
class DrawnSystems:
    """The systems that a rater was given on an item, in file order, and how likely it was that these were drawn."""

    systems: tuple[str, ...]
    probability: float


@dataclass(frozen=True, slots=True)
class PairVotes:
    """How the votes between two systems stand: for the first in file order, for the second, for neither."""

    first: int = 0
    second: int = 0
    neither: int = 0


@dataclass(frozen=True, slots=True)
class Dispute:
    """What raters disagree about in an item, and the numbers of the judgments between which an adjudicator decides."""

    criterion: str
    system: str = ""
    turn: int | None = None
    judgments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Draw:
    """What chance and the state of the study decided for one session. With the study it rebuilds the whole plan.

    ``cell`` counts in ``Study.cells``; ``blocks`` is the order of blocks; ``items`` the ids given in each block, in the
    order they are shown (gold and attention items included, at their places).
    """

    ordinal: int
    cell: int
    blocks: tuple[str, ...]
    items: Mapping[str, tuple[str, ...]]
    pairs: Mapping[str, DrawnSystems] = field(default_factory=dict)
    """For arena items and adaptive assignment: the systems by item."""
    chances: Mapping[str, float] = field(default_factory=dict)
    """For items that were drawn by chance: the probability with which each was. Items that are missing were certain."""
    disputes: Mapping[str, tuple[Dispute, ...]] = field(default_factory=dict)
    """For adjudicators: what is to be settled, by item."""


@dataclass(frozen=True, slots=True)
class Task:
    """One item as one rater sees it: the order of its systems (left to right, top to bottom) and of the criteria."""

    block: str
    item_id: str
    position: int
    systems: tuple[str, ...]
    criteria: tuple[str, ...]
    is_practice: bool = False
    disputes: tuple[Dispute, ...] = ()
    """For adjudicators: all that is asked about this item."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A session's whole way through the items."""

    condition: Mapping[str, str]
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """A rater's visit. ``step`` counts the screens already submitted; ``rater_id`` is a pseudonym."""

    id: str
    rater_id: str
    ordinal: int
    condition: Mapping[str, str]
    draw: Draw
    state: State = "active"
    step: int = 0
    source: Source = "person"
    study_version: int = 0
    consent_version: str = ""
    started_at_ms: int = 0
    last_seen_at_ms: int = 0
    finished_at_ms: int | None = None
    is_excluded: bool = False
    language: str = ""
    """In which of the study's languages the rater reads it; empty for the language of the study file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """One rater's answer on one criterion. Written once; a correction is a new judgment that names the one it replaces.

    ``system`` is empty where the answer is about the whole item; ``turn`` counts from 0 in turn-by-turn ratings;
    ``position`` is the item's place in the session and ``side`` the position on the screen of the system judged or chosen,
    both from 1; ``order`` lists the systems as they stood on the screen.
    """

    session_id: str
    item_id: str
    criterion: str
    value: Value
    scale: str
    system: str = ""
    turn: int | None = None
    block: str = "main"
    position: int = 0
    side: int = 0
    order: tuple[str, ...] = ()
    shown_at_ms: int = 0
    answered_at_ms: int = 0
    is_late: bool = False
    is_practice: bool = False
    id: int | None = None
    replaces: int | None = None
    corrected_by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer to a questionnaire or check question; corrections as with judgments."""

    session_id: str
    part: str
    question: str
    value: Value
    shown_at_ms: int = 0
    answered_at_ms: int = 0
    id: int | None = None
    replaces: int | None = None
    corrected_by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenVisit:
    """How one screen was used: the times in milliseconds since 1970 (UTC)."""

    session_id: str
    screen: str
    shown_at_ms: int
    submitted_at_ms: int
    first_input_at_ms: int | None = None
    focus_lost_n: int = 0
    focus_lost_s: float = 0.0
    device: str = ""
    is_late: bool = False
    opened: tuple[str, ...] = ()
    """Systems whose long response the rater opened to read all of it, in file order."""

    @property
    def duration_s(self) -> float:
        """From shown to submitted."""
        return (self.submitted_at_ms - self.shown_at_ms) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Everything one submitted screen writes, stored whole or not at all.

    ``token`` comes from the client: the same token is stored once however often it arrives. ``step`` is the step the
    session stood at; if it has moved on meanwhile, the submission is refused as outdated. ``next_step`` is where it
    stands afterwards. ``next_state`` ends the session when it is not "active"; "declined" erases what it holds. Before
    a rater has agreed, times and device are not stored: ``keeps_visit`` is false.
    """

    token: str
    session_id: str
    step: int
    next_step: int
    visit: ScreenVisit
    keeps_visit: bool = True
    judgments: Sequence[Judgment] = ()
    answers: Sequence[Answer] = ()
    done_item: str | None = None
    next_state: State = "active"
    consent_version: str | None = None
    findings: Sequence[Any] = ()
    opened_with: str = ""
    """Hash of the session's token, where one sent it: a token that was replaced meanwhile stores nothing, on no host."""


Outcome = Literal["stored", "repeated", "outdated", "ended"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a submission: stored now, already stored before, or refused because the session is elsewhere."""

    token: str
    outcome: Outcome
    step: int
    state: State


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """All that a session has left so far, for quality rules and rater pages; corrections already applied."""

    judgments: Sequence[Judgment] = ()
    answers: Sequence[Answer] = ()
    visits: Sequence[ScreenVisit] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a study at the moment a rater arrives, seen inside the assigning transaction.

    ``cell_counts`` and ``cell_item_counts`` count live sessions (active and completed) by cell number, and reserved or
    done places by (cell, item), all of the arriving rater's ``source``. ``seen_items`` are those this rater already has.
    """

    ordinal: int
    cell_counts: Mapping[int, int] = field(default_factory=dict)
    item_counts: Mapping[str, int] = field(default_factory=dict)
    cell_item_counts: Mapping[tuple[int, str], int] = field(default_factory=dict)
    closed_cells: frozenset[int] = frozenset()
    cell_quotas: Mapping[int, int] = field(default_factory=dict)
    quota: int | None = None
    is_open: bool = True
    seen_items: frozenset[str] = frozenset()
    source: Source = "person"
    openness: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """For adaptive assignment: how open the comparison of every two systems is; empty where all are open alike."""
