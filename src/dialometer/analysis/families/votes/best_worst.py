"""Systems compared by best and worst: how often each is picked, what the choice model makes of it, and how sure it is.

Counts need no model; the choice model ("maxdiff", Marley and Louviere 2005) allows for sets that are not all alike. Raters
are resampled whole. Differences between systems are tested on each rater's own choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Findings, Options, section_or_problem, with_prefix
from dialometer.analysis.base.wording import listed, n_of, percent, sentence
from dialometer.analysis.families.votes.best_worst_choices import (
    BestWorstData,
    BestWorstStanding,
    best_worst_data,
    best_worst_standing,
)
from dialometer.analysis.families.votes.best_worst_sections import (
    board_section,
    declared_section,
    group_section,
    place_section,
    questions_section,
    ranking_figure,
)
from dialometer.analysis.families.votes.sections import rank_words
from dialometer.analysis.families.votes.system_votes import compared_criteria, primary_between_systems
from dialometer.analysis.shared.ranking import CORRECTIONS, standing_words
from dialometer.model.report import Headline, Method
from dialometer.model.study import Comparison, Study

ALL_QUESTIONS = "All questions"
MOST_RIVALS = 5


class BestWorst:
    """The family for best-worst scaling."""

    rank = 14

    def fits(self, study: Study) -> bool:
        """Any criterion answered by a best and a worst."""
        return bool(compared_criteria(study, "best_worst"))

    def run(self, data: StudyData, options: Options) -> Findings:
        """The ranking of the primary question, every question beside it, and the tests."""
        study, found = data.study, best_worst_data(data)
        asked = [k for k in range(len(found.criteria)) if np.any(found.criterion == k)]
        overall = best_worst_standing(found.choices, _label(found), options)
        singles = [
            best_worst_standing(found.on((found.criteria[k],)), found.criterion_labels[k], options) for k in asked
        ] if len(asked) > 1 else []  # fmt: skip
        primary = primary_between_systems(study, found.criteria)
        main = _main(primary, found, singles, overall, options)
        sections = [*declared_section(study, found, options), board_section(main, found, primary)]
        if singles:
            sections.append(questions_section(singles, overall, main))
        sections.append(
            section_or_problem(
                "place", "Did the place on the screen matter?", partial(place_section, data, found, options)
            )
        )
        sections += [
            section_or_problem(
                f"subgroup-{question}",
                f"Subgroups of raters: {question.replace('_', ' ')}",
                partial(group_section, data, found, question, options),
            )
            for question in study.spec.analysis.subgroups
        ]
        findings = Findings(
            answer=_answer(main),
            certainty=_certainty(main, options, is_declared=primary is not None),
            headlines=_headlines(main, is_declared=primary is not None),
            figure=ranking_figure("summary", main, is_confirmatory=primary is not None),
            sections=tuple(sections),
            methods=_methods(main, options),
            warnings=_warnings(found, main),
        )
        return with_prefix(findings, "best-worst")


ANALYSES.register("best_worst")(BestWorst())


def _label(found: BestWorstData) -> str:
    return ALL_QUESTIONS if len(found.criteria) > 1 else found.criterion_labels[0]


def _main(
    primary: Comparison | None,
    found: BestWorstData,
    singles: Sequence[BestWorstStanding],
    overall: BestWorstStanding,
    options: Options,
) -> BestWorstStanding:
    """The ranking that gives the answer: the primary comparison's questions, else everything."""
    if primary is None:
        return overall
    questions = tuple(name for name in found.criteria if not primary.criteria or name in primary.criteria)
    if questions == found.criteria:
        return overall
    labels = [found.criterion_labels[found.criteria.index(name)] for name in questions]
    single = next((one for one in singles if [one.label] == labels), None)
    return single or best_worst_standing(found.on(questions), listed(labels), options)


def _answer(main: BestWorstStanding) -> str:
    first, n = main.ranked[0], len(main.ranked)
    where = "" if main.label == ALL_QUESTIONS else f" on {main.label.lower()}"
    counts = main.scores[first].details
    picked = (
        f"best in {percent(counts['best'] / counts['shown'])} and worst in {percent(counts['worst'] / counts['shown'])}"
    )
    rivals = main.rivals()
    if not main.has_ranks:
        return f"{first} comes first of {n} systems{where} ({picked} of its appearances), but one rater cannot speak for others."
    if not rivals:
        return f"{first} is the best of {n} systems{where}: picked {picked} of its appearances."
    if len(rivals) + 1 == n:
        return f"No best system{where} can be named: {first} comes first ({picked}), but any of the {n} may be best."
    return f"{first} comes first{where} ({picked} of its appearances), but {listed(rivals, most=MOST_RIVALS)} may be as good."


def _certainty(main: BestWorstStanding, options: Options, *, is_declared: bool) -> str:
    basis = f"{n_of(len(main.choices.raters), 'rater')} made {n_of(main.choices.n, 'choice')}"
    declared = (
        "The comparison was declared beforehand." if is_declared else "No comparison was declared: this is exploratory."
    )
    if not main.has_ranks:
        return f"{basis}. {declared}"
    text = f"{standing_words(main.leader(), main.pairs, options.correction)} "
    return f"{text}{basis}. {declared}"


def _headlines(main: BestWorstStanding, *, is_declared: bool) -> tuple[Headline, ...]:
    found = []
    for system in main.ranked[:3]:
        score, rank = main.scores[system], main.ranks.ranks[system]
        place = f"Rank interval {rank_words(rank)}; " if rank.has_interval else ""
        counts = score.details
        words = f"{place}picked best {counts['best']} and worst {counts['worst']} of {counts['shown']} times."
        found.append(Headline(f"{system}: score", score, sentence(words), is_declared))
    return tuple(found)


def _warnings(found: BestWorstData, main: BestWorstStanding) -> tuple[str, ...]:
    said = list(found.notes)
    silent = [name for name in found.systems if name not in main.ranked]
    if silent:
        said.append(f"{listed(silent)} was never shown yet and is not ranked.")
    if main.model.is_penalised:
        said.append(f"Not all systems can be placed by maximum likelihood ({'; '.join(main.model.notes)}).")
    return tuple(said)


def _methods(main: BestWorstStanding, options: Options) -> tuple[Method, ...]:
    return (
        Method(
            "scores and ranks",
            f"best-worst counts; expanded percentile bootstrap over raters, {options.n_resamples:,} resamples",
            "counts need no model, and a rater's choices go together",
            "Louviere, Flynn and Marley 2015; Hesterberg 2015",
        ),
        Method(
            "utilities",
            main.model.method,
            "allows for systems that met stronger or weaker company",
            "Marley and Louviere 2005",
        ),
        Method(
            "differences between systems",
            "mean difference of scores in the same choices, cluster-robust by rater (CR2)",
            "compares two systems where both were shown, without a model",
            "Bell and McCaffrey 2002",
        ),
        Method("several tests at once", CORRECTIONS.get(options.correction, "none"), "declared in the study; one family per table"),
    )  # fmt: skip
