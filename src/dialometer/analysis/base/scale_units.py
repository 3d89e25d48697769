"""Which numbers of a study can be compared with each other, and on which footing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dialometer.model.design import Block
from dialometer.model.estimate import Estimate
from dialometer.model.scale import ChoiceForm, Scale
from dialometer.model.study import Criterion, Study

Unit = Literal["log", "points", "percent", "z"]
"""``log``: magnitudes as logarithms. ``points``: as given. ``percent``: of the scale's range. ``z``: per rater only."""
AlphaLevel = Literal["ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class AskedCriterion:
    """One criterion as it was asked in some blocks: for every cell of the design the scale it was answered on."""

    criterion: Criterion
    blocks: tuple[Block, ...]
    scales: tuple[Scale, ...]
    is_whole: bool
    """Whether these are all the blocks that ask the criterion."""

    @property
    def unit(self) -> Unit:
        """The footing on which numbers from different cells may be compared."""
        return common_unit(self.scales)


def common_unit(scales: Sequence[Scale]) -> Unit:
    """Magnitudes are ratios and go to logarithms; scales with different ends meet as shares of their range."""
    units = {scale.unit for scale in scales}
    if "log" in units:
        return "log" if len(units) == 1 else "z"
    ends = {scale.bounds() for scale in scales}
    if len(ends) == 1:
        return "points"
    return "percent" if all(math.isfinite(low) and math.isfinite(high) for low, high in ends) else "z"


def alpha_level(scales: Sequence[Scale]) -> AlphaLevel:
    """Points such as those of a Likert scale are ordered; everything else has distances."""
    return "ordinal" if {scale.level for scale in scales} == {"ordinal"} else "interval"


def compared_types(study: Study, form: ChoiceForm) -> list[str]:
    """The types of the study's scales that compare in this form; judgments name their scale by its type."""
    return sorted({scale.type for scale in study.spec.scales.values() if scale.choice_form == form})


def log_types(study: Study) -> list[str]:
    """The types of the study's scales whose numbers are analysed as logarithms."""
    return sorted({scale.type for scale in study.spec.scales.values() if scale.unit == "log"})


def asked_criteria(study: Study) -> list[AskedCriterion]:
    """Every criterion on numeric scales; one that is asked on other scales in some blocks comes once for each way."""
    asked = []
    for criterion in study.spec.criteria:
        ways: dict[tuple[str, ...], list[Block]] = {}
        for block in study.blocks:
            if criterion not in study.block_criteria(block):
                continue
            names = tuple(
                study.presentation(cell, block).scales.get(criterion.name, criterion.scale) for cell in study.cells
            )
            ways.setdefault(names, []).append(block)
        for names, blocks in ways.items():
            scales = tuple(study.spec.scales[name] for name in names)
            if all(scale.is_numeric for scale in scales):
                asked.append(AskedCriterion(criterion, tuple(blocks), scales, is_whole=len(ways) == 1))
    return asked


def has_numeric_criteria(study: Study) -> bool:
    """Whether anything in the study is answered with numbers."""
    return bool(asked_criteria(study))


def unit_words(unit: Unit) -> str:
    """What a mean in this unit is, for axes and headings."""
    return {"log": "rating", "points": "rating", "percent": "rating, % of the scale", "z": "rating, z"}[unit]


def within(estimate: Estimate, low: float, high: float) -> Estimate:
    """The estimate with its interval cut at the ends of the scale."""
    return estimate.within(low, high)


def difference_within(estimate: Estimate, low: float, high: float) -> Estimate:
    """The same for a difference of two means, which is at most as large as the scale is long."""
    return within(estimate, low - high, high - low)
