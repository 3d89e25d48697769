"""Gold items: items whose acceptable answers are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from dialometer.model.item import CandidateItem, Item
from dialometer.model.part import Part
from dialometer.model.quality import Finding, QualityRule
from dialometer.model.scale import Scale, Value
from dialometer.model.session import Session, SessionRecord
from dialometer.model.study import Study
from dialometer.quality import RULES


class Acceptable(Part):
    """Which answers pass on one criterion (of one system, where the item shows several)."""

    criterion: str = Field(description="Name of the criterion.")
    system: str = Field(default="", description="Only answers about this system; all by default.")
    point: str = Field(default="", description="One point of a checklist; one_of then says what it must be answered.")
    at_least: float | None = Field(default=None, description="Smallest number that passes.")
    at_most: float | None = Field(default=None, description="Largest number that passes.")
    one_of: list[str | int | float] | None = Field(default=None, description="Answers that pass.")

    @field_validator("one_of", mode="before")
    @classmethod
    def _yaml_words(cls, value: object) -> object:
        """YAML reads yes and no without quotes as true and false."""
        words = {True: "yes", False: "no"}
        return (
            [words[answer] if isinstance(answer, bool) else answer for answer in value]
            if isinstance(value, list)
            else value
        )

    @model_validator(mode="after")
    def _says_something(self) -> Acceptable:
        if self.at_least is None and self.at_most is None and self.one_of is None:
            raise ValueError("say what is acceptable: at_least, at_most or one_of")
        return self

    def answer_words(self, value: Value, scale: Scale | None = None, system: str = "") -> str:
        """What was answered and what was expected, so that whoever reads the reason of an exclusion can check it.

        Of an answer with several parts only the part that was checked is named. ``system`` is what the judged system is called.
        """
        question = self.question(system)
        answer: object = value
        if isinstance(value, dict):
            score = None if self.point or scale is None else scale.number(value)
            answer = value.get(self.point or "best", "no answer") if score is None else format(round(score, 2), "g")
        return f"{question} = {answer}, expected {self.expected_words()}"

    def question(self, system: str) -> str:
        """What is judged, with the system and the point of a checklist where there is one."""
        return self.criterion + (f" of {system}" if system else "") + (f": {self.point}" if self.point else "")

    def in_words(self) -> str:
        """What is expected, by the names of the study file."""
        return f"{self.question(self.system)} {self.expected_words()}"

    def expected_words(self) -> str:
        """Which answers are acceptable."""
        bounds = {"at least": self.at_least, "at most": self.at_most}
        words = [f"{name} {bound:g}" for name, bound in bounds.items() if bound is not None]
        if self.one_of is not None:
            words.insert(0, " or ".join(map(str, self.one_of)))
        return " and ".join(words)

    def passes(self, value: Value, scale: Scale | None = None) -> bool:
        """Whether an answer is acceptable; of several names the first or best counts, bounds are on the scale's numbers."""
        if self.point and scale is not None and self.point not in scale.point_texts():
            return True  # another condition's checklist does not ask it
        plain = value.get(self.point or "best", "") if isinstance(value, dict) else value
        if isinstance(value, list):
            plain = value[0] if value else ""
        if self.one_of is not None and plain not in self.one_of:
            return False
        if self.at_least is None and self.at_most is None:
            return True
        number = scale.number(value) if scale is not None else plain if isinstance(plain, int | float) else None
        if number is None:
            return False
        return (self.at_least is None or number >= self.at_least) and (self.at_most is None or number <= self.at_most)


def is_gold(item: Item) -> bool:
    """Whether the item file marks the item as gold."""
    return bool(item.metadata.get("gold")) or (isinstance(item, CandidateItem) and item.is_gold)


def gold_items(study: Study) -> set[str]:
    """Items that only check raters and say nothing about systems; gold candidates are answers like others."""
    return {
        item.id
        for item in study.items
        if not isinstance(item, CandidateItem) and (is_gold(item) or item.id in study.gold_ids)
    }


@RULES.register("gold")
class Gold(QualityRule):
    """Raters must answer gold items acceptably. Without ``items``, all items that their file marks as gold are used."""

    rule: Literal["gold"] = "gold"
    items: list[str] | None = Field(default=None, description="Ids of the gold items; those marked gold by default.")
    acceptable: list[Acceptable] = Field(min_length=1, description="Which answers pass, by criterion.")
    per_rater: int | None = Field(
        default=None, ge=1, description="Gold items each rater gets; all of the drawn ones by default."
    )
    positions: list[int] | Literal["random"] = Field(default="random", description="Their positions, counted from 1.")
    n_allowed_failures: int = Field(default=0, ge=0, description="How many wrong answers are allowed.")
    acts: ClassVar[Literal["arrival", "live", "end"]] = "live"

    def in_words(self) -> str:
        names = "the items marked as gold" if self.items is None else ", ".join(self.items)
        given = f" ({self.per_rater} for each rater)" if self.per_rater else ""
        n = self.n_allowed_failures
        failures = f"{n + 1} or more unexpected answers" if n else "an unexpected answer"
        expected = "; ".join(rule.in_words() for rule in self.acceptable)
        return f"{failures} to {names}{given}; expected: {expected}"

    def gold_ids(self, study: Study) -> list[str]:
        """The ids of the gold items of this rule, in file order."""
        if self.items is not None:
            numbers = study.item_numbers
            return sorted({name for name in self.items if name in numbers}, key=numbers.__getitem__)
        if ("marked gold",) not in study.remembered:
            study.remembered["marked gold",] = [item.id for item in study.items if is_gold(item)]
        return list(study.remembered["marked gold",])

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        gold = set(self.gold_ids(study))
        names = {system.name: system.label or system.name for system in study.spec.systems}
        failed: dict[str, list[str]] = {}
        for judgment in record.judgments:
            if judgment.item_id not in gold:
                continue
            for rule in self.acceptable:
                concerns = judgment.criterion == rule.criterion and rule.system in ("", judgment.system)
                scale = study.judged_on(judgment.criterion, judgment.block, session.condition)
                if concerns and not rule.passes(judgment.value, scale):
                    words = rule.answer_words(judgment.value, scale, names.get(judgment.system, ""))
                    failed.setdefault(judgment.item_id, []).append(words)
        if len(failed) <= self.n_allowed_failures:
            return ()
        reason = f"failed {len(failed)} gold item{'s' if len(failed) > 1 else ''}: " + ", ".join(
            f"{item} ({'; '.join(answers)})" for item, answers in failed.items()
        )
        return (self.finding(reason, failed=sorted(failed)),)


def placed_gold(study: Study) -> set[str]:
    """Gold items that a rule hands out to every rater beside the ordinary ones; the item quota does not concern them."""
    rules = [rule for rule in study.spec.quality if isinstance(rule, Gold) and rule.per_rater]
    return {item_id for rule in rules for item_id in rule.gold_ids(study)}
