"""The chapters of a report on best-worst choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

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
from dialometer.analysis.base.wording import (
    CONFIRMATORY_TITLE,
    correction_name,
    inside,
    listed,
    n_of,
    p_words,
    percent,
    question_label,
    sentence,
    value_only,
    with_interval,
)
from dialometer.analysis.families.votes.agreement import AGREEMENT_TITLE
from dialometer.analysis.families.votes.best_worst_agreement import agreement_method, best_worst_agreement_section
from dialometer.analysis.families.votes.best_worst_alternatives import best_worst_alternatives
from dialometer.analysis.families.votes.best_worst_choices import (
    BestWorstData,
    BestWorstRanking,
    best_worst_data,
    choices_where,
    declared_differences,
    rank_by_best_worst,
)
from dialometer.analysis.families.votes.sections import votes_by_group
from dialometer.analysis.shared.comparisons import (
    CORRECTIONS,
    between,
    compared_criteria,
    comparison_caption,
    comparison_role,
    comparison_title,
    corrected,
    first_places_words,
    is_about,
    known_cell,
    no_position_words,
    p_adjusted,
    p_cell,
    preferred_words,
    primary_between_systems,
)
from dialometer.analysis.shared.equivalence import decided, differences_of
from dialometer.analysis.shared.next_steps import alpha_steps
from dialometer.analysis.shared.ranking import (
    by_differences,
    by_rank,
    lead_claims,
    lead_words,
    pair_columns,
    pair_rows,
    rank_range,
)
from dialometer.analysis.shared.subgroups import GroupTest, corrected_groups, groups_method, groups_test, rater_groups
from dialometer.errors import NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Claim, Column, Figure, Headline, Method, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, Share, dot_interval, ranking_intervals, stacked_shares
from dialometer.stats.clustered.clustered import clustered_proportion
from dialometer.stats.ranking.best_worst import BestWorstScores


def board_section(main: BestWorstRanking, given: BestWorstData, primary: Comparison | None) -> Section:
    """The ranking that gives the answer, its shares of best and worst, and the differences behind it."""
    tested = [p_adjusted(gap) for gap in main.pairs.values() if not np.isnan(p_adjusted(gap))]
    paragraphs = []
    if tested:
        n_clear = sum(p <= 1 - main.options.confidence for p in tested)
        differ = f"{n_clear} of {n_of(len(tested), 'difference')} between the {len(main.ranked)} systems"
        verb = "is" if n_clear == 1 else "are"
        if n_clear:
            paragraphs.append(f"{differ} {verb} significant (smallest {p_words(min(tested))}).")
        else:
            paragraphs.append(
                f"No difference between the {len(main.ranked)} systems is significant (smallest {p_words(min(tested))})."
            )
    if main.model.is_penalised:
        paragraphs.append(
            f"The choice model has no finite maximum-likelihood answer ({'; '.join(main.model.notes)}): the utilities shown are "
            "a regularised fit; read their order, not their size. Scores and tests do not use it."
        )
    is_confirmatory = primary is not None
    board = board_table("board", main, is_confirmatory=is_confirmatory)
    parts: list[Table | Figure] = [board, _picks_figure(main)]
    if primary is None:
        parts += _differences(main)
    elif set(given.labels(primary)) != set(given.systems):
        parts += _differences(rank_by_best_worst(main.choices, f"{main.label}, all systems", main.options))
    return Section("board", f"Ranking: {main.label}", tuple(paragraphs), tuple(parts), is_confirmatory=is_confirmatory)


def over_words(options: Options) -> str:
    """What intervals and tests are about."""
    return "these items only (declared as fixed)" if options.has_fixed_items else "other raters and other items"


def board_table(name: str, ranking: BestWorstRanking, *, is_confirmatory: bool = False, like: str = "") -> Table:
    """Ranks with intervals, scores, counts and utilities; ``like`` is the table that explains the columns, if another does."""
    rows: list[tuple[Cell, ...]] = []
    for system in (*ranking.ranked, *(name for name in ranking.compared if name not in ranking.ranked)):
        score, utility = ranking.scores[system], ranking.model.utilities[system]
        counts = score.details if score.is_known else {"best": 0, "worst": 0, "shown": 0}
        rows.append(
            (
                system,
                ranking.ranked.index(system) + 1 if system in ranking.ranked else None,
                rank_range(ranking.ranks(system)),
                known_cell(score),
                counts["best"],
                counts["worst"],
                counts["shown"],
                utility.value if utility.is_known else None,
            )
        )
    choices = f"{n_of(ranking.choices.n, 'choice')} of {n_of(len(ranking.choices.raters), 'rater')}"
    explained = f"The columns are those of “{like}”."
    fitted = "choice model, regularised" if ranking.model.is_penalised else "choice model"
    columns = (
        Column("system", "System"),
        Column("rank", "Rank", "count"),
        Column("rank_interval", "Possible ranks"),
        Column("score", "Score", "estimate"),
        Column("best", "Best", "count"),
        Column("worst", "Worst", "count"),
        Column("shown", "Shown", "count"),
        Column("utility", f"Utility ({fitted})", "number", 2),
    )
    return Table(
        name,
        f"Ranking: {ranking.label}",
        columns,
        tuple(rows),
        caption=f"{choices} on {n_of(ranking.n_items, 'item')}. {explained if like else _columns_words(ranking)}",
        notes=tuple(sentence(note) for note in ranking.model.notes),
        is_confirmatory=is_confirmatory,
    )


def _columns_words(ranking: BestWorstRanking) -> str:
    others = ""
    if np.isnan(ranking.choices.marks()).any():
        others = " Where screens show different systems, scores are adjusted as if every system had met the same ones."
    return (
        f"The score is how often a system was picked best less how often worst, per appearance.{others} Its confidence interval "
        f"is about {over_words(ranking.options)}. “Possible ranks” are those that the tests of differences leave open. Utilities "
        "are log odds of the choice model with mean 0, for comparison."
    )


def ranking_figure(name: str, ranking: BestWorstRanking, *, is_confirmatory: bool = False) -> Figure:
    """Systems in order with the interval of their score, and their ranks beside."""
    dots = [Dot(system, ranking.scores[system]) for system in ranking.compared]
    ranges = {system: ranks for system in ranking.ranked if (ranks := ranking.ranks(system)) is not None}
    spec = ranking_intervals(dots, value_title="score (best less worst)", rank_ranges=ranges or None, reference=0.0)
    details = "; ".join(f"{dot.label}: {with_interval(dot.estimate)}" for dot in dots)
    return Figure(
        name,
        f"Ranking: {ranking.label}",
        spec,
        f"Scores with confidence intervals. {details}.",
        is_confirmatory=is_confirmatory,
    )


def _picks_figure(ranking: BestWorstRanking) -> Figure:
    shares, entries = [], []
    for system in ranking.ranked:
        counts = ranking.scores[system].details
        best, worst = counts["best"] / counts["shown"], counts["worst"] / counts["shown"]
        parts = (("worst", worst), ("neither", 1 - best - worst), ("best", best))
        shares += [Share(system, part, share) for part, share in parts]
        entries.append(f"{system}: best {percent(best)}, worst {percent(worst)}")
    spec = stacked_shares(
        shares, parts=("worst", "neither", "best"), value_title="share of appearances", is_ordered=True
    )
    return Figure("picks", f"How often best and worst: {ranking.label}", spec, f"{'; '.join(entries)}.")


def _differences(ranking: BestWorstRanking) -> tuple[Table, ...]:
    """Every two systems."""
    pairs = {pair: gap for pair, gap in ranking.pairs.items() if gap.is_known}
    if not pairs:
        return ()
    correction = ranking.options.correction
    return (
        Table(
            "differences",
            f"Differences between systems: {ranking.label}",
            pair_columns(correction, value="Difference of scores"),
            pair_rows(by_rank(pairs, ranking.ranked), correction),
            caption=differences_note(ranking.options),
        ),
    )


def differences_note(options: Options) -> str:
    """How differences of scores are tested."""
    samples = "raters" if options.has_fixed_items else "raters and items"
    return (
        f"Differences of scores; confidence intervals and tests take {samples} as samples (jackknife) and are about "
        f"{over_words(options)}."
    )


def questions_section(
    rankings: Sequence[BestWorstRanking], overall: BestWorstRanking, main: BestWorstRanking
) -> Section:
    """The systems on every question side by side, and the other questions in full."""
    shown = [*rankings, overall]
    systems = list(overall.ranked)
    columns = (
        Column("system", "System"),
        *(Column(f"question-{k}", ranking.label, "estimate") for k, ranking in enumerate(shown)),
    )
    wide = Table(
        "questions",
        "Scores by question",
        columns,
        tuple((system, *(known_cell(ranking.scores[system]) for ranking in shown)) for system in systems),
        caption="Picked best less picked worst, per appearance: from −1 (always worst) to 1 (always best).",
    )
    dots = [Dot(system, ranking.scores[system], facet=ranking.label) for ranking in rankings for system in systems]
    details = "; ".join(f"{d.facet}, {d.label}: {with_interval(d.estimate)}" for d in dots)
    figure = Figure(
        "questions-figure",
        "Scores by question",
        dot_interval(dots, value_title="score (best less worst)", reference=0.0),
        f"Scores with confidence intervals: {details}.",
    )
    paragraphs = [_leader_words(ranking) for ranking in rankings]
    paragraphs.append(first_places_words({ranking.label: ranking.ranked[0] for ranking in rankings}))
    like = f"Ranking: {main.label}"
    tables = [
        board_table(f"board-{k}", ranking, like=like) for k, ranking in enumerate(shown) if ranking.label != main.label
    ]
    return Section("questions", "Question by question", tuple(paragraphs), (wide, figure, *tables))


def _leader_words(ranking: BestWorstRanking) -> str:
    first = ranking.ranked[0]
    text = f"{ranking.label}: {first} comes first with a score of {with_interval(ranking.scores[first])}"
    rivals = ranking.rivals()
    if not ranking.has_ranks:
        return f"{text}."
    if not rivals:
        return f"{text}, significantly ahead of every other system."
    return f"{text}, but is not significantly ahead of {listed(rivals, most=6, conjunction='or')}."


def declared_section(study: Study, given: BestWorstData, options: Options) -> list[Section]:
    """Confirmatory comparisons between systems: differences of scores over the comparison's questions."""
    tables, paragraphs = [], []
    for comparison in differences_of(study):
        questions = given.questions(comparison)
        if comparison.between != "systems" or not questions:
            continue
        title = comparison_title(comparison)
        pairs = by_differences(declared_differences(given, comparison, options))
        if not pairs:
            paragraphs.append(f"{title}: there are no choices on it yet.")
            continue
        words = preferred_words(pairs, options)
        paragraphs.append(f"{title} ({comparison_role(study, comparison)}): {words}{_scope(options)}.")
        labels = [given.criterion_labels[given.criteria.index(name)] for name in questions]
        tables.append(
            Table(
                f"declared-{comparison.name}",
                f"{title}: differences of scores",
                pair_columns(options.correction, value="Difference of scores"),
                pair_rows(pairs, options.correction),
                caption=comparison_caption(comparison, labels),
                notes=(differences_note(options), *_reasons(pairs)),
                is_confirmatory=True,
            )
        )
    if not paragraphs:
        return []
    return [Section("declared", CONFIRMATORY_TITLE, tuple(paragraphs), tuple(tables), is_confirmatory=True)]


