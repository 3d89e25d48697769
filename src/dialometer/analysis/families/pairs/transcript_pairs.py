"""Controlled transcript pairs: does an interaction strategy change what raters prefer, and by how much?

The report follows Guerini, Falcone and Magnini (SCAI 2018): the share of raters who prefer the experimental transcript by
strategy and question with marginals, subgroups of raters, cost and duration, and the transcripts beside their numbers. It
goes beyond it where the published test is too optimistic: raters repeat across questions, so marginals are tested with
each rater as one cluster, and everything is corrected for the number of tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem, with_prefix
from dialometer.analysis.base.wording import (
    confidence_words,
    listed,
    n_of,
    p_words,
    percent,
    system_label,
    with_interval,
)
from dialometer.analysis.families.pairs.choices import (
    DeclaredShares,
    PairChoices,
    all_shares,
    asked_pairwise,
    declared_shares,
    marginal_share,
    pair_choices,
    pair_items,
)
from dialometer.analysis.families.pairs.factors import factors_section, has_factors
from dialometer.analysis.families.pairs.sections import (
    NO_PREFERENCE,
    declared_section,
    differences_section,
    preference_section,
    question_section,
    side_section,
    subgroup_section,
    verdict,
)
from dialometer.analysis.families.pairs.transcripts import pairs_that_differ, transcripts_section
from dialometer.analysis.shared.comparisons import CORRECTIONS, between, is_about, is_significant, p_adjusted
from dialometer.analysis.shared.equivalence import decided, has_margin
from dialometer.model.estimate import Estimate
from dialometer.model.report import Claim, Figure, Headline, Method, Section
from dialometer.model.study import Comparison, Study
from dialometer.report.charts import Dot, ranking_intervals

MOST_HEADLINES = 3
PAPER = "Guerini, Falcone and Magnini, SCAI 2018"


class TranscriptPairs(Family):
    """The family for controlled pairs that are compared by choosing one of the two."""

    rank = 10

    def fits(self, study: Study) -> bool:
        """Controlled pairs with at least one question answered by a choice."""
        items = study.spec.items
        return items.kind == "transcript_pair" and items.pairs == "controlled" and bool(asked_pairwise(study))

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of versions, which are systems, on a question answered by a choice."""
        return comparison.between == "systems" and is_about(comparison, asked_pairwise(study))

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """The share of every strategy in the first declared comparison; all together where none is declared."""
        choices = pair_choices(data)
        if has_margin(comparison):
            asked = declared_shares(data.study, choices, options, comparison)
            shares = {share.label: _named(share, data.study) for part in asked for share in part.shares}
            return decided(shares, comparison, options)
        declared = declared_shares(data.study, choices, options)
        if not declared:
            return {"all": marginal_share(choices, confidence=options.confidence, label="all")}
        return {share.label: share for share in declared[0].shares}

    def run(self, data: StudyData, options: Options) -> Findings:
        """Everything the published report says, and the tests behind it."""
        study, choices = data.study, pair_choices(data)
        shares = all_shares(choices, options)
        declared = declared_shares(study, choices, options)
        deciding = next((comparison for comparison in declared if comparison.is_primary), None)
        main = deciding.shares if deciding else shares.by_strategy
        sections = _sections(data, choices, options)
        first = section_or_problem(
            "preference",
            "Preference by strategy and question",
            lambda: preference_section(choices, shares, options, declared),
        )
        stated = declared_section(declared, choices, options)
        profile = (
            [
                section_or_problem(
                    "questions",
                    "Which question does each strategy move most?",
                    lambda: question_section(choices, shares, options, declared),
                )
            ]
            if len(choices.questions) > 1
            else []
        )
        apart = section_or_problem(
            "differences", "Do strategies and questions differ?", lambda: differences_section(choices, options)
        )
        is_alone = len(choices.strategies) == len(choices.questions) == 1
        findings = Findings(
            answer=_answer(main),
            certainty=_certainty(main, choices, options, deciding),
            headlines=_headlines(main, shares.overall, is_confirmatory=deciding is not None),
            figure=_figure(main, deciding is not None),
            sections=(
                *([stated] if stated else []),
                first,
                *([] if is_alone else [apart]),
                *profile,
                *sections,
            ),
            methods=_methods(options),
            warnings=(*choices.notes, *_reach(choices, options)),
            claims=tuple(Claim(f"a preference for {share.label}") for share in main if is_significant(share)),
        )
        return with_prefix(findings, "pairs")


ANALYSES.register("transcript_pairs")(TranscriptPairs())


def _named(share: Estimate, study: Study) -> Estimate:
    """A strategy's share with the short names of its two versions, the experimental one first."""
    versions = {(item.b.system, item.a.system) for item in pair_items(study)}
    own = {pair for pair in versions if share.label in (pair[0], system_label(study, pair[0]))} or versions
    experimental, control = min(own)
    return between(share, experimental, control, null=NO_PREFERENCE)


def _sections(data: StudyData, choices: PairChoices, options: Options) -> list[Section]:
    study = data.study
    sections = []
    if has_factors(study):
        sections.append(
            section_or_problem("factors", "Levels and combinations", lambda: factors_section(study, choices, options))
        )
    for question in study.spec.analysis.subgroups:
        sections.append(
            section_or_problem(
                f"subgroup-{question}",
                f"Subgroups of raters: {question.replace('_', ' ')}",
                lambda question=question: subgroup_section(data, choices, question, options),  # type: ignore[misc]
            )
        )
    sections.append(
        section_or_problem("side", "Did the place on the screen matter?", lambda: side_section(data, choices, options))
    )
    sections.append(
        section_or_problem("transcripts", "The transcripts", lambda: transcripts_section(study, choices, options))
    )
    return sections


