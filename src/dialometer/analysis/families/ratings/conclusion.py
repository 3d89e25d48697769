"""What the factors of a study did to its ratings, in plain words, and what that means for the next study."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dialometer.analysis.base.wording import (
    after_correction,
    d_words,
    excludes,
    inside,
    interval_only,
    is_anchor,
    level_label,
    listed,
    n_of,
    number,
    p_words,
    value_only,
    with_interval,
)
from dialometer.analysis.families.ratings.agreement import raters_needed
from dialometer.analysis.families.ratings.consistency import ConsistencyChange
from dialometer.analysis.families.ratings.declared import CONSISTENCY, SIZE, DeclaredTest
from dialometer.analysis.families.ratings.factor_effects import (
    Contrast,
    FactorEffects,
    contrasts,
    effect_sentence,
    interval_of,
    is_same,
    null_of,
    scope_words,
    shown,
    simple_contrasts,
    unit_name,
)
from dialometer.analysis.families.ratings.groups import interaction
from dialometer.analysis.families.ratings.nearness import Nearness, nearness_sentence
from dialometer.analysis.shared.subgroups import RaterGroups
from dialometer.model.design import Factor
from dialometer.model.estimate import Estimate
from dialometer.model.report import Claim, Section
from dialometer.stats.effects.multiplicity import adjust


@dataclass(frozen=True)
class Evidence:
    """All that was found on the factors, for the closing words."""

    effects: list[FactorEffects]
    near: list[Nearness]
    steady: list[ConsistencyChange]
    groups: list[RaterGroups]
    shift_sentences: list[str]
    tests: list[DeclaredTest]
    """Those of the declared comparisons, corrected."""

    @property
    def main(self) -> FactorEffects:
        """All criteria together, or the only one."""
        return self.effects[0]


@dataclass(frozen=True)
class ContrastOutcome:
    """One test of a contrast on which a verdict may rest; its p-value is corrected together with those beside it."""

    what: str
    """SIZE or CONSISTENCY."""
    criterion: str
    estimate: Estimate
    p_value: float
    is_declared: bool
    level: float

    @property
    def state(self) -> Literal["changed", "same", "unknown"]:
        """Whether the corrected test is significant; unknown without a test."""
        if math.isnan(self.p_value):
            return "unknown"
        return "changed" if self.p_value < self.level else "same"


def outcomes(evidence: Evidence, contrast: Contrast) -> list[ContrastOutcome]:
    """Size and consistency under a contrast: the declared tests where it was declared, else exploratory ones, corrected.

    A verdict reads nothing else: neither tests of all criteria together nor single conditions nor uncorrected p-values.
    """
    level = 1 - evidence.main.options.confidence
    names = (level_label(contrast.level), level_label(contrast.base))
    declared = [
        ContrastOutcome(test.outcome, test.measure.label, test.estimate, test.p_adjusted, True, level)
        for test in evidence.tests
        if test.comparison.factor == contrast.factor.name and (test.first, test.second) == names
    ]
    if declared and not contrast.where:
        return declared
    main = evidence.main
    made: list[tuple[Contrast, str, str, Estimate]] = []
    for other in contrasts(contrast.factor):
        if main.measure.unit != "z":
            made.append((other, SIZE, "", main.difference(other)))
        made += [
            (other, CONSISTENCY, measure.label, change)
            for measure, place, change in evidence.steady
            if is_same(place, other)
        ]
    adjusted = adjust([estimate.p_value for *_, estimate in made], main.options.correction)
    return [
        ContrastOutcome(what, criterion, estimate, float(p), False, level)
        for (other, what, criterion, estimate), p in zip(made, adjusted, strict=True)
        if is_same(other, contrast)
    ]


WANTED = 0.8
SMALL_RATIO = 1.1


def advice(evidence: Evidence) -> list[str]:
    """What the findings mean for the next study, one sentence or two each."""
    paragraphs: list[str] = []
    for factor in evidence.main.factors:
        for contrast in contrasts(factor):
            paragraphs += _size_advice(evidence, contrast)
            paragraphs += _raters_advice(evidence, contrast)
    if not paragraphs:
        paragraphs.append("Collect more data before drawing conclusions on the conditions.")
    paragraphs.append(
        "Before collecting, see what a design can find: dialometer power, with the smallest effect that matters."
    )
    return list(dict.fromkeys(paragraphs))


def _size_advice(evidence: Evidence, contrast: Contrast) -> list[str]:
    main = evidence.main
    sizes = [outcome.state for outcome in outcomes(evidence, contrast) if outcome.what == SIZE]
    if main.measure.unit == "z" or not main.difference(contrast).has_interval:
        return []
    level, base = level_label(contrast.level), level_label(contrast.base)
    if "changed" in sizes:
        text = (
            f"Show “{level}” to all raters or to none: ratings collected under it and under “{base}” must not be pooled, "
            "and systems must be compared within one condition."
        )
        if is_anchor(contrast.factor):
            text += " Report the anchor with the numbers: their size is partly the anchor's."
        return [text]
    difference = shown(main.measure, main.difference(contrast))
    what, unit = ("ratio", "") if main.measure.is_log else ("difference", unit_name(main.measure))
    scope = scope_words(main)
    text = (
        f"For “{level}” against “{base}”, the {what}{f' ({scope})' if scope else ''} is "
        f"{with_interval(difference, unit=unit)}."
    )
    null = null_of(main.measure)
    if excludes(difference, null):
        test = f"no test of the size of ratings is significant{after_correction(main.options.correction)}"
        text += f" The interval excludes {null:g}, but {test}: collect more data to tell whether there is an effect."
    n = raters_per_level(main, contrast)
    if n is not None and main.measure.is_log:
        text += f" Finding a ratio of {SMALL_RATIO:g} with 80% power would take about {n:,} raters per level."
    return [text]


def raters_per_level(main: FactorEffects, contrast: Contrast) -> int | None:
    """Raters per level for 80% power at 5%, from the spread between raters seen here (normal approximation)."""
    first, second = main.groups(contrast)
    if min(len(first), len(second)) < 2:
        return None
    variance = (float(first.var(ddof=1)) + float(second.var(ddof=1))) / 2
    return math.ceil(2 * variance * (1.959964 + 0.841621) ** 2 / math.log(SMALL_RATIO) ** 2)


def _raters_advice(evidence: Evidence, contrast: Contrast) -> list[str]:
    """How many raters a reliable mean needs on either side."""
    paragraphs = []
    for outcome in outcomes(evidence, contrast):
        if outcome.what != CONSISTENCY or outcome.state != "changed":
            continue
        details = outcome.estimate.details
        needs = [raters_needed(float(details[key]), WANTED) for key in ("icc_first", "icc_second")]
        if needs[0] is None or needs[1] is None:
            continue
        level, base = level_label(contrast.level), level_label(contrast.base)
        paragraphs.append(
            f"On {outcome.criterion}, a mean with a reliability of {WANTED:g} needs about {n_of(needs[0], 'rater')} per response "
            f"under “{level}” and {needs[1]} under “{base}”."
        )
    if paragraphs and is_anchor(contrast.factor):
        paragraphs.append(
            "Agreement that comes from a common anchor is not proof of better judgments: check it with raters who see the "
            "standard response without its value."
        )
    return paragraphs


def conclusion(evidence: Evidence) -> Section:
    """One paragraph for each question, then what to do."""
    factors = evidence.main.factors
    has_anchor = any(is_anchor(factor) for factor in factors)
    paragraphs: list[str] = []
    chief, *others = sorted(factors, key=lambda factor: not is_anchor(factor))
    for contrast in contrasts(chief):
        paragraphs += _about(evidence, contrast)
    for factor in others:
        for contrast in contrasts(factor):
            paragraphs.append(verdict_words(evidence, contrast))
            if evidence.main.measure.unit != "z":
                paragraphs.append(effect_sentence(evidence.main, contrast))
    paragraphs += evidence.shift_sentences[:2]
    paragraphs.append("For the next study:")
    paragraphs += [f"• {text}" for text in advice(evidence)]
    title = "What was found on anchoring" if has_anchor else "What the conditions did"
    return Section("conclusion", title, tuple(paragraphs))


def summary_words(evidence: Evidence, contrast: Contrast) -> str:
    """One sentence for the first screen: what changed with a level and what did not."""
    changed, absent, _ = _outcomes(evidence, contrast)
    where = f"With “{level_label(contrast.level)}” instead of “{level_label(contrast.base)}”"
    kind = "" if is_declared(evidence, contrast) else " (exploratory: not declared in advance)"
    rest = f"no significant change in {listed(absent, conjunction='or')}" if absent else ""
    if changed:
        return f"{where}, {listed(changed)}{f'; {rest}' if rest else ''}{kind}."
    if rest:
        return f"{where}, there was {rest}{kind}."
    return f"{where}, nothing can be tested yet."


def is_declared(evidence: Evidence, contrast: Contrast) -> bool:
    """Whether the contrast was declared, so that its tests are confirmatory."""
    return any(outcome.is_declared for outcome in outcomes(evidence, contrast))


def found_claims(evidence: Evidence, contrast: Contrast) -> tuple[Claim, ...]:
    """What that sentence states as found."""
    return tuple(Claim(f"{_effect_name(contrast)}: {text}") for text in _outcomes(evidence, contrast)[0])


def _effect_name(contrast: Contrast) -> str:
    if is_anchor(contrast.factor):
        is_only = len(contrast.factor.levels) == 2
        return "Anchoring" if is_only else f"Anchoring by “{level_label(contrast.level)}”"
    return f"An effect of “{level_label(contrast.level)}”"


def verdict_words(evidence: Evidence, contrast: Contrast) -> str:
    """What changed, what did not, and what cannot be tested yet."""
    changed, absent, unclear = _outcomes(evidence, contrast)
    rest = f" Not tested yet: {listed(unclear)}." if unclear and (changed or absent) else ""
    return summary_words(evidence, contrast) + rest


def _outcomes(evidence: Evidence, contrast: Contrast) -> tuple[list[str], list[str], list[str]]:
    """What changed, what did not change significantly, and what is not known, in words."""
    tests = outcomes(evidence, contrast)
    by_state: dict[tuple[str, str], list[str]] = {}
    for outcome in tests:
        words = ("higher", "lower") if outcome.what == SIZE else ("more", "less")
        state = outcome.state if outcome.state != "changed" else words[0 if outcome.estimate.value > 0 else 1]
        by_state.setdefault((outcome.what, state), []).append(outcome.criterion)

    def on(what: str, state: str) -> str:
        """The criteria, where they are named and not all of them are in this state."""
        criteria = by_state[what, state]
        n_all = sum(outcome.what == what for outcome in tests)
        return f" on {listed(criteria)}" if all(criteria) and (what == CONSISTENCY or len(criteria) < n_all) else ""

    changed = [f"ratings were {word}{on(SIZE, word)}" for word in ("higher", "lower") if (SIZE, word) in by_state]
    raters = [
        f"were {word} consistent{on(CONSISTENCY, word)}" for word in ("more", "less") if (CONSISTENCY, word) in by_state
    ]
    changed += [f"raters {listed(raters)}"] if raters else []
    names = {SIZE: "the size of ratings", CONSISTENCY: "consistency"}
    rest = {
        state: [f"{name}{on(what, state)}" for what, name in names.items() if (what, state) in by_state]
        for state in ("same", "unknown")
    }
    return changed, rest["same"], rest["unknown"]


def _about(evidence: Evidence, contrast: Contrast) -> list[str]:
    main = evidence.main
    paragraphs = [verdict_words(evidence, contrast)]
    if main.measure.unit != "z":
        paragraphs.append(effect_sentence(main, contrast))
        paragraphs += _by_criterion(evidence.effects[1:], contrast)
        paragraphs += [
            nearness_sentence(distance) for distance in evidence.near if is_same(distance.contrast, contrast)
        ]
        paragraphs += _by_place(main, contrast.factor)
        paragraphs += _by_group(evidence, contrast)
    paragraphs += _steady_sentences(evidence, contrast)
    return paragraphs


def _by_criterion(effects: list[FactorEffects], contrast: Contrast) -> list[str]:
    entries = []
    for effect in effects:
        difference = effect.difference(contrast)
        if difference.has_interval:
            d, _ = effect.sizes(contrast)
            size = f"{value_only(shown(effect.measure, difference))} ({interval_of(effect.measure, difference)}; {d_words(d)})"
            entries.append(f"{effect.measure.label} {size}")
    what = "ratio" if effects and effects[0].measure.is_log else "difference"
    return [f"The {what} by criterion: {'; '.join(entries)}."] if entries else []


def _by_place(main: FactorEffects, factor: Factor) -> list[str]:
    """Is the effect larger at one level of another factor?"""
    others = [other for other in main.factors if other.name != factor.name]
    if not others or len(factor.levels) != 2:
        return []
    entries = [
        f"{contrast.where_label}: {value_only(shown(main.measure, difference))} ({interval_of(main.measure, difference)})"
        for contrast in simple_contrasts(main.study, factor)
        if (difference := main.difference(contrast)).has_interval
    ]
    if not entries:
        return []
    terms = [f"{factor.name}:{other.name}" for other in others] + [f"{other.name}:{factor.name}" for other in others]
    tests = [test for term, test in main.fit.effects().items() if term in terms]
    verdict = ""
    if len(tests) == 1 and tests[0].is_known:
        changed = "differs" if tests[0].p_value < 1 - main.options.confidence else "does not differ significantly"
        verdict = f" The effect {changed} between them ({p_words(tests[0].p_value)})."
    what = "ratio" if main.measure.is_log else "difference"
    return [f"The {what} under each condition: {'; '.join(entries)}.{verdict}"]


def _by_group(evidence: Evidence, contrast: Contrast) -> list[str]:
    changed: list[str] = []
    same: list[str] = []
    for groups in evidence.groups:
        change = interaction(evidence.main, contrast, groups, evidence.main.options)
        if not change.is_known:
            continue
        details = f"{inside(groups.label)} ({p_words(change.p_value)})"
        (changed if excludes(change) else same).append(details)
    paragraphs = []
    if changed:
        paragraphs.append(f"The effect differs between groups of raters by {listed(changed)}; exploratory.")
    if same:
        paragraphs.append(f"The effect does not differ significantly between groups of raters by {listed(same)}.")
    return paragraphs


def _steady_sentences(evidence: Evidence, contrast: Contrast) -> list[str]:
    paragraphs = []
    options = evidence.main.options
    for outcome in outcomes(evidence, contrast):
        if outcome.what != CONSISTENCY:
            continue
        change = outcome.estimate
        if not change.has_interval:
            why = change.notes[0] if change.notes else "not enough data"
            paragraphs.append(f"Whether consistency on {outcome.criterion} changed is not known: {why}.")
            continue
        way = "more" if change.value > 0 else "less"
        verdict = (
            f"are {way} consistent" if outcome.state == "changed" else "are not significantly more or less consistent"
        )
        first, second = (number(float(change.details[key]), 2) for key in ("icc_first", "icc_second"))
        p = p_words(outcome.p_value) + after_correction(options.correction)
        paragraphs.append(
            f"On {outcome.criterion}, raters under “{level_label(contrast.level)}” {verdict} than under "
            f"“{level_label(contrast.base)}”: ICC of one rating {first} against {second}, difference {value_only(change)} "
            f"({interval_only(change)}, {p})."
        )
    return paragraphs
