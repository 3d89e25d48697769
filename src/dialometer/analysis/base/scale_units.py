"""Which numbers of a study can be compared with each other, and on which footing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dialometer.model.scale import Scale
from dialometer.model.study import Block, Criterion, Study

NUMERIC_TYPES = ("likert", "slider", "magnitude")
Unit = Literal["log", "points", "percent", "z"]
"""``log``: magnitudes as logarithms. ``points``: as given. ``percent``: of the scale's range. ``z``: per rater only."""
AlphaLevel = Literal["ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Asked:
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


def is_numeric(scale: Scale) -> bool:
    """Whether answers are numbers given to one thing at a time."""
    return not scale.compares and scale.type in NUMERIC_TYPES


def bounds(scale: Any) -> tuple[float, float]:
    """Smallest and largest number a scale accepts."""
    if scale.type == "likert":
        return float(scale.first), float(scale.last)
    if scale.type == "slider":
        return float(scale.low), float(scale.high)
    return float(scale.minimum), math.inf if scale.maximum is None else float(scale.maximum)


def modulus_of(scale: Any) -> float | None:
    """The standard's value on a scale of magnitudes."""
    return getattr(scale, "modulus", None)


def common_unit(scales: Sequence[Scale]) -> Unit:
    """Magnitudes are ratios and go to logarithms; scales with different ends meet as shares of their range."""
    types = {scale.type for scale in scales}
    if types == {"magnitude"}:
        return "log"
    if "magnitude" in types:
        return "z"
    return "points" if len({bounds(scale) for scale in scales}) == 1 else "percent"


def alpha_level(scales: Sequence[Scale]) -> AlphaLevel:
    """Points of a Likert scale are ordered; everything else has distances."""
    return "ordinal" if {scale.type for scale in scales} == {"likert"} else "interval"


def asked_criteria(study: Study) -> list[Asked]:
    """Every criterion on numeric scales; one that is asked on other scales in some blocks comes once for each way."""
    found = []
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
            if all(is_numeric(scale) for scale in scales):
                found.append(Asked(criterion, tuple(blocks), scales, is_whole=len(ways) == 1))
    return found


def has_numeric_criteria(study: Study) -> bool:
    """Whether anything in the study is answered with numbers."""
    return bool(asked_criteria(study))


def unit_words(unit: Unit) -> str:
    """What a mean in this unit is, for axes and headings."""
    return {"log": "rating", "points": "rating", "percent": "rating, % of the scale", "z": "rating, z"}[unit]
