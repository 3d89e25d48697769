"""Time rules: sessions and screens that were too fast to be read, or took too long. Programs read at another pace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from dialometer.model.quality import Finding, QualityRule
from dialometer.model.session import Session, SessionRecord
from dialometer.model.study import Study
from dialometer.quality import RULES


@RULES.register("session_time")
class SessionTime(QualityRule):
    """The whole session must take at least, or at most, this long."""

    rule: Literal["session_time"] = "session_time"
    at_least_s: float | None = Field(default=None, gt=0, description="Seconds that a session must take at least.")
    at_most_s: float | None = Field(default=None, gt=0, description="Seconds that a session may take at most.")
    needs_whole_session: ClassVar[bool] = True

    @model_validator(mode="after")
    def _has_a_bound(self) -> SessionTime:
        if self.at_least_s is None and self.at_most_s is None:
            raise ValueError("give at_least_s, at_most_s or both")
        if self.at_least_s and self.at_most_s and self.at_least_s >= self.at_most_s:
            raise ValueError(f"at_least_s ({self.at_least_s:g}) must be smaller than at_most_s ({self.at_most_s:g})")
        return self

    def in_words(self) -> str:
        bounds = (("less than", self.at_least_s), ("more than", self.at_most_s))
        return f"a session of {' or '.join(f'{words} {_duration(bound)}' for words, bound in bounds if bound)}"

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        if session.source == "model" or not record.visits:
            return ()
        end_ms = max(visit.submitted_at_ms for visit in record.visits)
        duration_s = (end_ms - session.started_at_ms) / 1000
        # Rounded away from the bound: 179.9 s are not written as 180 s, which are not less than 180 s.
        if self.at_least_s and duration_s < self.at_least_s:
            reason = f"the session took {math.floor(duration_s)} s, less than {self.at_least_s:g} s"
        elif self.at_most_s and duration_s > self.at_most_s:
            reason = f"the session took {math.ceil(duration_s)} s, more than {self.at_most_s:g} s"
        else:
            return ()
        return (self.finding(reason, duration_s=duration_s),)


@RULES.register("screen_time")
class ScreenTime(QualityRule):
    """Item screens must be looked at for at least this long; a small share may be faster."""

    rule: Literal["screen_time"] = "screen_time"
    at_least_s: float = Field(gt=0, description="Seconds that a screen must be looked at.")
    share_allowed: float = Field(default=0.1, ge=0, lt=1, description="Share of screens that may be faster.")

    def in_words(self) -> str:
        return f"more than {self.share_allowed:.0%} of the item screens seen for less than {_duration(self.at_least_s)}"

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        if session.source == "model":
            return ()
        times_s = [visit.duration_s for visit in record.visits if visit.screen.startswith("item/")]
        n_fast = sum(time_s < self.at_least_s for time_s in times_s)
        if not times_s or n_fast / len(times_s) <= self.share_allowed:
            return ()
        reason = f"{n_fast} of {len(times_s)} item screens took less than {self.at_least_s:g} s"
        return (self.finding(reason, n_fast=n_fast, n_screens=len(times_s)),)


def _duration(seconds: float) -> str:
    """Whole minutes as such."""
    return f"{seconds / 60:g} minutes" if seconds > 60 and seconds % 60 == 0 else f"{seconds:g} s"
