"""Comparisons between systems: which are declared, which criteria and systems they are about, how their tests are corrected."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from dialometer.analysis.base.choose import families
from dialometer.analysis.base.family import Family, Options
from dialometer.analysis.base.wording import excludes, factor_named, listed, p_words, sentence
from dialometer.errors import DialometerError
from dialometer.model.analysis_plan import Comparison
from dialometer.model.design import Factor
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column
from dialometer.model.scale import ChoiceForm
from dialometer.model.study import Criterion, Study
from dialometer.quality.gold import gold_items
from dialometer.stats.effects.multiplicity import adjust_estimates

CORRECTIONS = {"holm": "Holm", "benjamini-hochberg": "Benjamini-Hochberg", "bonferroni": "Bonferroni"}
Key = TypeVar("Key", bound=Hashable)


def primary_comparison(study: Study) -> Comparison:
    """The declared primary comparison; else the first declared one; else all systems against each other."""
    declared = study.spec.analysis.comparisons
    named = [comparison for comparison in declared if comparison.name == study.spec.analysis.primary]
    return (named or list(declared) or [Comparison(name="systems")])[0]


def deciding_family(study: Study, comparison: Comparison | None = None) -> Family:
    """The family that tests a comparison, the primary one by default; else the one that gives the report's answer."""
    fitting = families(study)
    tested = comparison or primary_comparison(study)
    return next((family for family in fitting if family.decides(study, tested)), fitting[0])


def declared_factor(study: Study, comparison: Comparison) -> Factor:
    """The factor whose levels are compared."""
    factor = factor_named(study, comparison.factor or "")
    if factor is None:
        raise DialometerError(f"the study has no factor '{comparison.factor}'", remedy="correct the comparison")
    return factor


def is_about(comparison: Comparison, criteria: Collection[str]) -> bool:
    """Whether a comparison concerns any of these criteria; one that names none concerns all."""
    return not comparison.criteria or bool(set(comparison.criteria) & set(criteria))


def primary_between_systems(study: Study, criteria: Collection[str]) -> Comparison | None:
    """The declared primary comparison, where it is between systems and about one of these criteria."""
    analysis = study.spec.analysis
    for comparison in analysis.comparisons:
        is_it = comparison.name == analysis.primary and comparison.test == "difference"
        if is_it and comparison.between == "systems" and is_about(comparison, criteria):
            return comparison
    return None


def compared_criteria(study: Study, form: ChoiceForm) -> tuple[Criterion, ...]:
    """Criteria that compare systems in this form, under any condition, in file order."""
    return tuple(
        criterion
        for criterion in study.spec.criteria
        if any(scale.choice_form == form and scale.compares_responses for scale in study.scales_of(criterion))
    )


def compared_systems(study: Study, comparison: Comparison | None = None) -> tuple[str, ...]:
    """Systems with at least one item that is neither for practice nor gold, in file order; of a comparison, only its own."""
    gold = gold_items(study)
    shown = {system for item in study.rated_items if item.id not in gold for system in item.systems}
    wanted = comparison.levels if comparison is not None and comparison.levels else shown
    return tuple(system.name for system in study.spec.systems if system.name in shown and system.name in wanted)


def corrected(tests: Sequence[Estimate], options: Options) -> tuple[Estimate, ...]:
    """One family of tests under the declared correction."""
    return adjust_estimates(tests, options.correction)


def corrected_by_name(tests: Mapping[Key, Estimate], options: Options) -> dict[Key, Estimate]:
    """The same for tests that have names."""
    return dict(zip(tests, corrected(list(tests.values()), options), strict=True))


def p_adjusted(estimate: Estimate) -> float:
    """The corrected p-value; nan where there was no test."""
    return float(estimate.details.get("p_adjusted", math.nan))


def is_significant(estimate: Estimate) -> bool:
    """Whether the corrected test is significant: at its own level where it has one, else at the estimate's confidence."""
    return p_adjusted(estimate) <= float(estimate.details.get("alpha", 1 - estimate.confidence))


def significance_words(shown: Estimate, null: float, p: float, after: str) -> str:
    """ "Not significant after correction (Holm)."; where its interval, which is not corrected, excludes the null, that too."""
    if math.isnan(p):
        return "Not tested."
    if p <= 1 - shown.confidence:
        return f"Significant{after}."
    is_odd = "correction" in after and excludes(shown, null)
    return f"Not significant{after}.{' The confidence interval is not corrected.' if is_odd else ''}"


