"""Straight-lining: the same answer again and again, whatever is shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from dialometer.model.quality import Finding, QualityRule
from dialometer.model.session import Session, SessionRecord
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
            commonest, n_same = Counter(given).most_common(1)[0]
            if len(given) >= self.at_least_n and n_same / len(given) >= self.share:
                reason = f"{n_same} of {len(given)} answers on {criterion} are the same"
                findings.append(self.finding(reason, criterion=criterion, value=str(commonest)))
        return findings


def visible_answer(value: Any, side: int | None) -> int | float | str:
    """What careless raters repeat: for a choice between systems the position on the screen, else the answer itself."""
    visible = side if isinstance(value, str) and side else value
    return visible if isinstance(visible, int | float) else json.dumps(visible, sort_keys=True)
