"""All that was found on the factors of a study, gathered for its closing words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dialometer.analysis.consistency import Compared
from dialometer.analysis.factor_effects import Contrast, FactorEffects
from dialometer.analysis.pull import Nearness
from dialometer.analysis.split_raters import Split
from dialometer.analysis.words import excludes
from dialometer.model.estimate import Estimate


@dataclass(frozen=True)
class Evidence:
    """All that was found on the factors, for the closing words."""

    effects: list[FactorEffects]
    near: list[Nearness]
    steady: list[Compared]
    splits: list[Split]
    shift_sentences: list[str]

    @property
    def main(self) -> FactorEffects:
        """All criteria together, or the only one."""
        return self.effects[0]


def steadiness(one: Estimate, confidence: float) -> Literal["changed", "same", "unclear", "unknown"]:
    """Whether consistency changed: interval and permutation test must say so; where they disagree it is unclear."""
    if not one.has_interval:
        return "unknown"
    signs = excludes(one), one.p_value < 1 - confidence
    return "changed" if all(signs) else "unclear" if any(signs) else "same"


def is_same(one: Contrast, other: Contrast) -> bool:
    """Whether two contrasts compare the same levels in the same place."""
    return (one.factor.name, one.level.name, one.base.name, one.where_label) == (
        other.factor.name,
        other.level.name,
        other.base.name,
        other.where_label,
    )