def _answer(shares: Sequence[Estimate]) -> str:
    """What a reader wants to know first."""
    known = [share for share in shares if share.is_known]
    preferred = [share for share in known if is_significant(share) and share.value > NO_PREFERENCE]
    if len(preferred) == len(shares) > 1:
        low, high = min(known, key=lambda s: s.value), max(known, key=lambda s: s.value)
        return (
            f"Raters preferred the experimental version for all {len(shares)} strategies, from {percent(low.value)} of the "
            f"choices ({low.label}) to {percent(high.value)} ({high.label})."
        )
    return verdict(shares)


def _certainty(
    shares: Sequence[Estimate], choices: PairChoices, options: Options, deciding: DeclaredShares | None
) -> str:
    tested = [share for share in shares if share.is_known and not math.isnan(p_adjusted(share))]
    what = "The comparison was declared beforehand." if deciding else "No comparison was declared: this is exploratory."
    basis = f"{n_of(choices.n_raters, 'rater')} made {n_of(choices.n, 'choice')}"
    if not tested:
        return f"{basis}; that is not enough for a test. {what}"
    clear = [share for share in tested if is_significant(share)]
    correction = (
        f" after {CORRECTIONS[options.correction]}'s correction"
        if options.correction in CORRECTIONS and len(tested) > 1
        else ""
    )
    largest = f" (largest {p_words(max(p_adjusted(s) for s in clear))})" if clear else ""
    text = f"{len(clear)} of {n_of(len(tested), 'preference')} can be told from chance{correction}{largest}: {basis}. {what} "
    unclear = [share for share in tested if not is_significant(share)]
    if unclear:
        reach = max(unclear, key=lambda s: max(s.high - NO_PREFERENCE, NO_PREFERENCE - s.low))
        text += (
            f"What is left open may be no preference, or one that this many raters cannot show: for {reach.label} the "
            f"{confidence_words(options.confidence)} interval reaches from {percent(reach.low)} to {percent(reach.high)}. "
        )
    return text + "Tests take each rater as one cluster, and speak of other raters reading these transcripts."


def _reach(choices: PairChoices, options: Options) -> tuple[str, ...]:
    """A caution where a strategy's result hangs on the pair that was read."""
    apart = pairs_that_differ(choices, options)
    if not apart:
        return ()
    return (
        f"For {listed(apart)} the preference depends on which pair was read (see the transcripts): the result is about these "
        "wordings, and other transcripts of the same strategy may do better or worse.",
    )


def _headlines(shares: Sequence[Estimate], overall: Estimate, *, is_confirmatory: bool) -> tuple[Headline, ...]:
    """Every strategy where they are few; else all together, the most and the least preferred: the figure shows the rest."""
    known = [share for share in shares if share.is_known]
    if len(shares) <= MOST_HEADLINES or len(known) < 2:
        return tuple(_headline(share, is_confirmatory) for share in shares[:MOST_HEADLINES])
    best, least = max(known, key=lambda s: s.value), min(known, key=lambda s: s.value)
    together = Headline("All strategies and questions", overall, "Share of all choices for the experimental version.")
    if best.value == least.value:
        return (together,)
    first, last = _headline(best, is_confirmatory), _headline(least, is_confirmatory)
    return (
        together,
        replace(first, label=f"Most preferred: {best.label}"),
        replace(last, label=f"Least preferred: {least.label}"),
    )


def _headline(share: Estimate, is_confirmatory: bool) -> Headline:
    if not share.is_known:
        return Headline(share.label, None, "Not enough data.", is_confirmatory)
    p = p_adjusted(share)
    side = "experimental" if share.value >= NO_PREFERENCE else "control"
    what = (
        f"prefer the {side} version"
        if is_significant(share)
        else "chose the experimental version; chance is not ruled out"
    )
    shown = share.value if side == "experimental" or not is_significant(share) else 1 - share.value
    p_text = "no test" if math.isnan(p) else f"corrected {p_words(p)}"
    return Headline(share.label, share, f"{percent(shown)} {what} ({p_text}).", is_confirmatory)


def _figure(shares: Sequence[Estimate], is_confirmatory: bool) -> Figure:
    dots = [Dot(share.label, share) for share in shares]
    details = "; ".join(f"{dot.label}: {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    spec = ranking_intervals(
        dots, value_title="prefer the experimental version", reference=NO_PREFERENCE, is_percent=True
    )
    return Figure(
        "strategies",
        "Preference for the experimental version, by strategy",
        spec,
        f"Share of choices for the experimental version, with intervals. {details}. The line at 50% is no preference.",
        is_confirmatory=is_confirmatory,
    )


def _methods(options: Options) -> tuple[Method, ...]:
    correction = CORRECTIONS.get(options.correction, "none")
    return (
        Method(
            "share of one strategy on one question",
            "exact two-sided binomial test of 50%, Wilson interval; χ² beside it",
            "each rater answers once in a cell, so answers are independent",
            PAPER,
        ),
        Method(
            "marginals, declared comparisons, place on the screen",
            "share with CR2 cluster-robust variance by rater, score t-test, Wilson interval with the effective number of answers",
            "raters repeat across questions and strategies, so pooled answers are not independent",
            "Bell and McCaffrey 2002; Pustejovsky and Tipton 2018",
        ),
        Method(
            "differences between strategies, questions, groups of raters, and pairs",
            "cluster-robust homogeneity (HTZ) and pairwise t-tests by rater",
            "the same raters are compared with themselves; chi-square would take them for different people",
            "Pustejovsky and Tipton 2018",
        ),
        Method("several tests at once", correction, "declared in the study; one family per table"),
        Method(
            "ties and cannot-tell",
            "left out of shares and tests, counted in the notes",
            "given their number, they say nothing of the direction",
        ),
    )
