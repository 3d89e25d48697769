"""Controlled transcript pairs: does an interaction strategy change what raters prefer, and by how much?

The report follows Guerini, Falcone and Magnini (SCAI 2018): the share of raters who prefer the experimental transcript by
strategy and question with marginals, subgroups of raters, cost and duration, and the transcripts beside their numbers. It
goes beyond it where the published test is too optimistic: raters repeat across questions, the transcript pairs are few of many
that could carry a strategy, and there are many tests. So a claim about a strategy takes raters and pairs as samples; what holds for
the texts shown is said as such; and everything is corrected for the number of tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import (
    ANALYSES,
    Family,
    Findings,
    Options,
    OtherChoice,
    in_appendix,
    section_or_problem,
    with_prefix,
)
from dialometer.analysis.base.wording import inside, listed, n_of, percent, question_label, system_label, with_interval
from dialometer.analysis.families.pairs.choices import PairChoices, asked_pairwise, pair_choices, pair_items
from dialometer.analysis.families.pairs.factors import factors_section, has_factors
from dialometer.analysis.families.pairs.pair_alternatives import pair_alternatives
from dialometer.analysis.families.pairs.question_section import question_section
from dialometer.analysis.families.pairs.rater_sections import side_section, subgroup_section
from dialometer.analysis.families.pairs.result_words import answer_words, certainty_words, headline_words
from dialometer.analysis.families.pairs.results import (
    NO_PREFERENCE,
    DeclaredShares,
    Result,
    all_shares,
    declared_comparison,
    declared_shares,
    strategy_results,
)
from dialometer.analysis.families.pairs.sections import (
    declared_section,
    differences_section,
    preference_section,
)
from dialometer.analysis.families.pairs.transcripts import pairs_that_differ, transcripts_section
from dialometer.analysis.shared.comparisons import CORRECTIONS, between, is_about, p_adjusted
from dialometer.analysis.shared.equivalence import decided, has_margin
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Claim, Figure, Headline, Method, Section
from dialometer.model.study import Study
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.report.charts import Dot, dot_interval, ranking_intervals

MOST_HEADLINES = 3
PAPER = "Guerini, Falcone and Magnini, SCAI 2018"
OTHER_PAIRS, THESE_PAIRS = "other raters and other pairs", "other raters, these pairs"


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
        """The share of every strategy in this comparison, as the declared section and the headline show it."""
        choices = pair_choices(data)
        declared = declared_comparison(data.study, choices, comparison, options)
        results = declared.results if declared else strategy_results(choices, options)
        tests = {result.label: _named(result.declared, data.study) for result in results}
        return decided(tests, comparison, options) if has_margin(comparison) else tests

    def alternatives(self, data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
        """Ties counted, and one share for each rater or each pair of transcripts."""
        return pair_alternatives(data, comparison, options, partial(_named, study=data.study))

    def run(self, data: StudyData, options: Options) -> Findings:
        """Everything the published report says, and the tests behind it."""
        study, choices = data.study, pair_choices(data)
        shares = all_shares(choices, options)
        declared = declared_shares(study, choices, options)
        deciding = next((comparison for comparison in declared if comparison.is_primary), None)
        main = deciding.results if deciding else shares.by_strategy
        stated = declared_section(declared, choices, options)
        is_alone = len(choices.strategies) == len(choices.questions) == 1
        first = section_or_problem(
            "preference",
            "Preference by strategy and question",
            lambda: preference_section(choices, shares, options, declared),
        )
        apart = section_or_problem(
            "differences", "Do strategies and questions differ?", lambda: differences_section(choices, options)
        )
        profile = section_or_problem(
            "questions",
            "Which question does each strategy move most?",
            lambda: question_section(choices, shares, options, declared),
        )
        findings = Findings(
            answer=answer_words(main),
            certainty=certainty_words(main, choices, options, deciding),
            headlines=_headlines(main, shares.overall, is_confirmatory=deciding is not None),
            figure=_figure(main, deciding),
            sections=(
                *([stated] if stated else []),
                first,
                *in_appendix([] if is_alone else [apart]),
                *in_appendix([profile] if len(choices.questions) > 1 else []),
                *in_appendix(_sections(data, choices, options)),
            ),
            methods=(*_methods(options), *_undecided_method(study)),
            warnings=(*choices.notes, *_shared_transcripts(choices, options), *_reach(choices, options)),
            claims=tuple(
                Claim(f"a preference for {result.label}", is_general=result.reach == "general")
                for result in main
                if result.reach in ("general", "here")
            ),
        )
        return with_prefix(findings, "pairs")


ANALYSES.register("transcript_pairs")(TranscriptPairs())


def _named(share: Estimate, study: Study) -> Estimate:
    """A strategy's share with the short names of its two versions, the experimental one first."""
    versions = {(item.b.system, item.a.system) for item in pair_items(study)}
    own = {pair for pair in versions if share.label in (pair[0], system_label(study, pair[0]))} or versions
    experimental, control = min(own)
    return between(share, experimental, control, null=NO_PREFERENCE, about=share.label, quantity="share")


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
                f"Subgroups of raters: {inside(question_label(study, question))}",
                lambda question=question: subgroup_section(data, choices, question, options),  # type: ignore[misc]
            )
        )
    sections.append(
        section_or_problem(
            "side", "Did the position on the screen matter?", lambda: side_section(data, choices, options)
        )
    )
    sections.append(
        section_or_problem("transcripts", "The transcripts", lambda: transcripts_section(study, choices, options))
    )
    return sections


