"""Likert-type scale: a few ordered points, each or only some of them labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from dialometer.errors import AnswerError
from dialometer.model.scale import Scale, Value
from dialometer.scales import SCALES
from dialometer.scales.reading import to_number


@SCALES.register("likert")
class Likert(Scale):
    """Whole numbers from ``first`` upwards."""

    type: Literal["likert"] = "likert"
    points: int = Field(default=5, ge=2, le=11, description="How many points the scale has.")
    first: int = Field(default=1, ge=-5, le=1, description="Number of the lowest point.")
    labels: dict[int, str] = Field(default_factory=dict, description="Words for points, all of them or only the ends.")
    seconds_per_answer: ClassVar[float] = 4.0

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

    def describe(self) -> str:
        return f"{self.points}-point scale from {self.first} to {self.last}"
