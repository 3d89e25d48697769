"""Comparisons that were declared before the data: only these confirm or refute; everything else explores.

The tests of the primary comparison are corrected among themselves, those of all other declared comparisons together.
Size and consistency of ratings are different questions and corrected apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dialometer.analysis.consistency import Compared
from dialometer.analysis.consistency import difference as consistency_difference
from dialometer.analysis.evidence import is_same
from dialometer.analysis.factor_effects import Contrast, FactorEffects
from dialometer.analysis.factor_sentences import null_of, shown
from dialometer.analysis.family import Options
from dialometer.analysis.labels import baseline, factor_named, level_label, system_label
from dialometer.analysis.measures import Measure, Measures
from dialometer.analysis.rater_rows import RaterRows, adjusted_means
from dialometer.analysis.system_ratings import SystemRatings
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.study import Comparison, Study
from dialometer.stats.clustered import clustered_mean
from dialometer.stats.multiplicity import adjust

SIZE, CONSISTENCY = "size of ratings", "consistency"


@dataclass(frozen=True)
class DeclaredTest:
    """One test of a declared comparison. ``estimate`` is on the analysed footing; for consistency a difference of ICCs."""

    comparison: Comparison
    outcome: str
    measure: Measure
    first: str
    second: str
    estimate: Estimate
    p_adjusted: float = float("nan")

    @property
    def shown(self) -> Estimate:
        """The estimate as readers want it."""
        return shown(self.measure, self.estimate) if self.outcome == SIZE else self.estimate

    @property
    def null(self) -> float:
        """What "no difference" is for it."""
        return null_of(self.measure) if self.outcome == SIZE else 0.0


def declared_tests(
    study: Study,
    measures: Measures,
    rows: RaterRows,
    options: Options,
    systems: Sequence[SystemRatings] = (),
    effects: Sequence[FactorEffects] = (),
    steady: Sequence[Compared] = (),
) -> list[DeclaredTest]:
    """Every test of every declared comparison, corrected; comparisons whose data are missing are unknown and say why.

    ``systems``, ``effects`` and ``steady`` are those that the report has computed anyway; others are computed here.
    """
    found: list[DeclaredTest] = []
    for comparison in study.spec.analysis.comparisons:
        for measure in _measures_of(comparison, measures, study):
            if comparison.between == "factor":
                known = next((one for one in effects if one.measure is measure), None)
                found += _factor_tests(study, comparison, measure, rows, options, known, steady)
            elif comparison.between == "systems":
                ratings = next((one for one in systems if one.measure is measure), None)
                found += _system_tests(study, comparison, ratings or SystemRatings(study, measure, options))
            else:
                found += _item_tests(comparison, measure, options)
    return _corrected(found, study.spec.analysis.primary, options)


def _measures_of(comparison: Comparison, measures: Measures, study: Study) -> list[Measure]:
    """The criteria a comparison names, in the blocks it names."""
    wanted = [m for m in measures.criteria if not comparison.criteria or m.criteria[0] in comparison.criteria]
    if not comparison.blocks:
        return wanted
    inside = np.array([study.items_by_id[name].block in comparison.blocks for name in measures.book.items])
    return [part for m in wanted if len((part := m.where(inside[m.item])).y)]


def _factor_tests(
    study: Study,
    comparison: Comparison,
    measure: Measure,
    rows: RaterRows,
    options: Options,
    effects: FactorEffects | None,
    known: Sequence[Compared],
) -> list[DeclaredTest]:
    factor = factor_named(study, comparison.factor or "")
    if factor is None or measure.unit == "z":
        return []
    if effects is None:
        own = replace(rows, y={**rows.y, measure.name: adjusted_means(measure, rows.n)})
        effects = FactorEffects(study, measure, own, options)
    chosen = [level for level in factor.levels if not comparison.levels or level.name in comparison.levels]
    base = baseline(factor) if baseline(factor) in chosen else chosen[0]
    tests = []
    for level in chosen:
        if level.name == base.name:
            continue
        contrast = Contrast(factor, level, base)
        names = (level_label(level), level_label(base))
        tests.append(DeclaredTest(comparison, SIZE, measure, *names, effects.difference(contrast)))
        steady = next((one for m, other, one in known if m is measure and is_same(other, contrast)), None)
        steady = steady or consistency_difference(measure, rows, contrast, options)
        tests.append(DeclaredTest(comparison, CONSISTENCY, measure, *names, steady))
    return tests


def _system_tests(study: Study, comparison: Comparison, ratings: SystemRatings) -> list[DeclaredTest]:
    measure = ratings.measure
    names = measure.book.systems
    chosen = [code for code in ratings.systems if not comparison.levels or names[code] in comparison.levels]
    ordered = sorted(chosen, key=lambda code: -ratings.means[code].value)
    pairs = ratings.compare(list(itertools.combinations(ordered, 2)))
    return [
        DeclaredTest(
            comparison,
            SIZE,
            measure,
            system_label(study, names[pair.first]),
            system_label(study, names[pair.second]),
            pair.difference,
        )
        for pair in pairs
    ]


def _item_tests(comparison: Comparison, measure: Measure, options: Options) -> list[DeclaredTest]:
    """Items two by two, from the differences within raters who saw both."""
    names = measure.book.items
    chosen = [name for name in comparison.levels if name in names] or list(names)
    n = len(measure.book.raters)
    means = {}
    for name in chosen:
        inside = measure.item == names.index(name)
        count = np.bincount(measure.rater[inside], minlength=n)
        sums = np.bincount(measure.rater[inside], weights=measure.y[inside], minlength=n)
        means[name] = np.divide(sums, count, out=np.full(n, np.nan), where=count > 0)
    tests = []
    for first, second in itertools.combinations(chosen, 2):
        gap = means[first] - means[second]
        gap = gap[~np.isnan(gap)]
        one = clustered_mean(gap, np.arange(len(gap)), null=0.0, confidence=options.confidence)
        if not len(gap):
            one = unknown("mean difference", "no rater saw both items")
        tests.append(DeclaredTest(comparison, SIZE, measure, first, second, one))
    return tests


def _corrected(tests: list[DeclaredTest], primary: str | None, options: Options) -> list[DeclaredTest]:
    families: dict[tuple[bool, str], list[int]] = {}
    for place, test in enumerate(tests):
        families.setdefault((test.comparison.name == primary, test.outcome), []).append(place)
    made = list(tests)
    for places in families.values():
        adjusted = adjust([tests[place].estimate.p_value for place in places], options.correction)  # type: ignore[arg-type]
        for place, p in zip(places, adjusted, strict=True):
            made[place] = replace(tests[place], p_adjusted=float(p))
    return made
