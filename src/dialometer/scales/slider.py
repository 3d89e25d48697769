"""Slider: a continuous line between two labelled ends, without a preset handle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dialometer.errors import AnswerError
from dialometer.model.rater_text import RaterText
from dialometer.model.scale import InputField, Level, NumberUse, Scale, Value
from dialometer.model.values import ObservedValues, tidy, to_number
from dialometer.scales import SCALES


@SCALES.register("slider")
class Slider(Scale):
    """A slider between two ends.

    Numbers between ``low`` and ``high``.
    """

    type: Literal["slider"] = "slider"
    low: float = Field(default=0, description="Number at the low end.")
    high: float = Field(default=100, description="Number at the high end.")
    step: float = Field(default=1, gt=0, description="Distance between two positions.")
    low_label: RaterText = Field(default="", description="Words at the low end.")
    high_label: RaterText = Field(default="", description="Words at the high end.")
    level: ClassVar[Level] = "interval"
    seconds_per_answer: ClassVar[float] = 5.0
    scripts: ClassVar[tuple[str, ...]] = ("slider.js",)
    guess_rank: ClassVar[int | None] = 30

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

    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        labels = {self.low: self.low_label, self.high: self.high_label}
        shown_labels = {end: label for end, label in labels.items() if label}
        return InputField("range", low=self.low, high=self.high, step=self.step, labels=shown_labels)

    def describe(self) -> str:
        return f"slider from {self.low:g} to {self.high:g}"

    def simulate(self, quality: NDArray[np.float64], use: NumberUse) -> NDArray[Any]:
        value = self.low + (self.high - self.low) * (0.5 + quality / 5).clip(0, 1)
        return (self.low + ((value - self.low) / self.step).round() * self.step).clip(self.low, self.high)

    def simulate_question(
        self, rng: np.random.Generator, alternatives: Sequence[str] = (), *, is_required: bool = True
    ) -> Any:
        return float(self.low + (self.high - self.low) * round(float(rng.random()), 2))

    @classmethod
    def could_give(cls, seen: ObservedValues) -> bool:
        return seen.is_numeric

    @classmethod
    def guess(cls, seen: ObservedValues) -> dict[str, Any]:
        declared = super().guess(seen)
        if not seen.is_numeric or (seen.lowest >= 0 and 1 < seen.highest <= 100):
            return {**declared, "low": 0, "high": 100}
        if seen.lowest >= 0 and seen.highest <= 1:
            return {**declared, "low": 0, "high": 1, "step": 0.01}
        low, high = math.floor(min(0.0, seen.lowest)), math.ceil(seen.highest)
        return {**declared, "low": low, "high": high if float(high) > float(low) else 0}