def _scope(options: Options) -> str:
    return " on the items of this study" if options.has_fixed_items else ""


def _reasons(pairs: dict[tuple[str, str], Estimate]) -> tuple[str, ...]:
    """Why some differences have no test, or an unusual one."""
    return tuple(dict.fromkeys(sentence(note) for gap in pairs.values() for note in gap.notes))


def place_section(data: StudyData, given: BestWorstData, options: Options) -> Section:
    """Whether systems at some position on the screen were picked best more often than by chance."""
    size = (given.choices.shown >= 0).sum(axis=1)
    if not (given.place > 0).any() or len(np.unique(size)) != 1:
        raise NotEnoughData(
            "the data do not say where each system was on the screen, or sets differ in size",
            remedy="import the order in which systems were shown",
        )
    k = int(size[0])
    tested = corrected(
        [
            clustered_proportion(
                np.where(given.place > 0, given.place == place, np.nan),
                given.choices.rater,
                null=1 / k,
                confidence=options.confidence,
                label=str(place),
            )
            for place in range(1, k + 1)
        ],
        options,
    )
    rows: list[tuple[Cell, ...]] = [
        (f"position {test.label}", known_cell(test), p_cell(test.p_value), p_cell(p_adjusted(test))) for test in tested
    ]
    columns = (
        Column("place", "Position"),
        Column("best", "Picked as best", "percent_estimate"),
        Column("p", "p", "p_value"),
        Column("p_adjusted", f"p ({correction_name(options.correction)})", "p_value"),
    )
    clear = [f"position {test.label}" for test in tested if p_adjusted(test) <= 1 - options.confidence]
    drawn = data.study.spec.design.system_order != "fixed"
    text = f"Picked as best more or less often than by chance: {listed(clear)}." if clear else no_position_words(tested)
    text += (
        " Positions were drawn anew for each rater and item, so no system is favoured."
        if drawn
        else " The order was fixed, so the effect of position cannot be separated from that of the system shown there."
    )
    caption = f"By chance, each of {k} positions would be best in {percent(1 / k)}; cluster-robust by rater (CR2)."
    table = Table("place", "Picked as best, by position on the screen", columns, tuple(rows), caption=caption)
    return Section("place", "Did the position on the screen matter?", (text,), (table,))


