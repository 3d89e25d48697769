"""The sections of a leaderboard: rankings, questions, head-to-head votes, subgroups, and what the model rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import (
    confidence_words,
    inside,
    listed,
    n_of,
    number,
    p_words,
    sentence,
    with_interval,
)
from dialometer.analysis.families.votes.rankings import N_DRAWS, SystemRanking
from dialometer.analysis.families.votes.system_votes import SystemVotes
from dialometer.analysis.families.votes.vote_model import VoteModel, tie_of
from dialometer.analysis.shared.comparisons import (
    first_places_words,
    is_significant,
    known_cell,
    no_position_words,
    p_adjusted,
    p_cell,
    p_cells,
    p_columns,
)
from dialometer.analysis.shared.effect_words import expected_share
from dialometer.analysis.shared.ranking import by_rank, difference, lead_words, rank_range
from dialometer.analysis.shared.subgroups import (
    SMALLEST_OF_PAIRS,
    GroupTest,
    RaterGroups,
    corrected_groups,
    group_notes,
    groups_test,
    no_difference_words,
    rater_groups,
)
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, ColumnKind, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval, ranking_intervals
from dialometer.stats.clustered.two_way import two_way_share
from dialometer.stats.effects.multiplicity import adjust_estimates
from dialometer.stats.observations import Floats, Ints
from dialometer.stats.ranking.bradley_terry import ELO_PER_LOGIT, ELO_START
from dialometer.stats.ranking.vote_variance import is_item_per_rater
from dialometer.stats.ranking.votes import FIRST, TIE

MOST_IN_MATRIX = 30
MOST_IN_TEST_TABLE = 12


def board_section(main: SystemRanking, options: Options, *, is_confirmatory: bool, has_tests: bool) -> Section:
    """The leaderboard that gives the answer; the tests behind it too, unless they stand under what was declared."""
    parts = [board_table("board", main, is_confirmatory=is_confirmatory)]
    if has_tests and main.contrasts:
        title = f"Each pair of systems: {main.label}"
        parts.append(contrasts_table("contrasts", title, main.model, options, is_confirmatory=is_confirmatory))
    return Section(
        "board",
        f"Leaderboard: {main.label}",
        board_words(main, options),
        tuple(parts),
        is_confirmatory=is_confirmatory,
    )


def board_words(ranking: SystemRanking, options: Options) -> tuple[str, ...]:
    """Who is ahead of whom, whether the systems differ at all, and what the fit had to leave open."""
    paragraphs = []
    if not math.isnan(ranking.differ.p_value) and len(ranking.ranked) > 2:  # of two, the next sentence says it
        is_clear = ranking.differ.p_value <= 1 - options.confidence
        differ = "differ significantly" if is_clear else "do not differ significantly"
        paragraphs.append(
            f"The {len(ranking.ranked)} systems {differ} in how often they are preferred{scope_words(ranking.model)} "
            f"({p_words(ranking.differ.p_value)}, the smallest of all pairs, corrected for their number)."
        )
    if ranking.contrasts:
        paragraphs.append(
            f"By the model of all votes, {lead_words(ranking.leader(), ranking.contrasts, options.correction)}"
        )
    if ranking.fit.is_penalised:
        paragraphs.append(
            f"Maximum likelihood has no finite answer here: {'; '.join(_obstacles(ranking))}. The strengths shown are a "
            "regularised fit, which draws extreme strengths together; read their order, not their size."
        )
    return tuple(paragraphs)


def scope_words(model: VoteModel) -> str:
    """What claims are limited to: nothing where raters and items are samples, else the items that were shown."""
    if not model.is_about_these_items:
        return ""
    return " on the one item shown" if model.n_items == 1 else f" on the {model.n_items} items shown"


def _obstacles(ranking: SystemRanking) -> list[str]:
    reasons = [note.partition(": ")[2] for note in ranking.fit.notes if note.startswith("no maximum-likelihood")]
    return reasons or ["the votes leave a parameter open"]


def board_table(name: str, ranking: SystemRanking, *, is_confirmatory: bool = False, like: str = "") -> Table:
    """Ranks with intervals, strengths and records; ``like`` is the table that explains the columns, where another one does."""
    votes = f"{n_of(ranking.votes.n, 'vote')} of {n_of(len(ranking.votes.raters), 'rater')}{_items_words(ranking)}."
    explained = f"The columns are those of “{like}”."
    has_ties = bool(ranking.matrix.tied.any())
    rows: list[tuple[Cell, ...]] = []
    for system in (*ranking.ranked, *(s for s in ranking.fit.systems if s not in ranking.ranked)):
        record = ranking.records[system]
        best = ranking.ranks.best_share[system] if ranking.ranks is not None else math.nan
        rows.append(
            (
                system,
                ranking.ranked.index(system) + 1 if system in ranking.ranked else None,
                rank_words(ranking.ranks.ranks[system] if ranking.ranks is not None else None),
                None if math.isnan(best) else best,
                known_cell(ranking.wins[system]),
                known_cell(ranking.strengths[system]),
                record.wins,
                record.losses,
                *((record.ties,) if has_ties else ()),
            )
        )
    fitted = "regularised Bradley-Terry" if ranking.fit.is_penalised else "Bradley-Terry"
    columns = (
        Column("system", "System"),
        Column("rank", "Rank", "count"),
        Column("rank_interval", "Possible ranks"),
        Column("first", "First", "percent", 0),
        Column("wins_share", "Estimated win rate", "percent_estimate"),
        Column("strength", f"Strength ({fitted})", "estimate"),
        Column("won", "Won", "count"),
        Column("lost", "Lost", "count"),
        *((Column("tied", "Tied", "count"),) if has_ties else ()),
    )
    return Table(
        name,
        f"Leaderboard: {ranking.label}",
        columns,
        tuple(rows),
        caption=f"{votes} {explained if like else _columns_words(ranking)}",
        notes=tuple(sentence(note) for note in ranking.notes),
        is_confirmatory=is_confirmatory,
    )


def _columns_words(ranking: SystemRanking) -> str:
    return (
        "“Possible ranks” are those that the tests of each pair of systems leave open, for all systems at once."
        f"{_first_words(ranking)} The win rate is the estimated probability of being preferred to "
        f"{_others(ranking)}{half_ties(ranking)}; strengths are log odds with mean 0."
    )


def _first_words(ranking: SystemRanking) -> str:
    """What the column "First" says; nothing where it is empty."""
    if ranking.ranks is None:
        return ""
    return (
        f" “First” is the share of {N_DRAWS:,} draws from the estimated sampling distribution of the strengths in which the "
        "system comes first; it describes and is not a test."
    )


def half_ties(*rankings: SystemRanking) -> str:
    """That a tie counts half, to follow what votes are counted to; nothing where nobody tied."""
    return ", a tie counting half" if any(ranking.matrix.tied.any() for ranking in rankings) else ""


def _others(ranking: SystemRanking) -> str:
    return "the other system" if len(ranking.ranked) == 2 else "one of the other systems at random"


def _items_words(ranking: SystemRanking) -> str:
    if not ranking.model.n_items:
        return ""
    kind = " (taken as fixed)" if ranking.model.is_about_these_items else ""
    return f" on {ranking.model.items_words}{kind}"


def contrasts_table(
    name: str, title: str, model: VoteModel, options: Options, *, is_confirmatory: bool = False, caption: str = ""
) -> Table:
    """Each pair of systems by the model of all votes: how often the first is preferred, and the tests that decide."""
    contrasts = model.contrasts
    pairs = list(by_rank(contrasts, model.fit.ranked))
    tied = ", a tie counting half" if model.matrix.tied.any() else ""
    notes = [f"“Preferred” is what the model expects of a vote between the two{tied}; 50% is no difference."]
    if len(model.fit.ranked) > MOST_IN_TEST_TABLE:
        pairs = [pair for pair in pairs if model.fit.ranked[0] in pair]
        notes.append(f"The tests of the first system, corrected for all {len(contrasts)} pairs.")
    rows: list[tuple[Cell, ...]] = []
    for a, b in pairs:
        first, second = (a, b) if contrasts[a, b].value >= 0 else (b, a)
        share, gap = model.win_probability(first, second), difference(contrasts, first, second)
        rows.append(
            (first, second, known_cell(share), gap, *p_cells(contrasts[a, b], options.correction)),
        )
    columns = (
        Column("system", "System"),
        Column("against", "Compared with"),
        Column("preferred", "Preferred", "percent_estimate"),
        Column("difference", "Difference in strength (log odds)", "estimate"),
        *p_columns(options.correction),
    )
    return Table(
        name, title, columns, tuple(rows), caption=caption, notes=tuple(notes), is_confirmatory=is_confirmatory
    )


def rank_words(rank: Estimate | None) -> str:
    """The ranks a system may have, such as "2–4"; empty where nothing is known about them."""
    return rank_range((round(rank.low), round(rank.high)) if rank is not None and rank.has_interval else None)


def board_figure(name: str, ranking: SystemRanking, *, is_confirmatory: bool = False) -> Figure:
    """Systems in order with the interval of their share of wins, and their ranks beside."""
    dots = [Dot(system, ranking.wins[system]) for system in ranking.fit.systems]
    ranges = {
        system: (round(rank.low), round(rank.high))
        for system, rank in (ranking.ranks.ranks.items() if ranking.ranks is not None else ())
        if rank.is_known and not math.isnan(rank.low)
    }
    spec = ranking_intervals(
        dots,
        value_title="estimated win rate",
        rank_ranges=ranges or None,
        reference=0.5,
        is_percent=True,
    )
    details = "; ".join(f"{dot.label}: {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    return Figure(
        name,
        f"Leaderboard: {ranking.label}",
        spec,
        f"Estimated win rate. {details}.",
        caption=_figure_caption(ranking) + (" “Rank”: the ranks that the tests leave open." if ranges else ""),
        is_confirmatory=is_confirmatory,
    )


def _figure_caption(ranking: SystemRanking) -> str:
    """What a figure of win rates is made of, for who sees it without the table."""
    even = "no difference" if len(ranking.ranked) == 2 else "the average"
    level = confidence_words(ranking.model.options.confidence)
    return f"Points: estimated win rates; bars: {level} confidence intervals; dashed line: 50%, {even}."


def questions_section(rankings: Sequence[SystemRanking], overall: SystemRanking, main: SystemRanking) -> Section:
    """The systems on every question side by side, and in full beneath."""
    systems = list(overall.ranked)
    shown = [*rankings, overall]
    columns = (
        Column("system", "System"),
        *(Column(f"question-{k}", ranking.label, "percent_estimate") for k, ranking in enumerate(shown)),
    )
    rows = tuple((system, *(known_cell(ranking.wins[system]) for ranking in shown)) for system in systems)
    wide = Table(
        "questions",
        "Estimated win rates by question",
        columns,
        rows,
        caption=f"The estimated probability of being preferred to {_others(overall)}{half_ties(*shown)}; 50% is "
        f"{'no difference' if len(systems) == 2 else 'average'}.",
    )
    dots = [Dot(system, ranking.wins[system], facet=ranking.label) for ranking in rankings for system in systems]
    figure = Figure(
        "questions-figure",
        "Estimated win rates by question",
        dot_interval(dots, value_title="estimated win rate", reference=0.5, is_percent=True),
        "Estimated win rate. "
        + "; ".join(f"{d.facet}, {d.label}: {with_interval(d.estimate, is_percent=True)}" for d in dots)
        + ".",
        caption=_figure_caption(overall),
    )
    paragraphs = [_leader_words(ranking) for ranking in rankings]
    firsts = {ranking.label: "" if ranking.is_tied else ranking.ranked[0] for ranking in rankings}
    paragraphs += filter(None, [first_places_words(firsts)])
    others = [ranking for ranking in shown if ranking.label != main.label and len(systems) <= MOST_IN_MATRIX]
    tables = [board_table(f"board-{k}", ranking, like=f"Leaderboard: {main.label}") for k, ranking in enumerate(others)]
    return Section("questions", "Question by question", tuple(paragraphs), (wide, figure, *tables))


def _leader_words(ranking: SystemRanking) -> str:
    first = ranking.ranked[0]
    rate = f"with an estimated win rate of {with_interval(ranking.wins[first], is_percent=True)}"
    if ranking.is_tied:
        return f"{ranking.label}: {listed(ranking.ranked)} are tied, {rate}."
    text = f"{ranking.label}: {first} comes first, {rate}"
    rivals = ranking.rivals()
    if ranking.ranks is None:
        return f"{text}."
    if not rivals:
        return (
            f"{text}, significantly ahead of {ranking.ranked[1] if len(ranking.ranked) == 2 else 'every other system'}."
        )
    return f"{text}, but does not differ significantly from {listed(rivals, most=6, conjunction='or')}."


def model_section(rankings: Sequence[SystemRanking], *, has_rankings: bool, is_order_drawn: bool) -> Section:
    """Position on the screen, ties, and how the sequential ratings compare with the model."""
    has_ties = bool(half_ties(*rankings))
    table = _position_table(rankings, has_ties=has_ties)
    paragraphs = []
    tested = {ranking.label: ranking.position for ranking in rankings if ranking.position is not None}
    family = adjust_estimates(list(tested.values()), "holm")
    clear = [label for label, effect in zip(tested, family, strict=True) if is_significant(effect)]
    if not is_order_drawn:
        paragraphs.append(
            "The order on the screen was fixed, so an advantage of the first position cannot be separated from a better system."
        )
    elif clear:
        paragraphs.append(
            f"Position on the screen mattered for {listed(clear)}; the model takes it out of the strengths."
        )
    else:
        paragraphs.append(no_position_words(family))
    if has_rankings:
        paragraphs.append(
            "Rankings were broken into all their pairs, which keeps Bradley-Terry strengths right; confidence intervals and tests "
            "take whole raters and items as units, so that the pairs of one ranking do not count as independent."
        )
    paragraphs += [_elo_words(ranking) for ranking in rankings[:1]]
    return Section(
        "model",
        f"Position on the screen{', ties' if has_ties else ''} and model",
        tuple(paragraphs),
        (table, _elo_table(rankings[0])),
    )


def _position_table(rankings: Sequence[SystemRanking], *, has_ties: bool) -> Table:
    """Points of the first position, and what the model expects of it between equal systems: both with ties as half wins."""
    rows: list[tuple[Cell, ...]] = []
    for ranking in rankings:
        first, outcome = ranking.position, ranking.votes.outcome
        is_known = first is not None and first.is_known
        rows.append(
            (
                ranking.label,
                float(np.where(outcome == TIE, 0.5, outcome == FIRST).mean()),
                float(expected_share(np.array(first.value), tie_of(ranking.fit))) if first and is_known else None,
                first if is_known else None,
                p_cell(first.p_value) if first is not None else None,
                *((float((outcome == TIE).mean()),) if has_ties else ()),
                ranking.fit.method,
            )
        )
    columns = (
        Column("question", "Question"),
        Column("first_points", "Points of the first shown", "percent"),
        Column("first_expected", "Expected between equal systems", "percent"),
        Column("position", "Position effect (log odds)", "estimate"),
        Column("p", "p", "p_value"),
        *((Column("ties", "Ties", "percent"),) if has_ties else ()),
        Column("model", "Model"),
    )
    tied = ("A win is one point, a tie half a point, in both columns.",) if has_ties else ()
    return Table(
        "position",
        f"Position on the screen{', ties,' if has_ties else ''} and the model that was fitted",
        columns,
        tuple(rows),
        notes=(
            *tied,
            "Confidence interval and test of the position effect are over raters and items, like those of the systems; the sentence "
            "above corrects the tests for their number (Holm).",
        ),
    )


def _elo_table(ranking: SystemRanking) -> Table:
    """Elo ratings beside the model's strengths on the same scale."""
    rows: list[tuple[Cell, ...]] = [
        (
            system,
            _as_elo(ranking.strengths[system]),
            known_cell(ranking.elo.ratings[system]),
            ranking.elo.ranked.index(system) + 1,
        )
        for system in ranking.ranked
    ]
    columns = (
        Column("system", "System"),
        Column("model", "Bradley-Terry on the scale of Elo", "estimate", 0),
        Column("elo", "Elo", "estimate", 0),
        Column("elo_rank", "Rank by Elo", "count"),
    )
    return Table(
        "elo",
        f"Elo beside Bradley-Terry: {ranking.label}",
        columns,
        tuple(rows),
        notes=(
            "The interval of Elo is what the order of the same votes does to it, not what other raters would do; that of "
            "Bradley-Terry is the interval of the strength.",
        ),
    )


