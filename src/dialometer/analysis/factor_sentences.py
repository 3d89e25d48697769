"""What a factor did, in sentences: the same wording in the summary, in the section and in the conclusion."""

from __future__ import annotations

from dataclasses import replace

from dialometer.analysis.factor_effects import Contrast, FactorEffects
from dialometer.analysis.labels import factor_label, is_anchor, level_label
from dialometer.analysis.measures import OVERALL, Measure
from dialometer.analysis.words import as_ratio, d_words, excludes, interval_only, p_words, value_only
from dialometer.model.estimate import Estimate


def shown(measure: Measure, difference: Estimate) -> Estimate:
    """A difference as readers want it: a ratio for magnitudes, points otherwise."""
    return as_ratio(difference) if measure.is_log else difference


def null_of(measure: Measure) -> float:
    """The value that means "no difference" once it is shown."""
    return 1.0 if measure.is_log else 0.0


def effect_heading(measure: Measure) -> str:
    """What a column of effects holds."""
    if measure.is_log:
        return "Ratio"
    return "Difference, % of the scale" if measure.unit == "percent" else "Difference"


def unit_name(measure: Measure) -> str:
    """What a difference is counted in."""
    return "percentage points of the scale" if measure.unit == "percent" else "points"


def difference_words(measure: Measure, difference: Estimate, than: str) -> str:
    """ "1.31 times as high as Y" or "0.40 points higher than Y", without the interval."""
    if measure.is_log:
        return f"{value_only(as_ratio(difference))} times as high as {than}"
    # The digits come from the interval, the sign is in the word.
    size = value_only(replace(difference, value=abs(difference.value)))
    return f"{size} {unit_name(measure)} {'higher' if difference.value >= 0 else 'lower'} than {than}"


def interval_of(measure: Measure, difference: Estimate) -> str:
    """The interval of a difference as it is shown."""
    return interval_only(shown(measure, difference))


def effect_sentence(effects: FactorEffects, contrast: Contrast) -> str:
    """Direction, size with interval, tests, and what the size means."""
    measure = effects.measure
    difference = effects.difference(contrast)
    on = "" if measure.name == OVERALL else f" for {measure.label}"
    level, base = level_label(contrast.level), level_label(contrast.base)
    if not difference.is_known:
        why = difference.notes[0] if difference.notes else "not enough data"
        return f"Whether ratings{on} differ between “{level}” and “{base}” is not known: {why}."
    said = [interval_of(measure, difference), p_words(difference.p_value)]
    term = effects.permuted.get(contrast.factor.name)
    if len(contrast.factor.levels) == 2 and not contrast.where and term is not None and term.is_known:
        said[-1] += f", by permutation {p_words(term.p_value)}"
    d, _ = effects.sizes(contrast)
    if d.is_known:
        said.append(f"Cohen's {d_words(d)}")
    compared = difference_words(measure, difference, f"under “{base}”")
    where = f" where {contrast.where_label}" if contrast.where else ""
    return f"Ratings{on} under “{level}”{where} were {compared} ({'; '.join(said)})."


def is_found(effects: FactorEffects, contrast: Contrast) -> bool | None:
    """Whether the interval leaves out "no difference"; None where there is no interval."""
    difference = effects.difference(contrast)
    return excludes(difference) if difference.has_interval else None


def factor_question(contrast: Contrast) -> str:
    """The question in one line."""
    if is_anchor(contrast.factor):
        return f"Did the anchor ({level_label(contrast.level)}) change the ratings?"
    return f"Did “{level_label(contrast.level)}” change the ratings ({factor_label(contrast.factor)})?"
