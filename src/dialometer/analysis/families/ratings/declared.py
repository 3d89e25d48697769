"""Comparisons that were declared before the data: only these confirm or refute; everything else explores.

The tests of one comparison, of size and of consistency, are corrected as one family of tests: any of them may decide on its
hypothesis. Each comparison is a family of its own, as the preregistration and the power analysis say.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options, section_or_problem
from dialometer.analysis.base.measures import (
    Measure,
    Measures,
    RaterRows,
    adjusted_means,
    means_by_group,
    numeric_measures,
    rater_rows,
)
from dialometer.analysis.base.scale_units import asked_criteria
from dialometer.analysis.base.wording import (
    CONFIRMATORY_TITLE,
    after_correction,
    baseline,
    correction_name,
    factor_named,
    level_label,
    system_label,
)
from dialometer.analysis.families.ratings.consistency import ConsistencyChange
from dialometer.analysis.families.ratings.consistency import difference as consistency_difference
from dialometer.analysis.families.ratings.factor_effects import (
    Contrast,
    FactorEffects,
    effect_label,
    is_same,
    joint_heading,
    null_of,
    shown,
    shown_with_unit,
)
from dialometer.analysis.families.ratings.system_section import PAIRS_TITLE, Best, best_system, pair_section
from dialometer.analysis.families.ratings.systems import SystemRatings, ratings_of
from dialometer.analysis.shared.comparisons import (
    between,
    comparison_title,
    declared_factor,
    is_about,
    significance_words,
)
from dialometer.analysis.shared.equivalence import differences_of, has_margin
from dialometer.model.analysis_plan import Comparison
from dialometer.model.design import Factor
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Headline, Section, Table
from dialometer.model.study import Study
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.effects.multiplicity import adjust_estimates

SIZE, CONSISTENCY = "size of ratings", "consistency"


@dataclass(frozen=True)
class DeclaredTest:
    """One test of a declared comparison. ``estimate`` is in the analysed unit; for consistency a difference of ICCs."""

    comparison: Comparison
    outcome: str
    measure: Measure
    first: str
    second: str
    estimate: Estimate
    levels: tuple[str, str] = ("", "")
    """Names of the two levels of a factor in the study file."""
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
    steady: Sequence[ConsistencyChange] = (),
) -> list[DeclaredTest]:
    """Every test of every declared comparison, corrected; comparisons whose data are missing are unknown and say why.

    ``systems``, ``effects`` and ``steady`` are those that the report has computed anyway; others are computed here.
    """
    tests: list[DeclaredTest] = []
    for comparison in differences_of(study):
        for measure in measures_of(comparison, measures, study):
            if comparison.between == "factor":
                known = next((effect for effect in effects if effect.measure is measure), None)
                tests += _factor_tests(study, comparison, measure, rows, options, known, steady)
            elif comparison.between == "systems":
                ratings = next((rated for rated in systems if rated.measure is measure), None)
                tests += _system_tests(study, comparison, ratings or SystemRatings(study, measure, options))
            else:
                tests += _item_tests(comparison, measure, options)
    return _corrected(tests, options)


def is_about_ratings(study: Study, comparison: Comparison) -> bool:
    """Whether a comparison concerns anything that is rated with numbers."""
    return is_about(comparison, [asked.criterion.name for asked in asked_criteria(study)])


def measures_of(comparison: Comparison, measures: Measures, study: Study) -> list[Measure]:
    """The criteria a comparison names, in the blocks it names; all together, as in the answer, where the study declares none."""
    if not study.spec.analysis.comparisons:
        return [measures.main]
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
    known: Sequence[ConsistencyChange],
) -> list[DeclaredTest]:
    factor = factor_named(study, comparison.factor or "")
    if factor is None:
        return []
    effects = effects or _effects(study, measure, rows, options)
    tests = []
    for contrast in factor_contrasts(comparison, factor):
        names = (level_label(contrast.level), level_label(contrast.base))
        levels = (contrast.level.name, contrast.base.name)
        if measure.unit != "z":  # z scores within raters have no size
            tests.append(DeclaredTest(comparison, SIZE, measure, *names, effects.difference(contrast), levels))
        steady = next((change for m, other, change in known if m is measure and is_same(other, contrast)), None)
        steady = steady or consistency_difference(measure, rows, contrast, options)
        tests.append(DeclaredTest(comparison, CONSISTENCY, measure, *names, steady, levels))
    return tests


def _effects(study: Study, measure: Measure, rows: RaterRows, options: Options) -> FactorEffects:
    own = replace(rows, y={**rows.y, measure.name: adjusted_means(measure, rows.n)})
    return FactorEffects(study, measure, own, options)


def factor_contrasts(comparison: Comparison, factor: Factor) -> list[Contrast]:
    """Every level that a comparison names against the baseline, or against the first of them."""
    chosen = [level for level in factor.levels if not comparison.levels or level.name in comparison.levels]
    base = baseline(factor) if baseline(factor) in chosen else chosen[0]
    return [Contrast(factor, level, base) for level in chosen if level.name != base.name]


def _system_tests(study: Study, comparison: Comparison, ratings: SystemRatings) -> list[DeclaredTest]:
    measure = ratings.measure
    names = measure.book.systems
    chosen = [code for code in ratings.systems if not comparison.levels or names[code] in comparison.levels]
    ordered = [code for code in ratings.order if code in chosen]
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
        means[name] = means_by_group(measure.y[inside], measure.rater[inside], n)
    tests = []
    for first, second in itertools.combinations(chosen, 2):
        gap = means[first] - means[second]
        gap = gap[~np.isnan(gap)]
        estimate = clustered_mean(gap, np.arange(len(gap)), null=0.0, confidence=options.confidence)
        if not len(gap):
            estimate = unknown("mean difference", "no rater saw both items")
        tests.append(DeclaredTest(comparison, SIZE, measure, first, second, estimate))
    return tests


def _corrected(tests: list[DeclaredTest], options: Options) -> list[DeclaredTest]:
    families: dict[str, list[int]] = {}
    for place, test in enumerate(tests):
        families.setdefault(test.comparison.name, []).append(place)
    made = list(tests)
    for places in families.values():
        adjusted = adjust_estimates([tests[place].estimate for place in places], options.correction)
        for place, estimate in zip(places, adjusted, strict=True):
            made[place] = replace(tests[place], estimate=estimate, p_adjusted=float(estimate.details["p_adjusted"]))
    return made


def factor_differences(data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
    """Differences between levels of a factor in size and consistency on every criterion of a comparison, not corrected.

    A margin is one of size: such a comparison has no tests of consistency.
    """
    declared_factor(data.study, comparison)
    measures = numeric_measures(data)
    rows = rater_rows(data, measures)
    tests: dict[str, Estimate] = {}
    for measure in measures_of(comparison, measures, data.study):
        for test in _factor_tests(data.study, comparison, measure, rows, options, None, ()):
            label = f"{measure.label}: {test.first} against {test.second}"
            is_size = test.outcome == SIZE
            if is_size or not has_margin(comparison):
                tests[label if is_size else consistency_label(measure, f"{test.first} against {test.second}")] = (
                    between(
                        test.estimate,
                        *test.levels,
                        is_log=is_size and measure.is_log,
                        about=measure.label,
                        quantity=quantity_of(measure) if is_size else "ICC",
                    )
                )
    return tests


def quantity_of(measure: Measure) -> str:
    """What differences on a measure are counted in, for ``effect_words``."""
    names = {"log": "ratio", "z": "standard deviations", "percent": "percentage points of the scale"}
    return names.get(measure.unit, "points")


def consistency_label(measure: Measure, compared: str) -> str:
    """The name of a test of consistency among the tests of a comparison."""
    return f"{measure.label}: {compared}, {CONSISTENCY}"


def system_differences(data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
    """Differences between the systems of a comparison on every criterion, not corrected; systems in alphabetical order."""
    measures = numeric_measures(data)
    tests = {}
    for measure in measures_of(comparison, measures, data.study):
        ratings = ratings_of(data, measure, options)
        names = measure.book.systems
        chosen = sorted(
            (code for code in ratings.systems if not comparison.levels or names[code] in comparison.levels),
            key=names.__getitem__,
        )
        for pair in ratings.compare(list(itertools.combinations(chosen, 2))):
            first, second = (system_label(data.study, names[code]) for code in (pair.first, pair.second))
            named = between(
                pair.difference,
                names[pair.first],
                names[pair.second],
                is_log=measure.is_log,
                about=measure.label,
                quantity=quantity_of(measure),
            )
            tests[f"{measure.label}: {first} against {second}"] = named
    return tests


def declared_sections(study: Study, build: Callable[[], Section]) -> tuple[Section, ...]:
    """The section on declared differences; none where all comparisons have margins, which have a section of their own."""
    if study.spec.analysis.comparisons and not differences_of(study):
        return ()
    return (section_or_problem("declared_ratings", CONFIRMATORY_TITLE, build),)


def declared_section(study: Study, tests: list[DeclaredTest], options: Options) -> Section:
    """What was declared, and what came of it."""
    analysis = study.spec.analysis
    if not analysis.comparisons:
        nothing = (
            "No comparison was declared in advance, so everything in this report is exploratory. Declare comparisons under "
            "'analysis:' in study.yaml before the next study is frozen."
        )
        return Section("declared_ratings", CONFIRMATORY_TITLE, (nothing,))
    return Section(
        "declared_ratings",
        CONFIRMATORY_TITLE,
        parts=(_table(tests, analysis.primary, options),),
        is_confirmatory=True,
    )


def _table(tests: list[DeclaredTest], primary: str | None, options: Options) -> Table:
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    has_both = len({test.outcome for test in tests}) > 1
    measures = [test.measure for test in tests]
    for test in tests:
        is_known = test.estimate.has_interval
        body.append(
            (
                comparison_title(test.comparison) + (" (primary)" if test.comparison.name == primary else ""),
                *((test.outcome,) if has_both else ()),
                effect_label(test.measure, measures),
                test.first,
                test.second,
                test.shown,
                test.estimate.p_value if is_known else None,
                test.p_adjusted if is_known else None,
            )
        )
        notes += [] if is_known else test.estimate.notes
    heading = joint_heading(measures)
    together = ""
    if len(tests) > len({test.comparison.name for test in tests}):
        together = (
            f" The tests of each comparison are corrected together{', size and consistency alike' if has_both else ''}."
        )
    return Table(
        "declared_ratings",
        CONFIRMATORY_TITLE,
        (
            Column("comparison", "Comparison"),
            *((Column("outcome", "Outcome"),) if has_both else ()),
            Column("criterion", "Criterion"),
            Column("first", "First"),
            Column("second", "Second"),
            Column("estimate", f"{heading}; difference of ICCs" if has_both else heading, "estimate"),
            Column("p", "p", "p_value"),
            Column("p_adjusted", f"p ({correction_name(options.correction)})", "p_value"),
        ),
        tuple(body),
        caption=f"The first relative to the second.{together}",
        notes=tuple(dict.fromkeys(notes)),
        is_confirmatory=True,
    )


def declared_headlines(
    study: Study, tests: list[DeclaredTest], options: Options, most: int = 4, *, is_interim: bool
) -> tuple[Headline, ...]:
    """The primary comparison's numbers for the first screen, with corrected p-values."""
    so_far = " so far" if is_interim else ""
    primary = study.spec.analysis.primary
    own = [test for test in tests if test.comparison.name == primary]
    several = len({test.measure.label for test in own}) > 1 or any(test.outcome == CONSISTENCY for test in own)
    return tuple(
        Headline(
            (f"{test.measure.label}: " if several else "")
            + f"{test.first} against {test.second}"
            + (", consistency" if test.outcome == CONSISTENCY else ""),
            replace(_with_unit(test), p_value=test.p_adjusted),
            _significance(test, so_far + (after_correction(options.correction) if len(own) > 1 else "")),
            is_confirmatory=True,
        )
        for test in own[:most]
    )