def group_section(data: StudyData, given: BestWorstData, question: str, options: Options) -> Section:
    """Scores of every system within each group of raters, and whether the groups differ."""
    choices = given.choices
    groups = rater_groups(data, question, choices.raters)
    table = choices.marks()

    def by_group(code: int, label: str) -> GroupTest:
        def mean(chosen: NDArray[np.bool_]) -> Estimate:
            inside = choices_where(choices, chosen)
            fit = BestWorstScores(inside, has_fixed_items=options.has_fixed_items, confidence=options.confidence)
            return fit.scores[label]

        return groups_test(groups, table[:, code], choices.rater, mean, label=label)

    outcomes = corrected_groups([by_group(code, label) for code, label in enumerate(choices.systems)], options)
    return votes_by_group(
        groups,
        outcomes,
        options,
        title=f"Scores by “{groups.text}”",
        kind="estimate",
        caption=f"Over all questions; confidence intervals are about {over_words(options)}. The tests between groups take each "
        "rater as one cluster.",
    )


ALL_QUESTIONS = "All questions"
MOST_RIVALS = 5


class BestWorstScaling(Family):
    """The family for best-worst scaling."""

    rank = 14

    def fits(self, study: Study) -> bool:
        """Any criterion answered by a best and a worst."""
        return bool(compared_criteria(study, "ends"))

    def decides(self, study: Study, comparison: Comparison) -> bool:
        """Comparisons of systems on a question answered by a best and a worst."""
        asked = [criterion.name for criterion in compared_criteria(study, "ends")]
        return comparison.between == "systems" and is_about(comparison, asked)

    def primary_tests(self, data: StudyData, comparison: Comparison, options: Options) -> dict[str, Estimate]:
        """Systems two by two: the tests of the declared section."""
        given = best_worst_data(data)
        name_of = dict(zip(given.systems, given.names, strict=True))
        pairs = declared_differences(given, comparison, options)
        tests = {
            f"{a} against {b}": between(gap, name_of[a], name_of[b], quantity="score") for (a, b), gap in pairs.items()
        }
        return decided(tests, comparison, options)

    def alternatives(self, data: StudyData, comparison: Comparison, options: Options) -> list[OtherChoice]:
        """Best or worst picks alone, and simpler models."""
        return best_worst_alternatives(data, comparison, options)

    def run(self, data: StudyData, options: Options) -> Findings:
        """The ranking of the primary question, every question beside it, and the tests."""
        study, given = data.study, best_worst_data(data)
        asked = [k for k in range(len(given.criteria)) if np.any(given.criterion == k)]
        overall = rank_by_best_worst(given.choices, _label(given), options)
        singles = [
            rank_by_best_worst(given.on((given.criteria[k],)), given.criterion_labels[k], options) for k in asked
        ] if len(asked) > 1 else []  # fmt: skip
        primary = primary_between_systems(study, given.criteria)
        main = _main(primary, given, singles, overall, options)
        agreement = section_or_problem(
            "agreement", AGREEMENT_TITLE, partial(best_worst_agreement_section, given, options)
        )
        sections = [*declared_section(study, given, options), board_section(main, given, primary), agreement]
        others = [questions_section(singles, overall, main)] if singles else []
        others.append(
            section_or_problem(
                "place", "Did the position on the screen matter?", partial(place_section, data, given, options)
            )
        )
        others += [
            section_or_problem(
                f"subgroup-{question}",
                f"Subgroups of raters: {inside(question_label(study, question))}",
                partial(group_section, data, given, question, options),
            )
            for question in study.spec.analysis.subgroups
        ]
        findings = Findings(
            answer=_answer(main),
            certainty=_certainty(main, options, is_declared=primary is not None),
            headlines=_headlines(main, is_declared=primary is not None),
            figure=ranking_figure("summary", main, is_confirmatory=primary is not None),
            sections=(*sections, *in_appendix(others)),
            methods=_methods(main, options, has_subgroups=bool(study.spec.analysis.subgroups)),
            warnings=_warnings(given, main),
            claims=_claims(main),
            next_steps=alpha_steps(agreement),
        )
        return with_prefix(findings, "best-worst")


