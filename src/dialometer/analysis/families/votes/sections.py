"""The chapters of a leaderboard: standings, questions, and what the model rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import listed, n_of, number, p_words, percent, sentence, with_interval
from dialometer.analysis.families.votes.standings import Standing
from dialometer.analysis.families.votes.system_votes import SystemVotes
from dialometer.analysis.shared.comparisons import (
    CORRECTIONS,
    known_cell,
    p_adjusted,
    p_cell,
    p_cells,
    p_columns,
)
from dialometer.analysis.shared.ranking import standing_words
from dialometer.analysis.shared.subgroups import (
    GroupTest,
    RaterGroups,
    corrected_groups,
    groups_test,
    no_difference_words,
    rater_groups,
)
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, ColumnKind, Figure, Section, Table
from dialometer.report.charts import Dot, HeatCell, dot_interval, heatmap, ranking_intervals
from dialometer.stats.clustered.clustered import clustered_proportion
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.ranking.bradley_terry import BradleyTerry
from dialometer.stats.ranking.votes import FIRST, TIE

MOST_IN_MATRIX = 30


def board_section(main: Standing, options: Options, *, is_confirmatory: bool) -> Section:
    """The leaderboard that gives the answer."""
    return Section(
        "board",
        f"Leaderboard: {main.label}",
        board_words(main, options),
        (board_table("board", main, is_confirmatory=is_confirmatory),),
        is_confirmatory=is_confirmatory,
    )


def board_words(one: Standing, options: Options) -> tuple[str, ...]:
    """Who is ahead of whom, whether the systems differ at all, and what the fit had to leave open."""
    said = []
    if not math.isnan(one.differ.p_value):
        is_clear = one.differ.p_value <= 1 - options.confidence
        differ = "differ in how often they are preferred" if is_clear else "cannot be told apart as a whole"
        said.append(f"The {len(one.ranked)} systems {differ} ({p_words(one.differ.p_value)}).")
    if one.contrasts:
        said.append(f"By the model of all votes, {standing_words(one.leader(), one.contrasts, options.correction)}")
    if one.fit.is_penalised:
        said.append(
            f"Maximum likelihood has no finite answer here: {'; '.join(_obstacles(one))}. The strengths shown are a "
            "regularised fit, which draws extreme strengths together; read their order, not their size."
        )
    return tuple(said)


def _obstacles(one: Standing) -> list[str]:
    found = [note.partition(": ")[2] for note in one.fit.notes if note.startswith("no maximum-likelihood")]
    return found or ["the votes leave a parameter open"]


def board_table(name: str, one: Standing, *, is_confirmatory: bool = False) -> Table:
    """Ranks with intervals, strengths and records."""
    has_ties = bool(one.matrix.tied.any())
    rows: list[tuple[Cell, ...]] = []
    for system in (*one.ranked, *(s for s in one.fit.systems if s not in one.ranked)):
        record = one.records[system]
        best = one.ranks.best_share[system] if one.ranks is not None else math.nan
        rows.append(
            (
                system,
                one.ranked.index(system) + 1 if system in one.ranked else None,
                rank_words(one.ranks.ranks[system] if one.ranks is not None else None),
                None if math.isnan(best) else best,
                known_cell(one.wins[system]),
                known_cell(one.strengths[system]),
                record.wins,
                record.losses,
                *((record.ties,) if has_ties else ()),
            )
        )
    fitted = "regularised Bradley-Terry" if one.fit.is_penalised else "Bradley-Terry"
    columns = (
        Column("system", "System"),
        Column("rank", "Rank", "count"),
        Column("rank_interval", "Interval"),
        Column("first", "First", "percent", 0),
        Column("wins_share", "Wins against the others", "percent_estimate"),
        Column("strength", f"Strength ({fitted})", "estimate"),
        Column("won", "Won", "count"),
        Column("lost", "Lost", "count"),
        *((Column("tied", "Tied", "count"),) if has_ties else ()),
    )
    return Table(
        name,
        f"Leaderboard: {one.label}",
        columns,
        tuple(rows),
        caption=f"{n_of(one.votes.n, 'vote')} of {n_of(len(one.votes.raters), 'rater')}. “Interval” and “first” are the ranks a "
        "system had, and how often it came first, when whole raters were resampled; “wins” is the chance of being preferred "
        "to one of the other systems at random, a tie counting half; strengths are log odds with mean 0.",
        notes=(
            *(sentence(note) for note in one.notes),
            "Rank intervals are about one system at a time; the tests are corrected for the number of pairs, so they are slower "
            "to call a system better.",
        ),
        is_confirmatory=is_confirmatory,
    )


def rank_words(rank: Estimate | None) -> str:
    """The ranks a system may have, such as "2–4"; empty where nothing is known about them."""
    if rank is None or not rank.has_interval:
        return ""
    return f"{rank.low:.0f}" if rank.low == rank.high else f"{rank.low:.0f}–{rank.high:.0f}"


def board_figure(name: str, one: Standing, *, is_confirmatory: bool = False) -> Figure:
    """Systems in order with the interval of their share of wins, and their ranks beside."""
    dots = [Dot(system, one.wins[system]) for system in one.fit.systems]
    ranges = {
        system: (round(rank.low), round(rank.high))
        for system, rank in (one.ranks.ranks.items() if one.ranks is not None else ())
        if rank.is_known and not math.isnan(rank.low)
    }
    spec = ranking_intervals(
        dots, value_title="wins against the others", rank_ranges=ranges or None, reference=0.5, is_percent=True
    )
    told = "; ".join(f"{dot.label}: {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    return Figure(
        name, f"Leaderboard: {one.label}", spec, f"Share of choices won. {told}.", is_confirmatory=is_confirmatory
    )


def questions_section(standings: Sequence[Standing], overall: Standing, main: Standing) -> Section:
    """The systems on every question side by side, and in full beneath."""
    systems = list(overall.ranked)
    shown = [*standings, overall]
    columns = (
        Column("system", "System"),
        *(Column(f"question-{k}", one.label, "percent_estimate") for k, one in enumerate(shown)),
    )
    rows = tuple((system, *(known_cell(one.wins[system]) for one in shown)) for system in systems)
    wide = Table(
        "questions",
        "Wins against the other systems, by question",
        columns,
        rows,
        caption="The chance of being preferred to one of the other systems at random, a tie counting half; 50% is average.",
    )
    dots = [Dot(system, one.wins[system], facet=one.label) for one in standings for system in systems]
    figure = Figure(
        "questions-figure",
        "Wins against the other systems, by question",
        dot_interval(dots, value_title="wins against the others", reference=0.5, is_percent=True),
        "Share of choices won. "
        + "; ".join(f"{d.facet}, {d.label}: {with_interval(d.estimate, is_percent=True)}" for d in dots)
        + ".",
    )
    said = [_leader_words(one) for one in standings]
    firsts = {one.ranked[0] for one in standings}
    said.append(
        f"{next(iter(firsts))} comes first on every question."
        if len(firsts) == 1
        else f"The questions do not agree on the first place: {listed(sorted(firsts))} each lead somewhere."
    )
    others = [one for one in shown if one.label != main.label and len(systems) <= MOST_IN_MATRIX]
    tables = [board_table(f"board-{k}", one) for k, one in enumerate(others)]
    return Section("questions", "Question by question", tuple(said), (wide, figure, *tables))


def _leader_words(one: Standing) -> str:
    first = one.ranked[0]
    text = f"{one.label}: {first} comes first, winning {with_interval(one.wins[first], is_percent=True)} of choices"
    rivals = one.rivals()
    if one.ranks is None:
        return f"{text}."
    if not rivals:
        return f"{text}, and is told from every other system."
    return f"{text}, but cannot be told from {listed(rivals, most=6)}."


def model_section(standings: Sequence[Standing], *, has_rankings: bool, is_order_drawn: bool) -> Section:
    """Position on the screen, ties, and how the sequential ratings compare with the model."""
    rows: list[tuple[Cell, ...]] = []
    for one in standings:
        first = one.position
        chance = float(first.details["first_preferred_among_equals"]) if first is not None else math.nan
        n_first = one.votes.n and float((one.votes.outcome == 1).mean() + 0.5 * (one.votes.outcome == 0).mean())
        rows.append(
            (
                one.label,
                n_first,
                None if math.isnan(chance) else chance,
                known_cell(first) if first is not None else None,
                p_cell(first.p_value) if first is not None else None,
                float((one.votes.outcome == 0).mean()),
                one.fit.method,
            )
        )
    columns = (
        Column("question", "Question"),
        Column("first_won", "First shown won", "percent"),
        Column("first_equal", "First among equals", "percent"),
        Column("position", "Position effect (log odds)", "estimate"),
        Column("p", "p", "p_value"),
        Column("ties", "Ties", "percent"),
        Column("model", "Model"),
    )
    table = Table(
        "position",
        "Place on the screen, ties, and the model that was fitted",
        columns,
        tuple(rows),
        notes=("Interval and test of the position effect resample raters.",),
    )
    said = []
    clear = [
        one.label
        for one in standings
        if one.position is not None and one.position.has_interval and not one.position.low <= 0 <= one.position.high
    ]
    if not is_order_drawn:
        said.append(
            "The order on the screen was fixed, so an advantage of the first place cannot be told from a better system."
        )
    elif clear:
        said.append(f"The place on the screen mattered for {listed(clear)}; the model takes it out of the strengths.")
    else:
        said.append("There is no sign that the place on the screen mattered.")
    if has_rankings:
        said.append(
            "Rankings were broken into all their pairs, which keeps Bradley-Terry strengths right; intervals resample raters, "
            "so that the pairs of one ranking do not count as independent."
        )
    said += [_elo_words(one) for one in standings[:1]]
    return Section("model", "Place on the screen, ties and model", tuple(said), (table, _elo_table(standings[0])))


def _elo_table(one: Standing) -> Table:
    """Elo ratings beside the model's strengths on the same scale."""
    rows: list[tuple[Cell, ...]] = [
        (system, known_cell(one.fit.elo[system]), known_cell(one.elo.ratings[system]), one.elo.ranked.index(system) + 1)
        for system in one.ranked
    ]
    columns = (
        Column("system", "System"),
        Column("model", "Bradley-Terry on the scale of Elo", "estimate", 0),
        Column("elo", "Elo", "estimate", 0),
        Column("elo_rank", "Rank by Elo", "count"),
    )
    return Table(
        "elo",
        f"Elo beside Bradley-Terry: {one.label}",
        columns,
        tuple(rows),
        notes=(
            "The interval of Elo is what the order of the same votes does to it, not what other raters would do; that of "
            "Bradley-Terry is the model's own and takes votes as independent.",
        ),
    )


