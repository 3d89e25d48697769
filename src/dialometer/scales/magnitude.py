"""Magnitude estimation: any positive number, in proportion to a standard whose value (the modulus) may be given.

Bard, Robertson and Sorace, Magnitude estimation of linguistic acceptability, Language 72 (1996).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from dialometer.errors import AnswerError
from dialometer.model.scale import Scale, Value
from dialometer.scales import SCALES
from dialometer.scales.reading import tidy, to_number


@SCALES.register("magnitude")
class Magnitude(Scale):
    """Free numbers. Whether raters see the modulus is decided by the condition's anchor, not here."""

    type: Literal["magnitude"] = "magnitude"
    modulus: float | None = Field(default=None, gt=0, description="The standard's value; none for free magnitudes.")
    minimum: float = Field(default=0, ge=0, description="Smallest number accepted; zeros are kept and reported.")
    maximum: float | None = Field(default=None, gt=0, description="Largest number accepted; no limit if left out.")
    seconds_per_answer: ClassVar[float] = 6.0

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        number = to_number(raw)
        if number is None:
            raise AnswerError("Please enter a number.")
        if number < self.minimum:
            raise AnswerError(f"Please enter a number of at least {self.minimum:g}.")
        if self.maximum is not None and number > self.maximum:
            raise AnswerError(f"Please enter a number of at most {self.maximum:g}.")
        return tidy(number)

    def describe(self) -> str:
        return "magnitude estimation" + (f", modulus {self.modulus:g}" if self.modulus else " without modulus")
