"""Candidate answers judged one at a time: which retriever is best, and by whose judgment (Chierici and Habash 2021)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from dialometer.analysis.base.choose import so_far
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.scale_units import AskedCriterion, asked_criteria
from dialometer.analysis.base.wording import (
    after_correction,
    correction_name,
    criterion_label,
    inside,
    listed,
    n_of,
    number,
    percent,
    question_label,
    system_label,
    with_interval,
)
from dialometer.analysis.families.candidates.agreement import agreement_section, ranking_section, rating_columns
from dialometer.analysis.families.candidates.answer_differences import METHOD, METHOD_FIXED
from dialometer.analysis.families.candidates.asked import asked_section
from dialometer.analysis.families.candidates.disagreements import TITLE as DISAGREEMENT
from dialometer.analysis.families.candidates.disagreements import disagreement_section
from dialometer.analysis.families.candidates.first_answers import (
    FirstAnswers,
    candidate_group_section,
    first_answers,
    first_answers_section,
    means_figure,
    system_differences,
)
from dialometer.analysis.families.candidates.gold_loss import approves_gold, gold_rules, gold_section
from dialometer.analysis.families.candidates.pool import Pool, pool_of
from dialometer.analysis.families.candidates.question_groups import TITLE as COREFERENCE
from dialometer.analysis.families.candidates.question_groups import coreference_section
from dialometer.analysis.families.candidates.retrieval import JudgeScores, Retrieval, retrieval_scores
from dialometer.analysis.families.candidates.retrieval_section import retrieval_section
from dialometer.analysis.families.candidates.versatile import versatile_section
from dialometer.analysis.shared.comparisons import (
    between,
    compared_systems,
    corrected_by_name,
    is_about,
    p_adjusted,
    primary_comparison,
    significance_words,
)
from dialometer.analysis.shared.equivalence import decided
from dialometer.analysis.shared.ranking import Pairs, difference, lead_claims, not_clear_words
from dialometer.errors import NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.item import CandidateItem
from dialometer.model.report import Claim, Headline, Method, Section
from dialometer.model.study import Study
from dialometer.stats.observations import from_the_highest

SOURCE = "Chierici and Habash, HumEval 2021"
WITHOUT_RANKS = "Systems cannot be compared: nothing says which system retrieved a candidate at which rank."
NO_COMPARISON = "How far raters agree, and on which questions they differ, is below. Give ranks in the item file to compare systems."


@dataclass(frozen=True)
class CandidateResults:
    """What the summary is made of."""

    pool: Pool
    answers: FirstAnswers
    retrieval: Retrieval

    def by(self, judge: str) -> JudgeScores | None:
        """The metrics against judged judge's labels."""
        return next((judged for judged in self.retrieval.judged if judged.judge.name == judge), None)


def answer(main: CandidateResults) -> str:
    """Whose first answers are rated best, as far as the corrected tests carry it."""
    answers = main.answers
    if answers.lead is None:
        return "No first answer of any system has been rated yet."
    best = answers.lead.best
    rating = f"{number(answers.means[best].value)} on the scale from {main.pool.ends[0]:g} to {main.pool.ends[1]:g}"
    if answers.lead.is_clear or not answers.pairs:
        return f"The first answers of {best} are rated best ({rating})."
    if answers.lead.shared:
        return f"The first answers of {listed(answers.lead.first)} are tied ({rating})."
    is_tested = bool(answers.lead.behind or answers.lead.level)
    start = "No system is significantly best: the" if is_tested else "The"
    return f"{start} first answers of {best} are rated highest ({rating}), {not_clear_words(answers.lead, 'of')}."


def certainty(main: CandidateResults) -> str:
    """On how many data the answer rests, and whether it is confirmatory."""
    answers = main.answers
    if answers.lead is None:
        return "Not enough data."
    basis = f"{n_of(len(main.pool.rater_names), 'rater')} judged the answers to {n_of(len(main.pool.questions), 'question')}"
    if not answers.pairs:
        return f"{basis}. There is one system only, so nothing to compare it with."
    kind = "confirmatory (declared in advance)" if answers.declared else "exploratory"
    gold = f" Gold answers are rated {with_interval(answers.gold)}." if answers.gold is not None else ""
    return f"{basis}; the comparison is {kind}.{gold}"


def headlines(main: CandidateResults, correction: str, *, is_interim: bool) -> tuple[Headline, ...]:
    """The best first answers against those of the systems that come next."""
    answers = main.answers
    if answers.lead is None:
        return ()
    best = answers.lead.best
    lines = []
    for other in from_the_highest({name: mean.value for name, mean in answers.means.items() if name != best}):
        gap = difference(answers.pairs, best, other)
        if gap is None or not gap.is_known:
            continue
        after = " so far" if is_interim else ""
        after += after_correction(correction) if len(answers.pairs) > 1 else ""
        shown = replace(gap, unit="points", p_value=p_adjusted(gap))
        words = significance_words(shown, 0.0, p_adjusted(gap), after)
        is_declared = bool({(best, other), (other, best)} & answers.declared.keys())
        lines.append(Headline(f"First answers of {best} against {other}", shown, words, is_declared))
    return tuple(lines[:3])