def _with_unit(test: DeclaredTest) -> Estimate:
    if test.outcome == CONSISTENCY:
        return replace(test.shown, unit="difference in ICC")
    return shown_with_unit(test.measure, test.estimate)


def _significance(test: DeclaredTest, after: str) -> str:
    return (
        "No test." if math.isnan(test.p_adjusted) else significance_words(test.shown, test.null, test.p_adjusted, after)
    )


def declared_p(ratings: SystemRatings, tests: list[DeclaredTest]) -> dict[tuple[int, int], float]:
    """The corrected p-values of those pairs of a measure that were declared, the higher mean first."""
    declared = {
        frozenset((test.first, test.second)): test.p_adjusted
        for test in tests
        if test.measure is ratings.measure and test.comparison.between == "systems" and test.outcome == SIZE
    }
    return {
        (pair.first, pair.second): declared[names]
        for pair in ratings.pairs
        if (names := frozenset((ratings.label(pair.first), ratings.label(pair.second)))) in declared
    }


def declared_best(ratings: SystemRatings, tests: list[DeclaredTest]) -> tuple[Best, bool]:
    """The best system on a measure, and whether this is confirmatory: all its pairs were declared.

    Then its p-values are the confirmatory ones, so that no sentence can contradict the confirmatory tests.
    """
    p_of = declared_p(ratings, tests)
    is_declared = bool(p_of) and len(p_of) == len(ratings.pairs)
    return best_system(ratings, p_of if is_declared else None), is_declared


def pair_sections(systems: list[SystemRatings], tests: list[DeclaredTest]) -> tuple[Section, ...]:
    """Systems two by two, with the confirmatory p-values where their comparison was declared."""
    if len(systems[0].systems) < 2:
        return ()
    p_values = [declared_p(ratings, tests) for ratings in systems]
    return (section_or_problem("system_pairs", PAIRS_TITLE, lambda: pair_section(systems, p_values)),)


def best_headline(ratings: SystemRatings, tests: list[DeclaredTest]) -> Headline:
    """The best system against the next one on a measure; confirmatory, with the declared correction, where that was declared."""
    best, is_declared = declared_best(ratings, tests)
    label, lead = ratings.measure.label, None
    if best.next_pair is not None:
        label += f": {best.label} against {ratings.label(best.next_pair.second)}"
        lead = replace(shown_with_unit(ratings.measure, best.next_pair.difference), p_value=best.p)
    return Headline(label, lead, best.sentence, is_confirmatory=is_declared)