def _elo_words(one: Standing) -> str:
    if one.elo.ranked == one.ranked:
        return "Elo ratings, averaged over random orders of the votes, give the same order of systems."
    moved = [a for a, b in zip(one.ranked, one.elo.ranked, strict=True) if a != b]
    spread = max(float(r.details.get("sd_over_orders", 0.0)) for r in one.elo.ratings.values() if r.is_known)
    return (
        f"Elo ratings, averaged over random orders of the votes, order {listed(moved, most=6)} differently; the order of the "
        f"votes alone moves a rating by up to {number(spread, 0)} points (standard deviation)."
    )


def system_group_section(data: StudyData, found: SystemVotes, question: str, options: Options) -> Section:
    """Share of points of every system within each group of raters, and whether the groups differ."""
    groups = rater_groups(data, question, found.votes.raters)
    points, system, rater = points_by_system(found)

    def by_group(code: int, label: str) -> GroupTest:
        own, who = points[system == code], rater[system == code]

        def share(chosen: NDArray[np.bool_]) -> Estimate:
            return clustered_proportion(own[chosen], who[chosen], confidence=options.confidence)

        return groups_test(groups, own, who, share, label=label)

    outcomes = corrected_groups([by_group(code, label) for code, label in enumerate(found.systems)], options)
    return votes_by_group(
        groups,
        outcomes,
        options,
        title=f"Share of points by “{groups.text}”",
        kind="percent_estimate",
        caption="A win is one point, a tie half a point; over all questions. Intervals take each rater as one cluster.",
    )


