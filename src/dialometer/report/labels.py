"""Words that every format uses for the same thing: what was declared, what is not finished, how to get it again."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dialometer.model.report import Headline, Report
from dialometer.report.numbers import NOT_ENOUGH, write_estimate, write_p

DECLARED = "Declared"
EXPLORATORY = "Exploratory"
DECLARED_MEANING = "written down in the study before the data came in"
EXPLORATORY_MEANING = "looked at afterwards; a reason for the next study, not a proof"
INTERIM = ("Interim report", "The study is not finished: its numbers can still change.")
SHARE_UNITS = ("share", "proportion", "probability")
"""Units of estimates from 0 to 1 that are shown in percent."""
RATIO_UNITS = ("times", "ratio", "odds ratio")
"""Units of estimates for which 1 means no difference."""


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
    confidence = f"{100 * estimate.confidence:g}% interval {words.interval}" if words.interval else ""
    test = "" if math.isnan(estimate.p_value) else write_p(estimate.p_value)
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
    return f"{_listed(same)} give these numbers again, to the last digit:", command


def _listed(words: list[str]) -> str:
    text = f"{', '.join(words[:-1])} and {words[-1]}"
    return text[0].upper() + text[1:]
