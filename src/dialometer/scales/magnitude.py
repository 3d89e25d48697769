"""Magnitude estimation: any positive number, in proportion to a standard whose value (the modulus) may be given.

Bard, Robertson and Sorace, Magnitude estimation of linguistic acceptability, Language 72 (1996).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialometer.errors import AnswerError
from dialometer.model.scale import InputField, Level, NumberUse, Scale, Value
from dialometer.model.values import ObservedValues, tidy, to_number, which_number
from dialometer.scales import SCALES

ANCHOR_SHARE = 0.8  # a middling response seems worth four fifths of a good standard
ANCHOR_FLATTENING = 0.3  # a shown number also narrows the range that raters use

ABOVE_ZERO = "Please enter a number above zero. A very small number is fine."
USUAL = 100.0  # what most people start from where no value is given
FAR = 10_000.0  # numbers this many times larger or smaller are asked about
MOST_DIGITS = 1e21  # beyond, nobody counts the zeros


def in_digits(number: float) -> str:
    """A number without exponent, its digits in groups of three as in every language: 1e12 is 1 000 000 000 000."""
    if not 1 / MOST_DIGITS < number < MOST_DIGITS:
        return f"{number:g}"
    whole, _, rest = np.format_float_positional(number, trim="-").partition(".")
    return f"{int(whole):,}".replace(",", "\u202f") + (f".{rest}" if rest else "")


@SCALES.register("magnitude")
class Magnitude(Scale):
    """A number of the rater's own, in proportion to a standard (magnitude estimation).

    Free numbers. Whether raters see the modulus is decided by the condition's anchor, not here.
    """

    type: Literal["magnitude"] = "magnitude"
    modulus: float | None = Field(default=None, gt=0, description="The standard's value; none for free magnitudes.")
    minimum: float = Field(
        default=0,
        ge=0,
        description="Smallest number accepted; with 0, any number above zero (zero itself has no ratio).",
    )
    maximum: float | None = Field(default=None, gt=0, description="Largest number accepted; no limit by default.")
    level: ClassVar[Level] = "ratio"
    unit: ClassVar[Literal["points", "log"]] = "log"
    seconds_per_answer: ClassVar[float] = 6.0
    guess_rank: ClassVar[int | None] = 20

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        if question := which_number(raw):
            raise AnswerError(question)
        return self._checked(to_number(raw))

    def _checked(self, number: float | None) -> Value:
        if number is None:
            raise AnswerError("Please enter a number.")
        if number <= 0 and not self.minimum:
            raise AnswerError(ABOVE_ZERO)
        if number < self.minimum:
            raise AnswerError(f"Please enter a number of at least {self.minimum:g}.")
        if self.maximum is not None and number > self.maximum:
            raise AnswerError(f"Please enter a number of at most {self.maximum:g}.")
        return tidy(number)

    def parse_collected(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        """Other studies let raters enter zero: such answers are kept, and the study's rule for zeros is applied to them.

        Files have decimal points: ``1.250`` is no doubt there, ``1,250`` is.
        """
        number = to_number(raw)
        if number is None:
            return self.parse(raw, alternatives)
        return 0 if number == 0 and not self.minimum else self._checked(number)

    def doubt(self, value: Value, anchor: float | None = None) -> str:
        """A number far from everything else on the page, such as 1e12, may be a slip of the keyboard."""
        usual = anchor or self.modulus or USUAL
        number = float(value) if isinstance(value, int | float) else usual
        if usual / FAR <= number <= usual * FAR:
            return ""
        return f"Did you mean {in_digits(number)}? If so, continue; if not, please correct it."

    def bounds(self) -> tuple[float, float]:
        """What the analysis takes: zeros that were collected elsewhere too, by the study's rule for zeros."""
        return self.minimum, math.inf if self.maximum is None else self.maximum

    def anchor_number(self) -> float | None:
        return self.modulus

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        return InputField("number", low=self.minimum, high=self.maximum)

    def answer_format(self, alternatives: Sequence[str] = ()) -> str:
        least = f"of at least {self.minimum:g}" if self.minimum else "above zero"
        return f"a number {least}, in proportion to the quality"

    def describe(self) -> str:
        return "magnitude estimation" + (f", modulus {self.modulus:g}" if self.modulus else "")

    def simulate(self, quality: NDArray[np.float64], use: NumberUse) -> NDArray[Any]:
        """Log-normal estimates around the rater's own modulus; a shown number draws that modulus to itself."""
        slope, log_modulus = use.slope, use.log_modulus
        if use.anchor:
            log_modulus = (1 - use.anchor_pull) * log_modulus + use.anchor_pull * np.log(use.anchor * ANCHOR_SHARE)
            slope *= 1 - ANCHOR_FLATTENING * use.anchor_pull
        value = np.exp(log_modulus + slope * quality)
        # People use round numbers: steps of five above ten.
        return np.asarray(np.maximum(1.0, np.where(value > 10, np.round(value / 5) * 5, np.round(value))))

    def simulate_question(
        self, rng: np.random.Generator, alternatives: Sequence[str] = (), *, is_required: bool = True
    ) -> Any:
        return float(rng.integers(10, 200))

    @classmethod
    def could_give(cls, seen: ObservedValues) -> bool:
        return seen.is_numeric and seen.lowest >= 0 and seen.highest > 100
