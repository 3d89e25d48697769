"""Effects of between-rater factors on one measure: mixed model, permutation beside it, and sizes of the differences."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import OVERALL, Measure, Measures, RaterRows
from dialometer.analysis.base.scale_units import difference_within
from dialometer.analysis.base.wording import (
    as_ratio,
    baseline,
    d_words,
    factor_label,
    interval_only,
    is_anchor,
    level_label,
    p_words,
    value_only,
)
from dialometer.analysis.families.ratings.systems import MOST_LEVELS
from dialometer.errors import DialometerError
from dialometer.model.design import Factor, Level
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Table
from dialometer.model.study import Study
from dialometer.report.numbers import SCALE_POINTS
from dialometer.stats.effects.effect_size import cliffs_delta, cohens_d
from dialometer.stats.effects.factorial import FactorialFit, factorial_effects
from dialometer.stats.effects.permutation import permutation_factorial
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.observations import Floats

MANY_RATERS = 500


@dataclass(frozen=True, slots=True)
class Contrast:
    """A level against the baseline of its factor, everywhere or where other factors have certain levels."""

    factor: Factor
    level: Level
    base: Level
    where: tuple[tuple[Factor, Level], ...] = ()

    @property
    def label(self) -> str:
        """The two levels in words."""
        return f"{level_label(self.level)} against {level_label(self.base)}"

    @property
    def short(self) -> str:
        """The effect by its factor, for tables with many rows; :func:`legend` says what that means."""
        name = factor_label(self.factor)
        return name if len(self.factor.levels) == 2 else f"{name}: {level_label(self.level)}"

    @property
    def where_label(self) -> str:
        """Where the two are compared, in words."""
        return ", ".join(level_label(level) for _, level in self.where) or "all"


def contrasts(factor: Factor) -> list[Contrast]:
    """Every level against the baseline, over all raters."""
    base = baseline(factor)
    return [Contrast(factor, level, base) for level in factor.levels if level.name != base.name]


def is_same(contrast: Contrast, other: Contrast) -> bool:
    """Whether two contrasts compare the same levels in the same place."""
    return (contrast.factor.name, contrast.level.name, contrast.base.name, contrast.where_label) == (
        other.factor.name,
        other.level.name,
        other.base.name,
        other.where_label,
    )


def legend(study: Study) -> str:
    """What the short names of effects stand for."""
    entries = [
        f"{contrast.short}: {contrast.label}." for factor in study.spec.design.factors for contrast in contrasts(factor)
    ]
    return " ".join(entries)


def simple_contrasts(study: Study, factor: Factor) -> list[Contrast]:
    """Every level against the baseline, within each combination of the other factors' levels."""
    others = [other for other in study.spec.design.factors if other.name != factor.name]
    if not others:
        return []
    combinations = itertools.product(*(other.levels for other in others))
    return [
        Contrast(factor, contrast.level, contrast.base, tuple(zip(others, levels, strict=True)))
        for levels in combinations
        for contrast in contrasts(factor)
    ]