def _as_elo(strength: Estimate) -> Estimate:
    """A strength on the scale of Elo ratings."""
    value, low, high = (ELO_START + ELO_PER_LOGIT * end for end in (strength.value, strength.low, strength.high))
    return replace(strength, value=value, low=low, high=high, unit="Elo")


def _elo_words(ranking: SystemRanking) -> str:
    if ranking.elo.ranked == ranking.ranked:
        return "Elo ratings, averaged over random orders of the votes, give the same order of systems."
    moved = [a for a, b in zip(ranking.ranked, ranking.elo.ranked, strict=True) if a != b]
    spread = max(float(r.details.get("sd_over_orders", 0.0)) for r in ranking.elo.ratings.values() if r.is_known)
    return (
        f"Elo ratings, averaged over random orders of the votes, order {listed(moved, most=6)} differently; the order of the "
        f"votes alone moves a rating by up to {number(spread, 0)} points (standard deviation)."
    )


def _sampled_items(given: SystemVotes, options: Options) -> NDArray[np.intp] | None:
    """The items of the votes, as far as groups of raters are compared over items too."""
    is_fixed = options.has_fixed_items or is_item_per_rater(given.votes)
    return None if is_fixed else given.votes.prompt_or_item


def groups_over(given: SystemVotes, options: Options) -> str:
    """Over what the tests between groups of raters are."""
    return "raters" if _sampled_items(given, options) is None else "raters and items"


