"""Numbers into plain sentences, the same words everywhere, so that two sections never call one size by two names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dialometer.model.design import Factor, Level
from dialometer.model.estimate import Estimate
from dialometer.model.study import LANGUAGE, REASON, Criterion, Question, Study
from dialometer.report.numbers import (
    digits_of,
    shared_digits,
    write_confidence,
    write_ends,
    write_estimate,
    write_number,
    write_p,
    write_percent,
)
from dialometer.stats.observations import exponential

COHEN = "Cohen 1988: 0.2 small, 0.5 medium, 0.8 large"
CONFIRMATORY_TITLE = "Confirmatory comparisons"
"""The section of the tests that were declared in advance."""
KOO_LI = "Koo & Li 2016, from end to end of the confidence interval: below 0.5 poor, to 0.75 moderate, to 0.9 good, above excellent"


def n_of(n: int, noun: str, plural: str = "") -> str:
    """A count with its noun: "1 rater", "3 raters"."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listed(names: Iterable[str], *, most: int = 12, conjunction: str = "and") -> str:
    """Names in a sentence: "a, b and c"; of very many only the first are named and the rest counted."""
    given = list(names)
    if len(given) > most:
        return f"{', '.join(given[:most])} and {len(given) - most} more"
    if len(given) < 2:
        return "".join(given)
    return f"{', '.join(given[:-1])} {conjunction} {given[-1]}"


def confidence_words(confidence: float) -> str:
    """ "95%" for 0.95."""
    return write_confidence(confidence)


def with_interval(estimate: Estimate, *, unit: str = "", is_percent: bool = False, n_digits: int = 2) -> str:
    """ "1.31 (95% confidence interval 1.05 to 1.63)"; what is not known says so."""
    if not estimate.is_known:
        return "not known (not enough data)"
    text = value_only(estimate, is_percent=is_percent, n_digits=n_digits) + (f" {unit}" if unit else "")
    if not estimate.has_interval:
        return text
    return f"{text} ({interval_only(estimate, is_percent=is_percent, n_digits=n_digits)})"


def interval_only(estimate: Estimate, *, is_percent: bool = False, n_digits: int = 2) -> str:
    """ "95% confidence interval 1.05 to 1.63"; says so where there is none."""
    if not estimate.has_interval:
        return "no confidence interval"
    digits = digits_of(estimate, n_digits, is_percent=is_percent)
    _, low, high = write_ends(estimate, digits, is_percent=is_percent)
    return f"{confidence_words(estimate.confidence)} confidence interval {low} to {high}{'%' if is_percent else ''}"


def value_only(estimate: Estimate, *, is_percent: bool = False, n_digits: int = 2) -> str:
    """The value with the digits that its interval deserves."""
    if not estimate.is_known:
        return "not known"
    return write_estimate(estimate, fallback=n_digits, is_percent=is_percent).value


def brief(estimate: Estimate) -> str:
    """ "0.43 [0.31, 0.55]", with the digits of the tables, for lists and descriptions of figures."""
    return write_estimate(estimate).text


def briefs(estimates: Iterable[Estimate], fallback: int = 2) -> list[str]:
    """Several of one kind with the same digits, as in a column of a table."""
    together = list(estimates)
    digits = shared_digits(together, fallback)
    return [write_estimate(estimate, n_digits=digits, fallback=fallback).text for estimate in together]


def write_points(estimate: Estimate) -> str:
    """The size of a difference without its sign, with the digits that its interval deserves."""
    return write_number(abs(estimate.value), digits_of(estimate, 2))


def p_words(p: float) -> str:
    """ "p = .023", or that there was no test."""
    return "no test" if math.isnan(p) else write_p(p)


def percent(share: float) -> str:
    """A share as a whole percentage."""
    return write_percent(share)


def number(value: float, n_digits: int = 2) -> str:
    """A number for a sentence."""
    return write_number(value, n_digits)


def excludes(estimate: Estimate, null: float = 0.0) -> bool:
    """Whether the interval leaves out the value that would mean "no difference"."""
    return estimate.has_interval and not estimate.low <= null <= estimate.high


def size_of_d(d: float) -> str:
    """Cohen's (1988) words for a standardised difference, as it is written: what reads 0.20 is small."""
    size = round(abs(d), 2)
    return "negligible" if size < 0.2 else "small" if size < 0.5 else "medium" if size < 0.8 else "large"


def test_words(name: str, df: str, statistic: float) -> str:
    """ "t(73) = −1.13" that does not break at the end of a line."""
    return f"{name}({df}) = {write_number(statistic, 2)}".replace(" ", "\u00a0")


def d_words(d: Estimate) -> str:
    """Cohen's d with its interval and what it means: "d = 0.55, 95% confidence interval 0.10 to 1.00, a medium effect"."""
    if not d.is_known:
        return "effect size not known"
    text = f"d = {write_number(d.value, 2)}"
    if d.has_interval:
        ends = " to ".join(write_number(end, 2) for end in (d.low, d.high))
        text += f", {confidence_words(d.confidence)} confidence interval {ends}"
    return f"{text}, a {size_of_d(d.value)} effect"


