"""What the findings on the factors mean for the next study."""

from __future__ import annotations

import math

from dialometer.analysis.evidence import Evidence, is_same, steadiness
from dialometer.analysis.factor_effects import Contrast, FactorEffects, contrasts
from dialometer.analysis.factor_sentences import is_found, shown
from dialometer.analysis.labels import is_anchor, level_label
from dialometer.analysis.reliability_form import raters_needed
from dialometer.analysis.words import number
from dialometer.model.estimate import Estimate

WANTED = 0.8
SMALL_RATIO = 1.1


def advice(evidence: Evidence) -> list[str]:
    """What the findings mean for the next study, one sentence or two each."""
    said: list[str] = []
    for factor in evidence.main.factors:
        for contrast in contrasts(factor):
            said += _size_advice(evidence.main, contrast)
            said += _raters_advice(evidence, contrast)
    if not said:
        said.append("Collect more data before drawing conclusions on the conditions.")
    said.append("Before collecting, see what a design can find: dialometer power, with the effect found here.")
    return list(dict.fromkeys(said))


def _size_advice(main: FactorEffects, contrast: Contrast) -> list[str]:
    if main.measure.unit == "z":
        return []
    level, base = level_label(contrast.level), level_label(contrast.base)
    found = is_found(main, contrast)
    if found is None:
        return []
    if found:
        text = (
            f"Show “{level}” to all raters or to none: ratings collected under it and under “{base}” must not be pooled, "
            "and systems must be compared within one condition."
        )
        if is_anchor(contrast.factor):
            text += " Report the anchor with the numbers: their size is partly the anchor's."
        return [text]
    difference = shown(main.measure, main.difference(contrast))
    what = "ratios" if main.measure.is_log else "differences"
    text = (
        f"For “{level}” against “{base}”, {what} outside {number(difference.low)} to {number(difference.high)} are "
        "unlikely."
    )
    n = raters_per_level(main, contrast)
    if n is not None and main.measure.is_log:
        text += f" Finding a ratio of {SMALL_RATIO:g} with 80% power would take about {n:,} raters per level."
    return [text]


def raters_per_level(main: FactorEffects, contrast: Contrast, ratio: float = SMALL_RATIO) -> int | None:
    """Raters per level for 80% power at 5%, from the spread between raters seen here (normal approximation)."""
    first, second = main.groups(contrast)
    if min(len(first), len(second)) < 2:
        return None
    variance = (float(first.var(ddof=1)) + float(second.var(ddof=1))) / 2
    return math.ceil(2 * variance * (1.959964 + 0.841621) ** 2 / math.log(ratio) ** 2)


def _raters_advice(evidence: Evidence, contrast: Contrast) -> list[str]:
    """How many raters a reliable mean needs on either side."""
    said = []
    for measure, other, one in evidence.steady:
        if not is_same(other, contrast) or not _is_worth(one):
            continue
        needs = [raters_needed(float(one.details[key]), WANTED) for key in ("icc_first", "icc_second")]
        if None in needs:
            continue
        level, base = level_label(contrast.level), level_label(contrast.base)
        said.append(
            f"On {measure.label}, a mean with a reliability of {WANTED:g} needs about {needs[0]} raters per response under "
            f"“{level}” and {needs[1]} under “{base}”."
        )
    if said and is_anchor(contrast.factor):
        said.append(
            "Agreement that comes from a common anchor is not proof of better judgments: check it with raters who see the "
            "standard response without its value."
        )
    return said


def _is_worth(one: Estimate) -> bool:
    return steadiness(one, one.confidence) == "changed"