def _shared_transcripts(choices: PairChoices, options: Options) -> tuple[str, ...]:
    """Says that some pairs are no items of their own."""
    n_pairs, n_drawn = len(np.unique(choices.item)), len(np.unique(choices.drawn))
    if n_drawn == n_pairs or options.has_fixed_items:
        return ()
    return (
        f"Some transcript pairs of a strategy share a transcript: the {n_pairs} pairs count as {n_of(n_drawn, 'item')} in every "
        "claim about other transcript pairs.",
    )


def _reach(choices: PairChoices, options: Options) -> tuple[str, ...]:
    """A caution where a strategy's result hangs on the pair that was read."""
    apart = pairs_that_differ(choices, options)
    if not apart:
        return ()
    return (
        f"For {listed(apart)} the preference depends on which pair was read (see the transcripts): other transcripts of the same "
        "strategy may do better or worse.",
    )


def _headlines(results: Sequence[Result], overall: Result, *, is_confirmatory: bool) -> tuple[Headline, ...]:
    """Every strategy where they are few; else all together, the most and the least preferred: the figure shows the rest."""
    known = [result for result in results if result.here.is_known]
    if len(results) <= MOST_HEADLINES or len(known) < 2:
        return tuple(_headline(result, is_confirmatory) for result in results[:MOST_HEADLINES])
    best, least = max(known, key=lambda c: c.value), min(known, key=lambda c: c.value)
    whom = OTHER_PAIRS if overall.has_general_test else THESE_PAIRS
    together = Headline(
        "All strategies and questions",
        overall.shown,
        f"{percent(overall.value)} of all choices for the experimental version; the confidence interval is about {whom}.",
    )
    if best.value == least.value:
        return (together,)
    first, last = _headline(best, is_confirmatory), _headline(least, is_confirmatory)
    return (
        together,
        replace(first, label=f"Most preferred: {best.label}"),
        replace(last, label=f"Least preferred: {least.label}"),
    )


def _headline(result: Result, is_confirmatory: bool) -> Headline:
    if not result.here.is_known:
        return Headline(result.label, None, "Not enough data.", is_confirmatory)
    shown = replace(result.shown, p_value=p_adjusted(result.shown))
    return Headline(result.label, shown, headline_words(result), is_confirmatory)