@dataclass(frozen=True)
class FactorEffects:
    """All that can be said about the factors of a study on one measure."""

    study: Study
    measure: Measure
    rows: RaterRows
    options: Options

    @property
    def factors(self) -> list[Factor]:
        """The factors of the design."""
        return self.study.spec.design.factors

    @cached_property
    def fit(self) -> FactorialFit:
        """The mixed model; on rater means where both raters and targets are too many for it."""
        names = {factor.name: self.rows.level(factor) for factor in self.factors}
        order = {factor.name: [str(code) for code in range(len(factor.levels))] for factor in self.factors}
        settings = {"levels": order, "is_log": self.measure.is_log, "confidence": self.options.confidence}
        values, rater, target = self.measure.y, self.measure.rater, self.measure.target
        if self.is_by_means:
            means, everyone = self.rows.y[self.measure.name], np.arange(self.rows.n)
            return factorial_effects(means, names, everyone, **settings)  # type: ignore[arg-type]
        labels = {name: codes[rater] for name, codes in names.items()}
        settings |= {"clusters": self.measure.item, "has_fixed_items": self.options.has_fixed_items}
        return factorial_effects(values, labels, rater, target, **settings)  # type: ignore[arg-type]

    @property
    def is_by_means(self) -> bool:
        """Whether the model works on one mean per rater because the study is too large for crossed effects."""
        return min(self.rows.n, self.measure.n_targets) > MOST_LEVELS

    @cached_property
    def permuted(self) -> dict[str, Estimate]:
        """The permutation test of every term, or the reason why there is none."""
        values = self.rows.y[self.measure.name]
        n = self.options.n_resamples * (1 if self.rows.n > MANY_RATERS else 2)
        try:
            labels = {factor.name: self.rows.level(factor) for factor in self.factors}
            return permutation_factorial(values, labels, n_permutations=n, seed=self.options.seed)
        except DialometerError as error:
            return {term: unknown("permutation of rater means", str(error)) for term in self.fit.terms}

    def term_label(self, term: str) -> str:
        """A term of the model in the study's words."""
        labels = {factor.name: factor_label(factor) for factor in self.factors}
        return " × ".join(labels[name] for name in term.split(":"))

    def difference(self, contrast: Contrast) -> Estimate:
        """The mean at the level minus that at the baseline, every condition counting alike."""
        fixed = {other.name: _code(other, level) for other, level in contrast.where}
        name = contrast.factor.name
        first, second = (_code(contrast.factor, level) for level in (contrast.level, contrast.base))
        return difference_within(
            self.fit.compare({name: first, **fixed}, {name: second, **fixed}), *self.measure.bounds
        )

    def groups(self, contrast: Contrast, values: Floats | None = None) -> tuple[Floats, Floats]:
        """Rater means at the level and at the baseline (or other values per rater)."""
        of_rater = self.rows.y[self.measure.name] if values is None else values
        inside = np.ones(self.rows.n, dtype=bool)
        for other, level in contrast.where:
            inside &= self.rows.level(other) == int(_code(other, level))
        code = self.rows.level(contrast.factor)
        chosen = [
            of_rater[inside & (code == int(_code(contrast.factor, level)))] for level in (contrast.level, contrast.base)
        ]
        return chosen[0][~np.isnan(chosen[0])], chosen[1][~np.isnan(chosen[1])]

    def sizes(self, contrast: Contrast) -> tuple[Estimate, Estimate]:
        """Cohen's d and Cliff's delta of the two groups of rater means."""
        first, second = self.groups(contrast)
        confidence = self.options.confidence
        return cohens_d(first, second, confidence=confidence), cliffs_delta(first, second, confidence=confidence)


def _code(factor: Factor, level: Level) -> str:
    return str(next(code for code, other in enumerate(factor.levels) if other.name == level.name))


def shown(measure: Measure, difference: Estimate, *, n_factors: int = 1) -> Estimate:
    """A difference as readers want it: a ratio for magnitudes, points otherwise, cut at what the scale allows.

    A difference of means is at most as large as the scale is long, the change of a difference (two factors) at most twice.
    """
    if measure.is_log:
        return as_ratio(difference)
    reach = 2 ** (n_factors - 1)
    cut = difference_within(difference, *(reach * end for end in measure.bounds))
    return replace(cut, unit=SCALE_POINTS) if measure.unit == "percent" else cut


def null_of(measure: Measure) -> float:
    """The value that means "no difference" once it is shown."""
    return 1.0 if measure.is_log else 0.0


def effect_heading(measure: Measure) -> str:
    """What a column of effects holds."""
    if measure.is_log:
        return "Ratio"
    return {"percent": f"Difference, {SCALE_POINTS}", "z": "Difference, z"}.get(measure.unit, "Difference")


def joint_heading(measures: Iterable[Measure]) -> str:
    """What a column of effects on several measures holds; :func:`effect_label` then says which rows are ratios."""
    headings = {effect_heading(measure) for measure in measures}
    if len(headings) == 1:
        return headings.pop()
    return "Difference or ratio" if "Ratio" in headings else "Difference"


