"""Where a study with looks before its end stands: at which look it is, and whether its rule has stopped it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dialometer.stats.sequential.look import SequentialLook

StopReason = Literal["decided", "futile", "budget"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What was known at one look: raters, the level of tests there, the verdict and the predicted chance of deciding it."""

    n: int
    level: float
    verdict: str
    chance: float


@dataclass(frozen=True, slots=True)
class LookState:
    """The look that a report is about. ``look`` is None before the first."""

    look: SequentialLook | None
    words: str
    """What holds at this look, for the reader."""
    unfinished: str = ""
    """That the study still lacks raters; empty once it has ended or was stopped."""
    next_step: str = ""
    stopped: StopReason | None = None
    stop_words: str = ""
    """Why the declared rule stops the study, with numbers."""
    checked: tuple[Checked, ...] = ()
