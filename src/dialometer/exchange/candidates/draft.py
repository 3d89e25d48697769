"""The items of a study of candidate answers, drafted from a file in which answers to questions were judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dialometer.exchange.import_format import Intake
from dialometer.exchange.records import CandidateRecord

CRITERION = "fit"
"""What answers are judged for where the file does not say it."""
SPEAKER, ANSWERER = "User", "Agent"


@dataclass(slots=True)
class CandidateDraft:
    """What is known of one answer to one question."""

    id: str
    question: str
    answer: str
    line: int
    context: str = ""
    response: str = ""
    is_gold: bool | None = None
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)


class CandidateDrafts:
    """Collects candidates; the ones of a question are numbered as they appear."""

    def __init__(self) -> None:
        self.by_name: dict[tuple[str, str], CandidateDraft] = {}
        self._questions: dict[str, int] = {}
        self._n_of: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    @property
    def systems(self) -> list[str]:
        """Everybody who retrieved something, in the order of the file."""
        drafts = self.by_name.values()
        return list(dict.fromkeys(name for draft in drafts for name in (*draft.ranks, *draft.scores)))

    @property
    def has_gold(self) -> bool:
        """Whether any answer is marked as right by its maker."""
        return any(draft.is_gold for draft in self.by_name.values())

    def add(self, record: CandidateRecord, intake: Intake) -> None:
        """Take what one row says; what contradicts an earlier row is reported."""
        draft = self._draft(record)
        for name in ("context", "response", "is_gold"):
            given, known = getattr(record, name), getattr(draft, name)
            if known in ("", None):
                setattr(draft, name, given)
            elif given not in ("", None, known):
                self._contradicts(draft, record.line, name.removeprefix("is_"), intake)
        for kind in ("ranks", "scores"):
            known_values = getattr(draft, kind)
            for system, value in getattr(record, kind).items():
                if known_values.setdefault(system, value) != value:
                    self._contradicts(draft, record.line, f"{kind.removesuffix('s')} by '{system}'", intake)

    def _draft(self, record: CandidateRecord) -> CandidateDraft:
        key = record.question, record.answer
        if key not in self.by_name:
            number = self._questions.setdefault(record.question, len(self._questions) + 1)
            self._n_of[record.question] = self._n_of.get(record.question, 0) + 1
            item_id = f"q{number}-c{self._n_of[record.question]}"
            self.by_name[key] = CandidateDraft(item_id, record.question, record.answer, record.line)
        return self.by_name[key]

    @staticmethod
    def _contradicts(draft: CandidateDraft, line: int, what: str, intake: Intake) -> None:
        shown = draft.answer if len(draft.answer) <= 40 else f"{draft.answer[:39]}…"
        message = f"the {what} of the answer '{shown}' differs from line {draft.line}"
        intake.wrong(line, message, "every question and answer has one; correct one of the rows", what)

    def items(self, name_of: Callable[[str], str]) -> list[dict[str, Any]]:
        """The items as their file holds them; ``name_of`` gives a system's name in the study."""
        ranks = self._ranks()
        texts = {draft.question: draft.context for draft in reversed(self.by_name.values()) if draft.context}
        return [
            {
                "id": draft.id,
                "context": [{"speaker": SPEAKER, "text": texts.get(draft.question, draft.question)}],
                "candidate": {"speaker": ANSWERER, "text": draft.response or draft.answer},
                "ranks": {name_of(system): rank for system, rank in ranks[draft.id].items()},
                "is_gold": bool(draft.is_gold),
                "metadata": {"question": draft.question, "answer": draft.answer},
            }
            for draft in self.by_name.values()
        ]

    def _ranks(self) -> dict[str, dict[str, int]]:
        """Ranks as given; from scores where a system has no rank, the best of a question first, equal ones in file order."""
        ranks = {draft.id: dict(draft.ranks) for draft in self.by_name.values()}
        scored: dict[tuple[str, str], list[CandidateDraft]] = {}
        for draft in self.by_name.values():
            for system in draft.scores:
                scored.setdefault((draft.question, system), []).append(draft)
        for (_, system), drafts in scored.items():
            for rank, draft in enumerate(sorted(drafts, key=lambda one: -one.scores[system]), start=1):
                ranks[draft.id].setdefault(system, rank)
        return ranks


def gold_rule(criterion: str, scale: dict[str, Any]) -> dict[str, Any] | None:
    """The published rule for this scale: who rates a gold answer in its lower three quarters is excluded (below 4 of 1 to 5).

    None where the scale has no points.
    """
    points, first = scale.get("points"), scale.get("first", 1)
    if not isinstance(points, int):
        return None
    at_least = first + -(-3 * (points - 1) // 4)
    return {"rule": "gold", "acceptable": [{"criterion": criterion, "at_least": at_least}], "action": "exclude"}