def votes_by_group(
    groups: RaterGroups, outcomes: Sequence[GroupTest], options: Options, *, title: str, kind: ColumnKind, caption: str
) -> Section:
    """The section on one subgroup question: a row for each system, a column for each group."""
    tests = [outcome.test for outcome in outcomes]
    table = Table(
        f"subgroup-{groups.name}",
        title,
        (
            Column("system", "System"),
            *groups.columns(kind, "group-{}", first=0),
            *p_columns(options.correction, "p (groups differ)"),
        ),
        tuple(
            (outcome.test.label, *map(known_cell, outcome.by_level), *p_cells(outcome.test, options.correction))
            for outcome in outcomes
        ),
        caption=caption,
        notes=(groups.note,) if groups.note else (),
    )
    apart = [test.label for test in tests if p_adjusted(test) <= 1 - options.confidence]
    words = no_difference_words(tests)
    if apart:
        words = f"The groups differ in how they judge {listed(apart)}. This was not randomised: it describes raters."
    heading = f"Subgroups of raters: {groups.name.replace('_', ' ')}"
    return Section(f"subgroup-{groups.name}", heading, (words,), (table,))


def points_by_system(found: SystemVotes) -> tuple[Floats, Ints, Ints]:
    """Every vote twice, once for each of its systems: points, system and rater."""
    votes = found.votes
    first = np.where(votes.outcome == TIE, 0.5, np.where(votes.outcome == FIRST, 1.0, 0.0))
    rater = votes.rater if votes.rater is not None else np.arange(votes.n)
    return (
        np.concatenate([first, 1 - first]),
        np.concatenate([votes.first, votes.second]),
        np.concatenate([rater, rater]),
    )


