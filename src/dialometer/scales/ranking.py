"""Ranking: all options in order, the first the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dialometer.errors import AnswerError
from dialometer.model.scale import ChoiceForm, InputField, Scale, Value
from dialometer.model.values import to_number
from dialometer.scales import SCALES


@SCALES.register("ranking")
class Ranking(Scale):
    """Responses or options in order, from first to last.

    A list of names from first to last. Without ``options`` the alternatives on the screen are ranked.
    """

    type: Literal["ranking"] = "ranking"
    options: list[str] | None = Field(
        default=None, min_length=2, description="What is ranked; the responses by default."
    )
    choice_form: ClassVar[ChoiceForm | None] = "order"
    scripts: ClassVar[tuple[str, ...]] = ("ranking.js",)
    seconds_per_answer: ClassVar[float] = 20.0

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        """Takes the ordered list, or a mapping of option to rank as forms send it."""
        options = list(self.options or alternatives)
        if isinstance(raw, Mapping):
            ranks = {str(option): to_number(rank) for option, rank in raw.items()}
            if sorted(rank or 0 for rank in ranks.values()) != list(range(1, len(options) + 1)):
                raise AnswerError(f"Please give each one its own rank from 1 to {len(options)}.")
            raw = sorted(ranks, key=lambda option: ranks[option] or 0)
        if not isinstance(raw, list | tuple):
            raise AnswerError("Please put all of them in order.")
        order = [str(option).strip() for option in raw]
        if sorted(order) != sorted(options):
            raise AnswerError("Please put all of them in order, each one once.")
        return order

    def rename(self, value: Value, names: Mapping[str, str]) -> Value:
        return [names.get(name, name) for name in value] if isinstance(value, list) and not self.options else value

    def option_names(self) -> list[str]:
        return list(self.options or ())

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        return InputField("order", tuple(self.options or alternatives))

    def describe(self) -> str:
        return f"ranking of {len(self.options)} options" if self.options else "ranking"

    def simulate_question(
        self, rng: np.random.Generator, alternatives: Sequence[str] = (), *, is_required: bool = True
    ) -> Any:
        options = list(self.options or alternatives)
        noise = rng.normal(0, 1.5, len(options)) + list(range(len(options)))
        return [options[int(place)] for place in noise.argsort()]