ANALYSES.register("best_worst")(BestWorstScaling())


def _label(given: BestWorstData) -> str:
    return ALL_QUESTIONS if len(given.criteria) > 1 else given.criterion_labels[0]


def _main(
    primary: Comparison | None,
    given: BestWorstData,
    singles: Sequence[BestWorstRanking],
    overall: BestWorstRanking,
    options: Options,
) -> BestWorstRanking:
    """The ranking that gives the answer: the primary comparison's questions, else everything."""
    if primary is None:
        return overall
    questions, compared = given.questions(primary), given.labels(primary)
    labels = [given.criterion_labels[given.criteria.index(name)] for name in questions]
    is_all = compared == given.systems
    if is_all and questions == given.criteria:
        return overall
    single = next((single for single in singles if is_all and [single.label] == labels), None)
    label = overall.label if questions == given.criteria else listed(labels)
    return single or rank_by_best_worst(given.on(questions), label, options, compared)


def _answer(main: BestWorstRanking) -> str:
    """Who is the best, as far as the corrected tests carry it: for other items, on the items shown, or not at all."""
    first, n = main.ranked[0], len(main.ranked)
    where = "" if main.label == ALL_QUESTIONS else f" on {main.label}"
    counts = main.scores[first].details
    picked = (
        f"with a score of {value_only(main.scores[first])} (picked best in {percent(counts['best'] / counts['shown'])} and "
        f"worst in {percent(counts['worst'] / counts['shown'])} of its appearances)"
    )
    shown = "the one item" if main.n_items == 1 else f"the {n_of(main.n_items, 'item')}"
    if len(main.choices.raters) < 2:
        alone = "but one rater says nothing about others"
        return f"{first} comes first of {n} systems{where} {picked}, {alone}."
    rivals = main.rivals()
    scope = f", on {shown} of this study," if main.options.has_fixed_items else ""
    if main.leader.is_clear:
        return f"{first} is the best of {n} systems{where}{scope or ','} {picked}."
    if main.leader_on_items.is_clear:
        limit = (
            "one item says nothing about others"
            if not main.has_ranks
            else f"on other items {listed(rivals, most=MOST_RIVALS, conjunction='or')} may be as good"
        )
        return f"On {shown} shown, {first} is the best of {n} systems{where}, {picked}; {limit}."
    if len(rivals) + 1 == n:
        return f"No best system{where}{scope} can be named: {first} comes first {picked}, but is not significantly ahead of any other."
    return (
        f"{first} comes first{where}{scope} {picked}, but is not significantly ahead of "
        f"{listed(rivals, most=MOST_RIVALS, conjunction='or')}."
    )


