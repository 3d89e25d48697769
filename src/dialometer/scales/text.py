"""Free text, or a number typed into a field (an age, for example)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from dialometer.errors import AnswerError
from dialometer.model.dialogue import clean_text
from dialometer.model.scale import InputField, Level, Scale, Value
from dialometer.model.values import ObservedValues, tidy, to_number, which_number
from dialometer.patterns import matches, problem_of
from dialometer.scales import SCALES

_REMARKS = (
    "No further remarks.",
    "Clear instructions, thank you.",
    "Some of the responses did not fit what was said before.",
    "It was hard to tell a few of them apart.",
    "Interesting study.",
)


@SCALES.register("text")
class Text(Scale):
    """An answer in the rater's own words, or a number that is typed.

    A cleaned string; with ``format`` integer or number, a number within its bounds.
    """

    type: Literal["text"] = "text"
    multiline: bool = Field(default=False, description="Whether the field has several lines.")
    max_length: int = Field(default=2000, ge=1, le=100_000, description="Most characters that can be typed.")
    format: Literal["text", "integer", "number"] = Field(
        default="text", description="What can be typed: any text, a whole number (integer), or a number."
    )
    minimum: float | None = Field(default=None, description="Smallest number accepted; no limit by default.")
    maximum: float | None = Field(default=None, description="Largest number accepted; no limit by default.")
    pattern: str = Field(default="", description="Regular expression the whole text must match.")
    seconds_per_answer: ClassVar[float] = 15.0
    scripts: ClassVar[tuple[str, ...]] = ("writing.js",)
    guess_rank: ClassVar[int | None] = 90

    @field_validator("pattern")
    @classmethod
    def _pattern_compiles(cls, pattern: str) -> str:
        if problem := problem_of(pattern):
            raise ValueError(f"not a regular expression: {problem}")
        return pattern

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        if self.format != "text":
            return self._parse_number(raw)
        try:
            text = clean_text(str(raw)) if isinstance(raw, str | int | float) else ""
        except ValueError as error:
            raise AnswerError("Please remove characters that cannot be shown.") from error
        if not text:
            raise AnswerError("Please write an answer.")
        if len(text) > self.max_length:
            raise AnswerError(f"Please keep your answer under {self.max_length} characters.")
        if self.pattern and matches(self.pattern, text, is_whole=True) is False:
            raise AnswerError("This does not have the expected form.")
        return text

    def _parse_number(self, raw: object) -> Value:
        if question := which_number(raw, ",." if self.format == "integer" else ","):
            raise AnswerError(question)
        number = to_number(raw)
        if number is None or (self.format == "integer" and number != int(number)):
            raise AnswerError("Please enter a whole number." if self.format == "integer" else "Please enter a number.")
        if self.minimum is not None and number < self.minimum:
            raise AnswerError(f"Please enter a number of at least {self.minimum:g}.")
        if self.maximum is not None and number > self.maximum:
            raise AnswerError(f"Please enter a number of at most {self.maximum:g}.")
        return tidy(number)

    @property
    def level(self) -> Level:  # type: ignore[override]
        """Numbers that are typed in have distances."""
        return "nominal" if self.format == "text" else "interval"

    def bounds(self) -> tuple[float, float]:
        low = -math.inf if self.minimum is None else self.minimum
        return low, math.inf if self.maximum is None else self.maximum

    @property
    def takes_own_words(self) -> bool:
        return self.format == "text"

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        return (
            InputField("text") if self.format == "text" else InputField("number", low=self.minimum, high=self.maximum)
        )

    def describe(self) -> str:
        return "text" if self.format == "text" else f"{self.format} typed in"

    def simulate_question(
        self, rng: np.random.Generator, alternatives: Sequence[str] = (), *, is_required: bool = True
    ) -> Any:
        if self.format == "text":
            return _REMARKS[int(rng.integers(len(_REMARKS)))] if is_required or rng.random() < 0.3 else ""
        low = self.minimum if self.minimum is not None else 0
        high = self.maximum if self.maximum is not None else low + 100
        return int(min(max(round(rng.gamma(6, 3) + max(low, 18)), low), high))

    @classmethod
    def could_give(cls, seen: ObservedValues) -> bool:  # noqa: ARG003
        return True

    @classmethod
    def guess(cls, seen: ObservedValues) -> dict[str, Any]:
        declared = super().guess(seen)
        is_number = seen.stated == declared["type"] and seen.is_numeric
        return {**declared, **({"format": "number"} if is_number else {"max_length": 100_000})}
