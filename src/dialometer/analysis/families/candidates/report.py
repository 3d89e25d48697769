"""Candidate answers judged one at a time: which retriever is best, and by whose judgment (Chierici and Habash 2021)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.scale_units import AskedCriterion, asked_criteria
from dialometer.analysis.base.wording import criterion_label, listed, number, percent, system_label, with_interval
from dialometer.analysis.families.candidates.agreement import agreement_section, ranking_section, rating_columns
from dialometer.analysis.families.candidates.answer_differences import answer_difference
from dialometer.analysis.families.candidates.asked import asked_section
from dialometer.analysis.families.candidates.disagreements import TITLE as DISAGREEMENT
from dialometer.analysis.families.candidates.disagreements import disagreement_section
from dialometer.analysis.families.candidates.first_answers import (
    FirstAnswers,
    candidate_group_section,
    first_answers,
    first_answers_section,
)
from dialometer.analysis.families.candidates.gold_loss import gold_rules, gold_section
from dialometer.analysis.families.candidates.pool import Pool, pool_of
from dialometer.analysis.families.candidates.question_groups import TITLE as COREFERENCE
from dialometer.analysis.families.candidates.question_groups import coreference_section
from dialometer.analysis.families.candidates.retrieval import FIRST, JudgeScores, Retrieval, retrieval_scores
from dialometer.analysis.families.candidates.retrieval_section import retrieval_section
from dialometer.analysis.families.candidates.versatile import versatile_section
from dialometer.analysis.shared.comparisons import between, compared_systems
from dialometer.analysis.shared.equivalence import decided
from dialometer.analysis.shared.ranking import lead_claims
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.item import CandidateItem
from dialometer.model.report import Claim, Figure, Headline, Method, Section
from dialometer.model.study import Comparison, Study
from dialometer.report.charts import Dot, dot_interval

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
    """Who is best by the ratings, by the maker's labels and by the crowd's, in one or two sentences."""
    answers = main.answers
    if answers.lead is None:
        return "No first answer of any system has been rated yet."
    best = answers.lead.best
    rating = f"{number(answers.means[best].value)} on the scale from {main.pool.ends[0]:g} to {main.pool.ends[1]:g}"
    if answers.gold is not None and answers.shares[best].is_known:
        rating += f", {percent(answers.shares[best].value)} of gold"
    text = f"The first answers of {best} are rated best ({rating})."
    if not answers.lead.is_clear and answers.pairs:
        text = f"No system is shown to be best. Rated highest: the first answers of {listed(answers.lead.first)} ({rating})."
    verdicts = []
    for judge in ("maker", "crowd"):
        judged = main.by(judge)
        if judged is not None and judged.lead is not None:
            rate = judged.answerable(judged.lead.best, FIRST)
            each = " each" if judged.lead.shared else ""
            verdicts.append(f"for the {judge}: {listed(judged.lead.first)} ({percent(rate.value)}{each})")
    return f"{text} Most often right {'; '.join(verdicts)}." if verdicts else text


def certainty(main: CandidateResults, options: Options) -> str:
    """Which of the leads could be chance."""
    answers = main.answers
    if answers.lead is None:
        return "Not enough data."
    if not answers.pairs:
        return "There is one system only, so nothing to compare it with."
    level = [*answers.lead.level, *answers.lead.untested]
    n_questions = len(main.pool.questions)
    where = f"{n_questions:,} questions and {len(main.pool.rater_names):,} raters"
    if answers.lead.is_clear:
        text = (
            f"The lead in ratings over every other system is larger than chance would make it with {where} (all corrected "
            f"p values at most {1 - options.confidence:.2g})."
        )
    elif answers.lead.behind:
        text = (
            f"With {where}, {answers.lead.best} is clearly ahead of {listed(answers.lead.behind)}; that it is better than "
            f"{listed(level)} is not established."
        )
    else:
        text = f"With {where}, the lead in ratings over {listed(level)} could be chance."
    unclear = []
    for judge in ("maker", "crowd"):
        judged = main.by(judge)
        if judged is not None and judged.lead is not None and judged.lead.level:
            unclear.append(f"{judged.lead.best} from {listed(judged.lead.level)} for the {judge}")
    return f"{text} By how often they are right one cannot tell {'; '.join(unclear)}." if unclear else text


def headlines(main: CandidateResults) -> tuple[Headline, ...]:
    """The rating of the best first answers, and the share that is right for each judge."""
    answers = main.answers
    lines = []
    if answers.lead is not None:
        best = answers.lead.best
        lines.append(
            Headline(
                f"Average rating, first answers of {best}",
                answers.means[best],
                f"Gold answers get {with_interval(answers.gold)}." if answers.gold is not None else "",
                is_confirmatory=bool(answers.declared),
            )
        )
    for judge, word in (("maker", "maker"), ("crowd", "crowd")):
        judged = main.by(judge)
        if judged is None or judged.lead is None:
            continue
        best = judged.lead.best
        level = judged.lead.level
        who = listed(judged.lead.first)
        sentence = (
            f"{best} does not differ significantly from {listed(level)}."
            if level
            else "Ahead of every other system."
            if judged.lead.behind
            else ""
        )
        rate = replace(judged.answerable(best, FIRST), unit="share")
        lines.append(Headline(f"Success Rate@1 by the {word}: {who}", rate, sentence))
    return tuple(lines)


def figure(main: CandidateResults) -> Figure | None:
    """First answers that are right, for the maker and for the crowd."""
    dots = []
    for label in main.pool.labels:
        for judge in ("maker", "crowd"):
            judged = main.by(judge)
            if judged is not None:
                dots.append(Dot(label, judged.answerable(label, FIRST), f"the {judge}"))
    if not dots:
        return None
    details = "; ".join(
        f"{dot.label} by {dot.group} {percent(dot.estimate.value)}" for dot in dots if dot.estimate.is_known
    )
    return Figure(
        "summary_figure",
        "First answers that are right, by whose judgment (Success Rate@1)",
        dot_interval(
            dots,
            value_title="share of questions with a right first answer",
            group_title="right for",
            domain=(0, 1),
            is_percent=True,
        ),
        alt=f"Success Rate at 1: {details}.",
    )


def warnings(main: CandidateResults) -> tuple[str, ...]:
    """Candidates without ratings, which look like wrong answers in the measures."""
    n_unjudged = int((~main.pool.is_judged).sum())
    if not n_unjudged:
        return ()
    share = percent(n_unjudged / len(main.pool.items))
    return (f"{n_unjudged:,} candidates ({share}) have no rating yet; where they stand in a list they count as wrong.",)


def methods(options: Options) -> tuple[Method, ...]:
    """What was used for what, and why."""
    correction = f", corrected by {options.correction}" if options.correction != "none" else ""
    return (
        Method(
            "average rating and percent of gold",
            "mean over questions; bootstrap that draws raters and questions",
            "ratings of one rater and of one question go together",
            SOURCE,
        ),
        Method(
            "comparisons of first answers",
            f"mean difference over questions, two-way jackknife over raters and questions, t-test{correction}",
            "both the raters and the questions are samples",
            "Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2023",
        ),
        Method(
            "comparisons of retrieval measures",
            f"paired permutation test over questions{correction}",
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
            "retrieval measures",
            "Recall@k, MRR, MAP and Success Rate@k; Wilson intervals or bootstrap over questions",
            "published measures, against the maker's and the crowd's labels",
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
        """Comparisons of retrievers."""
        return comparison.between == "systems"

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """First answers of the compared retrievers, two by two, as the report shows them."""
        asked = _in_order(data.study)[0]
        pool = pool_of(data, asked.criterion.name, asked.scales[0])
        tests = {}
        names = [name for name in compared_systems(data.study, comparison) if name in pool.systems]
        for a, b in combinations(names, 2):
            first, second = (pool.first_answers(pool.systems.index(name)) for name in (a, b))
            label = f"{system_label(data.study, a)} against {system_label(data.study, b)}"
            gap = answer_difference(pool, first, second, confidence=options.confidence)
            tests[label] = between(gap, a, b)
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
        return Findings(
            answer=answer(main),
            certainty=certainty(main, options),
            headlines=headlines(main),
            figure=figure(main),
            sections=tuple(sections),
            methods=methods(options),
            warnings=warnings(main),
            claims=_claims(main),
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


def _declared(study: Study, criterion: str) -> set[str]:
    """Labels of the systems whose comparison on this criterion was declared before data were collected."""
    names: set[str] = set()
    for comparison in study.spec.analysis.comparisons:
        if comparison.between == "systems" and (not comparison.criteria or criterion in comparison.criteria):
            names |= set(comparison.levels or [system.name for system in study.spec.systems])
    return {system_label(study, name) for name in names}


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
    has_rule = bool(gold_rules(data)) and bool(len(data.set_aside))
    builders: list[tuple[str, str, Callable[..., Section], tuple[object, ...]]] = []
    main: CandidateResults | None = None
    sections: list[Section] = []
    try:
        answers = first_answers(pool, options, _declared(data.study, asked.criterion.name))
        main = CandidateResults(pool, answers, retrieval_scores(pool, options))
        builders += [
            ("first_answers", "How good the first answers are", first_answers_section, (answers, options, has_rule)),
            (
                "retrieval",
                "Retrieval measures: right for whom?",
                retrieval_section,
                (main.retrieval, options, has_rule),
            ),
            ("rankings", "Do systems rank as the crowd would?", ranking_section, (pool, options)),
            ("disagreements", DISAGREEMENT, disagreement_section, (pool,)),
        ]
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
            f"Groups of raters: {question.replace('_', ' ')}",
            partial(candidate_group_section, f"{prefix}group_{question}", data, pool, question, options),
        )
        for question in data.study.spec.analysis.subgroups
    )
    return sections, main


def _titled(section: Section, study: Study, asked: AskedCriterion) -> Section:
    title = f"{criterion_label(study, asked.criterion.name)}: {section.title}"
    return replace(section, title=title)
