"""Best-worst scaling: the best and the worst of three or more alternatives.

Louviere, Flynn and Marley, Best-Worst Scaling (2015).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from dialometer.errors import AnswerError
from dialometer.model.rater_text import RaterText
from dialometer.model.scale import ChoiceForm, Scale, Value
from dialometer.scales import SCALES


@SCALES.register("best_worst")
class BestWorst(Scale):
    """The best and the worst of three or more responses.

    Stored as ``{"best": name, "worst": name}``; the two differ.
    """

    type: Literal["best_worst"] = "best_worst"
    best_label: RaterText = Field(default="Best", description="Words above the best, as raters read them.")
    worst_label: RaterText = Field(default="Worst", description="Words above the worst, as raters read them.")
    choice_form: ClassVar[ChoiceForm | None] = "ends"
    n_alternatives: ClassVar[tuple[int, int]] = (3, 99)
    seconds_per_answer: ClassVar[float] = 12.0

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        answers = raw if isinstance(raw, Mapping) else {}
        best, worst = (str(answers.get(key, "")).strip() for key in ("best", "worst"))
        if best not in alternatives or worst not in alternatives:
            raise AnswerError("Please choose one as the best and one as the worst.")
        if best == worst:
            raise AnswerError("The best and the worst must be two different ones.")
        return {"best": best, "worst": worst}

    def rename(self, value: Value, names: Mapping[str, str]) -> Value:
        if not isinstance(value, dict):
            return value
        return {key: names.get(name, name) for key, name in value.items()}

    def in_words(self, value: Value) -> str:
        if not isinstance(value, dict):
            return super().in_words(value)
        return f"{self.best_label}: {value['best']} · {self.worst_label}: {value['worst']}"

    def answer_format(self, alternatives: Sequence[str] = ()) -> str:
        return '{"best": number, "worst": number} with two of ' + ", ".join(f'"{place}"' for place in alternatives)

    def describe(self) -> str:
        return "best and worst"