def _claims(main: BestWorstRanking) -> tuple[Claim, ...]:
    """What the answer states as found: leads for other items too, or on the items shown."""
    made = lead_claims(main.ranked, main.rivals()) if main.has_ranks else ()
    if not made and main.leader_on_items.is_clear:
        made = lead_claims(main.ranked, ())
        return tuple(replace(claim, is_general=False) for claim in made)
    return tuple(replace(claim, is_general=not main.options.has_fixed_items) for claim in made)


def _certainty(main: BestWorstRanking, options: Options, *, is_declared: bool) -> str:
    basis = f"{n_of(len(main.choices.raters), 'rater')} made {n_of(main.choices.n, 'choice')} on {n_of(main.n_items, 'item')}"
    declared = (
        "The comparison is confirmatory (declared in advance)."
        if is_declared
        else "No comparison was declared: this is exploratory."
    )
    if not main.has_ranks:
        reason = next((note for gap in main.pairs.values() for note in gap.notes), "")
        return f"{sentence(reason)} {basis}. {declared}".strip()
    text = lead_words(main.leader, main.pairs, options.correction)
    if main.leader_on_items.is_clear and not main.leader.is_clear:
        text += f" On the items shown: {lead_words(main.leader_on_items, main.pairs_on_items, 'none')}"
    return f"{text} {basis}. {declared} The tests are about {over_words(options)}."


