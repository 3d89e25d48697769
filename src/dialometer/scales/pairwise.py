"""Pairwise choice: which of the two, with or without a tie, "both are bad" and "cannot tell"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialometer.errors import AnswerError
from dialometer.model.scale import ChoiceForm, Scale, Value
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE, ObservedValues
from dialometer.scales import SCALES


@SCALES.register("pairwise")
class Pairwise(Scale):
    """The better one of two, with or without ties.

    The chosen alternative's name, ``tie``, ``both_bad`` or ``cannot_tell``.
    """

    type: Literal["pairwise"] = "pairwise"
    allow_tie: bool = Field(default=False, description="Whether raters may say that both are equally good.")
    allow_both_bad: bool = Field(default=False, description="Whether raters may say that both are bad.")
    allow_cannot_tell: bool = Field(default=False, description="Whether raters may say that they cannot tell.")
    choice_form: ClassVar[ChoiceForm | None] = "one"
    n_alternatives: ClassVar[tuple[int, int]] = (2, 2)
    seconds_per_answer: ClassVar[float] = 6.0

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        choice = str(raw).strip() if isinstance(raw, str | int) and not isinstance(raw, bool) else ""
        if choice in alternatives:
            return choice
        if choice in self.extra_options():
            return choice
        if self.allow_both_bad:
            raise AnswerError("Please choose one of the answers.")
        words = {TIE: "a tie", CANNOT_TELL: "cannot tell"}
        extra = "".join(f", or {words[name]}" for name in self.extra_options())
        message = f"Please choose one of the two{extra}."
        raise AnswerError(message)

    def extra_options(self) -> list[str]:
        allowed = {TIE: self.allow_tie, BOTH_BAD: self.allow_both_bad, CANNOT_TELL: self.allow_cannot_tell}
        return [name for name, is_on in allowed.items() if is_on]

    def rename(self, value: Value, names: Mapping[str, str]) -> Value:
        return names.get(str(value), value)

    def describe(self) -> str:
        *extra, last = [name.replace("_", " ") for name in self.extra_options()] or [""]
        listed = f"{', '.join(extra)} and {last}" if extra else last
        return f"choice of one of two with {listed}" if listed else "choice of one of two, forced"

    def simulate_comparison(
        self, perceived: NDArray[np.float64], alternatives: Sequence[str], rng: np.random.Generator, *, tie_width: float
    ) -> Any:
        difference = abs(float(perceived[0] - perceived[-1]))
        if difference < tie_width and self.allow_both_bad and (not self.allow_tie or float(np.mean(perceived)) < 0):
            return BOTH_BAD
        if difference < tie_width and self.allow_tie:
            return TIE
        if difference < tie_width / 4 and self.allow_cannot_tell:
            return CANNOT_TELL
        return super().simulate_comparison(perceived, alternatives, rng, tie_width=tie_width)

    @classmethod
    def guess(cls, seen: ObservedValues) -> dict[str, Any]:
        allowed = {"allow_tie": TIE in seen.texts, "allow_cannot_tell": CANNOT_TELL in seen.texts}
        return {**super().guess(seen), **allowed, **({"allow_both_bad": True} if BOTH_BAD in seen.texts else {})}