def warnings(main: CandidateResults) -> tuple[str, ...]:
    """Candidates without ratings, which look like wrong answers in the measures."""
    n_unjudged = int((~main.pool.is_judged).sum())
    if not n_unjudged:
        return ()
    share = percent(n_unjudged / len(main.pool.items))
    return (f"{n_unjudged:,} candidates ({share}) have no rating yet; in a ranking they count as wrong.",)


def methods(options: Options) -> tuple[Method, ...]:
    """What was used for what, and why."""
    correction = f", corrected by {correction_name(options.correction)}" if options.correction != "none" else ""
    is_fixed = options.has_fixed_items
    return (
        Method(
            "average rating and percent of gold",
            f"mean over questions; bootstrap that draws {'raters' if is_fixed else 'raters and questions'}",
            f"ratings of one rater {'' if is_fixed else 'and of one question '}are correlated",
            SOURCE,
        ),
        Method(
            "comparisons of first answers",
            f"{METHOD_FIXED if is_fixed else METHOD}, t-test{correction}",
            "the raters are a sample; the study declares its questions as fixed"
            if is_fixed
            else "both the raters and the questions are samples",
            "Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2023",
        ),
        Method(
            "comparisons of retrieval metrics",
            f"paired permutation test over questions{correction}; confidence intervals hold the values that it does not reject",
            "all systems answered the same questions; no assumption about the distribution",
            "Smucker, Allan and Carterette, CIKM 2007",
        ),
        Method(
            "agreement",
            "weighted Cohen's kappa of two of the ratings of a candidate, with a permutation null; Krippendorff's alpha",
            "choosing the closest, lowest or highest two makes agreement by itself",
            "Merdivan et al. 2020; " + SOURCE,
        ),
        Method(
            "retrieval metrics",
            "Recall@k, MRR, MAP and Success Rate@k; Wilson intervals or bootstrap over questions",
            "published metrics, against the maker's and the crowd's labels",
            SOURCE,
        ),
        Method(
            "versatile and one-sided questions",
            "coefficient of variation above the 75th percentile or below the median, with shuffled ratings beside",
            "sets chosen by disagreement arise from noise as well",
            SOURCE,
        ),
    )


