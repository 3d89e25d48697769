"""What every quality rule says about itself. The rules are in :mod:`dialometer.quality`, one file each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from dialometer.model.part import Name, Part
from dialometer.model.rater_text import RaterText

if TYPE_CHECKING:
    from dialometer.model.session import Session, SessionRecord
    from dialometer.model.study import Study

Action = Literal["screen_out", "exclude", "flag"]
RULE_NUMBER = "rule_number"
"""In the details of a finding: which rule of its name, where the study has several."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of a rule by one session: what happened, in words, and what follows from it."""

    rule: str
    action: Action
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


class CheckQuestion(Part):
    """A question with its right answer."""

    name: Name = Field(description="Short name used in tables and reports.")
    question: RaterText = Field(min_length=1, description="The question as raters read it.")
    scale: str = Field(description="Name of one of the scales.")
    answer: str | int | float | list[str] = Field(description="The right answer, as it is stored.")

    def in_words(self) -> str:
        """The question with its right answer."""
        right = ", ".join(self.answer) if isinstance(self.answer, list) else self.answer
        return f"“{self.question}” (right: {right})"


class QualityRule(Part):
    """A rule that watches a session. ``screen_out`` ends it, ``exclude`` excludes it from the analysis, ``flag`` only marks it.

    A rule defines ``findings``; everything else has a default.
    """

    rule: str
    action: Action = Field(default="flag", description="screen_out, exclude from the analysis, or flag.")

    acts: ClassVar[Literal["arrival", "live", "end"]] = "end"
    """When the rule is applied: as a rater arrives, after every gold item or check, or when the session ends."""
    needs_whole_session: ClassVar[bool] = False
    """Whether the rule has nothing to say about a session that is not finished."""
    withheld: ClassVar[frozenset[str]] = frozenset()
    """Settings that name people and are never published."""

    @abstractmethod
    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        """What this session did against the rule; empty when nothing."""

    def finding(self, reason: str, **details: Any) -> Finding:
        """A finding of this rule; the reason is what reports and pages show."""
        return Finding(self.rule, self.action, reason, details)

    def refuses(self, study: Study, external_id: str) -> bool:
        """Whether a rater with this platform identifier may not take part (rules that act on arrival)."""
        return False

    def questions_asked(self) -> list[tuple[str, CheckQuestion]]:
        """Questions that the rule puts to raters, each with the part under which its answers are stored."""
        return []

    def gold_ids(self, study: Study) -> list[str]:
        """Items with a known answer that the rule judges raters by, in file order."""
        return []

    def in_words(self) -> str:
        """What the rule recognises, for the preregistration; by default what the study file sets."""
        settings = self.model_dump(mode="json", exclude_defaults=True, exclude={"rule", "action", *self.withheld})
        return "; ".join(f"{name.replace('_', ' ')}: {value}" for name, value in settings.items())


def rule_number(rule: QualityRule, rules: Sequence[QualityRule]) -> int | None:
    """Which of the study's rules of its name it is, counted from 1; None where it is the only one."""
    alike = [other for other in rules if other.rule == rule.rule]
    return next(i for i, other in enumerate(alike, start=1) if other is rule) if len(alike) > 1 else None


def newly_found(
    rules: Sequence[QualityRule], study: Study, session: Session, record: SessionRecord, known: Iterable[Finding] = ()
) -> list[Finding]:
    """What these rules find that is not known of the session yet.

    Each rule finds once. Where the study has several of one name, such as two gold rules with different consequences, the
    findings carry their rule's number.
    """
    known_by_name: dict[str, list[int | None]] = {}
    for finding in known:
        known_by_name.setdefault(finding.rule, []).append(finding.details.get(RULE_NUMBER))
    new = []
    for rule in rules:
        number = rule_number(rule, study.spec.quality)
        seen = known_by_name.get(rule.rule, ())
        if number in seen or None in seen:  # earlier databases have no numbers
            continue
        added = {} if number is None else {RULE_NUMBER: number}
        new += [replace(f, details={**f.details, **added}) for f in rule.findings(study, session, record)]
    return new
