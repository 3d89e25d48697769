"""The chapters of a leaderboard: standings, questions, and what the model rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import listed, n_of, number, p_words, sentence, with_interval
from dialometer.analysis.families.votes.standings import Standing
from dialometer.analysis.families.votes.system_votes import SystemVotes
from dialometer.analysis.shared.ranking import CORRECTIONS, p_adjusted, standing_words
from dialometer.analysis.shared.subgroups import rater_groups
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval, ranking_intervals
from dialometer.stats.clustered.clustered import clustered_proportion
from dialometer.stats.clustered.homogeneity import homogeneity_clustered
from dialometer.stats.effects.multiplicity import adjust_estimates
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.ranking.votes import FIRST, TIE

MOST_IN_MATRIX = 30


def p_cell(value: float) -> Cell:
    """A p value for a table; None where there was no test."""
    return None if math.isnan(value) else value


def known_cell(estimate: Estimate) -> Cell:
    """An estimate for a table; None where there are not enough data."""
    return estimate if estimate.is_known else None


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


# Leaderboards of subgroups of raters: does another crowd prefer other systems?


FEW_RATERS = 2


def system_group_section(data: StudyData, found: SystemVotes, question: str, options: Options) -> Section:
    """Share of points of every system within each group of raters, and whether the groups differ."""
    groups = rater_groups(data, question, found.votes.raters)
    points, system, rater = points_by_system(found)
    group = groups.of_rater[rater]
    levels = [k for k in range(len(groups.levels)) if groups.n_raters(k) >= FEW_RATERS]
    rows: list[tuple[Cell, ...]] = []
    tests: list[Estimate] = []
    for k, label in enumerate(found.systems):
        kept = (system == k) & np.isin(group, levels)
        tests.append(homogeneity_clustered(points[kept], group[kept], rater[kept], label=label))
    adjusted = adjust_estimates(tests, options.correction)  # type: ignore[arg-type]  # declared by the study
    for k, test in enumerate(adjusted):
        cells = [
            known_cell(
                clustered_proportion(
                    points[(system == k) & (group == level)],
                    rater[(system == k) & (group == level)],
                    confidence=options.confidence,
                )
            )
            for level in range(len(groups.levels))
        ]
        last = [p_cell(test.p_value)]
        last += [p_cell(p_adjusted(test))] if options.correction in CORRECTIONS else []
        rows.append((found.systems[k], *cells, *last))
    table = Table(
        f"subgroup-{question}",
        f"Share of points by “{groups.text}”",
        (Column("system", "System"), *groups.columns(options.correction)),
        tuple(rows),
        caption="A win is one point, a tie half a point; over all questions. Intervals take each rater as one cluster.",
        notes=(groups.note,) if groups.note else (),
    )
    return Section(
        f"subgroup-{question}", f"Subgroups of raters: {question.replace('_', ' ')}", _words(adjusted), (table,)
    )


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


def _words(tests: tuple[Estimate, ...]) -> tuple[str, ...]:
    known = [one for one in tests if not math.isnan(one.p_value)]
    if not known:
        reason = next((note for one in tests for note in one.notes), "not enough data")
        return (f"The groups cannot be compared: {reason}.",)
    apart = [one.label for one in known if p_adjusted(one) <= 1 - one.confidence]
    if apart:
        return (f"The groups differ in how they judge {listed(apart)}. This was not randomised: it describes raters.",)
    smallest = min(p_adjusted(one) for one in known)
    return (f"No difference between the groups can be told from chance (smallest corrected {p_words(smallest)}).",)
