"""Systems compared by the ratings of those who talked with them; the same raters come back, so they are clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import difference_within, within
from dialometer.analysis.base.wording import listed, number, p_words, system_label, with_interval
from dialometer.analysis.families.conversations.conversations import SelfRatings
from dialometer.analysis.shared.comparisons import (
    CORRECTIONS,
    comparison_title,
    corrected_by_name,
    known_cell,
    p_adjusted,
    p_cell,
    p_cells,
    p_columns,
)
from dialometer.analysis.shared.ranking import Lead, Pairs, difference, every_pair, lead, lead_words
from dialometer.analysis.shared.subgroups import (
    FEWEST_RATERS,
    GroupTest,
    corrected_groups,
    groups_test,
    no_difference_words,
    rater_groups,
)
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.model.study import Comparison, Study
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.clustered.clustered import clustered_mean, clustered_proportion
from dialometer.stats.clustered.homogeneity import homogeneity_clustered, pairwise_clustered
from dialometer.stats.clustered.two_way import TwoWayVariance, two_way_linear
from dialometer.stats.effects.permutation import permutation_paired
from dialometer.stats.observations import Floats, Ints

Pair = tuple[str, str]
FEWEST_TASKS = 2
"""Different tasks that each system needs before they are taken as a sample of tasks."""


@dataclass(frozen=True)
class DeclaredDifference:
    """A difference of two systems on one criterion as a declared comparison asks for it, corrected among its tests."""

    comparison: Comparison
    pair: tuple[str, str]
    gap: Estimate
    higher: Estimate
    flipped: Estimate
    expected: Pair | None = None
    """The pair as the hypothesis has it, the higher first; None where it has no direction."""


@dataclass(frozen=True)
class SystemComparison:
    """Means of one criterion by system, every difference, and the checks that make no assumptions."""

    ratings: SelfRatings
    means: dict[str, Estimate]
    pairs: Pairs
    higher: dict[tuple[str, str], Estimate]
    """Share of raters with both systems who rate the first higher, ties half."""
    flipped: dict[tuple[str, str], Estimate]
    """The same difference tested by flipping signs, on raters who talked with both."""
    overall: Estimate | None
    lead: Lead | None
    declared: tuple[DeclaredDifference, ...] = ()
    """The tests on this criterion that were declared before data were collected."""

    @property
    def is_declared(self) -> bool:
        """Whether every comparison here was declared."""
        return bool(self.declared) and {test.pair for test in self.declared} == set(self.pairs)

    @property
    def others(self) -> list[tuple[str, str]]:
        """Pairs that nobody declared."""
        return [pair for pair in self.pairs if pair not in {test.pair for test in self.declared}]


def compare_systems(ratings: Sequence[SelfRatings], study: Study, options: Options) -> list[SystemComparison]:
    """Cluster-robust means and differences; for raters who talked with both systems this is the paired comparison.

    The tests of each declared comparison are corrected among themselves, over its criteria and systems, as its verdict is;
    those that nobody declared are corrected together.
    """
    declared = [_declared(ratings, study, comparison, options) for comparison in _between_systems(study)]
    by_criterion = [
        tuple(test for tests in declared for own, test in tests if own == index) for index in range(len(ratings))
    ]
    raw = [system_differences(rated, study, options) for rated in ratings]
    open_ = {
        (index, pair): gap
        for index, pairs in enumerate(raw)
        for pair, gap in pairs.items()
        if pair not in {test.pair for test in by_criterion[index]}
    }
    tested = corrected_by_name(open_, options)
    compared = []
    for index, (rated, pairs) in enumerate(zip(ratings, raw, strict=True)):
        own = {test.pair: test.gap for test in reversed(by_criterion[index])}
        shown = {pair: own[pair] if pair in own else tested[index, pair] for pair in pairs}
        compared.append(_system_ratings(rated, study, shown, by_criterion[index], options))
    return compared


def _between_systems(study: Study) -> list[Comparison]:
    """The declared comparisons of systems, the primary one first."""
    analysis = study.spec.analysis
    declared = [comparison for comparison in analysis.comparisons if comparison.between == "systems"]
    return sorted(declared, key=lambda comparison: comparison.name != analysis.primary)


def compared_in(rated: SelfRatings, study: Study, comparison: Comparison, options: Options) -> dict[Pair, Estimate]:
    """The differences that a declared comparison asks for on one criterion, in its blocks, not corrected."""
    if comparison.criteria and rated.criterion not in comparison.criteria:
        return {}
    inside = in_blocks(rated, study, comparison)
    names = {system_label(study, name) for name in comparison.levels} or set(inside.systems)
    gaps = system_differences(inside, study, options)
    return {pair: gap for pair, gap in gaps.items() if set(pair) <= names}


def in_blocks(rated: SelfRatings, study: Study, comparison: Comparison) -> SelfRatings:
    """The ratings in the blocks that a comparison names; all of them where it names none."""
    if not comparison.blocks:
        return rated
    items = study.items_by_id
    kept = np.array([name in items and items[name].block in comparison.blocks for name in rated.item.tolist()], bool)
    present = set(rated.system[kept].tolist())
    return _kept(rated, kept, tuple(system for system in rated.systems if system in present))


def _declared(
    ratings: Sequence[SelfRatings], study: Study, comparison: Comparison, options: Options
) -> list[tuple[int, DeclaredDifference]]:
    """The tests of one declared comparison, each with the index of its criterion."""
    gaps = {
        (index, pair): gap
        for index, rated in enumerate(ratings)
        for pair, gap in compared_in(rated, study, comparison, options).items()
    }
    labelled = [tuple(system_label(study, name) for name in pair) for pair in comparison.expected_pairs]
    made = []
    for (index, pair), gap in corrected_by_name(gaps, options).items():
        expected = next(((first, second) for first, second in labelled if {first, second} == set(pair)), None)
        by_rater = rater_means(on_shared_tasks(in_blocks(ratings[index], study, comparison), study, pair))[1]
        higher, flipped = _higher(by_rater, *pair, options), _flipped(by_rater, *pair, options)
        made.append((index, DeclaredDifference(comparison, pair, gap, higher, flipped, expected)))
    return made


def system_differences(ratings: SelfRatings, study: Study, options: Options) -> dict[tuple[str, str], Estimate]:
    """Every difference of two systems' means, not corrected. The confirmatory tests and the report both come from here.

    Two systems are compared on the tasks that both had, so that an easy task does not count for the system that had it.
    """
    whole = _differences(ratings, study, options)
    for pair in whole:
        shared = on_shared_tasks(ratings, study, pair)
        if shared is not ratings:
            whole[pair] = _differences(shared, study, options)[pair]
    return {pair: difference_within(gap, *ratings.scale.bounds()) for pair, gap in whole.items()}


def _differences(ratings: SelfRatings, study: Study, options: Options) -> dict[tuple[str, str], Estimate]:
    fit = _two_way(ratings, study, options)
    if fit is not None:
        means, variance = fit
        return {pair: _contrast(ratings, means, variance, options, *pair) for pair in every_pair(ratings.systems)}
    computed = pairwise_clustered(ratings.value, ratings.system, ratings.rater, confidence=options.confidence)
    gaps = {pair: difference(computed, *pair) for pair in every_pair(ratings.systems)}
    nothing = unknown("difference of means", "a system has no ratings")
    return {pair: gap if gap is not None else nothing for pair, gap in gaps.items()}


def scenarios_of(ratings: SelfRatings, study: Study) -> NDArray[Any]:
    """The task of each dialogue; items that set the same task count as one."""
    items = study.items_by_id
    tasks = {name: getattr(items.get(name), "scenario", "") or name for name in set(ratings.item.tolist())}
    return np.array([tasks[name] for name in ratings.item.tolist()], dtype=object)


def on_shared_tasks(ratings: SelfRatings, study: Study, pair: tuple[str, str]) -> SelfRatings:
    """The ratings of two systems on the tasks that both had; all ratings where they had the same tasks, or none in common."""
    scenario = scenarios_of(ratings, study)
    first, second = (set(scenario[ratings.of(system)].tolist()) for system in pair)
    shared = first & second
    if not shared or first == second:
        return ratings
    kept = np.isin(ratings.system.astype(str), pair) & np.array([task in shared for task in scenario.tolist()])
    return _kept(ratings, kept, pair)


def _kept(ratings: SelfRatings, kept: NDArray[np.bool_], systems: tuple[str, ...]) -> SelfRatings:
    return replace(
        ratings,
        systems=systems,
        value=ratings.value[kept],
        rater=ratings.rater[kept],
        system=ratings.system[kept],
        item=ratings.item[kept],
        position=ratings.position[kept],
        answered_s=ratings.answered_s[kept],
        lengths={name: values[kept] for name, values in ratings.lengths.items()},
    )


def _two_way(ratings: SelfRatings, study: Study, options: Options) -> tuple[Floats, TwoWayVariance] | None:
    """Means with their uncertainty over raters and tasks; None where tasks are no sample: declared fixed, or one only."""
    scenario = scenarios_of(ratings, study)
    fewest = min((len(set(scenario[ratings.of(system)].tolist())) for system in ratings.systems), default=0)
    if options.has_fixed_items or fewest < FEWEST_TASKS or ratings.n_raters < FEWEST_TASKS:
        return None
    design = np.column_stack([ratings.of(system) for system in ratings.systems]).astype(np.float64)
    _, rater = np.unique(ratings.rater.astype(str), return_inverse=True)
    _, task = np.unique(scenario.astype(str), return_inverse=True)
    return two_way_linear(ratings.value, design, rater, task)


def _contrast(
    ratings: SelfRatings, means: Floats, variance: TwoWayVariance, options: Options, first: str, second: str = ""
) -> Estimate:
    """A system's mean, or the difference of two, with raters and tasks as samples."""
    weights = np.array([float(system == first) - float(system == second) for system in ratings.systems])
    value = float(weights @ means)
    error, df = variance.contrast(weights)
    n = int(ratings.of(first).sum() + (ratings.of(second).sum() if second else 0))
    method = "difference of means" if second else "mean"
    method += ", two-way jackknife over raters and tasks"
    details = {"standard_error": error, "n_raters": variance.n_raters, "n_items": variance.n_items}
    if not (error > 1e-12 and df > 0):
        why = ("raters and tasks do not vary, or are too few: no confidence interval and no test",)
        return Estimate(value, n, method, confidence=options.confidence, label=first, notes=why)
    half = float(stats.t.isf((1 - options.confidence) / 2, df)) * error
    return Estimate(
        value=value,
        n=n,
        method=f"{method}, t-test" if second else method,
        low=value - half,
        high=value + half,
        confidence=options.confidence,
        interval_method="Student's t, effective number of the fewer of raters and tasks",
        statistic=value / error if second else math.nan,
        df=(df,),
        p_value=float(2 * stats.t.sf(abs(value / error), df)) if second else math.nan,
        label=f"{first} - {second}" if second else first,
        details=details,
    )