def effect_label(measure: Measure, beside: Iterable[Measure]) -> str:
    """The measure of a row, marked where its effect is a ratio and those of other rows are differences."""
    is_mixed = measure.is_log and not all(other.is_log for other in beside)
    return f"{measure.label} (ratio)" if is_mixed else measure.label


def unit_name(measure: Measure, written: str = "") -> str:
    """What a difference is counted in; one of it where the number is written as 1."""
    names = {"percent": SCALE_POINTS, "z": "standard deviations of a rater's ratings (z)"}
    name = names.get(measure.unit, "points")
    is_one = written.lstrip("−") == "1"
    return name.replace("points", "point").replace("deviations", "deviation") if is_one else name


def shown_with_unit(measure: Measure, difference: Estimate) -> Estimate:
    """A difference as a headline has it: no heading of a column says what it is counted in."""
    return replace(shown(measure, difference), unit="times" if measure.is_log else unit_name(measure))


def difference_words(measure: Measure, difference: Estimate, than: str) -> str:
    """ "1.31 times as high as Y" or "0.40 points higher than Y", without the interval."""
    if measure.is_log:
        return f"{value_only(as_ratio(difference))} times as high as {than}"
    # The digits come from the interval, the sign is in the word.
    size = value_only(replace(shown(measure, difference), value=abs(difference.value)))
    return f"{size} {unit_name(measure, size)} {'higher' if difference.value >= 0 else 'lower'} than {than}"


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
    numbers = [interval_of(measure, difference), p_words(difference.p_value)]
    if scope := scope_words(effects):
        numbers.insert(0, scope)
    term = effects.permuted.get(contrast.factor.name)
    if len(contrast.factor.levels) == 2 and not contrast.where and term is not None and term.is_known:
        numbers[-1] += f", by permutation {p_words(term.p_value)}"
    d, _ = effects.sizes(contrast)
    if d.is_known:
        numbers.append(f"Cohen's {d_words(d)}")
    compared = difference_words(measure, difference, f"under “{base}”")
    where = f" where {contrast.where_label}" if contrast.where else ""
    return f"Ratings{on} under “{level}”{where} were {compared} ({'; '.join(numbers)})."


def scope_words(effects: FactorEffects) -> str:
    """What sets an effect apart from the confirmatory tests, which may stand beside it with other p-values."""
    words = ["all criteria together", "exploratory"] if effects.measure.name == OVERALL else []
    words += ["not corrected"] if effects.options.correction != "none" else []
    return ", ".join(words)


def factor_question(contrast: Contrast) -> str:
    """The question in one line."""
    if is_anchor(contrast.factor):
        return f"Did the anchor ({level_label(contrast.level)}) change the ratings?"
    return f"Did “{level_label(contrast.level)}” change the ratings ({factor_label(contrast.factor)})?"


def criteria_table(measures: Measures, main: FactorEffects) -> Table | None:
    """Is the effect of a factor larger on one criterion than on another?"""
    if len(measures.criteria) < 2 or len({m.unit for m in measures.criteria}) > 1:
        return None
    body: list[tuple[Cell, ...]] = []
    options = main.options
    for factor in main.factors:
        for contrast in contrasts(factor):
            for left, right in itertools.combinations(measures.criteria, 2):
                gap = main.rows.y[left.name] - main.rows.y[right.name]
                difference = welch_t(*main.groups(contrast, gap), confidence=options.confidence)
                d = cohens_d(*main.groups(contrast, gap), confidence=options.confidence)
                p = difference.p_value if difference.is_known else None
                body.append((contrast.short, left.label, right.label, shown(left, difference, n_factors=2), p, d))
    return Table(
        "effects_by_criterion",
        "Is an effect larger on one criterion?",
        (
            Column("compared", "Effect"),
            Column("first", "On"),
            Column("second", "Relative to"),
            Column("estimate", effect_heading(main.measure), "estimate"),
            Column("p", "p, Welch", "p_value"),
            Column("cohens_d", "Cohen's d", "estimate"),
        ),
        tuple(body),
        caption=f"{legend(main.study)} The effect on the first criterion relative to that on the second, from each rater's "
        "own difference.",
    )