def between(
    estimate: Estimate,
    first: str,
    second: str,
    *,
    null: float = 0.0,
    is_log: bool = False,
    about: str = "",
    part: str = "",
    quantity: str = "points",
) -> Estimate:
    """The estimate with what it compares: short names of the two systems or levels, and what no difference would be.

    ``about`` is what they are compared on where a comparison has several (a criterion, a strategy), ``part`` one of several
    answers to it (a category); ``quantity`` is what the difference is counted in (see ``effect_words``).
    """
    compared = {"first": first, "second": second, "null": null, "is_log": is_log}
    words = {"about": about, "part": part, "quantity": quantity}
    return replace(estimate, details={**estimate.details, **compared, **words})


def p_cell(p: float) -> float | None:
    """A p-value (or another number) for a table; None where there is none."""
    return None if math.isnan(p) else p


def without_empty_interval(estimate: Estimate) -> Estimate:
    """The estimate; where all items agree alike, resampling has nothing to vary and its interval says nothing."""
    if not estimate.has_interval or estimate.low < estimate.high:
        return estimate
    why = "agreement is the same on all items, so there is no confidence interval"
    return replace(estimate, low=math.nan, high=math.nan, interval_method="", notes=(*estimate.notes, why))


def known_cell(estimate: Estimate) -> Cell:
    """An estimate for a table; None where there are not enough data."""
    return estimate if estimate.is_known else None


def p_columns(correction: str, label: str = "p") -> list[Column]:
    """The column of a p-value and, where tests are corrected, that of the corrected one."""
    columns = [Column("p", label, "p_value")]
    if correction in CORRECTIONS:
        columns.append(Column("p_adjusted", f"p ({CORRECTIONS[correction]})", "p_value"))
    return columns


def p_cells(test: Estimate, correction: str) -> list[Cell]:
    """The cells under those columns."""
    return [p_cell(test.p_value), *([p_cell(p_adjusted(test))] if correction in CORRECTIONS else [])]


def comparison_title(comparison: Comparison) -> str:
    """The name of a comparison as a heading."""
    return sentence(comparison.name.replace("_", " "))[:-1]


def comparison_role(study: Study, comparison: Comparison) -> str:
    """Whether a declared comparison decides the study."""
    is_primary = comparison.name == study.spec.analysis.primary
    return "primary" if is_primary else "secondary"


def comparison_caption(comparison: Comparison, questions: Iterable[str]) -> str:
    """The questions and the hypothesis of a comparison, for the table of its tests."""
    hypothesis = f" Hypothesis: {comparison.hypothesis}" if comparison.hypothesis else ""
    named = list(questions)
    return f"{'Question' if len(named) == 1 else 'Questions'}: {listed(named)}.{hypothesis}"


def preferred_words(pairs: Mapping[tuple[str, str], Estimate], options: Options, *, where: str = "") -> str:
    """Which system is preferred to which, and how many pairs show no significant difference."""
    beaten: dict[str, list[str]] = {}
    unclear: list[str] = []
    for (first, second), estimate in pairs.items():
        winner, loser = (second, first) if estimate.value < 0 else (first, second)
        if p_adjusted(estimate) <= 1 - options.confidence:
            beaten.setdefault(winner, []).append(f"{loser} ({p_words(p_adjusted(estimate))})")
        else:
            p = p_adjusted(estimate)
            tested = f"{winner} and {loser} do not differ significantly ({p_words(p)})"
            unclear.append(f"there is no test of {winner} against {loser}" if math.isnan(p) else tested)
    if all(math.isnan(p_adjusted(estimate)) for estimate in pairs.values()):
        return "nothing can be tested yet"
    if not beaten and len(unclear) == 1:
        return f"{unclear[0]}{where}"
    if not beaten:
        return f"no two of these systems differ significantly{where}"
    rest = f"; {unclear[0]}" if unclear else ""
    if len(unclear) > 1:
        rest = f"; {len(unclear)} other pairs do not differ significantly"
    return "; ".join(f"{winner} is preferred to {listed(losers)}" for winner, losers in beaten.items()) + rest


def no_position_words(tests: Iterable[Estimate]) -> str:
    """Where no test of the position on the screen is significant: that none is, or that there is none yet."""
    if all(math.isnan(test.p_value) for test in tests):
        return "Whether position on the screen made a difference cannot be tested yet."
    return "Position on the screen made no significant difference."


def first_places_words(firsts: Mapping[str, str]) -> str:
    """Whether one system comes first on every question; ``firsts`` are the systems that do, by question, empty for a tie."""
    systems = sorted({*firsts.values()} - {""})
    where = {system: listed(question for question in firsts if firsts[question] == system) for system in systems}
    if not systems:
        return ""
    if len(systems) == 1:
        (system,) = systems
        return f"{system} comes first on {'every question' if '' not in firsts.values() else where[system]}."
    places = listed(f"{system} on {questions}" for system, questions in where.items())
    return f"The questions do not agree on which system comes first: {places}."