def _system_ratings(
    ratings: SelfRatings, study: Study, pairs: Pairs, declared: tuple[DeclaredDifference, ...], options: Options
) -> SystemComparison:
    fit = _two_way(ratings, study, options)
    means = {
        system: within(
            _contrast(ratings, *fit, options, system)
            if fit is not None
            else clustered_mean(
                ratings.value[ratings.of(system)],
                ratings.rater[ratings.of(system)],
                confidence=options.confidence,
                label=system,
            ),
            *ratings.scale.bounds(),
        )
        for system in ratings.systems
    }
    by_rater = {pair: rater_means(on_shared_tasks(ratings, study, pair))[1] for pair in pairs}
    overall = None
    if len(ratings.systems) > 2:
        overall = homogeneity_clustered(ratings.value, ratings.system, ratings.rater, label=ratings.label)
    return SystemComparison(
        ratings=ratings,
        means=means,
        pairs=pairs,
        higher={pair: _higher(by_rater[pair], *pair, options) for pair in pairs},
        flipped={pair: _flipped(by_rater[pair], *pair, options) for pair in pairs},
        overall=overall,
        lead=lead(means, pairs, confidence=options.confidence),
        declared=declared,
    )


def rater_means(ratings: SelfRatings) -> tuple[NDArray[Any], dict[str, Floats]]:
    """Raters, and each one's mean for every system, nan where the rater did not talk with it."""
    table = pl.DataFrame({"rater": ratings.rater, "system": ratings.system.astype(str), "value": ratings.value})
    wide = table.pivot(on="system", index="rater", values="value", aggregate_function="mean")
    means = {system: wide[system].fill_null(float("nan")).to_numpy().astype(np.float64) for system in ratings.systems}
    return wide["rater"].to_numpy().astype(str), means


