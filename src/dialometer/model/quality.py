"""What every quality rule declares and returns. The rules themselves stand in :mod:`dialometer.quality`, one file each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from dialometer.model.part import Part

if TYPE_CHECKING:
    from dialometer.model.session import Session, SessionRecord
    from dialometer.model.study import Study

Action = Literal["screen_out", "exclude", "flag"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of a rule by one session: what happened, in words, and what follows from it."""

    rule: str
    action: Action
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


class QualityRule(Part):
    """A rule that watches a session. ``screen_out`` ends it, ``exclude`` keeps it out of the analysis, ``flag`` only marks it."""

    rule: str
    action: Action = Field(default="flag", description="screen_out, exclude from the analysis, or flag.")

    acts: ClassVar[Literal["arrival", "live", "end"]] = "end"
    """When the rule is looked at: as a rater arrives, after every screen, or when the session ends."""

    @abstractmethod
    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        """What this session did against the rule; empty when nothing."""