# Who beat whom: votes between every two systems, without a model of their strengths.


MOST_IN_TEST_TABLE = 12


def head_to_head_section(
    main: Standing, others: Sequence[Standing], options: Options, *, is_declared: bool = False
) -> Section:
    """Who beat whom: a matrix in colours and the tests behind it, unless they already stand under what was declared."""
    parts: list[Table | Figure] = []
    if len(main.ranked) <= MOST_IN_MATRIX:
        parts.append(_matrix_figure(main))
    if not is_declared:
        parts.append(pairs_table("head-to-head", f"Head to head: {main.label}", [_met(main)], options))
    if others and len(main.ranked) <= MOST_IN_TEST_TABLE:
        parts.append(
            pairs_table(
                "head-to-head-questions", "Head to head on the other questions", [_met(one) for one in others], options
            )
        )
    n_pairs = len(main.ranked) * (len(main.ranked) - 1) // 2
    tested = [one for one in main.pairs.values() if not math.isnan(p_adjusted(one))]
    clear = [one for one in tested if p_adjusted(one) <= 1 - options.confidence]
    said = (
        f"Of {n_of(n_pairs, 'pair')} of systems, {len(main.pairs)} met, {len(tested)} can be tested and {len(clear)} "
    )
    said += "differ after correction" if options.correction in CORRECTIONS else "differ"
    paragraphs = [f"{said}." + (" The tests stand under “Declared comparisons”." if is_declared else "")]
    cycle = circles(main)
    if cycle:
        told = " over ".join((*cycle, cycle[0]))
        paragraphs.append(f"The wins run in a circle ({told}), which no single order of strengths can show.")
    return Section("head-to-head", "Head to head", tuple(paragraphs), tuple(parts))


def _met(one: Standing) -> Met:
    return Met(one.label, one.pairs, one.fit)


def circles(one: Standing) -> tuple[str, ...]:
    """Three systems that beat each other in a circle, each by a tested difference; empty where there are none."""
    beats = set()
    for (a, b), share in one.pairs.items():
        if p_adjusted(share) <= 1 - share.confidence:
            beats.add((a, b) if share.value > 0.5 else (b, a))
    for a, b in sorted(beats):
        for c in one.ranked:
            if (b, c) in beats and (c, a) in beats:
                return (a, b, c)
    return ()