def _higher(by_rater: dict[str, Floats], first: str, second: str, options: Options) -> Estimate:
    gap = by_rater[first] - by_rater[second]
    gap = gap[~np.isnan(gap)]
    method = "share of raters who rate the first higher, ties half"
    if not len(gap):
        return unknown(method, "no rater talked with both systems")
    share = clustered_proportion((np.sign(gap) + 1) / 2, np.arange(len(gap)), confidence=options.confidence)
    return replace(share, method=method)


def _flipped(by_rater: dict[str, Floats], first: str, second: str, options: Options) -> Estimate:
    return permutation_paired(by_rater[first], by_rater[second], seed=options.seed)


def comparison_section(name: str, compared: list[SystemComparison], options: Options) -> Section:
    """The declared tests and the means; where nothing was declared, every difference in words and numbers."""
    has_declared = any(comparison.declared for comparison in compared)
    paragraphs = [] if has_declared else [_words(comparison, options) for comparison in compared]
    first = compared[0].ratings
    n_both = max((check.n for pair in compared for check in pair.flipped.values()), default=0)
    if len(first.systems) > 1:
        paragraphs.append(
            f"Ratings of one rater are correlated, so raters are clusters in all confidence intervals and tests; {n_both:,} of "
            f"{first.n_raters:,} raters talked with more than one system, and their differences count as pairs."
        )
    tables = [_declared_table(name, compared, options) if has_declared else _open_table(name, compared, options)]
    parts: list[Table | Figure] = [table for table in tables if table.rows]
    parts += [_figure(name, compared), _means_table(name, compared)]
    return Section(name, "Which system is rated higher", tuple(paragraphs), tuple(parts), is_confirmatory=has_declared)


