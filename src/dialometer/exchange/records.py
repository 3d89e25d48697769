"""What a file of judgments says, before any study has looked at it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from dialometer.model.dialogue import Turn
from dialometer.model.session import LAST_MS, Source, State
from dialometer.registry import did_you_mean

Condition = tuple[tuple[str, str], ...]
"""Factor and level, in the order of the file; a tuple so that equal ones are looked up as one."""
UNKNOWN_MS = 0
"""A time that the file does not give; the store keeps it so, and tables show it as empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgmentRecord:
    """One judgment. ``raw`` is the answer as in the file; ``shown`` the systems in the order on the screen.

    ``hint`` is the type of scale that the format suggests, ``scale`` the one that the file itself states. A candidate answer
    may be named by its ``question`` and ``answer`` instead of an item, and where a study has one criterion only, the file
    need not name it.
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
    question: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """One answer to a question about the rater; ``part`` is empty where the file does not tell where it was asked.

    ``is_unasked`` is an answer that was taken from a column by its name alone: a study that does not ask it leaves it out.
    """

    line: int
    rater: str
    question: str
    raw: object
    part: str = ""
    shown_at_ms: int = UNKNOWN_MS
    answered_at_ms: int = UNKNOWN_MS
    column: str = ""
    session: str = ""
    is_unasked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRecord:
    """Texts of an item: what came before, and what a system said. Needed only where a study is written from the file.

    ``turns`` is the whole conversation with the system, where the file has it. ``about`` is what else is known of the item.
    """

    line: int
    item: str
    system: str
    context: str = ""
    response: str = ""
    turns: tuple[Turn, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRecord:
    """What a row says about a candidate answer itself. Needed only where a study is written from the file.

    ``ranks`` are the places at which systems retrieved it; ``scores`` are what they gave it where no ranks are known.
    """

    line: int
    question: str
    answer: str
    context: str = ""
    response: str = ""
    is_gold: bool | None = None
    ranks: Mapping[str, int] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """What is known of a whole session, where the file gives it."""

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
    language: str = ""
    session: str = ""


Record = JudgmentRecord | AnswerRecord | TextRecord | CandidateRecord | SessionFacts


# names of systems, criteria and levels

MAX_LENGTH = 64


def plain_name(text: str, fallback: str = "x") -> str:
    """The text as a study's name: letters, digits, ``_`` and ``-``, beginning with a letter."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", ascii_text).strip("_-")[:MAX_LENGTH]
    if not name:
        return fallback
    return name if name[0].isalpha() else f"{fallback}_{name}"[:MAX_LENGTH]


class NewNames:
    """Gives each text of a file a name of its own, always the same one."""

    def __init__(self, fallback: str) -> None:
        self.fallback = fallback
        self.names: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The name for a text; a second text that would get the same one gets a number."""
        if text not in self.names:
            name = plain = plain_name(text, self.fallback)
            taken = set(self.names.values())
            number = 2
            while name in taken:
                name = f"{plain[: MAX_LENGTH - 4]}_{number}"
                number += 1
            self.names[text] = name
        return self.names[text]


class KnownNames:
    """The names of one family in a study; a file may use the name or the label."""

    def __init__(self, kind: str, names: Iterable[tuple[str, str]]) -> None:
        self.kind = kind
        pairs = list(names)
        self.listed = [name for name, _ in pairs]
        self._by_text = {label: name for name, label in reversed(pairs) if label} | {name: name for name in self.listed}

    def find(self, text: str) -> str | None:
        """The name behind a text, or None."""
        return self._by_text.get(text)

    def remedy(self, text: str) -> str:
        """What to do about a text that is not known."""
        return did_you_mean(text, self.listed)


# times

_ZONES_H = {"UTC": 0, "GMT": 0, "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4}
_BATCH = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2} \d{1,2} \d{1,2}:\d{2}:\d{2}) ([A-Z]{3}) (\d{4})")
_LEAST_S, _LEAST_MS = 1e8, 1e11
"""A number from here on counts seconds, or milliseconds; a smaller one is no time that judgments are from."""


def read_time_ms(text: str, time_format: str = "") -> int:
    """The moment that a text names; a text without zone is read as UTC. Raises ValueError with a reason.

    Read are ISO 8601, seconds or milliseconds since 1970, and ``Mon Oct 21 08:51:04 PDT 2019``; anything else needs
    ``time_format`` in the notation of strptime, since 4/11 is in April or in November.
    """
    text = text.strip()
    try:
        moment = datetime.strptime(text, time_format) if time_format else _read(text)
        time_ms = round(_with_zone(moment).timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(_why(text, time_format)) from error
    return checked_time_ms(time_ms, text)


def checked_time_ms(time_ms: int, text: str) -> int:
    """The time where it is one that judgments can be from; raises ValueError for others."""
    if not 0 <= time_ms < LAST_MS:
        raise ValueError(f"'{text[:40]}' is not between the years 1970 and 2100")
    return time_ms


def _read(text: str) -> datetime:
    if re.fullmatch(r"\d+(\.\d+)?", text) and float(text) >= _LEAST_S:
        number = float(text)
        return datetime.fromtimestamp(number / 1000 if number >= _LEAST_MS else number, UTC)
    batch = _BATCH.fullmatch(text)
    if batch and batch[2] in _ZONES_H:
        moment = datetime.strptime(f"{batch[1]} {batch[3]}", "%b %d %H:%M:%S %Y")
        return moment.replace(tzinfo=timezone(timedelta(hours=_ZONES_H[batch[2]])))
    moment = datetime.fromisoformat(text)
    if "-" not in text[:8]:  # 20240908 is read as a date, but is more often a number
        raise ValueError(text)
    return moment


def _with_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _why(text: str, time_format: str) -> str:
    shown = text if len(text) <= 40 else text[:37] + "…"
    return f"'{shown}' is not a time" + (f" of the form {time_format}" if time_format else " that can be read")