def _figure(results: Sequence[Result], deciding: DeclaredShares | None) -> Figure:
    ordered = sorted(results, key=lambda c: -c.value if c.here.is_known else 1.0)
    title = "Preference for the experimental version, by strategy"
    of = "share of choices for the experimental version"
    if any(result.has_general_test for result in results):
        dots = [
            Dot(result.label, estimate, group=group)
            for result in ordered
            for group, estimate in ((OTHER_PAIRS, result.general), (THESE_PAIRS, result.here))
            if estimate is not None
        ]
        spec = dot_interval(
            dots, value_title=of, group_title="Holds for", reference=NO_PREFERENCE, domain=(0.0, 1.0), is_percent=True
        )
        details = "; ".join(f"{d.label}, {d.group}: {with_interval(d.estimate, is_percent=True)}" for d in dots)
    else:
        title += ", in these transcript pairs"
        dots = [Dot(result.label, result.here) for result in ordered]
        spec = ranking_intervals(dots, value_title=of, reference=NO_PREFERENCE, is_percent=True)
        details = "; ".join(f"{dot.label}: {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    alt = f"Share of choices for the experimental version, with confidence intervals. {details}. The line at 50% is no preference."
    return Figure("strategies", title, spec, alt, is_confirmatory=deciding is not None)


def _methods(options: Options) -> tuple[Method, ...]:
    correction = CORRECTIONS.get(options.correction, "none")
    general = (
        Method(
            "claims about a strategy, a question or all together",
            "share with a two-way jackknife variance over raters and transcript pairs, score t-test with the degrees of freedom of "
            "the design, Wilson interval with the effective number of answers",
            "raters and transcript pairs are samples: a claim about a strategy must hold for other pairs that carry it",
            "Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2023",
        ),
        Method(
            "differences between strategies and between questions, in general",
            "Clark's min F′; pairwise two-way jackknife t-tests with Welch's degrees of freedom",
            "tests by raters alone would take the transcript pairs as fixed",
            "Clark 1973",
        ),
    )
    return (
        *(() if options.has_fixed_items else general),
        Method(
            "share of one strategy on one question, in these transcript pairs",
            "exact two-sided binomial test of 50%, Wilson interval; χ² beside it",
            "each rater answers each question once per strategy, so answers are independent; a claim about "
            "these texts, as in the published studies",
            PAPER,
        ),
        Method(
            "other claims about these transcript pairs, position on the screen",
            "share with CR2 cluster-robust variance by rater, score t-test, Wilson interval with the effective number of answers",
            "raters repeat across questions and strategies, so pooled answers are not independent"
            + ("; the study declares its transcript pairs as fixed" if options.has_fixed_items else ""),
            "Bell and McCaffrey 2002; Pustejovsky and Tipton 2018",
        ),
        Method(
            "differences between strategies, questions, groups of raters, and pairs, in these transcript pairs",
            "cluster-robust homogeneity (HTZ) and pairwise t-tests by rater",
            "the same raters are compared with themselves; a chi-square test would treat them as different raters",
            "Pustejovsky and Tipton 2018",
        ),
        Method(
            "several tests at once",
            correction,
            "declared in the study; each column of p-values is one family",
        ),
    )


def _undecided_method(study: Study) -> tuple[Method, ...]:
    """What is done with answers for neither version, where the scale allows any."""
    names = {TIE: "ties", BOTH_BAD: "“both are bad”", CANNOT_TELL: "“cannot tell”"}
    asked = asked_pairwise(study)
    scales = [
        scale for criterion in study.spec.criteria if criterion.name in asked for scale in study.scales_of(criterion)
    ]
    allowed = [name for option, name in names.items() if any(option in scale.extra_options() for scale in scales)]
    if not allowed:
        return ()
    what = "excluded from shares and tests, counted in the notes"
    return (Method(listed(allowed), what, "they say nothing about which version is better"),)
