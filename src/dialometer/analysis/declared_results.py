"""What was declared beforehand and what came of it, in a table and in words."""

from __future__ import annotations

import math

from dialometer.analysis.best_system import best_system
from dialometer.analysis.declared import CONSISTENCY, SIZE, DeclaredTest
from dialometer.analysis.factor_sentences import difference_words, interval_of, shown
from dialometer.analysis.family import Options
from dialometer.analysis.system_ratings import SystemRatings
from dialometer.analysis.words import correction_name, excludes, listed, p_words, value_only, with_interval
from dialometer.model.report import Cell, Column, Headline, Section, Table
from dialometer.model.study import Study


def declared_section(study: Study, tests: list[DeclaredTest], options: Options) -> Section:
    """What was declared, and what came of it."""
    analysis = study.spec.analysis
    if not analysis.comparisons:
        nothing = (
            "Nothing was declared before the data, so everything in this report is exploratory. Declare comparisons under "
            "'analysis:' in study.yaml before the next study is frozen."
        )
        return Section("declared_ratings", "Declared comparisons", (nothing,))
    said = []
    for comparison in analysis.comparisons:
        kind = "Primary comparison" if comparison.name == analysis.primary else "Declared comparison"
        own = [test for test in tests if test.comparison.name == comparison.name]
        said.append(f"{kind} {comparison.name}. {comparison.hypothesis} {_outcome_words(own, options)}")
    return Section(
        "declared_ratings",
        "Declared comparisons",
        tuple(said),
        (_table(tests, analysis.primary, options),),
        is_confirmatory=True,
    )


def _outcome_words(tests: list[DeclaredTest], options: Options) -> str:
    """Which tests of a comparison stand, which do not, and which could not be made."""
    if not tests:
        return "No data for it yet."
    said = []
    for outcome in (SIZE, CONSISTENCY):
        own = [test for test in tests if test.outcome == outcome]
        if not own:
            continue
        low = [test for test in own if test.p_adjusted < 1 - options.confidence]
        stands = [_brief(test) for test in low if excludes(test.shown, test.null)]
        unclear = [_brief(test) for test in low if not excludes(test.shown, test.null)]
        falls = [_brief(test) for test in own if test.p_adjusted >= 1 - options.confidence]
        lost = [
            f"{test.measure.label}, {test.first} against {test.second}" for test in own if math.isnan(test.p_adjusted)
        ]
        told = [f"a difference in {listed(stands)}"] if stands else []
        told += [f"no demonstrable difference in {listed(falls)}"] if falls else []
        told += [f"unclear, as interval and test disagree: {listed(unclear)}"] if unclear else []
        told += [f"not known: {listed(lost)}"] if lost else []
        said.append(f"{outcome.capitalize()}: {'; '.join(told)}.")
    return " ".join(said)


def _brief(test: DeclaredTest) -> str:
    first, second = f"“{test.first}”", f"“{test.second}”"
    return f"{test.measure.label}, {first} against {second} ({value_only(test.shown)}, {p_words(test.p_adjusted)})"


def _table(tests: list[DeclaredTest], primary: str | None, options: Options) -> Table:
    body: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    has_both = len({test.outcome for test in tests}) > 1
    for test in tests:
        is_known = test.estimate.has_interval
        body.append(
            (
                test.comparison.name + (" (primary)" if test.comparison.name == primary else ""),
                *((test.outcome,) if has_both else ()),
                test.measure.label,
                test.first,
                test.second,
                test.shown,
                test.estimate.p_value if is_known else None,
                test.p_adjusted if is_known else None,
            )
        )
        notes += [] if is_known else test.estimate.notes
    heading = "Ratio" if any(test.measure.is_log for test in tests) else "Difference"
    return Table(
        "declared_ratings",
        "Declared comparisons",
        (
            Column("comparison", "Comparison"),
            *((Column("outcome", "Outcome"),) if has_both else ()),
            Column("criterion", "Criterion"),
            Column("first", "First"),
            Column("second", "Second"),
            Column("estimate", f"{heading}; difference of ICCs" if has_both else heading, "estimate"),
            Column("p", "p", "p_value"),
            Column("p_adjusted", f"p, {correction_name(options.correction)}", "p_value"),
        ),
        tuple(body),
        caption="The first relative to the second. Tests of the primary comparison are corrected among themselves, all "
        "others together" + ("; size and consistency apart." if has_both else "."),
        notes=tuple(dict.fromkeys(notes)),
        is_confirmatory=True,
    )


def declared_sentence(test: DeclaredTest, options: Options) -> str:
    """One declared result in words."""
    if not test.estimate.has_interval:
        why = test.estimate.notes[0] if test.estimate.notes else "not enough data"
        return f"{test.measure.label}, “{test.first}” against “{test.second}”: not known, {why}."
    corrected = p_words(test.p_adjusted)
    if options.correction != "none":
        corrected += f" after {correction_name(options.correction)}"
    is_sure = test.p_adjusted < 1 - options.confidence
    if test.outcome == CONSISTENCY:
        found = "differ" if is_sure else "do not demonstrably differ"
        told = f"difference in ICC {with_interval(test.estimate)}, {corrected}"
        return f"{test.measure.label}: “{test.first}” and “{test.second}” {found} in consistency ({told})."
    told = difference_words(test.measure, test.estimate, f"“{test.second}”")
    verdict = "" if is_sure else "; no demonstrable difference"
    interval = interval_of(test.measure, test.estimate)
    return f"{test.measure.label}: “{test.first}” is rated {told} ({interval}, {corrected}){verdict}."


def declared_headlines(
    study: Study, tests: list[DeclaredTest], options: Options, most: int = 4
) -> tuple[Headline, ...]:
    """The primary comparison's numbers for the first screen."""
    primary = study.spec.analysis.primary
    own = [test for test in tests if test.comparison.name == primary and test.outcome == SIZE]
    return tuple(
        Headline(
            f"{test.measure.label}: {test.first} against {test.second}",
            test.shown,
            declared_sentence(test, options),
            is_confirmatory=True,
        )
        for test in own[:most]
    )


def best_headline(ratings: SystemRatings, tests: list[DeclaredTest]) -> Headline:
    """The best system on a measure; confirmatory, with the declared correction, where its comparison was declared."""
    declared = {
        (test.first, test.second): test.p_adjusted
        for test in tests
        if test.measure is ratings.measure and test.comparison.between == "systems"
    }
    p_of = {
        (pair.first, pair.second): declared[names]
        for pair in ratings.pairs
        if (names := (ratings.label(pair.first), ratings.label(pair.second))) in declared
    }
    is_declared = bool(p_of) and len(p_of) == len(ratings.pairs)
    best = best_system(ratings, p_of if is_declared else None)
    lead = None if best.lead is None else shown(ratings.measure, best.lead)
    return Headline(f"Best system, {ratings.measure.label}", lead, best.sentence, is_confirmatory=is_declared)
