"""Numbers as readers expect them: as many digits as make sense, p-values in the usual form, what is not known says so."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dialometer.model.estimate import Estimate
from dialometer.model.report import Headline, Report

NOT_ENOUGH = "not enough data"
MINUS = "−"
NO_BREAK = "\u00a0"
"""A space at which a line does not end."""
_MAX_DIGITS = 6
PERCENTAGE_POINTS = "percentage points"
SCALE_POINTS = "percentage points of the scale"
SCALE_PERCENT = "% of the scale"
_PARTS_OF_SCALES = (SCALE_POINTS, SCALE_PERCENT)
RATIO_UNITS = ("times", "ratio", "odds ratio")
"""Units of estimates for which 1 means no difference."""


@dataclass(frozen=True, slots=True)
class Written:
    """A number in words: its value, its interval if it has one, and remarks for below the table."""

    value: str
    interval: str = ""
    notes: tuple[str, ...] = ()
    is_known: bool = True

    @property
    def text(self) -> str:
        """Value and interval together."""
        return f"{self.value} {self.interval}" if self.interval else self.value


def write_number(value: float, n_digits: int) -> str:
    """A number with thousands separated; what would round to nothing is written in powers of ten."""
    if math.isinf(value):
        return f"{MINUS if value < 0 else ''}∞"
    # A half is rounded up whichever way it was computed: 0.625 and 0.6249999999999 are the same number to a reader.
    rounded = f"{value * (1 + 1e-12) if abs(value) < 1e6 else value:,.{n_digits}f}"
    if value and not float(rounded.replace(",", "")) and abs(value) < 10**-_MAX_DIGITS:
        rounded = f"{value:.1e}"
    if not float(rounded.replace(",", "")):
        rounded = rounded.lstrip("-")
    return rounded.replace("-", MINUS)


def write_signed(value: float, n_digits: int) -> str:
    """A difference or a score around zero: with a plus too, and none before what rounds to nothing."""
    written = write_number(value, n_digits)
    return f"+{written}" if value > 0 and written.strip("0.") else written


def write_percent(share: float, n_digits: int = 0) -> str:
    """A share from 0 to 1 in percent."""
    return f"{write_number(100 * share, n_digits)}%"


def write_confidence(confidence: float) -> str:
    """ "95%" for 0.95."""
    return f"{100 * confidence:g}%"


def write_p(p: float, *, is_bare: bool = False) -> str:
    """``p < .001`` or ``p = .023``; bare, for a column that is headed p, ``< .001`` or ``.023``.

    Its spaces do not break, so that a number never begins a line without its sign. Every p-value is written here.
    """
    if math.isnan(p):
        return NOT_ENOUGH
    sign, number = "=", f"{p:.3f}".removeprefix("0")
    if p < 0.001:
        sign, number = "<", ".001"
    elif p > 0.999:
        sign, number = ">", ".999"
    if is_bare:
        return number if sign == "=" else f"{sign}{NO_BREAK}{number}"
    return f"p{NO_BREAK}{sign}{NO_BREAK}{number}"


def digits_of(estimate: Estimate, fallback: int, *, is_percent: bool = False) -> int:
    """Digits after the point: the same for all estimates of one kind, so that a sentence, a tile and a table agree.

    Shares and their differences are whole percentages, parts of a scale in percent have one digit. Other numbers have two, one
    where the interval is wider than ten (but for differences on up to seven points), and none where it is wider than a hundred
    or reaches a thousand. A ratio keeps two, because its lower end may be near 1 (``write_ends`` gives fewer to its numbers from
    ten on). Only an interval too narrow to be seen with that many gets more, by the rule of the Particle Data Group (Review of
    Particle Physics, introduction, "Rounding"): so 0.4137 ± 0.09 is 0.41 and 0.4137 ± 0.0013 is 0.4137.
    """
    half = _half(estimate, is_percent=is_percent)
    if math.isnan(half) or (fallback == 0 and not is_percent):  # ranks, minutes: whole numbers are wanted
        return 0 if is_percent else min(fallback, 1) if estimate.unit in _PARTS_OF_SCALES else fallback
    if estimate.unit in RATIO_UNITS:
        n_usual = 2
    elif estimate.unit == PERCENTAGE_POINTS:
        n_usual = 0
    elif estimate.unit in _PARTS_OF_SCALES:
        n_usual = 1
    else:
        reaches = max(abs(estimate.low), abs(estimate.high))
        is_large = half >= _WIDEST or (half >= _WIDE and reaches >= _LARGE)
        n_usual = 0 if is_large else 1 if half >= _WIDE and reaches > _ON_SEVEN_POINTS else 2
    usual = 0 if is_percent else min(n_usual, fallback)
    least = 1.0 if is_percent else 2 * 10**-usual  # a tenth of a percent matters less than percentages that look alike
    return usual if half >= least else max(usual, _precise_digits(half))


def _half(estimate: Estimate, *, is_percent: bool = False) -> float:
    """Half the width of an interval; nan where there is none to speak of."""
    half = (100 if is_percent else 1) * (estimate.high - estimate.low) / 2
    return half if half > 0 and math.isfinite(half) else math.nan


_WIDE, _WIDEST, _LARGE = 5.0, 50.0, 1000.0
_ON_SEVEN_POINTS = 6.0


def _precise_digits(half: float, least: int = 0) -> int:
    """As many as the first three digits of the half width justify: 100 to 354 show two, 355 to 949 one."""
    power = math.floor(math.log10(half))
    leading = half / 10.0**power
    n_shown = 2 if leading < 3.55 else 1 if leading < 9.5 else 2
    power += 1 if leading >= 9.5 else 0
    return min(_MAX_DIGITS, max(least, n_shown - 1 - int(power)))


def shared_digits(estimates: Iterable[Estimate], fallback: int, *, is_percent: bool = False) -> int | None:
    """One number of digits for a column, so that points line up: that of its typical interval; None if units are mixed."""
    all_known = [e for e in estimates if e.is_known]
    known = [e for e in all_known if not math.isnan(_half(e, is_percent=is_percent))]
    if not known:
        return max(
            (digits_of(e, fallback, is_percent=is_percent) for e in all_known), default=0 if is_percent else fallback
        )
    halves = sorted(_half(e, is_percent=is_percent) for e in known)
    digits = sorted(digits_of(e, fallback, is_percent=is_percent) for e in known)
    is_mixed = len({e.unit in _PARTS_OF_SCALES for e in known}) > 1 or (halves[0] < 1 and halves[-1] >= _WIDE)
    if all(e.unit in RATIO_UNITS for e in known):
        return digits[-1]  # 1.00 for 1.002 would hide which side of 1 an end is on
    if not is_percent and is_mixed and digits[0] != digits[-1]:
        return None
    typical = digits[(len(digits) - 1) // 2]
    return max(typical, digits[-1]) if halves[0] < 10**-typical else typical


def write_estimate(
    estimate: Estimate, *, n_digits: int | None = None, fallback: int = 2, is_percent: bool = False
) -> Written:
    """An estimate with its interval in brackets; one that is not known gives its reason as a note."""
    if not estimate.is_known:
        return Written(NOT_ENOUGH, notes=estimate.notes, is_known=False)
    digits = digits_of(estimate, fallback, is_percent=is_percent) if n_digits is None else n_digits
    value, low, high = write_ends(estimate, digits, is_percent=is_percent)
    value += "%" if is_percent else ""
    interval = ""
    if estimate.has_interval:
        interval = f"{'(' if math.isinf(estimate.low) else '['}{low}, {high}{')' if math.isinf(estimate.high) else ']'}"
    return Written(value, interval, estimate.notes)


def write_ends(estimate: Estimate, n_digits: int, *, is_percent: bool = False) -> tuple[str, str, str]:
    """The value and both ends of its interval.

    Numbers of a ratio from ten on have two significant digits, more only where the interval is that narrow: 26 [7.15, 96] and
    2,900 [550, 16,000], but 152 [147, 157].
    """
    scale = 100 if is_percent else 1
    half = _half(estimate)
    least = 0.0 if math.isnan(half) else 1e-9 * half  # beside its interval this is 0 with an error of rounding

    def write(end: float) -> str:
        if estimate.unit not in RATIO_UNITS or not 10 <= end < math.inf:
            return write_number(scale * end if abs(end) > least else 0.0, n_digits)
        n_significant = 1 - math.floor(math.log10(end))
        digits = n_significant if math.isnan(half) else max(n_significant, _precise_digits(half, n_significant))
        rounded = math.floor(end * 10.0**digits * (1 + 1e-12) + 0.5) / 10.0**digits
        return write_number(rounded, max(0, digits))

    return write(estimate.value), write(estimate.low), write(estimate.high)


# Words that every format uses for the same thing: what was declared, what is not finished, how to get it again.


CONFIRMATORY = "Confirmatory"
EXPLORATORY = "Exploratory"
CONFIRMATORY_MEANING = "declared in the study file"
EXPLORATORY_MEANING = "not declared in advance; a reason for the next study, not a proof"
APPENDIX = ("Appendix", "Complete, but not needed to follow the answer.")
NEXT_STEPS = "What to do next"
INTERIM = ("Interim report", "The study is not finished: its numbers can still change.")
SHARE_UNITS = ("share", "proportion", "probability")
"""Units of estimates from 0 to 1 that are shown in percent."""


@dataclass(frozen=True, slots=True)
class WrittenHeadline:
    """A headline's number in words."""

    value: str
    unit: str
    interval: str
    test: str
    notes: tuple[str, ...]
    is_known: bool


