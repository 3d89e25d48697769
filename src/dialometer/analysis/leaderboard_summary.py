"""The first screen of a leaderboard: the answer, how sure it is, and what stands in the way."""

from __future__ import annotations

import math

from dialometer.analysis.family import Options
from dialometer.analysis.leader import p_adjusted, standing_words
from dialometer.analysis.leaderboard_sections import rank_words
from dialometer.analysis.standings import Standing
from dialometer.analysis.system_votes import SystemVotes, duplicate_votes
from dialometer.analysis.words import listed, n_of, percent, sentence
from dialometer.model.report import Headline

MOST_RIVALS = 5


def answer_words(main: Standing, *, name: str) -> str:
    """Who is best, or why nobody can be called so; ``name`` is the question, empty for all together."""
    first, n = main.ranked[0], len(main.ranked)
    where = f" on {name.lower()}" if name else ""
    share = f"{percent(main.wins[first].value)} of choices against the others"
    if main.ranks is None:
        return f"{first} comes first of {n} systems{where}, but one rater cannot speak for others."
    rivals = main.rivals()
    if not rivals:
        return f"{first} is the best of {n} systems{where}: it wins {share}."
    if len(rivals) + 1 == n:
        whom = f"{rivals[0]} may be as good" if n == 2 else f"any of the {n} may be best"
        return f"No best system{where} can be named: {first} comes first with {share}, but {whom}."
    return f"{first} comes first{where} with {share}, but {listed(rivals, most=MOST_RIVALS)} may be as good."


def certainty_words(main: Standing, options: Options, *, is_declared: bool) -> str:
    """How sure the first place is, by the model of all votes and by direct votes alone."""
    first = main.ranked[0]
    basis = f"{n_of(len(main.votes.raters), 'rater')} cast {n_of(main.votes.n, 'vote')}"
    declared = (
        "The comparison was declared beforehand." if is_declared else "No comparison was declared: this is exploratory."
    )
    if main.ranks is None:
        return f"{basis}. {declared}"
    text = f"By the model of all votes, {standing_words(main.leader(), main.contrasts, options.correction)} "
    tested = {pair: one for pair, one in main.pairs.items() if first in pair and not math.isnan(p_adjusted(one))}
    behind = [
        pair
        for pair, one in tested.items()
        if p_adjusted(one) <= 1 - options.confidence and (one.value > 0.5) == (pair[0] == first)
    ]
    if tested:
        text += f"Direct votes alone, without the model, put it ahead of {len(behind)} of the {len(tested)} it met. "
    if main.fit.is_penalised:
        text += "Strengths are a regularised fit, as some systems cannot be placed by maximum likelihood. "
    return f"{text}{basis}. {declared}"


def headlines(main: Standing, *, is_declared: bool) -> tuple[Headline, ...]:
    """The first three systems."""
    found = []
    for system in main.ranked[:3]:
        rank = main.ranks.ranks[system] if main.ranks is not None else None
        place = "" if rank is None or not rank.has_interval else f"Rank interval {rank_words(rank)}; "
        record = main.records[system]
        words = f"{place}won {record.wins}, lost {record.losses}"
        words += f", tied {record.ties}." if record.ties else "."
        found.append(Headline(f"{system}: wins against the others", main.wins[system], sentence(words), is_declared))
    return tuple(found)


def warnings_of(found: SystemVotes, main: Standing) -> tuple[str, ...]:
    """What a reader must know before the first number."""
    said = list(found.notes)
    silent = [name for name in found.systems if name not in main.ranked]
    if silent:
        said.append(f"There are no votes on {listed(silent)} yet, so they are not ranked.")
    if main.fit.is_penalised:
        said.append(
            f"Not all systems can be placed by maximum likelihood ({'; '.join(main.fit.notes)}): more votes between the groups "
            "are needed."
        )
    repeats = duplicate_votes(found)
    if repeats:
        said.append(
            f"{n_of(len(repeats), 'comparison')} received more than one vote of the same rater; see “Repeated votes”."
        )
    return tuple(said)
