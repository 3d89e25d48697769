"""What the factors of a study did to its ratings, in plain words, and what that means for the next study."""

from __future__ import annotations

from dialometer.analysis.evidence import Evidence, is_same, steadiness
from dialometer.analysis.factor_effects import Contrast, FactorEffects, contrasts, simple_contrasts
from dialometer.analysis.factor_sentences import effect_sentence, interval_of, is_found, shown
from dialometer.analysis.group_effects import interaction
from dialometer.analysis.labels import is_anchor, level_label
from dialometer.analysis.next_study import advice
from dialometer.analysis.pull import nearness_sentence
from dialometer.analysis.words import d_words, excludes, interval_only, listed, number, p_words, value_only
from dialometer.model.report import Section
from dialometer.model.study import Factor


def conclusion(evidence: Evidence) -> Section:
    """One paragraph for each question, then what to do."""
    factors = evidence.main.factors
    has_anchor = any(is_anchor(factor) for factor in factors)
    said: list[str] = []
    chief, *others = sorted(factors, key=lambda factor: not is_anchor(factor))
    for contrast in contrasts(chief):
        said += _about(evidence, contrast)
    for factor in others:
        for contrast in contrasts(factor):
            said.append(verdict_words(evidence, contrast))
            if evidence.main.measure.unit != "z":
                said.append(effect_sentence(evidence.main, contrast))
    said += evidence.shift_sentences[:2]
    said.append("For the next study:")
    said += [f"• {one}" for one in advice(evidence)]
    title = "What was found on anchoring" if has_anchor else "What the conditions did"
    return Section("conclusion", title, tuple(said))


def found_words(evidence: Evidence, contrast: Contrast) -> str:
    """One sentence for the first screen: whether anything was found, and what."""
    name = _effect_name(contrast)
    found, absent, unclear = _outcomes(evidence, contrast)
    if found:
        return f"{name} was found: {listed(found)}."
    if absent:
        return f"{name} was not demonstrated."
    return f"{name}: {'unclear' if unclear else 'not enough data to tell'}."


def _effect_name(contrast: Contrast) -> str:
    if is_anchor(contrast.factor):
        is_only = len(contrast.factor.levels) == 2
        return "Anchoring" if is_only else f"Anchoring by “{level_label(contrast.level)}”"
    return f"An effect of “{level_label(contrast.level)}”"


def verdict_words(evidence: Evidence, contrast: Contrast) -> str:
    """What was found, what was not, and what is unclear."""
    name = _effect_name(contrast)
    found, absent, unclear = _outcomes(evidence, contrast)
    if not found and not absent:
        return f"{name}: not enough data to tell."
    left = f" No demonstrable change in {listed(absent, conjunction='or')}." if absent else ""
    if unclear:
        left += f" Unclear: {listed(unclear)}."
    if found:
        return f"{name} was found: {listed(found)}.{left}"
    return f"{name} was not demonstrated.{left}"


def _outcomes(evidence: Evidence, contrast: Contrast) -> tuple[list[str], list[str], list[str]]:
    """What changed, what did not demonstrably change, and what is unclear or not known, in words."""
    ratings: list[str] = []
    raters: list[str] = []
    absent: list[str] = []
    unclear: list[str] = []
    main = evidence.main
    size = is_found(main, contrast) if main.measure.unit != "z" else None
    if size:
        ratings.append(f"ratings were {'higher' if main.difference(contrast).value > 0 else 'lower'}")
    else:
        (unclear if size is None else absent).append("the size of ratings")
    for near in evidence.near:
        if is_same(near.contrast, contrast):
            if near.is_nearer:
                raters.append("came nearer to the anchor's value")
            else:
                (unclear if near.is_nearer is None else absent).append("the distance to the anchor's value")
    by_state: dict[str, list[str]] = {}
    for measure, other, one in evidence.steady:
        if is_same(other, contrast):
            state = steadiness(one, main.options.confidence)
            word = state if state != "changed" else "more" if one.value > 0 else "less"
            by_state.setdefault(word, []).append(measure.label)
    raters += [f"were {word} consistent on {listed(by_state[word])}" for word in ("more", "less") if word in by_state]
    if "same" in by_state:
        absent.append(f"consistency on {listed(by_state['same'])}")
    unclear += [f"consistency on {listed(by_state[word])}" for word in ("unclear", "unknown") if word in by_state]
    found = [*ratings, *([f"raters {listed(raters)}"] if raters else [])]
    return found, absent, unclear