def correction_name(correction: str) -> str:
    """A correction as it is written: "Holm"."""
    return "not corrected" if correction == "none" else correction.title()


def after_correction(correction: str) -> str:
    """What follows a corrected p-value; nothing where none was declared."""
    return "" if correction == "none" else f" after correction ({correction_name(correction)})"


def size_of_icc(icc: Estimate) -> str:
    """Koo and Li's (2016) words for a reliability, as it is written: "moderate to good".

    They are meant for the confidence interval: an estimate of 0.94 that may as well be 0.1 is not excellent.
    """
    ends = [round(end, 2) for end in ((icc.low, icc.high) if icc.has_interval else (icc.value,))]
    words = ("poor" if v < 0.5 else "moderate" if v <= 0.75 else "good" if v <= 0.9 else "excellent" for v in ends)
    return " to ".join(dict.fromkeys(words))


def as_ratio(difference: Estimate) -> Estimate:
    """A difference of logarithms as a ratio: 0.18 becomes 1.2 times."""
    if not difference.is_known:
        return difference
    return replace(
        difference,
        value=exponential(difference.value),
        low=exponential(difference.low),
        high=exponential(difference.high),
        unit="times",
        method=f"{difference.method}; ratio from the logarithm",
        details={**difference.details, "log_value": difference.value, "null": 1.0},
    )


def as_geometric_mean(mean: Estimate) -> Estimate:
    """A mean of logarithms as a geometric mean."""
    if not mean.is_known:
        return mean
    return replace(
        mean,
        value=exponential(mean.value),
        low=exponential(mean.low),
        high=exponential(mean.high),
        method=f"geometric mean ({mean.method} of logarithms)",
        details={**mean.details, "log_value": mean.value},
    )


def first_note(estimates: Sequence[Estimate]) -> str:
    """Why something is unknown: the first reason among estimates that could not be computed."""
    return next((note for estimate in estimates if not estimate.is_known for note in estimate.notes), "")


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


# What the parts of a study are called in a report: their own labels, or else words for the usual settings.


ANCHOR_WORDS = {
    "none": "no anchor",
    "number": "anchor (number)",
    "text": "anchor (text)",
    "both": "anchor (text and number)",
}
LAYOUT_WORDS = {"together": "criteria together", "one_per_screen": "one criterion per screen"}


def inside(label: str) -> str:
    """A label within a sentence: its first letter small, and abbreviations and names further on as they are."""
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def system_label(study: Study, name: str) -> str:
    """The system's label, else its name."""
    return next((s.label or s.name for s in study.spec.systems if s.name == name), name)


def criterion_label(study: Study, name: str) -> str:
    """The criterion's label, else its name."""
    criterion = study.criteria_by_name.get(name.removesuffix(REASON))
    if name.endswith(REASON) and isinstance(criterion, Criterion):
        return f"{criterion.label or criterion.name}, reason"
    return (criterion.label or criterion.name) if isinstance(criterion, Criterion) else name


def factor_label(factor: Factor) -> str:
    """The factor's label, else its name."""
    return factor.label or factor.name


def level_label(level: Level) -> str:
    """The level's label, else words for what it sets, else its name."""
    if level.label:
        return level.label
    if level.set.anchor is not None and not level.set.anchor_values:
        return ANCHOR_WORDS[level.set.anchor]
    if level.set.layout is not None:
        return LAYOUT_WORDS[level.set.layout]
    if level.set.deadline_s is not None:
        return f"within {level.set.deadline_s:g} s"
    return level.name


def factor_named(study: Study, name: str) -> Factor | None:
    """The factor of that name."""
    return next((factor for factor in study.spec.design.factors if factor.name == name), None)


def is_anchor(factor: Factor) -> bool:
    """Whether the factor changes what raters see as an anchor: then the report speaks of anchoring."""
    return len({(level.set.anchor, str(level.set.anchor_values or "")) for level in factor.levels}) > 1


def baseline(factor: Factor) -> Level:
    """The level the others are compared with: without an anchor where there is one, else the first."""
    return next((level for level in factor.levels if level.set.anchor == "none"), factor.levels[0])


def cell_names(study: Study) -> list[str]:
    """Every condition in words, in the order of ``Study.cells``."""
    names = []
    for condition in study.cells:
        words = []
        for factor in study.spec.design.factors:
            level = next(level for level in factor.levels if level.name == condition[factor.name])
            words.append(level_label(level))
        names.append(", ".join(words) or "all raters")
    return names


def question_text(study: Study, name: str) -> str:
    """The text of a question in any questionnaire, else its name."""
    known = {LANGUAGE: "the language in which they take part"} if study.spec.languages else {}
    return next((question.text for question in _questions(study) if question.name == name), known.get(name, name))


def question_label(study: Study, name: str) -> str:
    """The short name of a question in any questionnaire, made from its name where it has none."""
    made = name.replace("_", " ").capitalize()
    return next((question.label for question in _questions(study) if question.name == name and question.label), made)


def _questions(study: Study) -> list[Question]:
    return [*study.spec.screening, *study.spec.pre_questionnaire, *study.spec.post_questionnaire]
