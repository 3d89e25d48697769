"""The chapters of a report on best-worst choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem, with_prefix
from dialometer.analysis.base.scale_units import compared_types
from dialometer.analysis.base.wording import listed, n_of, p_words, percent, sentence, system_label, with_interval
from dialometer.analysis.families.votes.best_worst_choices import (
    BestWorstData,
    BestWorstRanking,
    best_worst_data,
    rank_by_best_worst,
    score_differences,
    scores,
)
from dialometer.analysis.families.votes.sections import rank_words, votes_by_group
from dialometer.analysis.shared.comparisons import (
    CORRECTIONS,
    compared_criteria,
    compared_systems,
    comparison_caption,
    comparison_role,
    comparison_title,
    corrected,
    corrected_by_name,
    first_places_words,
    is_about,
    known_cell,
    p_adjusted,
    p_cell,
    preferred_words,
    primary_between_systems,
)
from dialometer.analysis.shared.ranking import lead_words, pair_columns, pair_rows
from dialometer.analysis.shared.subgroups import GroupTest, corrected_groups, groups_test, rater_groups
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Headline, Method, Section, Table
from dialometer.model.study import Comparison, Study
from dialometer.report.charts import Dot, Share, dot_interval, ranking_intervals, stacked_shares
from dialometer.stats.clustered.clustered import clustered_mean, clustered_proportion


def board_section(main: BestWorstRanking, given: BestWorstData, primary: Comparison | None) -> Section:
    """The ranking that gives the answer, its shares of best and worst, and the differences behind it."""
    paragraphs = []
    if not math.isnan(main.differ.p_value):
        is_clear = main.differ.p_value <= 1 - main.differ.confidence
        differ = "differ in how often they are best or worst" if is_clear else "cannot be told apart as a whole"
        paragraphs.append(f"The {len(main.ranked)} systems {differ} ({p_words(main.differ.p_value)}).")
    if main.model.is_penalised:
        paragraphs.append(
            f"The choice model has no finite maximum-likelihood answer ({'; '.join(main.model.notes)}): the utilities shown are "
            "a regularised fit; read their order, not their size."
        )
    is_confirmatory = primary is not None
    board = board_table("board", main, is_confirmatory=is_confirmatory)
    parts: list[Table | Figure] = [board, _picks_figure(main)]
    if primary is None or (primary.levels and not set(given.names) <= set(primary.levels)):
        parts += _differences(main)
    return Section("board", f"Ranking: {main.label}", tuple(paragraphs), tuple(parts), is_confirmatory=is_confirmatory)


def board_table(name: str, ranking: BestWorstRanking, *, is_confirmatory: bool = False) -> Table:
    """Ranks with intervals, scores, counts and utilities."""
    rows: list[tuple[Cell, ...]] = []
    for system in (*ranking.ranked, *(s for s in ranking.choices.systems if s not in ranking.ranked)):
        score = ranking.scores[system]
        best = ranking.ranks.best_share[system]
        counts = score.details if score.is_known else {"best": 0, "worst": 0, "shown": 0}
        rows.append(
            (
                system,
                ranking.ranked.index(system) + 1 if system in ranking.ranked else None,
                rank_words(ranking.ranks.ranks[system]),
                None if math.isnan(best) else best,
                known_cell(score),
                counts["best"],
                counts["worst"],
                counts["shown"],
                known_cell(ranking.utilities[system]),
            )
        )
    fitted = "choice model, regularised" if ranking.model.is_penalised else "choice model"
    columns = (
        Column("system", "System"),
        Column("rank", "Rank", "count"),
        Column("rank_interval", "Interval"),
        Column("first", "First", "percent", 0),
        Column("score", "Score", "estimate"),
        Column("best", "Best", "count"),
        Column("worst", "Worst", "count"),
        Column("shown", "Shown", "count"),
        Column("utility", f"Utility ({fitted})", "estimate"),
    )
    return Table(
        name,
        f"Ranking: {ranking.label}",
        columns,
        tuple(rows),
        caption=f"{n_of(ranking.choices.n, 'choice')} of {n_of(len(ranking.choices.raters), 'rater')}. “Interval” and “first” are the "
        "ranks a system had, and how often it came first, when whole raters were resampled; the score is how often it was "
        "picked best less how often worst, per appearance; utilities are log odds with mean 0.",
        notes=tuple(sentence(note) for note in ranking.model.notes),
        is_confirmatory=is_confirmatory,
    )


def ranking_figure(name: str, ranking: BestWorstRanking, *, is_confirmatory: bool = False) -> Figure:
    """Systems in order with the interval of their score, and their ranks beside."""
    dots = [Dot(system, ranking.scores[system]) for system in ranking.choices.systems]
    ranges = {
        system: (round(rank.low), round(rank.high)) for system, rank in ranking.ranks.ranks.items() if rank.has_interval
    }
    spec = ranking_intervals(dots, value_title="score (best less worst)", rank_ranges=ranges or None, reference=0.0)
    details = "; ".join(f"{dot.label}: {with_interval(dot.estimate)}" for dot in dots)
    return Figure(
        name, f"Ranking: {ranking.label}", spec, f"Scores with intervals. {details}.", is_confirmatory=is_confirmatory
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
    correction = correction_of(ranking)
    return (
        Table(
            "differences",
            f"Differences between systems: {ranking.label}",
            pair_columns(correction, value="Difference of scores"),
            pair_rows(pairs, correction),
            caption="Scores of two systems in the same choices; each rater as one cluster (CR2).",
        ),
    )


def correction_of(ranking: BestWorstRanking) -> str:
    """The correction under which the pairs were tested."""
    return str(next(iter(ranking.pairs.values())).details.get("correction", "none"))


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
        f"Scores with intervals: {details}.",
    )
    paragraphs = [_leader_words(ranking) for ranking in rankings]
    paragraphs.append(first_places_words([ranking.ranked[0] for ranking in rankings]))
    tables = [board_table(f"board-{k}", ranking) for k, ranking in enumerate(shown) if ranking.label != main.label]
    return Section("questions", "Question by question", tuple(paragraphs), (wide, figure, *tables))


def _leader_words(ranking: BestWorstRanking) -> str:
    first = ranking.ranked[0]
    text = f"{ranking.label}: {first} comes first with a score of {with_interval(ranking.scores[first])}"
    rivals = ranking.rivals()
    if not ranking.has_ranks:
        return f"{text}."
    return (
        f"{text}, but cannot be told from {listed(rivals, most=6)}."
        if rivals
        else f"{text}, ahead of every other system."
    )


def declared_section(study: Study, given: BestWorstData, options: Options) -> list[Section]:
    """Declared comparisons between systems: differences of scores over the comparison's questions."""
    tables, paragraphs = [], []
    for comparison in study.spec.analysis.comparisons:
        questions = tuple(q for q in given.criteria if not comparison.criteria or q in comparison.criteria)
        if comparison.between != "systems" or not questions:
            continue
        choices = given.on(questions)
        title = comparison_title(comparison)
        codes = [k for k, name in enumerate(given.names) if not comparison.levels or name in comparison.levels]
        if not choices.n or len(codes) < 2:
            paragraphs.append(f"{title}: there are no choices on it yet.")
            continue
        pairs = score_differences(choices, scores(choices), options, codes)
        paragraphs.append(f"{title} ({comparison_role(study, comparison)}): {preferred_words(pairs, options)}.")
        labels = [given.criterion_labels[given.criteria.index(name)] for name in questions]
        tables.append(
            Table(
                f"declared-{comparison.name}",
                f"{title}: differences of scores",
                pair_columns(options.correction, value="Difference of scores"),
                pair_rows(pairs, options.correction),
                caption=comparison_caption(comparison, labels),
                notes=("Scores of two systems in the same choices; each rater as one cluster (CR2).",),
                is_confirmatory=True,
            )
        )
    if not paragraphs:
        return []
    return [Section("declared", "Declared comparisons", tuple(paragraphs), tuple(tables), is_confirmatory=True)]


