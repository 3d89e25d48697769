"""Guessing on which scale values were given, when only the values are left. What fits is for each scale to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialometer.model.values import ObservedValues
from dialometer.scales import SCALES

Scale = dict[str, Any]
"""A scale as a study file declares it."""


def guess_scales(evidence: Mapping[str, ObservedValues]) -> dict[str, Scale]:
    """A scale for each criterion of one file.

    Likert-type criteria whose highest points differ by one at most are taken to share the longer scale, since the end of
    a scale is easily not used by anyone.
    """
    # What a format suggests holds for all its criteria: one that got low numbers only was still a magnitude.
    trusted = {seen.hint for seen in evidence.values() if _confirms_hint(seen)}
    scales = {}
    for name, seen in evidence.items():
        known = seen.stated or (seen.hint if seen.hint in trusted else "")
        scales[name] = SCALES.get(known).guess(seen) if known in SCALES else _guess(seen)
    pointed = [scale for scale in scales.values() if "first" in scale]
    for scale in pointed:
        longest = max(other["points"] for other in pointed if other["first"] == scale["first"])
        if longest - scale["points"] == 1:
            scale["points"] = longest
    return scales


def _confirms_hint(seen: ObservedValues) -> bool:
    return seen.hint in SCALES and (SCALES.get(seen.hint).level == "nominal" or not seen.are_points)


def _guess(seen: ObservedValues) -> Scale:
    kinds = [SCALES.get(name) for name in SCALES]
    tried = sorted((kind for kind in kinds if kind.guess_rank is not None), key=lambda kind: kind.guess_rank or 0)
    return next(kind.guess(seen) for kind in tried if kind.could_give(seen))