def _matrix_figure(one: Standing) -> Figure:
    cells = []
    for row in one.ranked:
        for column in one.ranked:
            share = None if row == column else _share(one, row, column)
            cells.append(HeatCell(row, column, share))
    spec = heatmap(
        cells,
        value_title="share of decisive votes that the row won against the column",
        midpoint=0.5,
        domain=(0.0, 1.0),
        is_percent=True,
    )
    told = "; ".join(f"{c.row} over {c.column} {percent(c.value)}" for c in cells if c.value is not None)
    return Figure("win-matrix", f"Who beat whom: {one.label}", spec, f"Shares of decisive votes: {told or 'none'}.")


def _share(one: Standing, row: str, column: str) -> float | None:
    direct = one.pairs.get((row, column))
    turned = one.pairs.get((column, row))
    if direct is not None and direct.is_known:
        return direct.value
    return 1 - turned.value if turned is not None and turned.is_known else None


@dataclass(frozen=True, eq=False)
class Met:
    """Systems that met on some questions: every pair with its share, and the model that expects them."""

    label: str
    pairs: dict[tuple[str, str], Estimate]
    fit: BradleyTerry


def pairs_table(
    name: str,
    title: str,
    meetings: Sequence[Met],
    options: Options,
    *,
    is_confirmatory: bool = False,
    caption: str = "",
) -> Table:
    """Every pair that met: counts, the share of decisive votes, tests, and what the model expects."""
    has_ties = any(share.details["ties"] for one in meetings for share in one.pairs.values())
    has_question = len(meetings) > 1 or name.endswith("questions")
    rows: list[tuple[Cell, ...]] = []
    methods: dict[str, None] = {}
    for one in meetings:
        for (a, b), share in one.pairs.items():
            methods["by rater" if "cluster" in share.method else "exact"] = None
            is_turned = share.is_known and share.value < 0.5
            first, second = (b, a) if is_turned else (a, b)
            counts = share.details
            won, lost = (counts["losses"], counts["wins"]) if is_turned else (counts["wins"], counts["losses"])
            shown = _turned(share) if is_turned else share
            expected = one.fit.win_probability(first, second)
            row: list[Cell] = [first, second, won, lost, *([counts["ties"]] if has_ties else [])]
            row += [known_cell(shown), p_cell(share.p_value)]
            row += [p_cell(p_adjusted(share))] if options.correction in CORRECTIONS else []
            row.append(expected.value if expected.is_known else None)
            rows.append((one.label, *row) if has_question else tuple(row))
    columns = [Column("question", "Question")] if has_question else []
    columns += [
        Column("system", "System"),
        Column("against", "against"),
        Column("won", "Won", "count"),
        Column("lost", "Lost", "count"),
        *([Column("tied", "Tied", "count")] if has_ties else []),
        Column("share", "Share of decisive votes", "percent_estimate"),
        Column("p", "p", "p_value"),
    ]
    if options.correction in CORRECTIONS:
        columns.append(Column("p_adjusted", f"p ({CORRECTIONS[options.correction]})", "p_value"))
    columns.append(Column("expected", "Model", "percent", 0))
    notes = []
    if "exact" in methods:
        notes.append("Where each rater voted once on a pair, the test is the exact binomial test with its interval.")
    if "by rater" in methods:
        notes.append(
            "Where raters voted several times on a pair, interval and test take each rater as one cluster (CR2)."
        )
    notes.append(
        "“Model” is what Bradley-Terry expects from all votes, also those against third systems, a tie counting half."
    )
    return Table(
        name, title, tuple(columns), tuple(rows), caption=caption, notes=tuple(notes), is_confirmatory=is_confirmatory
    )


def _turned(share: Estimate) -> Estimate:
    return replace(share, value=1 - share.value, low=1 - share.high, high=1 - share.low)
