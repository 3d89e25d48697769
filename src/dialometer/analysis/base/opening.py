"""The opening of a report: the verdicts on what was declared come first, then what was found, then what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Findings
from dialometer.analysis.base.wording import confidence_words, correction_name
from dialometer.design.lock import declared_at
from dialometer.model.report import Column, Headline, Table, Verdict

NOTHING_DECLARED = (
    "No comparison was declared in advance, so this report describes what was observed; nothing in it is confirmatory."
)


def answer(findings: Sequence[Findings]) -> str:
    """The verdict on the primary hypothesis, then the answer of the family that decides it; one test is said once."""
    if one_test := _one_test(findings):
        return one_test.one_test_answer
    found = findings[0].answer
    stated = next((part.verdict_answer for part in findings if part.verdict_answer), "")
    counted = next((part.verdict_counts for part in findings if part.verdict_counts), "")
    return f"{stated} {found or counted}".strip()


def _one_test(findings: Sequence[Findings]) -> Findings | None:
    """What the primary hypothesis's only test says, where the family that decides it can leave that to the verdict."""
    return next((part for part in findings if part.one_test_answer), None) if findings[0].basis else None


def certainty(findings: Sequence[Findings], *, has_comparisons: bool) -> str:
    """How certain the answer is; where nothing was declared it says so."""
    first = findings[0]
    if one_test := _one_test(findings):
        return f"{one_test.one_test_numbers} {first.basis}"
    return first.certainty if has_comparisons else f"{NOTHING_DECLARED} {first.certainty}".strip()


MOST_HEADLINES = 4


def headlines(findings: Sequence[Findings]) -> tuple[Headline, ...]:
    """The numbers of the first screen: where anything was declared only confirmatory ones, and few of them."""
    declared = [headline for part in findings for headline in part.verdict_headlines]
    has_verdicts = any(part.verdicts for part in findings)
    found = findings[0].headlines if findings else ()
    kept = declared or [headline for headline in found if headline.is_confirmatory or not has_verdicts]
    said: set[str] = set()
    return tuple(_not_again(headline, said) for headline in kept[:MOST_HEADLINES])


def _not_again(headline: Headline, said: set[str]) -> Headline:
    """With the remarks that no number before it had."""
    estimate = headline.estimate
    if estimate is None or not estimate.is_known:  # there the remark stands for the number
        return headline
    notes = tuple(note for note in estimate.notes if note not in said)
    said.update(notes)
    return replace(headline, estimate=replace(estimate, notes=notes))


def verdict_table(verdicts: Sequence[Verdict], correction: str, confidence: float) -> Table | None:
    """The verdicts as a table; None where nothing was declared."""
    if not verdicts:
        return None
    return Table(
        "hypotheses",
        "Hypotheses declared in advance",
        (Column("hypothesis", "Hypothesis"), Column("verdict", "Verdict"), Column("tests", "Confirmatory tests")),
        tuple(
            (verdict.hypothesis + (" (primary)" if verdict.is_primary else ""), verdict.words, verdict.tests)
            for verdict in verdicts
        ),
        caption=f"{confidence_words(confidence)} confidence intervals in brackets."
        + (f" {_correction(correction, confidence)}" if any(verdict.n_tests > 1 for verdict in verdicts) else ""),
        is_confirmatory=True,
    )


def _correction(correction: str, confidence: float) -> str:
    if correction == "none":
        return "p-values are not corrected for the number of tests."
    return (
        f"Where a comparison has several tests, their p-values are corrected together ({correction_name(correction)}). Confidence "
        "intervals are not: one may lie on one side of no difference although its corrected p-value is above "
        f"{f'{1 - confidence:.2g}'.removeprefix('0')}."
    )


_SIMULATED = "These are simulated raters. If the design can answer the question, "
SIMULATED = f"{_SIMULATED}freeze it and collect real judgments (dialometer freeze, dialometer serve)."
SIMULATED_FROZEN = f"{_SIMULATED}collect real judgments (dialometer serve)."


def next_steps(data: StudyData, findings: Sequence[Findings], so_far: str) -> tuple[str, ...]:
    """What to do next: what stands in the way of an answer first, then what the families derive from their results.

    For an unfinished study that is only to complete it: advice that follows from interim results invites optional stopping.
    """
    own = tuple(step for part in findings for step in part.next_steps)
    if not len(data.judgments):
        return own
    simulated = SIMULATED if declared_at(data.study) is None else SIMULATED_FROZEN
    first = [simulated] if data.sources == ("simulated",) else []
    if so_far:
        return (*first, f"Finish the study as planned ({so_far} so far); do not decide from interim results.")
    if data.look is not None and data.look.next_step:
        first.append(data.look.next_step)
    return (*first, *own)