def _headlines(main: BestWorstRanking, *, is_declared: bool) -> tuple[Headline, ...]:
    lines = []
    for system in main.ranked[:3]:
        score, ranks = main.scores[system], rank_range(main.ranks(system))
        place = f"Ranks left open by the tests: {ranks}; " if ranks else ""
        counts = score.details
        words = f"{place}picked best {counts['best']} and worst {counts['worst']} of {counts['shown']} times."
        lines.append(Headline(f"{system}: score", score, sentence(words), is_declared))
    return tuple(lines)


def _warnings(given: BestWorstData, main: BestWorstRanking) -> tuple[str, ...]:
    notes = list(given.notes)
    silent = [name for name in given.systems if name not in main.ranked]
    if silent:
        notes.append(f"{listed(silent)} was not shown yet and is not ranked.")
    if main.model.is_penalised:
        notes.append(f"Not all systems can be placed by maximum likelihood ({'; '.join(main.model.notes)}).")
    return tuple(notes)


def _methods(main: BestWorstRanking, options: Options, *, has_subgroups: bool) -> tuple[Method, ...]:
    samples = "raters" if options.has_fixed_items else "raters and items"
    return (
        Method(
            "scores, differences between systems and ranks",
            f"best-worst scores by least squares within screens; jackknife over {samples}, Student's t",
            f"one fit for the ranking and its tests, whose claims are about {over_words(options)}",
            "Louviere, Flynn and Marley 2015; Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2023",
        ),
        Method(
            "utilities",
            main.model.method,
            "the usual model of such choices, beside the scores",
            "Marley and Louviere 2005",
        ),
        agreement_method(),
        *((groups_method(options),) if has_subgroups else ()),
        Method("several tests at once", CORRECTIONS.get(options.correction, "none"), "declared in the study; one family per table"),
    )  # fmt: skip