def _about(evidence: Evidence, contrast: Contrast) -> list[str]:
    main = evidence.main
    said = [verdict_words(evidence, contrast)]
    if main.measure.unit != "z":
        said.append(effect_sentence(main, contrast))
        said += _by_criterion(evidence.effects[1:], contrast)
        said += [nearness_sentence(one) for one in evidence.near if is_same(one.contrast, contrast)]
        said += _by_place(main, contrast.factor)
        said += _by_group(evidence, contrast)
    said += _steady_sentences(evidence, contrast)
    return said


def _by_criterion(effects: list[FactorEffects], contrast: Contrast) -> list[str]:
    told = []
    for effect in effects:
        difference = effect.difference(contrast)
        if difference.has_interval:
            d, _ = effect.sizes(contrast)
            size = f"{value_only(shown(effect.measure, difference))} ({interval_of(effect.measure, difference)}; {d_words(d)})"
            told.append(f"{effect.measure.label} {size}")
    what = "ratio" if effects and effects[0].measure.is_log else "difference"
    return [f"The {what} by criterion: {'; '.join(told)}."] if told else []


def _by_place(main: FactorEffects, factor: Factor) -> list[str]:
    """Is the effect larger at one level of another factor?"""
    others = [other for other in main.factors if other.name != factor.name]
    if not others or len(factor.levels) != 2:
        return []
    told = [
        f"{one.where_label}: {value_only(shown(main.measure, difference))} ({interval_of(main.measure, difference)})"
        for one in simple_contrasts(main.study, factor)
        if (difference := main.difference(one)).has_interval
    ]
    if not told:
        return []
    terms = [f"{factor.name}:{other.name}" for other in others] + [f"{other.name}:{factor.name}" for other in others]
    tests = [one for term, one in main.terms().items() if term in terms]
    verdict = ""
    if len(tests) == 1 and tests[0].is_known:
        changed = "differs" if tests[0].p_value < 1 - main.options.confidence else "does not demonstrably differ"
        verdict = f" The effect {changed} between them ({p_words(tests[0].p_value)})."
    what = "ratio" if main.measure.is_log else "difference"
    return [f"The {what} under each condition: {'; '.join(told)}.{verdict}"]


def _by_group(evidence: Evidence, contrast: Contrast) -> list[str]:
    changed: list[str] = []
    same: list[str] = []
    for split in evidence.splits:
        found = interaction(evidence.main, contrast, split, evidence.main.options)
        if not found.is_known:
            continue
        told = f"{split.label.lower()} ({p_words(found.p_value)})"
        (changed if excludes(found) else same).append(told)
    said = []
    if changed:
        said.append(f"The effect differs between groups of raters by {listed(changed)}; exploratory.")
    if same:
        said.append(f"The effect does not demonstrably differ between groups of raters by {listed(same)}.")
    return said


def _steady_sentences(evidence: Evidence, contrast: Contrast) -> list[str]:
    said = []
    for measure, other, one in evidence.steady:
        if not is_same(other, contrast):
            continue
        if not one.has_interval:
            why = one.notes[0] if one.notes else "not enough data"
            said.append(f"Whether consistency on {measure.label} changed is not known: {why}.")
            continue
        state = steadiness(one, evidence.main.options.confidence)
        verdict = {
            "changed": f"are {'more' if one.value > 0 else 'less'} consistent",
            "same": "are not demonstrably more or less consistent",
            "unclear": f"are perhaps {'more' if one.value > 0 else 'less'} consistent",
        }[state]
        first, second = (number(float(one.details[key]), 2) for key in ("icc_first", "icc_second"))
        said.append(
            f"On {measure.label}, raters under “{level_label(contrast.level)}” {verdict} than under "
            f"“{level_label(contrast.base)}”: ICC of one rating {first} against {second}, difference {value_only(one)} "
            f"({interval_only(one)}, {p_words(one.p_value)}{'; interval and test disagree' if state == 'unclear' else ''})."
        )
    return said
