"""Effects of between-rater factors on one measure: mixed model, permutation beside it, and sizes of the differences."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dialometer.analysis.family import Options
from dialometer.analysis.labels import baseline, factor_label, level_label
from dialometer.analysis.measures import Measure
from dialometer.analysis.random_effects import MOST_LEVELS, fitted
from dialometer.analysis.rater_rows import RaterRows
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Factor, Level, Study
from dialometer.stats.effect_size import cliffs_delta, cohens_d
from dialometer.stats.factorial import FactorialFit, factorial_effects
from dialometer.stats.observations import Floats
from dialometer.stats.permutation_factorial import permutation_factorial

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


def legend(study: Study) -> str:
    """What the short names of effects stand for."""
    told = [f"{one.short}: {one.label}." for factor in study.spec.design.factors for one in contrasts(factor)]
    return " ".join(told)


def simple_contrasts(study: Study, factor: Factor) -> list[Contrast]:
    """Every level against the baseline, within each combination of the other factors' levels."""
    others = [other for other in study.spec.design.factors if other.name != factor.name]
    if not others:
        return []
    combinations = itertools.product(*(other.levels for other in others))
    return [
        Contrast(factor, one.level, one.base, tuple(zip(others, levels, strict=True)))
        for levels in combinations
        for one in contrasts(factor)
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
        try:
            if self.is_by_means:
                means, everyone = self.rows.y[self.measure.name], np.arange(self.rows.n)
                return fitted(lambda: factorial_effects(means, names, everyone, **settings))  # type: ignore[arg-type]
            labels = {name: codes[rater] for name, codes in names.items()}
            return fitted(lambda: factorial_effects(values, labels, rater, target, **settings))  # type: ignore[arg-type]
        except NotEnoughData as error:
            known = {name: tuple(codes) for name, codes in order.items()}
            empty = np.zeros(len(self.study.cells), dtype=np.int64)
            options = self.options
            return FactorialFit(known, options.confidence, self.measure.is_log, len(values), None, empty, str(error))

    @property
    def is_by_means(self) -> bool:
        """Whether the model works on one mean per rater because the study is too large for crossed effects."""
        return min(self.rows.n, self.measure.n_targets) > MOST_LEVELS

    @cached_property
    def permuted(self) -> dict[str, Estimate]:
        """The permutation test of every term, or the reason why there is none."""
        values = self.rows.y[self.measure.name]
        n = self.options.n_resamples * (1 if self.rows.n > MANY_RATERS else 5)
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
        try:
            return self.fit.compare({name: first, **fixed}, {name: second, **fixed})
        except OverflowError:
            return unknown("mixed model", "hardly any data: the interval has no bounds; collect more", n=self.fit.n)

    def terms(self) -> dict[str, Estimate]:
        """Every main effect and interaction."""
        try:
            return self.fit.effects()
        except OverflowError:
            why = "hardly any data: the interval has no bounds; collect more"
            return {term: unknown("mixed model", why, n=self.fit.n) for term in self.fit.terms}

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
    return str([one.name for one in factor.levels].index(level.name))