def place_section(data: StudyData, given: BestWorstData, options: Options) -> Section:
    """Whether systems at some place on the screen were picked best more often than by chance."""
    size = (given.choices.shown >= 0).sum(axis=1)
    if not (given.place > 0).any() or len(np.unique(size)) != 1:
        raise NotEnoughData(
            "the data do not say where each system stood on the screen, or sets differ in size",
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
        (f"place {test.label}", known_cell(test), p_cell(test.p_value), p_cell(p_adjusted(test))) for test in tested
    ]
    columns = (
        Column("place", "Place"),
        Column("best", "Picked as best", "percent_estimate"),
        Column("p", "p", "p_value"),
        Column("p_adjusted", "p, corrected", "p_value"),
    )
    clear = [f"place {test.label}" for test in tested if p_adjusted(test) <= 1 - options.confidence]
    drawn = data.study.spec.design.system_order != "fixed"
    text = (
        f"More or less often best than by chance: {listed(clear)}."
        if clear
        else "There is no sign that the place on the screen mattered."
    )
    text += (
        " Places were drawn anew for each rater and item, so this favours no system."
        if drawn
        else " The order was fixed, so the place cannot be told from the system that stood there."
    )
    caption = f"By chance, each of {k} places would be best in {percent(1 / k)}; cluster-robust by rater (CR2)."
    table = Table("place", "The best by place on the screen", columns, tuple(rows), caption=caption)
    return Section("place", "Did the place on the screen matter?", (text,), (table,))


