"""Multiple choice: any number of options within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from dialometer.errors import AnswerError
from dialometer.model.scale import InputField, Scale, Value
from dialometer.model.values import ObservedValues
from dialometer.scales import SCALES


@SCALES.register("multiple")
class Multiple(Scale):
    """Any of several options.

    The chosen options as a list, in the order of the study file.
    """

    type: Literal["multiple"] = "multiple"
    options: list[str] = Field(min_length=2, description="The options in the order shown.")
    at_least: int = Field(default=0, ge=0, description="Fewest options that a rater must choose.")
    at_most: int | None = Field(
        default=None, ge=1, description="Most options that a rater may choose; no limit by default."
    )
    seconds_per_answer: ClassVar[float] = 8.0

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Multiple:
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError(f"at_most ({self.at_most}) is smaller than at_least ({self.at_least})")
        if self.at_least > len(self.options):
            raise ValueError(f"at_least ({self.at_least}) is more than there are options ({len(self.options)})")
        return self

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        selected = [raw] if isinstance(raw, str) and raw else list(raw) if isinstance(raw, list | tuple) else []
        chosen = {str(option).strip() for option in selected}
        if not chosen <= set(self.options):
            raise AnswerError("Please choose from the options shown.")
        if len(chosen) < self.at_least:
            raise AnswerError(f"Please choose at least {self.at_least}.")
        if self.at_most is not None and len(chosen) > self.at_most:
            raise AnswerError(f"Please choose at most {self.at_most}.")
        return [option for option in self.options if option in chosen]

    def option_names(self) -> list[str]:
        return list(self.options)

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        return InputField("any_of", tuple(self.options))

    def names(self, systems: Sequence[str]) -> list[str]:
        return []

    def describe(self) -> str:
        return f"any of {len(self.options)} options"

    def simulate_question(
        self, rng: np.random.Generator, alternatives: Sequence[str] = (), *, is_required: bool = True
    ) -> Any:
        n_chosen = int(rng.integers(max(1, self.at_least), (self.at_most or len(self.options)) + 1))
        return [self.options[int(place)] for place in sorted(rng.permutation(len(self.options))[:n_chosen])]

    @classmethod
    def guess(cls, seen: ObservedValues) -> dict[str, Any]:
        return {**super().guess(seen), "options": seen.options()}
