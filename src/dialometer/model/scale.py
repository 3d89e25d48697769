"""What every rating scale can do. The scales themselves stand in :mod:`dialometer.scales`, one file each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dialometer.model.part import Part

# A judgment's value as it is stored: a number, a name, a list of names, or names by role (best and worst).
Value = int | float | str | list[str] | dict[str, str]


class Scale(Part):
    """One way of answering. Turns what a form or a program sends into a value, or says in words why it cannot."""

    type: str
    compares: ClassVar[bool] = False
    """Whether one answer is given over all alternatives shown (pairwise, ranking …) instead of one for each."""
    seconds_per_answer: ClassVar[float] = 4.0
    """Rough time for one answer, for the estimate of a session's length."""

    @abstractmethod
    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        """The value of a raw answer; raises :class:`~dialometer.errors.AnswerError` with a sentence for the rater.

        ``alternatives`` are the options on the screen for a scale that compares (as positions "1", "2", …, so that a page
        never gives a system's name away).
        """

    def rename(self, value: Value, names: Mapping[str, str]) -> Value:
        """The value with screen positions replaced by systems; scales that do not compare have nothing to rename."""
        return value

    def number(self, value: Value) -> float | None:
        """The value as a number for analysis, or None where it has no natural number."""
        return float(value) if isinstance(value, int | float) else None

    def categories(self) -> list[Any] | None:
        """All values the scale allows, in order, where they are finitely many (the label set for agreement)."""
        return None

    def describe(self) -> str:
        """A phrase for protocols and reports, such as "1 to 5"."""
        return self.type
