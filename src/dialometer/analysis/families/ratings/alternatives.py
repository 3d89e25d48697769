"""Other normalisations and models with which systems (or levels of a factor) might have been compared on ratings."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options, OtherChoice
from dialometer.analysis.base.measures import Measure, RaterRows, means_by_group, numeric_measures, rater_rows
from dialometer.analysis.base.wording import system_label
from dialometer.analysis.families.ratings.consistency import difference as consistency_difference
from dialometer.analysis.families.ratings.declared import consistency_label, factor_contrasts, measures_of
from dialometer.analysis.families.ratings.factor_effects import Contrast
from dialometer.analysis.families.ratings.ordinal_model import has_order, is_quick
from dialometer.analysis.families.ratings.systems import SystemRatings, ratings_of
from dialometer.analysis.shared.comparisons import between, declared_factor
from dialometer.analysis.shared.equivalence import decided, has_margin
from dialometer.analysis.shared.other_models import OneSample, by_both, by_raters, rescaled, simpler_models
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.effects.normalise import Normalisation, normalise
from dialometer.stats.effects.permutation import permutation_two_groups
from dialometer.stats.effects.two_groups import welch_t
from dialometer.stats.observations import Floats, Ints, codes, n_distinct

Compare = Callable[[Measure, list[tuple[int, int]]], list[Estimate]]
FEWEST = 3
"""Shared screens of two systems from which on their differences are used."""


@dataclass(frozen=True)
class RatingAlternatives:
    """One comparison of systems on ratings, ready to be tested otherwise."""

    data: StudyData
    comparison: Comparison
    options: Options

    @cached_property
    def measures(self) -> list[Measure]:
        """The criteria of the comparison."""
        return measures_of(self.comparison, numeric_measures(self.data), self.data.study)

    def all(self) -> list[OtherChoice]:
        """What applies to these ratings."""
        of_gaps = "mean difference within screens, two-way jackknife"  # which the declared model may take of ratings
        made = [
            OtherChoice("Ratings", label, partial(self._tests, partial(self._normalised, method)))
            for method, label in self._normalisations()
        ]
        models = [
            OtherChoice(
                "Model",
                of_gaps if model is by_both else label,
                partial(self._tests, partial(self._simpler, model)),
                claim,
            )
            for label, model, claim in simpler_models(self.options)
            if model is not by_both or self._has_shared_screens()
        ]
        return [*made, *self._other_model(), *models]

    def _has_shared_screens(self) -> bool:
        """Whether systems were judged together; else a jackknife over raters and items is what was declared already."""
        return any(int((~np.isnan(_screens(measure)[0])).sum(axis=1).max()) > 1 for measure in self.measures)

    def _other_model(self) -> list[OtherChoice]:
        """The ordinal model where the linear one is declared, and the other way round."""
        is_linear = self.options.model == "linear"
        if not any(has_order(measure) for measure in self.measures):
            return []
        if is_linear and not all(is_quick(measure) for measure in self.measures):
            return []
        label = "ordinal mixed model (cumulative link)" if is_linear else "linear mixed model"
        options = replace(self.options, model="ordinal" if is_linear else "linear")

        def compare(measure: Measure, pairs: list[tuple[int, int]]) -> list[Estimate]:
            return [pair.difference for pair in SystemRatings(self.data.study, measure, options).compare(pairs)]

        return [OtherChoice("Model", label, partial(self._tests, compare))]

    def _normalisations(self) -> list[tuple[Normalisation, str]]:
        if any(measure.unit == "z" for measure in self.measures):
            return []
        if any(measure.is_log for measure in self.measures):
            return [
                ("raw", "as given, without logarithm"),
                ("ln_center", "logarithms, each rater's mean subtracted"),
                ("ln_z", "logarithms, z within raters"),
            ]
        return [("raw_center", "each rater's mean subtracted"), ("raw_z", "z within raters")]

    def _tests(self, compare: Compare) -> dict[str, Estimate]:
        """The tests under the labels of the declared ones."""
        tests = {}
        study = self.data.study
        for measure in self.measures:
            names = measure.book.systems
            present = ratings_of(self.data, measure, self.options).systems
            chosen = sorted(
                (code for code in present if not self.comparison.levels or names[code] in self.comparison.levels),
                key=names.__getitem__,
            )
            pairs = list(itertools.combinations(chosen, 2))
            for (a, b), estimate in zip(pairs, compare(measure, pairs), strict=True):
                first, second = (system_label(study, names[code]) for code in (a, b))
                named = between(estimate, names[a], names[b], is_log=measure.is_log)
                tests[f"{measure.label}: {first} against {second}"] = named
        return decided(tests, self.comparison, self.options)

    def _normalised(self, method: Normalisation, measure: Measure, pairs: list[tuple[int, int]]) -> list[Estimate]:
        """The declared model on other numbers, back in the unit of the declared ones."""
        zeros = self.data.study.spec.analysis.zeros
        values = normalise(measure.raw, measure.rater, method, zeros=zeros).values
        given = ~np.isnan(values)
        other = replace(replace(measure, unit="points").where(given), y=values[given])
        spread = _spread(other.y, other.rater)
        factor = _spread(measure.y, measure.rater) / spread if spread > 0 else 1.0
        ratings = SystemRatings(self.data.study, other, replace(self.options, model="linear"))
        return [rescaled(pair.difference, factor) for pair in ratings.compare(pairs)]

    def _simpler(self, model: OneSample, measure: Measure, pairs: list[tuple[int, int]]) -> list[Estimate]:
        y, rater, item = _screens(measure)
        made = []
        for a, b in pairs:
            gap = y[:, a] - y[:, b]
            if int(np.sum(~np.isnan(gap))) >= FEWEST:
                made.append(model(gap, rater, item, 0.0, self.options.confidence))
            else:
                made.append(self._apart(model, y, rater, item, (a, b)))
        return made

    def _apart(self, model: OneSample, y: Floats, rater: Ints, item: Ints, pair: tuple[int, int]) -> Estimate:
        """Systems that nobody saw together: the means of raters, or of items, in two groups."""
        if model is by_both:
            return unknown("two-way jackknife", "no rater saw both systems on one item: the declared model is the same")
        cluster = rater if model is by_raters else item
        groups = []
        for code in pair:
            given = ~np.isnan(y[:, code])
            means = means_by_group(y[given, code], cluster[given], int(cluster.max()) + 1)
            groups.append(means[~np.isnan(means)])
        first, second = groups
        return welch_t(first, second, confidence=self.options.confidence)


@dataclass(frozen=True)
class FactorAlternatives:
    """Levels of a factor between raters, ready to be tested otherwise."""

    data: StudyData
    comparison: Comparison
    options: Options

    @cached_property
    def measures(self) -> list[Measure]:
        """The criteria of the comparison."""
        return measures_of(self.comparison, numeric_measures(self.data), self.data.study)

    def all(self) -> list[OtherChoice]:
        """Raters' plain means instead of adjusted ones, by Welch's test and by permutation; raw instead of logarithms."""
        made = [
            OtherChoice("Model", "raters' plain means, Welch's t-test", partial(self._tests, self._welch)),
            OtherChoice("Model", "raters' plain means, permutation test", partial(self._tests, self._permuted)),
        ]
        if any(measure.is_log for measure in self.measures):
            raw = partial(self._tests, self._welch, is_raw=True)
            made.insert(0, OtherChoice("Ratings", "as given, without logarithm", raw))
        return made

    def _tests(self, test: Callable[[Floats, Floats], Estimate], *, is_raw: bool = False) -> dict[str, Estimate]:
        study, tests = self.data.study, {}
        factor = declared_factor(study, self.comparison)
        for measure in self.measures:
            if measure.unit == "z":
                continue
            n = len(measure.book.raters)
            means = means_by_group(measure.raw if is_raw else measure.y, measure.rater, n)
            declared = means_by_group(measure.y, measure.rater, n)
            spread = float(np.nanstd(means))
            factor_to_unit = float(np.nanstd(declared)) / spread if is_raw and spread > 0 else 1.0
            level = np.array([study.cells[cell][factor.name] for cell in measure.book.cell_of_rater])
            for c in factor_contrasts(self.comparison, factor):
                own, base = (means[(level == name) & ~np.isnan(means)] for name in (c.level.name, c.base.name))
                estimate = rescaled(test(own, base), factor_to_unit)
                named = between(estimate, c.level.name, c.base.name, is_log=measure.is_log)
                tests[f"{measure.label}: {c.label}"] = named
                if not has_margin(self.comparison):
                    tests[consistency_label(measure, c.label)] = self._consistency(measure, c, is_raw=is_raw)
        return decided(tests, self.comparison, self.options)

    def _consistency(self, measure: Measure, contrast: Contrast, *, is_raw: bool) -> Estimate:
        """The declared test of consistency; choices about the size of ratings leave it, raw numbers change it."""
        key = (measure.name, contrast.label, is_raw)
        if key not in self.consistent:
            used = replace(measure, y=measure.raw) if is_raw else measure
            made = consistency_difference(used, self.rows, contrast, self.options)
            self.consistent[key] = between(made, contrast.level.name, contrast.base.name)
        return self.consistent[key]

    @cached_property
    def rows(self) -> RaterRows:
        """The raters with their conditions."""
        return rater_rows(self.data, numeric_measures(self.data))

    @cached_property
    def consistent(self) -> dict[tuple[str, str, bool], Estimate]:
        """Tests of consistency that were made already."""
        return {}

    def _welch(self, own: Floats, base: Floats) -> Estimate:
        return welch_t(own, base, confidence=self.options.confidence)

    def _permuted(self, own: Floats, base: Floats) -> Estimate:
        """Welch's interval with the p-value of a permutation test."""
        drawn = permutation_two_groups(own, base, n_permutations=self.options.n_resamples, seed=self.options.seed)
        return replace(self._welch(own, base), p_value=drawn.p_value)


def _screens(measure: Measure) -> tuple[Floats, Ints, Ints]:
    """One row for each rater and item with a column for each system, ``nan`` where it was not seen."""
    n_items, n_systems = len(measure.book.items), len(measure.book.systems)
    row, keys = codes(measure.rater * n_items + measure.item)
    y = means_by_group(measure.y, row * n_systems + measure.system, len(keys) * n_systems)
    return y.reshape(len(keys), n_systems), keys // n_items, keys % n_items


def _spread(values: Floats, raters: Ints) -> float:
    """The standard deviation of ratings within raters: the unit that all normalisations share."""
    means = means_by_group(values, raters, int(raters.max()) + 1)
    rest = values - means[raters]
    n_raters = n_distinct(raters[~np.isnan(rest)])
    return float(np.sqrt(np.nansum(rest**2) / max(int(np.sum(~np.isnan(rest))) - n_raters, 1)))
