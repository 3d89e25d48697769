"""Questions with a right answer: attention checks between items, comprehension checks after the instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from dialometer.model.quality import CheckQuestion, Finding, QualityRule
from dialometer.model.session import Session, SessionRecord
from dialometer.model.study import Study
from dialometer.quality import RULES


class AttentionCheck(CheckQuestion):
    """A check that is shown after an item."""

    after_item: int = Field(ge=1, description="After how many items it is shown.")


@RULES.register("attention")
class Attention(QualityRule):
    """Attention checks are shown between items; this many wrong answers are allowed."""

    rule: Literal["attention"] = "attention"
    checks: list[AttentionCheck] = Field(min_length=1, description="The questions, with their right answers.")
    n_allowed_failures: int = Field(default=0, ge=0, description="How many wrong answers are allowed.")
    acts: ClassVar[Literal["arrival", "live", "end"]] = "live"

    def in_words(self) -> str:
        checks = ", ".join(f"{check.in_words()} after item {check.after_item}" for check in self.checks)
        wrong = (
            "a wrong answer" if not self.n_allowed_failures else f"{self.n_allowed_failures + 1} or more wrong answers"
        )
        return f"{wrong} to {checks}"

    def questions_asked(self) -> list[tuple[str, CheckQuestion]]:
        return [("attention", check) for check in self.checks]

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        right = {check.name: check.answer for check in self.checks}
        wrong = [
            answer.question
            for answer in record.answers
            if answer.part == "attention" and answer.question in right and answer.value != right[answer.question]
        ]
        if len(wrong) <= self.n_allowed_failures:
            return ()
        checks = "attention check" if len(right) == 1 else f"{len(wrong)} of {len(right)} attention checks"
        reason = f"wrong answer to {'the ' if len(right) == 1 else ''}{checks}: {', '.join(wrong)}"
        return (self.finding(reason, wrong=wrong),)


@RULES.register("comprehension")
class Comprehension(QualityRule):
    """Comprehension checks follow the instructions; after this many attempts with a wrong answer, the action follows."""

    rule: Literal["comprehension"] = "comprehension"
    questions: list[CheckQuestion] = Field(min_length=1, description="The questions, with their right answers.")
    attempts: int = Field(default=2, ge=1, description="How often a rater may try.")
    acts: ClassVar[Literal["arrival", "live", "end"]] = "live"

    def in_words(self) -> str:
        questions = ", ".join(question.in_words() for question in self.questions)
        return f"a wrong answer to {questions} {f'in each of {self.attempts} attempts' if self.attempts > 1 else 'at once'}"

    def questions_asked(self) -> list[tuple[str, CheckQuestion]]:
        attempts = range(1, self.attempts + 1)
        return [(f"comprehension/{attempt}", question) for attempt in attempts for question in self.questions]

    def wrong(self, answers: dict[str, object]) -> list[str]:
        """The questions that were answered wrongly."""
        return [question.name for question in self.questions if answers.get(question.name) != question.answer]

    def findings(self, study: Study, session: Session, record: SessionRecord) -> Sequence[Finding]:
        by_attempt: dict[str, dict[str, object]] = {}
        for answer in record.answers:
            if answer.part.startswith("comprehension"):
                by_attempt.setdefault(answer.part, {})[answer.question] = answer.value
        failed = [part for part, answers in by_attempt.items() if self.wrong(answers)]
        if len(failed) < self.attempts:
            return ()
        reason = f"comprehension questions still wrong after {self.attempts} attempt{'s' if self.attempts > 1 else ''}"
        return (self.finding(reason, attempts=len(failed)),)
