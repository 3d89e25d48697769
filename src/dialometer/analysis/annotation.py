"""Candidate answers judged one at a time: which retriever is best, and by whose judgment (Chierici and Habash 2021)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dialometer.analysis.annotation_summary import (
    Judgments,
    answer,
    certainty,
    figure,
    headlines,
    methods,
    warnings,
)
from dialometer.analysis.candidate_agreement import agreement_section, rating_columns
from dialometer.analysis.candidate_groups import candidate_group_section
from dialometer.analysis.candidates import pool_of
from dialometer.analysis.data import StudyData
from dialometer.analysis.family import ANALYSES, Findings, Options, section_or_problem
from dialometer.analysis.first_answers import first_answers, first_answers_section
from dialometer.analysis.gold_loss import gold_rules, gold_section
from dialometer.analysis.labels import criterion_label, system_label
from dialometer.analysis.ranking_agreement import ranking_section
from dialometer.analysis.retrieval_scores import retrieval_scores
from dialometer.analysis.retrieval_section import retrieval_section
from dialometer.analysis.scale_units import Asked, asked_criteria
from dialometer.analysis.versatile import versatile_section
from dialometer.errors import NotEnoughData
from dialometer.model.report import Section
from dialometer.model.study import Study


class Annotation:
    """Fits studies whose items are candidates with the ranks at which systems retrieved them."""

    rank = 10

    def fits(self, study: Study) -> bool:
        """Candidates answered with numbers."""
        return study.spec.items.kind == "candidate" and bool(asked_criteria(study))

    def run(self, data: StudyData, options: Options) -> Findings:
        """All criteria one after the other; the declared one, or the first, gives the answer."""
        asked = _in_order(data.study)
        sections: list[Section] = []
        main: Judgments | None = None
        for number_, one in enumerate(asked):
            prefix = "" if len(asked) == 1 else f"{one.criterion.name}_"
            own, found = _criterion_sections(data, options, one, prefix)
            sections += own if not prefix else [_titled(section, data.study, one) for section in own]
            main = found if number_ == 0 else main
        if main is None:
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
        )


ANALYSES.register("annotation")(Annotation())


def _in_order(study: Study) -> list[Asked]:
    """Numeric criteria, the one of the primary comparison first."""
    declared = study.spec.analysis
    primary = next((one for one in declared.comparisons if one.name == declared.primary), None)
    first = primary.criteria[0] if primary is not None and primary.criteria else ""
    asked = [one for one in asked_criteria(study) if one.is_whole]
    return sorted(asked, key=lambda one: one.criterion.name != first)


def _declared(study: Study, criterion: str) -> set[str]:
    """Labels of the systems whose comparison on this criterion was declared before data were collected."""
    names: set[str] = set()
    for one in study.spec.analysis.comparisons:
        if one.between == "systems" and (not one.criteria or criterion in one.criteria):
            names |= set(one.levels or [system.name for system in study.spec.systems])
    return {system_label(study, name) for name in names}


def _criterion_sections(
    data: StudyData, options: Options, asked: Asked, prefix: str
) -> tuple[list[Section], Judgments | None]:
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
    main: Judgments | None = None
    sections: list[Section] = []
    try:
        answers = first_answers(pool, options, _declared(data.study, asked.criterion.name))
        main = Judgments(pool, answers, retrieval_scores(pool, options))
        builders += [
            ("first_answers", "How good the first answers are", first_answers_section, (answers, options, has_rule)),
            (
                "retrieval",
                "Retrieval measures: right for whom?",
                retrieval_section,
                (main.retrieval, options, has_rule),
            ),
            ("rankings", "Do systems rank as the crowd would?", ranking_section, (pool, options)),
        ]
    except NotEnoughData as error:
        sections.append(Section(f"{prefix}first_answers", "How good the first answers are", problem=str(error)))
    builders += [
        ("candidate_agreement", "How far raters agree", agreement_section, (pool, columns, options)),
        ("versatile", "Versatile and one-sided questions", versatile_section, (pool, columns, options)),
        ("gold_rule", "What the gold rule cost and changed", gold_section, (data, pool, options)),
    ]
    sections += [
        section_or_problem(prefix + name, title, partial(build, prefix + name, *given))
        for name, title, build, given in builders
    ]
    sections += [
        section_or_problem(
            f"{prefix}group_{question}",
            f"Groups of raters: {question.replace('_', ' ')}",
            partial(candidate_group_section, f"{prefix}group_{question}", data, pool, question, options),
        )
        for question in data.study.spec.analysis.subgroups
    ]
    return sections, main


def _titled(section: Section, study: Study, asked: Asked) -> Section:
    title = f"{criterion_label(study, asked.criterion.name)}: {section.title}"
    return Section(section.name, title, section.paragraphs, section.parts, section.problem, section.is_confirmatory)
