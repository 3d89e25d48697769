"""Slider: a continuous line between two labelled ends, without a preset handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from dialometer.errors import AnswerError
from dialometer.model.scale import Scale, Value
from dialometer.scales import SCALES
from dialometer.scales.reading import tidy, to_number


@SCALES.register("slider")
class Slider(Scale):
    """Numbers between ``low`` and ``high``."""

    type: Literal["slider"] = "slider"
    low: float = 0
    high: float = 100
    step: float = Field(default=1, gt=0)
    low_label: str = ""
    high_label: str = ""
    seconds_per_answer: ClassVar[float] = 5.0

    @model_validator(mode="after")
    def _ends_in_order(self) -> Slider:
        if self.low >= self.high:
            raise ValueError(f"low ({self.low:g}) must be smaller than high ({self.high:g})")
        return self

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        number = to_number(raw)
        if number is None:
            raise AnswerError("Please set the slider.")
        if not self.low <= number <= self.high:
            raise AnswerError(f"Please choose a value from {self.low:g} to {self.high:g}.")
        return tidy(number)

    def describe(self) -> str:
        return f"slider from {self.low:g} to {self.high:g}"
