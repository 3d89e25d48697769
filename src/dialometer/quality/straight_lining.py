"""Straight-lining: the same answer again and again, whatever is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from dialometer.model.quality import Finding, QualityRule
from dialometer.model.session import Session, SessionRecord
from dialometer.model.straight_lining import answer_pattern, visible_answer
from dialometer.model.study import Study
from dialometer.quality import RULES


@RULES.register("straight_lining")
class StraightLining(QualityRule):
    """One value makes up more than ``share`` of a rater's answers on a criterion.

    For choices between systems the position on the screen is compared, not the system: always the left one is the pattern
    that careless raters leave.
    """

    rule: Literal["straight_lining"] = "straight_lining"
    share: float = Field(default=0.95, gt=0, le=1)
    at_least_n: int = Field(default=10, ge=2, description="Fewer answers on a criterion are not looked at.")

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        answers: dict[str, list[int | float | str]] = {}
        for judgment in record.judgments:
            answers.setdefault(judgment.criterion, []).append(visible_answer(judgment.value, judgment.side))
        findings = []
        for criterion, given in answers.items():
            pattern = answer_pattern(given)
            if pattern.n >= self.at_least_n and pattern.share >= self.share:
                reason = f"{pattern.n_same} of {pattern.n} answers on {criterion} are the same"
                findings.append(self.finding(reason, criterion=criterion, value=str(pattern.commonest)))
        return findings