def other_pairs_section(name: str, compared: list[SystemComparison], options: Options) -> Section | None:
    """Differences that nobody declared, beside those that were; None where there are none."""
    if not any(comparison.declared for comparison in compared) or not any(c.others for c in compared):
        return None
    paragraphs = [_words(comparison, options) for comparison in compared if comparison.others]
    table = _open_table(name.removesuffix("_others"), compared, options)
    return Section(name, "Other comparisons of systems", tuple(paragraphs), (table,))


def _words(comparison: SystemComparison, options: Options) -> str:
    if comparison.lead is None:
        return f"{comparison.ratings.label}: no ratings yet."
    means = listed(f"{system} {number(mean.value)}" for system, mean in comparison.means.items() if mean.is_known)
    text = f"{comparison.ratings.label}: {means} on average."
    if len(comparison.means) < 2:
        return f"{text} There is one system only, so nothing to compare it with."
    if len(comparison.means) == 2:
        return f"{text} {_two_words(comparison)}"
    if comparison.overall is not None and not math.isnan(comparison.overall.p_value):
        text += f" All systems together: {p_words(comparison.overall.p_value)}."
    return f"{text} {lead_words(comparison.lead, comparison.pairs, 'none')}{_correction_words(comparison, options)}"


def _correction_words(comparison: SystemComparison, options: Options) -> str:
    """For how many tests the p-values of a sentence are corrected; those of declared comparisons have a family of their own."""
    n_tests = max((int(gap.details.get("n_tests", 1)) for gap in comparison.pairs.values()), default=1)
    if options.correction not in CORRECTIONS or n_tests < 2:
        return ""
    name = CORRECTIONS[options.correction]
    if comparison.declared:
        return f" p-values are corrected ({name}), those of confirmatory comparisons among their own tests."
    return f" p-values are corrected for {n_tests} tests ({name})."


def _two_words(comparison: SystemComparison) -> str:
    """The difference of two systems in a sentence, as large as it is certain."""
    assert comparison.lead is not None
    best = comparison.lead.best
    other = next(system for system in comparison.means if system != best)
    gap = difference(comparison.pairs, best, other)
    if gap is None or not gap.is_known:
        return f"The difference cannot be tested: {'; '.join(gap.notes) if gap else 'a system has no ratings'}."
    verb = "is rated higher than" if comparison.lead.behind else "does not differ significantly from"
    p = p_adjusted(gap)
    n_tests = int(gap.details.get("n_tests", 1))
    counted = f" (corrected for {n_tests} tests)" if n_tests > 1 and p != gap.p_value else ""
    text = f"{best} {verb} {other}: difference {with_interval(gap)}, {p_words(p)}{counted}"
    pair = (best, other) if (best, other) in comparison.higher else (other, best)
    share = comparison.higher[pair]
    if share.is_known:
        value = share.value if pair[0] == best else 1 - share.value
        text += (
            f"; {number(100 * value, 0)}% of raters who talked with both rate {best} higher (equal ratings count half)"
        )
    check, alpha = comparison.flipped[pair].p_value, 1 - gap.confidence
    if not math.isnan(check) and (gap.p_value <= alpha) != (check <= alpha):
        text += f". A test without assumptions gives {p_words(check)} before correction, so take it with care"
    return f"{text}."


