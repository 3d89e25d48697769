"""Single choice: one of several options, or an own word where that is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialometer.errors import AnswerError
from dialometer.model.scale import Floats, InputField, NumberUse, Scale, Value
from dialometer.model.values import MAX_OPTIONS, ObservedValues
from dialometer.scales import SCALES

MAX_OTHER_LENGTH = 200


@SCALES.register("choice")
class Choice(Scale):
    """One of several options.

    The chosen option as a string.
    """

    type: Literal["choice"] = "choice"
    options: list[str] = Field(min_length=2, description="The options in the order shown.")
    allow_other: bool = Field(default=False, description="Whether a rater may write another answer.")
    seconds_per_answer: ClassVar[float] = 5.0
    scripts: ClassVar[tuple[str, ...]] = ("writing.js",)
    guess_rank: ClassVar[int | None] = 40

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

    def option_names(self) -> list[str]:
        return list(self.options)

    @property
    def takes_own_words(self) -> bool:
        return self.allow_other

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        return InputField("one_of", tuple(self.options))

    def answer_format(self, alternatives: Sequence[str] = ()) -> str:
        return super().answer_format(alternatives) + (", or your own words" if self.allow_other else "")

    def describe(self) -> str:
        return f"one of {len(self.options)} options"

    def simulate(self, quality: Floats, use: NumberUse) -> NDArray[Any] | None:
        # Options have no order; those who perceive more quality take later ones, so that a difference has something to show.
        place = np.minimum((len(self.options) / (1 + np.exp(-quality))).astype(np.int64), len(self.options) - 1)
        return np.asarray(np.array(self.options, dtype=object)[place])

    def simulate_question(
        self, rng: np.random.Generator, alternatives: Sequence[str] = (), *, is_required: bool = True
    ) -> Any:
        weights = 1 / np.arange(1, len(self.options) + 1)
        return self.options[int(rng.choice(len(self.options), p=weights / weights.sum()))]

    @classmethod
    def could_give(cls, seen: ObservedValues) -> bool:
        return 2 <= len(seen.texts) <= MAX_OPTIONS

    @classmethod
    def guess(cls, seen: ObservedValues) -> dict[str, Any]:
        declared = {**super().guess(seen), "options": seen.options()}
        is_known = declared["type"] == (seen.stated or seen.hint)
        return {**declared, "allow_other": True} if is_known else declared
