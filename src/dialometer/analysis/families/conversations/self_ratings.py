"""Dialogues rated by those who held them: which system is rated higher, and how far such ratings can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

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
)
from dialometer.analysis.base.scale_units import AskedCriterion, asked_criteria
from dialometer.analysis.base.wording import (
    correction_name,
    inside,
    interval_only,
    listed,
    n_of,
    number,
    p_words,
    percent,
    question_label,
    system_label,
    with_interval,
)
from dialometer.analysis.families.conversations.comparison import (
    OTHER_TASKS,
    SystemComparison,
    compare_systems,
    compared_in,
    dialogues_compared,
    has_one_task_each,
    in_blocks,
    on_shared_tasks,
    rater_means,
)
from dialometer.analysis.families.conversations.comparison_section import comparison_section, other_pairs_section
from dialometer.analysis.families.conversations.conversations import SelfRatings, self_ratings_of
from dialometer.analysis.families.conversations.experts import PAIRS_FILE, expert_section
from dialometer.analysis.families.conversations.rater_groups import group_section
from dialometer.analysis.families.conversations.rating_shape import RatingShape, rating_shape, shape_section
from dialometer.analysis.families.conversations.relations import criteria_section, length_section, order_section
from dialometer.analysis.shared.comparisons import between, comparison_title, primary_comparison
from dialometer.analysis.shared.equivalence import decided
from dialometer.analysis.shared.other_models import simpler_models
from dialometer.analysis.shared.ranking import difference, lead_claims, not_clear_words
from dialometer.analysis.shared.subgroups import groups_method
from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Claim, Figure, Headline, Method, Section
from dialometer.model.study import Study
from dialometer.report.charts import Dot, dot_interval, forest
from dialometer.stats.clustered.clustered import clustered_mean
from dialometer.stats.effects.two_groups import welch_t

FEWEST_SHARED = 3
"""Raters who talked with both systems from which on their differences are used."""
ONE_TASK = "Each comparison was made on one task: the results hold for other raters on these tasks and say nothing about other tasks."

SOURCE = "Liang, Zou and Yu, ACL 2020"


class ConversationRatings(Family):
    """Fits studies whose items are live dialogues."""

    rank = 10

    def fits(self, study: Study) -> bool:
        """Dialogues answered with numbers."""
        return study.spec.items.kind == "chat" and bool(asked_criteria(study))

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of systems."""
        return comparison.between == "systems"

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """Systems two by two on the criteria of the comparison, with the numbers of the report."""
        return self._tests(data, comparison, options, lambda _, __, gap: gap)

    def alternatives(self, data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
        """One mean for each rater."""

        def by_rater(rated: SelfRatings, pair: tuple[str, str], gap: Estimate) -> Estimate:
            if OTHER_TASKS in gap.notes:
                return gap
            own, other = (rater_means(on_shared_tasks(rated, data.study, pair))[1][name] for name in pair)
            both = own - other
            both = both[~np.isnan(both)]
            if len(both) >= FEWEST_SHARED:
                return clustered_mean(both, np.arange(len(both)), null=0.0, confidence=options.confidence)
            return welch_t(own[~np.isnan(own)], other[~np.isnan(other)], confidence=options.confidence)

        label, _, claim = simpler_models(options)[0]
        return [OtherChoice("Model", label, partial(self._tests, data, comparison, options, by_rater), claim)]

    def _tests(
        self,
        data: StudyData,
        comparison: Comparison,
        options: Options,
        test: Callable[[SelfRatings, tuple[str, str], Estimate], Estimate],
    ) -> dict[str, Estimate]:
        ratings, _ = _ratings(data)
        label_of = {system_label(data.study, system.name): system.name for system in data.study.spec.systems}
        tests = {}
        for rated in ratings:
            for pair, gap in compared_in(rated, data.study, comparison, options).items():
                short = [label_of.get(name, name) for name in pair]
                label = f"{rated.label}: {pair[0]} against {pair[1]}"
                inside = in_blocks(rated, data.study, comparison)
                tests[label] = between(test(inside, pair, gap), *short, about=rated.label)
        return decided(tests, comparison, options)

    def run(self, data: StudyData, options: Options) -> Findings:
        """Comparison first, then shape, criteria, length, time and experts; the declared criterion gives the answer."""
        ratings, problems = _ratings(data)
        if not ratings:
            raise NotEnoughData(
                "every criterion is asked on different scales in different blocks"
                if not problems
                else problems[0].problem,
                remedy="look at each block by itself" if not problems else "",
            )
        compared = compare_systems(ratings, data.study, options)
        folder = data.study.folder
        pairs_path = folder / PAIRS_FILE if folder is not None and (folder / PAIRS_FILE).is_file() else None
        builders = [
            ("system_ratings", "Which system is rated higher", partial(comparison_section, compared=compared)),
            ("rating_shape", "The shape of the ratings", partial(shape_section, ratings=ratings)),
            ("criteria", "Do the criteria say the same?", partial(criteria_section, ratings=ratings)),
            ("length", "Ratings and the length of the dialogue", partial(length_section, ratings=ratings)),
            ("order", "Ratings over time", partial(order_section, ratings=ratings)),
            ("experts", "Self-ratings beside experts", partial(expert_section, ratings=ratings, path=pairs_path)),
        ]
        first, *others = [
            section_or_problem(name, title, partial(build, name, options=options)) for name, title, build in builders
        ]
        others += [
            section_or_problem(
                f"group_{question}",
                f"Groups of raters: {inside(question_label(data.study, question))}",
                partial(group_section, f"group_{question}", data, ratings, question, options),
            )
            for question in data.study.spec.analysis.subgroups
        ]
        if (undeclared := other_pairs_section("system_ratings_others", compared, options)) is not None:
            others.insert(0, undeclared)
        # Where the primary comparison is about some of the systems only, who comes first of all is exploratory.
        primary = primary_comparison(data.study)
        is_elsewhere = (
            bool(data.study.spec.analysis.comparisons) and not compared[0].is_declared and bool(primary.levels)
        )
        basis = _basis(
            dialogues_compared(ratings[0], data.study, primary) if is_elsewhere else compared[0].ratings,
            is_declared=is_elsewhere or compared[0].is_declared,
        )
        shape = rating_shape(ratings[0].place, ratings[0].points, ratings[0].rater, confidence=options.confidence)
        return Findings(
            answer="" if is_elsewhere else _answer(compared[0]),
            certainty=basis if is_elsewhere else _certainty(compared[0]),
            basis=basis,
            headlines=_headlines(compared[0], shape),
            figure=_differences_figure(compared, primary) if is_elsewhere else _figure(compared[0]),
            sections=(first, *in_appendix([*others, *problems])),
            methods=_methods(options, pairs_path, has_subgroups=bool(data.study.spec.analysis.subgroups)),
            warnings=(ONE_TASK,) if has_one_task_each(ratings[0], data.study) else (),
            claims=() if is_elsewhere else _claims(compared[0]),
        )


ANALYSES.register("self_ratings")(ConversationRatings())


def _ratings(data: StudyData) -> tuple[list[SelfRatings], list[Section]]:
    """Ratings of every criterion that has any, the primary one first; the others say why they are missing."""
    ratings, problems = [], []
    for asked in _in_order(data.study):
        try:
            ratings.append(self_ratings_of(data, asked))
        except DialometerError as error:
            name = asked.criterion.name
            problems.append(Section(f"missing_{name}", f"Ratings on {name}", problem=str(error)))
    return ratings, problems


def _in_order(study: Study) -> list[AskedCriterion]:
    declared = study.spec.analysis
    primary = next((comparison for comparison in declared.comparisons if comparison.name == declared.primary), None)
    first = primary.criteria[0] if primary is not None and primary.criteria else ""
    asked = [question for question in asked_criteria(study) if question.is_whole]
    return sorted(asked, key=lambda question: question.criterion.name != first)


def _answer(main: SystemComparison) -> str:
    if main.lead is None:
        return "No dialogue has been rated yet."
    low, high = main.ratings.ends
    scale = f"on the scale from {low:g} to {high:g}"
    best = main.lead.best
    if len(main.means) < 2:
        return f"{main.ratings.label}: dialogues with {best} are rated {with_interval(main.means[best])} {scale}."
    others = listed(f"{number(mean.value)} with {system}" for system, mean in main.means.items() if system != best)
    rated = f"({main.ratings.label}: {number(main.means[best].value)} against {others}, {scale})"
    if main.lead.is_clear:
        return f"Dialogues with {best} are rated higher than those with {listed(main.lead.behind)} {rated}."
    if len(main.means) == 2:
        (rest,) = (system for system in main.means if system != best)
        if number(main.means[best].value) == number(main.means[rest].value):
            return f"Dialogues with {best} and with {rest} are tied {rated}."
        if main.lead.level:
            return f"Dialogues with {best} and with {rest} do not differ significantly {rated}."
        return f"Dialogues with {best} are rated higher than those with {rest} {rated}, but there is no test."
    return f"Dialogues with {best} are rated highest {rated}, {not_clear_words(main.lead, 'with')}."


def _claims(main: SystemComparison) -> tuple[Claim, ...]:
    if main.lead is None or not main.lead.is_clear:
        return ()
    return lead_claims([main.lead.best, *main.lead.behind], ())


def _dialogues(rated: SelfRatings) -> str:
    return f"{n_of(len(rated.value), 'dialogue')} of {n_of(rated.n_raters, 'rater')}"


def _basis(rated: SelfRatings, *, is_declared: bool) -> str:
    what = "confirmatory (declared in advance)" if is_declared else "exploratory"
    return f"Based on {_dialogues(rated)}; the comparison is {what}."


def _certainty(main: SystemComparison) -> str:
    if main.lead is None:
        return "Not enough data."
    if len(main.means) < 2:
        return f"Based on {_dialogues(main.ratings)}; there is one system only, so nothing to compare it with."
    leads, untested = [], []
    for system in main.means:
        if system == main.lead.best:
            continue
        gap = difference(main.pairs, main.lead.best, system)
        if gap is None or not gap.is_known:
            untested.append(system)
            continue
        corrected = p_words(float(gap.details["p_adjusted"]))
        size = f"{number(gap.value)} points above" if number(gap.value) != number(0) else "level with"
        leads.append(f"{size} {system} ({interval_only(gap)}, {corrected})")
    parts = [f"{main.lead.best} is {listed(leads)}"] if leads else []
    if untested:
        there = "there" if parts else "There"
        parts.append(f"{there} is no test of {main.lead.best} against {listed(untested, conjunction='or')}")
    return f"{'; '.join(parts)}. {_basis(main.ratings, is_declared=main.is_declared)}"


def _headlines(main: SystemComparison, shape: RatingShape) -> tuple[Headline, ...]:
    lines = []
    for (first, second), gap in main.pairs.items():
        share = main.higher[first, second]
        turned = gap.is_known and gap.value < 0
        names = (second, first) if turned else (first, second)
        shown = difference(main.pairs, *names) or gap
        sentence = ""
        if share.is_known:
            value = 1 - share.value if turned else share.value
            sentence = f"{percent(value)} of raters with both rate {names[0]} higher (equal ratings count half)."
        lines.append(
            Headline(
                f"{main.ratings.label}: {names[0]} against {names[1]}",
                replace(shown, unit="points"),
                sentence,
                is_confirmatory=main.is_declared,
            )
        )
    top = shape.shares[-1]
    lines.append(
        Headline(
            f"{main.ratings.label}: ratings at the highest point",
            top,
            "Ratings that pile up at the top do not distinguish good dialogues from very good ones."
            if shape.shape in ("J", "top")
            else "",
        )
    )
    return tuple(lines[:4])


def _figure(main: SystemComparison) -> Figure:
    low, high = main.ratings.ends
    details = listed(f"{system} {number(mean.value)}" for system, mean in main.means.items() if mean.is_known)
    return Figure(
        "summary_figure",
        f"{main.ratings.label}: average rating by system",
        dot_interval(
            [Dot(system, mean) for system, mean in main.means.items()],
            value_title=f"average rating ({low:g} to {high:g})",
            domain=(low, high),
        ),
        alt=f"Average ratings with confidence intervals: {details}.",
        is_confirmatory=main.is_declared,
    )


def _differences_figure(compared: list[SystemComparison], primary: Comparison) -> Figure:
    """The tests of a primary comparison that is about some of the systems: their differences, criterion by criterion."""
    tests = [(c.ratings.label, test) for c in compared for test in c.declared if test.comparison is primary]
    dots = []
    for label, test in tests:
        first, second = test.expected or test.pair
        gap = difference({test.pair: test.gap}, first, second)
        if gap is not None and gap.is_known:
            dots.append(Dot(f"{label}: {first} − {second}", gap))
    details = "; ".join(f"{dot.label} {with_interval(dot.estimate)}" for dot in dots)
    return Figure(
        "summary_figure",
        f"{comparison_title(primary)}: difference in rating by criterion",
        forest(dots, value_title="difference in rating"),
        alt=f"Differences of average ratings with confidence intervals: {details}.",
        is_confirmatory=True,
    )


def _methods(options: Options, pairs_path: Path | None, *, has_subgroups: bool) -> tuple[Method, ...]:
    correction = f", corrected by {correction_name(options.correction)}" if options.correction != "none" else ""
    methods = [
        Method(
            "average ratings and differences between systems",
            f"means with a cluster-robust (CR2) t-test by rater{correction}; sign-flip permutation test beside it",
            "one rater rates several dialogues",
            "Bell and McCaffrey 2002; Pustejovsky and Tipton 2018",
        ),
        Method(
            "shape of the ratings",
            "shares of the points and three differences of shares, raters as clusters, Holm",
            "a J needs a peak at the top, a smaller one at the bottom and a hollow between",
            SOURCE,
        ),
        Method(
            "relations with length, time and between criteria",
            "Spearman's rho, bootstrap over raters",
            "ratings are ordered points, and dialogues of one rater are correlated",
        ),
        *((groups_method(options),) if has_subgroups else ()),
    ]
    if pairs_path is not None:
        methods.append(
            Method(
                "self-ratings beside experts",
                "share of pairs on which experts prefer the lower rating, by gap; Cochran-Armitage test of the trend",
                "disagreement should vanish as the gap grows if ratings mean what experts see",
                SOURCE,
            )
        )
    return tuple(methods)