def _means_table(name: str, compared: list[SystemComparison]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for comparison in compared:
        for system, mean in comparison.means.items():
            values = comparison.ratings.value[comparison.ratings.of(system)]
            spread = float(values.std(ddof=1)) if len(values) > 1 else None
            rows.append((comparison.ratings.label, system, mean, spread, float(np.median(values)), len(values)))
    return Table(
        name,
        "Average rating by system",
        (
            Column("criterion", "Criterion"),
            Column("system", "System"),
            Column("mean", "Average rating", "estimate"),
            Column("sd", "SD", "number"),
            Column("median", "Median", "number", 1),
            Column("n", "Dialogues", "count"),
        ),
        tuple(rows),
    )


_CHECKS = (
    "Beside them, for raters who talked with both: the share who rate the first higher (equal ratings count half), and the "
    "p-value of a test that flips the sign of each rater's difference and assumes nothing else."
)


def _pair_columns(options: Options) -> tuple[Column, ...]:
    return (
        Column("criterion", "Criterion"),
        Column("first", "System"),
        Column("second", "compared with"),
        Column("difference", "Difference in rating", "estimate"),
        *p_columns(options.correction),
        Column("higher", "Raters who rate it higher", "percent_estimate"),
        Column("flipped", "p, signs flipped", "p_value"),
        Column("n_both", "Raters with both", "count"),
    )


def _pair_row(
    label: str, test: tuple[Pair, Estimate, Estimate, Estimate], options: Options, wanted: Pair | None = None
) -> tuple[Cell, ...]:
    """One difference: the way round that is wanted, else the higher system first."""
    pair, gap, share, flipped = test
    is_turned = pair[::-1] == wanted if wanted else gap.is_known and gap.value < 0
    names = pair[::-1] if is_turned else pair
    if is_turned and share.is_known:
        share = replace(share, value=1 - share.value, low=1 - share.high, high=1 - share.low)
    return (
        label,
        *names,
        difference({pair: gap}, *names),
        *p_cells(gap, options.correction),
        share,
        p_cell(flipped.p_value),
        share.n,
    )


def _declared_table(name: str, compared: list[SystemComparison], options: Options) -> Table:
    """The declared tests; with an expected direction, the system that is expected to be higher comes first."""
    tests = [(comparison.ratings.label, test) for comparison in compared for test in comparison.declared]
    order = list(dict.fromkeys(test.comparison.name for _, test in tests))
    rows = [
        (
            comparison_title(test.comparison),
            *_pair_row(label, (test.pair, test.gap, test.higher, test.flipped), options, test.expected),
        )
        for label, test in sorted(tests, key=lambda row: order.index(row[1].comparison.name))
    ]
    return Table(
        f"{name}_declared",
        "Systems compared",
        (Column("comparison", "Comparison"), *_pair_columns(options)),
        tuple(rows),
        caption=f"{_sample_words(compared)} {_CHECKS}{_block_words(compared)} p-values are corrected over the tests of "
        "each comparison.",
        is_confirmatory=True,
    )


def _open_table(name: str, compared: list[SystemComparison], options: Options) -> Table:
    rows = [
        _pair_row(c.ratings.label, (pair, c.pairs[pair], c.higher[pair], c.flipped[pair]), options)
        for c in compared
        for pair in c.others
    ]
    return Table(
        f"{name}_exploratory",
        "Systems compared",
        _pair_columns(options),
        tuple(rows),
        caption=f"{_sample_words(compared)} {_CHECKS} p-values are corrected over all tests of this table.",
    )


def _block_words(compared: list[SystemComparison]) -> str:
    """Why a difference need not be that of the averages below, where comparisons are limited to blocks."""
    is_limited = any(one.comparison.blocks for comparison in compared for one in comparison.declared)
    return (
        " A comparison uses the dialogues of its own blocks, the averages below those of all blocks."
        if is_limited
        else ""
    )


def _sample_words(compared: list[SystemComparison]) -> str:
    """What intervals and tests take as samples."""
    if any("two-way" in gap.method for comparison in compared for gap in comparison.pairs.values()):
        return "Differences of means with raters and tasks as samples (two-way jackknife)."
    return "Differences of means with raters as clusters (CR2); the tasks are those of this study."


def _figure(name: str, compared: list[SystemComparison]) -> Figure:
    several = len(compared) > 1
    dots = [
        Dot(system, mean, facet=comparison.ratings.label if several else "")
        for comparison in compared
        for system, mean in comparison.means.items()
    ]
    details = "; ".join(
        f"{comparison.ratings.label}: {listed(f'{s} {number(m.value)}' for s, m in comparison.means.items() if m.is_known)}"
        for comparison in compared
    )
    low, high = compared[0].ratings.ends
    is_shared = len({comparison.ratings.ends for comparison in compared}) == 1
    return Figure(
        f"{name}_figure",
        "Average rating by system",
        dot_interval(
            dots,
            value_title=f"average rating ({low:g} to {high:g})" if is_shared else "average rating",
            domain=(low, high) if is_shared else None,
        ),
        alt=f"Average ratings with confidence intervals. {details}.",
    )


MOST_SYSTEMS_IN_PAIRS = 4


def group_section(
    name: str, data: StudyData, ratings: Sequence[SelfRatings], question: str, options: Options
) -> Section:
    """Means of every system, and differences between systems within raters, in each group; tests are corrected together."""
    raters = np.unique(np.concatenate([rated.rater.astype(str) for rated in ratings]))
    groups = rater_groups(data, question, raters)
    names: list[tuple[str, str]] = []
    outcomes: list[GroupTest] = []
    for rated in ratings:
        low, high = rated.scale.bounds()
        for label, value, rater, is_difference in _measures(rated, raters):
            ends = (low - high, high - low) if is_difference else (low, high)

            def mean(
                chosen: NDArray[np.bool_],
                value: Floats = value,
                rater: Ints = rater,
                ends: tuple[float, float] = ends,
            ) -> Estimate:
                return within(clustered_mean(value[chosen], rater[chosen], confidence=options.confidence), *ends)

            names.append((rated.label, label))
            outcomes.append(groups_test(groups, value, rater, mean))
    outcomes = corrected_groups(outcomes, options)
    table = Table(
        name,
        f"Ratings by “{groups.text}”",
        (
            Column("criterion", "Criterion"),
            Column("what", "System, or difference"),
            *groups.columns(),
            *p_columns(options.correction, "p, groups differ"),
        ),
        tuple(
            (*what, *map(known_cell, outcome.by_level), *p_cells(outcome.test, options.correction))
            for what, outcome in zip(names, outcomes, strict=True)
        ),
        caption="Raters as clusters. A difference between systems is taken within raters who talked with both. Tests use "
        f"groups of at least {FEWEST_RATERS} raters.",
        notes=(groups.note,) if groups.note else (),
    )
    tests = [outcome.test for outcome in outcomes]
    apart = [
        f"{criterion}, {what} ({p_words(p_adjusted(test))})"
        for (criterion, what), test in zip(names, tests, strict=True)
        if p_adjusted(test) <= 1 - options.confidence
    ]
    words = no_difference_words(tests)
    if apart:
        words = f"The groups differ on {listed(apart)}. The groups were not assigned at random."
    return Section(name, f"Groups of raters: {question.replace('_', ' ')}", (words,), (table,))


def _measures(ratings: SelfRatings, raters: NDArray[Any]) -> list[tuple[str, Floats, Ints, bool]]:
    """Ratings of each system, then differences between systems of raters who talked with both; each with its raters."""
    rater = np.searchsorted(raters, ratings.rater.astype(str))
    outcomes = [
        (system, ratings.value[ratings.of(system)], rater[ratings.of(system)], False) for system in ratings.systems
    ]
    if 1 < len(ratings.systems) <= MOST_SYSTEMS_IN_PAIRS:
        names, means = rater_means(ratings)
        who = np.searchsorted(raters, names)
        for first, second in every_pair(ratings.systems):
            gap = means[first] - means[second]
            kept = ~np.isnan(gap)
            outcomes.append((f"{first} − {second}", gap[kept], who[kept], True))
    return outcomes