def system_group_section(data: StudyData, given: SystemVotes, question: str, options: Options) -> Section:
    """Share of points of every system within each group of raters, and whether the groups differ."""
    groups = rater_groups(data, question, given.votes.raters)
    points, system, rater = points_by_system(given)
    votes = given.votes
    drawn = _sampled_items(given, options)
    item = None if drawn is None else np.concatenate([drawn, drawn])

    def by_group(code: int, label: str) -> GroupTest:
        own, who = points[system == code], rater[system == code]

        about = None if item is None else item[system == code]

        def share(chosen: NDArray[np.bool_]) -> Estimate:
            shown = None if about is None else about[chosen]
            return two_way_share(own[chosen], who[chosen], shown, confidence=options.confidence)

        return groups_test(groups, own, who, share, items=about, has_items=True, label=label)

    shown = list(enumerate(given.systems))
    if len(shown) == 2:  # the second has what the first has not: one test, not two
        shown = [max(shown, key=lambda one: float(points[system == one[0]].mean()))]
    outcomes = corrected_groups([by_group(code, label) for code, label in shown], options)
    rest = " The other system has the rest of the points." if len(shown) < len(given.systems) else ""
    return votes_by_group(
        groups,
        outcomes,
        options,
        title=f"Share of points by “{groups.text}”",
        kind="percent_estimate",
        caption=f"A win is one point{', a tie half a point' if (votes.outcome == TIE).any() else ''}; over all questions.{rest} "
        f"Confidence intervals and tests are over {groups_over(given, options)}. {SMALLEST_OF_PAIRS}",
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
        notes=group_notes(groups, outcomes),
    )
    apart = [test.label for test in tests if p_adjusted(test) <= 1 - options.confidence]
    words = no_difference_words(tests)
    if apart:
        words = f"The groups differ in how they judge {listed(apart)}. This was not randomised: it describes raters."
    heading = f"Subgroups of raters: {inside(groups.label)}"
    return Section(f"subgroup-{groups.name}", heading, (words,), (table,))


def points_by_system(given: SystemVotes) -> tuple[Floats, Ints, Ints]:
    """Every vote twice, once for each of its systems: points, system and rater."""
    votes = given.votes
    first = np.where(votes.outcome == TIE, 0.5, np.where(votes.outcome == FIRST, 1.0, 0.0))
    rater = votes.rater if votes.rater is not None else np.arange(votes.n)
    return (
        np.concatenate([first, 1 - first]),
        np.concatenate([votes.first, votes.second]),
        np.concatenate([rater, rater]),
    )