def write_headline(headline: Headline) -> WrittenHeadline:
    """The number of a headline; one that is not known says so and why."""
    estimate = headline.estimate
    if estimate is None or not estimate.is_known:
        return WrittenHeadline(NOT_ENOUGH, "", "", "", estimate.notes if estimate else (), is_known=False)
    is_percent = estimate.unit in SHARE_UNITS
    words = write_estimate(estimate, is_percent=is_percent)
    confidence = (
        f"{write_confidence(estimate.confidence)} confidence interval {words.interval}" if words.interval else ""
    )
    # As in the tables of confirmatory tests. A report that was read from its file has None for what is no number.
    p = estimate.details.get("p_adjusted", estimate.p_value)
    test = "" if p is None or math.isnan(p) else write_p(float(p))
    return WrittenHeadline(
        words.value, "" if is_percent else estimate.unit, confidence, test, words.notes, is_known=True
    )


def as_sentence(text: str) -> str:
    """A message as a sentence: error texts start small and end without a stop."""
    stripped = text.strip()
    if not stripped:
        return ""
    return stripped[0].upper() + stripped[1:] + ("" if stripped[-1] in ".?!…:" else ".")


def reproduce_lines(report: Report) -> tuple[str, str]:
    """How to get the same numbers again: a sentence and a command."""
    facts = report.provenance
    same = ["the same data"]
    if "fingerprint" in facts:
        same = [f"the same study files (fingerprint {facts['fingerprint']})", "the same judgments"]
    version = facts.get("dialometer", facts.get("software", facts.get("version")))
    if version is not None:
        same.append(f"dialometer {str(version).removeprefix('dialometer').strip()}")
    if "seed" in facts:
        same.append(f"seed {facts['seed']}")
    command = str(facts.get("command", "dialometer report STUDY_FOLDER"))
    return f"{_listed(same)} give the same numbers again, to the last digit. This report was made with:", command


def declared_words(report: Report) -> str:
    """What confirmatory means in this report: declared, and since when as far as the study's lock shows it."""
    since = report.provenance.get("declared_analysis")
    return f"{CONFIRMATORY_MEANING} ({since})" if since else CONFIRMATORY_MEANING


def other_facts(report: Report) -> dict[str, str]:
    """What is known of the making beside what those two lines say, by name."""
    said = {"fingerprint", "seed", "dialometer", "software", "version", "command"}
    return {name: str(value) for name, value in report.provenance.items() if name not in said}


def _listed(words: list[str]) -> str:
    text = f"{', '.join(words[:-1])} and {words[-1]}"
    return text[0].upper() + text[1:]
