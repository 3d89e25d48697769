"""Straight-lining: the same answer again and again, whatever is shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Literal

from pydantic import Field

from dialometer.model.quality import Finding, QualityRule
from dialometer.model.session import Judgment, Session, SessionRecord
from dialometer.model.study import Study
from dialometer.quality import RULES


@RULES.register("straight_lining")
class StraightLining(QualityRule):
    """One value makes up ``share`` or more of a rater's answers on a criterion.

    For choices between systems the position on the screen is compared, not the system: always the left one is the pattern
    that careless raters leave.
    """

    rule: Literal["straight_lining"] = "straight_lining"
    share: float = Field(
        default=0.95, gt=0, le=1, description="Share of the same answers at or above which the rule applies."
    )
    at_least_n: int = Field(default=10, ge=2, description="Fewer answers on a criterion are not looked at.")

    def in_words(self) -> str:
        return (
            f"{self.share:.0%} or more of a criterion's answers are the same or, for choices between systems, are for the same "
            f"position on the screen; criteria with fewer than {self.at_least_n} answers are skipped"
        )

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        systems = {system.name for system in study.spec.systems}
        answers: dict[str, list[tuple[int | float | str, bool]]] = {}
        for judgment in record.judgments:
            if not _is_unplaced(judgment, systems):
                answers.setdefault(judgment.criterion, []).append(_given(judgment))
        findings = []
        for criterion, own in answers.items():
            (commonest, is_position), n_same = Counter(own).most_common(1)[0]
            if len(own) >= self.at_least_n and n_same / len(own) >= self.share:
                share = f"{n_same} of {len(own)}"
                reason = f"{share} answers on {criterion} are the same"
                if is_position:
                    reason = f"{share} choices on {criterion} are for the same position on the screen"
                findings.append(self.finding(reason, criterion=criterion, value=str(commonest)))
        return findings


def _is_unplaced(judgment: Judgment, systems: Collection[str]) -> bool:
    """Whether a system was chosen and nobody knows where it was shown, as in some imports."""
    value = judgment.value.get("best") if isinstance(judgment.value, dict) else judgment.value
    return not judgment.side and not judgment.order and isinstance(value, str) and value in systems


def _given(judgment: Judgment) -> tuple[int | float | str, bool]:
    """What a judgment repeats, and whether that is a position on the screen."""
    plain = visible_answer(judgment.value)
    if judgment.system:  # its side is that of the system judged, which is no answer
        return plain, False
    visible = visible_answer(judgment.value, judgment.side, judgment.order)
    return visible, visible != plain


def visible_answer(value: Any, side: int | None = None, order: Sequence[str] = ()) -> int | float | str:
    """What careless raters repeat: where an answer names systems their positions on the screen, else the answer itself.

    ``side`` is the position of the one chosen, where it is known; ``order`` are the systems as they were shown.
    """
    place_of = {name: place for place, name in enumerate(order, start=1)}
    match value:
        case str():
            visible: Any = side or place_of.get(value, value)
        case {"best": best, "worst": worst}:
            visible = [place_of.get(best, best), place_of.get(worst, worst)]
        case list():
            visible = [place_of.get(name, name) for name in value]
        case _:
            visible = value
    return visible if isinstance(visible, int | float) else json.dumps(visible, sort_keys=True)