def group_section(data: StudyData, given: BestWorstData, question: str, options: Options) -> Section:
    """Scores of every system within each group of raters, and whether the groups differ."""
    choices = given.choices
    groups = rater_groups(data, question, choices.raters)
    table = scores(choices)

    def by_group(code: int, label: str) -> GroupTest:
        def mean(chosen: NDArray[np.bool_]) -> Estimate:
            return clustered_mean(table[chosen, code], choices.rater[chosen], confidence=options.confidence)

        return groups_test(groups, table[:, code], choices.rater, mean, label=label)

    outcomes = corrected_groups([by_group(code, label) for code, label in enumerate(choices.systems)], options)
    return votes_by_group(
        groups,
        outcomes,
        options,
        title=f"Scores by “{groups.text}”",
        kind="estimate",
        caption="Over all questions; each rater as one cluster.",
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
        """Systems two by two: +1 where chosen best, -1 where worst; each rater is one cluster."""
        frame = data.judgments.filter(pl.col("scale").is_in(compared_types(data.study, "ends")))
        raters = frame["rater"].to_numpy()
        best, worst = frame["choice"].to_numpy(), frame["worst"].to_numpy()
        systems = compared_systems(data.study, comparison)
        score = {name: (best == name).astype(np.float64) - (worst == name) for name in systems}
        tests = {
            f"{system_label(data.study, a)} against {system_label(data.study, b)}": clustered_mean(
                score[a] - score[b], raters, null=0.0, confidence=options.confidence
            )
            for a, b in combinations(systems, 2)
        }
        return corrected_by_name(tests, options)

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
        sections = [*declared_section(study, given, options), board_section(main, given, primary)]
        if singles:
            sections.append(questions_section(singles, overall, main))
        sections.append(
            section_or_problem(
                "place", "Did the place on the screen matter?", partial(place_section, data, given, options)
            )
        )
        sections += [
            section_or_problem(
                f"subgroup-{question}",
                f"Subgroups of raters: {question.replace('_', ' ')}",
                partial(group_section, data, given, question, options),
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
            warnings=_warnings(given, main),
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
    questions = tuple(name for name in given.criteria if not primary.criteria or name in primary.criteria)
    if questions == given.criteria:
        return overall
    labels = [given.criterion_labels[given.criteria.index(name)] for name in questions]
    single = next((single for single in singles if [single.label] == labels), None)
    return single or rank_by_best_worst(given.on(questions), listed(labels), options)


def _answer(main: BestWorstRanking) -> str:
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


def _certainty(main: BestWorstRanking, options: Options, *, is_declared: bool) -> str:
    basis = f"{n_of(len(main.choices.raters), 'rater')} made {n_of(main.choices.n, 'choice')}"
    declared = (
        "The comparison was declared beforehand." if is_declared else "No comparison was declared: this is exploratory."
    )
    if not main.has_ranks:
        return f"{basis}. {declared}"
    text = f"{lead_words(main.leader(), main.pairs, options.correction)} "
    return f"{text}{basis}. {declared}"


def _headlines(main: BestWorstRanking, *, is_declared: bool) -> tuple[Headline, ...]:
    lines = []
    for system in main.ranked[:3]:
        score, rank = main.scores[system], main.ranks.ranks[system]
        place = f"Rank interval {rank_words(rank)}; " if rank.has_interval else ""
        counts = score.details
        words = f"{place}picked best {counts['best']} and worst {counts['worst']} of {counts['shown']} times."
        lines.append(Headline(f"{system}: score", score, sentence(words), is_declared))
    return tuple(lines)


def _warnings(given: BestWorstData, main: BestWorstRanking) -> tuple[str, ...]:
    notes = list(given.notes)
    silent = [name for name in given.systems if name not in main.ranked]
    if silent:
        notes.append(f"{listed(silent)} was never shown yet and is not ranked.")
    if main.model.is_penalised:
        notes.append(f"Not all systems can be placed by maximum likelihood ({'; '.join(main.model.notes)}).")
    return tuple(notes)


def _methods(main: BestWorstRanking, options: Options) -> tuple[Method, ...]:
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
