"""Free text, or a number typed into a field (an age, for example)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from dialometer.errors import AnswerError
from dialometer.model.dialogue import clean_text
from dialometer.model.scale import Scale, Value
from dialometer.scales import SCALES
from dialometer.scales.reading import tidy, to_number


@SCALES.register("text")
class Text(Scale):
    """A cleaned string; with ``format`` integer or number, a number within its bounds."""

    type: Literal["text"] = "text"
    multiline: bool = False
    max_length: int = Field(default=2000, ge=1, le=100_000)
    format: Literal["text", "integer", "number"] = "text"
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = Field(default="", description="Regular expression the whole text must match.")
    seconds_per_answer: ClassVar[float] = 15.0

    @field_validator("pattern")
    @classmethod
    def _pattern_compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
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
        if self.pattern and not re.fullmatch(self.pattern, text):
            raise AnswerError("This does not have the expected form.")
        return text

    def _parse_number(self, raw: object) -> Value:
        number = to_number(raw)
        if number is None or (self.format == "integer" and number != int(number)):
            raise AnswerError("Please enter a whole number." if self.format == "integer" else "Please enter a number.")
        if self.minimum is not None and number < self.minimum:
            raise AnswerError(f"Please enter a number of at least {self.minimum:g}.")
        if self.maximum is not None and number > self.maximum:
            raise AnswerError(f"Please enter a number of at most {self.maximum:g}.")
        return tidy(number)

    def describe(self) -> str:
        return "text" if self.format == "text" else f"{self.format} typed in"