class Candidates(Family):
    """Fits studies whose items are candidates with the ranks at which systems retrieved them."""

    rank = 10

    def fits(self, study: Study) -> bool:
        """Candidates answered with numbers."""
        return study.spec.items.kind == "candidate" and bool(asked_criteria(study))

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of retrievers on a criterion answered with numbers."""
        asked = [question.criterion.name for question in _in_order(study)]
        return comparison.between == "systems" and is_about(comparison, asked)

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """First answers of the compared retrievers, two by two on each criterion, as the report shows them."""
        study = data.study
        name_of = {system_label(study, system.name): system.name for system in study.spec.systems}
        has_several = len(_in_order(study)) > 1
        tests = {}
        for (criterion, pair), gap in _compared(data, comparison, options).items():
            about = criterion_label(study, criterion) if has_several else ""
            label = f"{f'{about}: ' if about else ''}{pair[0]} against {pair[1]}"
            tests[label] = between(gap, *(name_of[label] for label in pair), about=about)
        return decided(tests, comparison, options)

    def run(self, data: StudyData, options: Options) -> Findings:
        """All criteria one after the other; the declared one, or the first, gives the answer."""
        asked = _in_order(data.study)
        sections: list[Section] = []
        main: CandidateResults | None = None
        for index, question in enumerate(asked):
            prefix = "" if len(asked) == 1 else f"{question.criterion.name}_"
            own, judgments = _criterion_sections(data, options, question, prefix)
            sections += own if not prefix else [_titled(section, data.study, question) for section in own]
            main = judgments if index == 0 else main
        if main is None:
            has_ranks = any(isinstance(item, CandidateItem) and item.ranks for item in data.study.rated_items)
            if not has_ranks and any(not section.problem for section in sections):
                return Findings(WITHOUT_RANKS, NO_COMPARISON, sections=tuple(sections), methods=methods(options))
            nothing = "Every criterion is asked on different scales in different blocks, so ratings do not compare."
            why = next((section.problem for section in sections if section.problem), nothing)
            return Findings("Not enough data.", why, sections=tuple(sections), methods=methods(options))
        # Where the primary comparison is about some of the systems only, who comes first of all is exploratory.
        declared = data.study.spec.analysis.comparisons
        is_elsewhere = bool(declared and main.answers.others and primary_comparison(data.study).levels)
        return Findings(
            answer="" if is_elsewhere else answer(main),
            certainty=certainty(main),
            basis=certainty(main) if main.answers.pairs else "",
            headlines=headlines(main, options.correction, is_interim=bool(so_far(data))),
            figure=means_figure("summary_figure", main.answers),
            sections=tuple(sections),
            methods=methods(options),
            warnings=warnings(main),
            claims=() if is_elsewhere else _claims(main),
        )


ANALYSES.register("candidates")(Candidates())


def _claims(main: CandidateResults) -> tuple[Claim, ...]:
    lead = main.answers.lead
    return lead_claims([lead.best, *lead.behind], ()) if lead is not None and lead.is_clear else ()


def _in_order(study: Study) -> list[AskedCriterion]:
    """Numeric criteria, the one of the primary comparison first."""
    declared = study.spec.analysis
    primary = next((comparison for comparison in declared.comparisons if comparison.name == declared.primary), None)
    first = primary.criteria[0] if primary is not None and primary.criteria else ""
    asked = [question for question in asked_criteria(study) if question.is_whole]
    return sorted(asked, key=lambda question: question.criterion.name != first)


def _compared(data: StudyData, comparison: Comparison, options: Options) -> dict[tuple[str, tuple[str, str]], Estimate]:
    """The differences that a comparison asks for, by criterion and by the labels of two systems, not corrected."""
    labels = {system_label(data.study, name) for name in compared_systems(data.study, comparison)}
    made = {}
    for asked in _in_order(data.study):
        criterion = asked.criterion.name
        if not is_about(comparison, [criterion]):
            continue
        try:
            pool = pool_of(data, criterion, asked.scales[0])
        except NotEnoughData:
            continue
        for pair, gap in system_differences(pool, options).items():
            if set(pair) <= labels:
                made[criterion, pair] = replace(gap, details={**gap.details, "n_questions": len(pool.questions)})
    return made


def _declared(data: StudyData, criterion: str, options: Options) -> Pairs:
    """The declared tests on one criterion, corrected as their verdicts are; those of the primary comparison come first."""
    analysis = data.study.spec.analysis
    made: dict[tuple[str, str], Estimate] = {}
    for comparison in sorted(analysis.comparisons, key=lambda comparison: comparison.name != analysis.primary):
        if comparison.between == "systems" and is_about(comparison, [criterion]):
            tests = corrected_by_name(_compared(data, comparison, options), options)
            made |= {pair: test for (name, pair), test in tests.items() if name == criterion and pair not in made}
    return made


MAIN_SECTIONS = ("first_answers", "candidate_agreement")
"""What a reader needs to follow the answer; the others are in the appendix."""


def _criterion_sections(
    data: StudyData, options: Options, asked: AskedCriterion, prefix: str
) -> tuple[list[Section], CandidateResults | None]:
    if len({scale.describe() for scale in asked.scales}) > 1:
        problem = (
            "Raters of different conditions answered on different scales, so ratings of one candidate do not compare."
        )
        return [Section(f"{prefix}first_answers", "Ratings of candidates", problem=problem)], None
    try:
        pool = pool_of(data, asked.criterion.name, asked.scales[0])
    except NotEnoughData as error:
        return [Section(f"{prefix}first_answers", "Ratings of candidates", problem=str(error))], None
    columns = rating_columns(pool, data.study.spec.design.judgments_per_item)
    is_by_rule, has_gold = approves_gold(data, pool), bool(pool.is_gold.any())
    has_rule = bool(gold_rules(data)) and bool(len(data.set_aside))
    builders: list[tuple[str, str, Callable[..., Section], tuple[object, ...]]] = []
    main: CandidateResults | None = None
    sections: list[Section] = []
    try:
        answers = first_answers(pool, options, _declared(data, asked.criterion.name, options))
        main = CandidateResults(pool, answers, retrieval_scores(pool, options))
        builders += [
            ("first_answers", "How good the first answers are", first_answers_section, (answers, options, has_rule)),
            (
                "retrieval",
                "Retrieval metrics: right for whom?",
                retrieval_section,
                (main.retrieval, options, has_rule, is_by_rule),
            ),
            ("rankings", "Do systems rank as the crowd would?", ranking_section, (pool, options)),
        ]
        if has_gold:
            builders.append(("disagreements", DISAGREEMENT, disagreement_section, (pool, is_by_rule)))
        if {True, False} <= set(pool.coreference):
            builders.append(("coreference", COREFERENCE, coreference_section, (pool, main.retrieval, options)))
    except NotEnoughData as error:
        sections.append(Section(f"{prefix}first_answers", "How good the first answers are", problem=str(error)))
    builders += [
        ("candidate_agreement", "How far raters agree", agreement_section, (pool, columns, options)),
        ("versatile", "Versatile and one-sided questions", versatile_section, (pool, columns, options)),
        ("gold_rule", "What the gold rule cost and changed", gold_section, (data, pool, options)),
        ("asked", "What was asked", asked_section, (pool,)),
    ]
    sections += [
        replace(
            section_or_problem(prefix + name, title, partial(build, prefix + name, *given)),
            in_appendix=name not in MAIN_SECTIONS,
        )
        for name, title, build, given in builders
    ]
    sections += in_appendix(
        section_or_problem(
            f"{prefix}group_{question}",
            f"Groups of raters: {inside(question_label(data.study, question))}",
            partial(candidate_group_section, f"{prefix}group_{question}", data, pool, question, options),
        )
        for question in data.study.spec.analysis.subgroups
    )
    return sections, main


def _titled(section: Section, study: Study, asked: AskedCriterion) -> Section:
    title = f"{criterion_label(study, asked.criterion.name)}: {section.title}"
    return replace(section, title=title)
