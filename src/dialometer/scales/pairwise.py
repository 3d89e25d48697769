"""Pairwise choice: which of the two, with or without a tie and a "cannot tell"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from dialometer.errors import AnswerError
from dialometer.model.scale import Scale, Value
from dialometer.scales import SCALES

TIE = "tie"
CANNOT_TELL = "cannot_tell"


@SCALES.register("pairwise")
class Pairwise(Scale):
    """The chosen alternative's name, ``tie`` or ``cannot_tell``."""

    type: Literal["pairwise"] = "pairwise"
    allow_tie: bool = False
    allow_cannot_tell: bool = False
    compares: ClassVar[bool] = True
    seconds_per_answer: ClassVar[float] = 6.0

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        choice = str(raw).strip() if isinstance(raw, str | int) and not isinstance(raw, bool) else ""
        if choice in alternatives:
            return choice
        if (choice == TIE and self.allow_tie) or (choice == CANNOT_TELL and self.allow_cannot_tell):
            return choice
        extra = [word for word, on in (("a tie", self.allow_tie), ("cannot tell", self.allow_cannot_tell)) if on]
        raise AnswerError("Please choose one of the two" + "".join(f", or {word}" for word in extra) + ".")

    def rename(self, value: Value, names: Mapping[str, str]) -> Value:
        return names.get(str(value), value)

    def describe(self) -> str:
        extra = [word for word, on in (("tie", self.allow_tie), ("cannot tell", self.allow_cannot_tell)) if on]
        return "choice of one of two" + (f" with {' and '.join(extra)}" if extra else ", forced")
