"""Likert-type scale: a few ordered points, each or only some of them labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dialometer.errors import AnswerError
from dialometer.model.rater_text import RaterText
from dialometer.model.scale import InputField, Level, NumberUse, Scale, Value
from dialometer.model.values import ObservedValues, to_number
from dialometer.scales import SCALES


@SCALES.register("likert")
class Likert(Scale):
    """A rating scale with points, such as from 1 to 5.

    Whole numbers from ``first`` upwards.
    """

    type: Literal["likert"] = "likert"
    points: int = Field(default=5, ge=2, le=11, description="How many points the scale has.")
    first: int = Field(default=1, ge=-5, le=1, description="Number of the lowest point.")
    labels: dict[int, RaterText] = Field(
        default_factory=dict, description="Words for points, all of them or only the ends."
    )
    level: ClassVar[Level] = "ordinal"
    guess_rank: ClassVar[int | None] = 10

    @model_validator(mode="after")
    def _labels_on_the_scale(self) -> Likert:
        stray = [point for point in self.labels if point not in self.categories()]
        if stray:
            raise ValueError(f"labels for points that the scale does not have: {', '.join(map(str, stray))}")
        return self

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        number = to_number(raw)
        if number is None or number not in self.categories():
            raise AnswerError(f"Please choose a point from {self.first} to {self.last}.")
        return int(number)

    @property
    def last(self) -> int:
        """Number of the highest point."""
        return self.first + self.points - 1

    def categories(self) -> list[int]:
        return list(range(self.first, self.last + 1))

    def category_labels(self) -> dict[float, str]:
        return {
            point: f"{point} {self.labels[point]}" if point in self.labels else str(point)
            for point in self.categories()
        }

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        labels = {float(point): label for point, label in self.labels.items()}
        return InputField("points", tuple(self.option_names()), self.first, self.last, labels=labels)

    def describe(self) -> str:
        return f"{self.points}-point scale from {self.first} to {self.last}"

    def simulate(self, quality: NDArray[np.float64], use: NumberUse) -> NDArray[Any]:
        middle = self.first + (self.points - 1) / 2
        points = (middle + quality * (self.points - 1) / 4).round().clip(self.first, self.last)
        return points.astype(int)

    @classmethod
    def could_give(cls, seen: ObservedValues) -> bool:
        return seen.are_points

    @classmethod
    def guess(cls, seen: ObservedValues) -> dict[str, Any]:
        first = int(max(-5.0, min(1.0, seen.lowest)))
        points = int(seen.highest) - first + 1 if seen.are_points else 2
        return {**super().guess(seen), "points": points, "first": first}
