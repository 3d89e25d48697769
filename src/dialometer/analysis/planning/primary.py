"""The tests that decide a study, alone: what power analysis repeats thousands of times.

They are the same functions that the report uses for the declared comparison, without tables, figures and bootstraps.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.base.wording import baseline, factor_named, level_label, system_label
from dialometer.analysis.families.pairs.choices import declared_shares, marginal_share, pair_choices
from dialometer.analysis.families.ratings.factor_effects import Contrast, FactorEffects
from dialometer.analysis.families.ratings.rater_rows import rater_rows
from dialometer.analysis.families.ratings.systems import SystemRatings
from dialometer.analysis.families.votes.standings import systems_differ
from dialometer.analysis.families.votes.system_votes import compared_criteria, compared_systems, system_votes
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.item import CandidateItem
from dialometer.model.study import Comparison, Study
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.effects.multiplicity import adjust_estimates


def primary_comparison(study: Study) -> Comparison:
    """The declared primary comparison; else the first declared one; else all systems against each other."""
    declared = study.spec.analysis.comparisons
    named = [comparison for comparison in declared if comparison.name == study.spec.analysis.primary]
    return (named or list(declared) or [Comparison(name="systems")])[0]


def primary_tests(data: StudyData, options: Options) -> dict[str, Estimate]:
    """Each test of the primary comparison under its label; ``details["p_adjusted"]`` is corrected within the comparison."""
    study, comparison = data.study, primary_comparison(data.study)
    if comparison.between == "items":
        raise DialometerError(
            "power analysis compares systems or levels of a factor, not single items",
            remedy="declare another primary comparison",
        )
    if comparison.between == "factor":
        return _corrected(_factor_tests(data, comparison, options), options)
    if study.spec.items.kind == "transcript_pair" and study.spec.items.pairs == "controlled":
        return _strategy_tests(data, options)
    if study.spec.items.kind == "candidate":
        return _corrected(_first_answer_tests(data, comparison, options), options)
    if study.spec.items.kind == "chat":
        return _corrected(_conversation_tests(data, comparison, options), options)
    if compared_criteria(study, "pairwise"):
        return {"the systems differ": systems_differ(system_votes(data).on())}
    if compared_criteria(study, "best_worst"):
        return _corrected(_best_worst_tests(data, comparison, options), options)
    return _corrected(_system_tests(data, comparison, options), options)


def _corrected(tests: dict[str, Estimate], options: Options) -> dict[str, Estimate]:
    made = adjust_estimates(list(tests.values()), options.correction)  # type: ignore[arg-type]
    return dict(zip(tests, made, strict=True))


def _strategy_tests(data: StudyData, options: Options) -> dict[str, Estimate]:
    choices = pair_choices(data)
    declared = declared_shares(data.study, choices, options)
    if not declared:
        return {"all": marginal_share(choices, confidence=options.confidence, label="all")}
    return {share.label: share for share in declared[0].shares}


def _factor_tests(data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
    factor = factor_named(data.study, comparison.factor or "")
    if factor is None:
        raise DialometerError(
            f"the study has no factor '{comparison.factor}'", remedy="correct the declared comparison"
        )
    measures = numeric_measures(data)
    rows = rater_rows(data, measures)
    chosen = [level for level in factor.levels if not comparison.levels or level.name in comparison.levels]
    base = baseline(factor) if baseline(factor) in chosen else chosen[0]
    tests = {}
    for measure in measures.criteria:
        if comparison.criteria and measure.criteria[0] not in comparison.criteria:
            continue
        effects = FactorEffects(data.study, measure, rows, options)
        for level in chosen:
            if level.name != base.name:
                label = f"{measure.label}: {level_label(level)} against {level_label(base)}"
                tests[label] = effects.difference(Contrast(factor, level, base))
    return tests


def _system_tests(data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
    tests = {}
    for measure in numeric_measures(data).criteria:
        if comparison.criteria and measure.criteria[0] not in comparison.criteria:
            continue
        ratings = SystemRatings(data.study, measure, options)
        names = measure.book.systems
        chosen = sorted(
            (c for c in ratings.systems if not comparison.levels or names[c] in comparison.levels),
            key=names.__getitem__,
        )
        for pair in ratings.compare(list(itertools.combinations(chosen, 2))):
            first, second = (system_label(data.study, names[code]) for code in (pair.first, pair.second))
            tests[f"{measure.label}: {first} against {second}"] = pair.difference
    return tests


def _first_answer_tests(data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
    """Retrievers two by two: mean ratings of their first answers, paired over the questions on which they differ."""
    means = dict(data.judgments.group_by("item").agg(pl.col("value").mean()).iter_rows())
    first: dict[str, dict[str, str]] = {}
    for item in data.study.rated_items:
        if isinstance(item, CandidateItem):
            for system, rank in item.ranks.items():
                if rank == 1:
                    first.setdefault(system, {})[str(item.metadata.get("question", item.id))] = item.id
    systems = [
        s for s in compared_systems(data.study) if s in first and (not comparison.levels or s in comparison.levels)
    ]
    tests = {}
    for a, b in itertools.combinations(systems, 2):
        shared = [q for q in first[a] if q in first[b] and first[a][q] != first[b][q]]
        gaps = [means[first[a][q]] - means[first[b][q]] for q in shared if {first[a][q], first[b][q]} <= means.keys()]
        label = f"{system_label(data.study, a)} against {system_label(data.study, b)}"
        tests[label] = clustered_mean(np.array(gaps), np.arange(len(gaps)), null=0.0, confidence=options.confidence)
    return tests


def _conversation_tests(data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
    """Systems two by two, each rater who talked to both as one pair."""
    tests = {}
    for measure in numeric_measures(data).criteria:
        names = measure.book.systems
        n = len(measure.book.raters)
        by_system = {}
        for code, name in enumerate(names):
            if comparison.levels and name not in comparison.levels:
                continue
            inside = measure.system == code
            count = np.bincount(measure.rater[inside], minlength=n)
            sums = np.bincount(measure.rater[inside], weights=measure.y[inside], minlength=n)
            by_system[name] = np.divide(sums, count, out=np.full(n, np.nan), where=count > 0)
        for a, b in itertools.combinations(by_system, 2):
            gap = by_system[a] - by_system[b]
            gap = gap[~np.isnan(gap)]
            label = f"{measure.label}: {system_label(data.study, a)} against {system_label(data.study, b)}"
            tests[label] = clustered_mean(gap, np.arange(len(gap)), null=0.0, confidence=options.confidence)
    return tests


def _best_worst_tests(data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
    """Systems two by two: +1 where chosen best, -1 where worst; the difference of two, with each rater as one cluster."""
    frame = data.judgments.filter(pl.col("scale") == "best_worst")
    raters = frame["rater"].to_numpy()
    systems = [name for name in compared_systems(data.study) if not comparison.levels or name in comparison.levels]
    best, worst = frame["choice"].to_numpy(), frame["worst"].to_numpy()
    score = {name: (best == name).astype(np.float64) - (worst == name) for name in systems}
    return {
        f"{system_label(data.study, a)} against {system_label(data.study, b)}": clustered_mean(
            score[a] - score[b], raters, null=0.0, confidence=options.confidence
        )
        for a, b in itertools.combinations(systems, 2)
    }
