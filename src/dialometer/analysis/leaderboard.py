"""Systems compared with each other by votes: a leaderboard that says how sure each place is.

For designs in the manner of ACUTE-Eval (Li, Weston and Roller 2019), for pairwise choices and for rankings. Strengths are
Bradley-Terry's with Davidson's ties and an effect of the place on the screen; raters are resampled whole, since each votes
several times. Head-to-head tests beside it assume no model.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dialometer.analysis.data import StudyData
from dialometer.analysis.family import ANALYSES, Findings, Options, section_or_problem
from dialometer.analysis.leader import CORRECTIONS
from dialometer.analysis.leaderboard_declared import declared_sections, duplicates_sections, questions_of
from dialometer.analysis.leaderboard_sections import board_figure, board_section, model_section, questions_section
from dialometer.analysis.leaderboard_summary import answer_words, certainty_words, headlines, warnings_of
from dialometer.analysis.meetings import head_to_head_section
from dialometer.analysis.part_names import with_prefix
from dialometer.analysis.standings import Standing, standing
from dialometer.analysis.system_groups import system_group_section
from dialometer.analysis.system_votes import SystemVotes, compared_criteria, primary_between_systems, system_votes
from dialometer.analysis.words import listed
from dialometer.model.report import Method
from dialometer.model.study import Comparison, Study

ALL_QUESTIONS = "All questions"


class Leaderboard:
    """The family for votes between systems and for rankings of systems."""

    rank = 12

    def fits(self, study: Study) -> bool:
        """Anything compared by choice or rank, except controlled pairs, which compare strategies with their controls."""
        items = study.spec.items
        is_controlled = items.kind == "transcript_pair" and items.pairs == "controlled"
        pairwise, ranking = compared_criteria(study, "pairwise"), compared_criteria(study, "ranking")
        return bool(ranking or (pairwise and not is_controlled))

    def run(self, data: StudyData, options: Options) -> Findings:
        """The leaderboard of the primary question, every question beside it, and the tests."""
        study, found = data.study, system_votes(data)
        is_drawn = study.spec.design.system_order != "fixed"
        fit = partial(standing, options=options, is_order_drawn=is_drawn)
        overall = fit(found.votes, ALL_QUESTIONS if len(found.criteria) > 1 else found.criterion_labels[0])
        asked = [k for k in range(len(found.criteria)) if np.any(found.criterion == k)]
        singles = (
            [fit(found.on((found.criteria[k],)), found.criterion_labels[k]) for k in asked] if len(asked) > 1 else []
        )
        primary = primary_between_systems(study, found.criteria)
        main = _main(primary, found, singles, overall, fit)
        is_declared = primary is not None
        sections = [
            *declared_sections(study, found, options),
            board_section(main, options, is_confirmatory=is_declared),
            head_to_head_section(
                main,
                [one for one in singles if one.label != main.label],
                options,
                is_declared=primary is not None and (not primary.levels or set(found.names) <= set(primary.levels)),
            ),
        ]
        if singles:
            sections.append(questions_section(singles, overall, main))
        standings = [main, *(one for one in [*singles, overall] if one.label != main.label)]
        sections.append(model_section(standings, has_rankings=found.has_rankings, is_order_drawn=is_drawn))
        sections += [
            section_or_problem(
                f"subgroup-{question}",
                f"Subgroups of raters: {question.replace('_', ' ')}",
                partial(system_group_section, data, found, question, options),
            )
            for question in study.spec.analysis.subgroups
        ]
        sections += duplicates_sections(found)
        findings = Findings(
            answer=answer_words(main, name=_name(main)),
            certainty=certainty_words(main, options, is_declared=is_declared),
            headlines=headlines(main, is_declared=is_declared),
            figure=board_figure("summary", main, is_confirmatory=is_declared),
            sections=tuple(sections),
            methods=_methods(main, options, has_rankings=found.has_rankings),
            warnings=warnings_of(found, main),
        )
        return with_prefix(findings, "leaderboard")


ANALYSES.register("leaderboard")(Leaderboard())


def _main(
    primary: Comparison | None, found: SystemVotes, singles: list[Standing], overall: Standing, fit: partial[Standing]
) -> Standing:
    """The standing that gives the answer: the primary comparison's questions, else everything."""
    if primary is None:
        return overall
    questions = questions_of(primary, found)
    if questions == found.criteria:
        return overall
    labels = [found.criterion_labels[found.criteria.index(name)] for name in questions]
    single = next((one for one in singles if [one.label] == labels), None)
    return single or fit(found.on(questions), listed(labels))


def _name(main: Standing) -> str:
    return "" if main.label == ALL_QUESTIONS else main.label


def _methods(main: Standing, options: Options, *, has_rankings: bool) -> tuple[Method, ...]:
    found = [
        Method(
            "strengths, ranks and the leaderboard",
            f"{main.fit.method}; expanded percentile bootstrap over raters, {options.n_resamples:,} resamples",
            "one vote says little, and the votes of one rater go together; the model joins all comparisons on one scale",
            "Bradley and Terry 1952; Davidson 1970; Ford 1957; Hesterberg 2015",
        ),
        Method(
            "head to head",
            "exact binomial test on decisive votes; cluster-robust by rater (CR2) where raters voted on a pair more than once",
            "needs no model of strengths",
        ),
        Method(
            "whether systems differ at all",
            "homogeneity of the shares of points, cluster-robust by rater (HTZ)",
            "one test before many",
            "Pustejovsky and Tipton 2018",
        ),
        Method("Elo", main.elo.rule.describe() + ", mean over random orders of the votes", "for comparison with other leaderboards"),
        Method("several tests at once", CORRECTIONS.get(options.correction, "none"), "declared in the study; one family per question"),
    ]  # fmt: skip
    if has_rankings:
        found.append(
            Method(
                "rankings",
                "broken into all pairs",
                "pairs of a ranking follow Bradley-Terry where rankings follow Plackett-Luce",
            )
        )
    return tuple(found)
