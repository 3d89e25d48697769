"""Single choice: one of several options, or an own word where that is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from dialometer.errors import AnswerError
from dialometer.model.scale import Scale, Value
from dialometer.scales import SCALES

MAX_OTHER_LENGTH = 200


@SCALES.register("choice")
class Choice(Scale):
    """The chosen option as a string."""

    type: Literal["choice"] = "choice"
    options: list[str] = Field(min_length=2, description="The options in the order shown.")
    allow_other: bool = Field(default=False, description="Whether a rater may write another answer.")
    seconds_per_answer: ClassVar[float] = 5.0

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        choice = str(raw).strip() if isinstance(raw, str | int | float) else ""
        if choice in self.options:
            return choice
        if self.allow_other and choice:
            if len(choice) > MAX_OTHER_LENGTH:
                raise AnswerError(f"Please keep your own answer under {MAX_OTHER_LENGTH} characters.")
            return choice
        raise AnswerError("Please choose one of the options.")

    def categories(self) -> list[str] | None:
        return None if self.allow_other else list(self.options)

    def describe(self) -> str:
        return f"one of {len(self.options)} options"
