"""Straight-lining: the same answer again and again, whatever is shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from dialometer.model.quality import Finding, QualityRule
from dialometer.model.session import Session, SessionRecord
from dialometer.model.study import Study
from dialometer.quality import RULES


@RULES.register("straight_lining")
class StraightLining(QualityRule):
    """One value makes up more than ``share`` of a rater's answers on a criterion.

    For choices between systems the place on the screen is compared, not the system: always the left one is the pattern
    that careless raters leave.
    """

    rule: Literal["straight_lining"] = "straight_lining"
    share: float = Field(default=0.95, gt=0, le=1)
    at_least_n: int = Field(default=10, ge=2, description="Fewer answers on a criterion are not looked at.")

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        by_criterion: dict[str, list[int | float | str]] = {}
        for judgment in record.judgments:
            pattern = judgment.side if isinstance(judgment.value, str) and judgment.side else judgment.value
            seen = pattern if isinstance(pattern, int | float) else json.dumps(pattern, sort_keys=True)
            by_criterion.setdefault(judgment.criterion, []).append(seen)
        found = []
        for criterion, values in by_criterion.items():
            value, n_same = Counter(values).most_common(1)[0]
            if len(values) >= self.at_least_n and n_same / len(values) >= self.share:
                reason = f"{n_same} of {len(values)} answers on {criterion} are the same"
                found.append(Finding(self.rule, self.action, reason, {"criterion": criterion, "value": str(value)}))
        return found
