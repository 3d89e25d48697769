"""A leaderboard from votes between two systems, as the report of a study has it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from dialometer.analysis.base.family import Options
from dialometer.analysis.families.votes.rankings import SystemRanking, rank_systems
from dialometer.errors import DialometerError, ImportFileError
from dialometer.exchange.formats import ImportOptions, Intake
from dialometer.exchange.formats.votes import ArenaVotes, side_of_vote
from dialometer.exchange.records import JudgmentRecord
from dialometer.model.estimate import Estimate
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.public.frames import DataTable, to_frame
from dialometer.public.judged import of_criterion
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.stats.ranking.votes import Votes, code_votes

_SIDES = (("model_a", "model_b"), ("system_a", "system_b"), ("a", "b"), ("first", "second"))
_RATERS = ("rater", "judge", "user", "user_id", "annotator")
_ITEMS = ("item", "item_id", "question_id")
N_RESAMPLES = 2_000


def leaderboard(votes: Any, criterion: str = "", *, confidence: float = 0.95, seed: int = 1) -> DataTable:
    """Systems by strength, best first, from votes between two: Bradley-Terry strengths, win rates and ranks with intervals.

    ``votes`` is a table (polars, pandas) with ``model_a``, ``model_b`` and ``winner`` (a side, a system's name, ``tie`` or "tie
    (bothbad)"), and ``judge`` or ``rater`` where they are known; or the judgments of
    :func:`~dialometer.public.studies.read_judgments`; or a file that ``dialometer import`` reads as votes. Numbers are those of
    the report for the same votes: ties count half, "both are bad" is a tie, "cannot tell" is no vote. Where raters are known,
    intervals take them as a sample; else every vote counts as a rater of its own.
    """
    rows = list(_from_file(Path(votes)) if isinstance(votes, str | Path) else _from_table(to_frame(votes), criterion))
    kept = [row for row in rows if row[2] != CANNOT_TELL]
    if not kept:
        raise DialometerError("there are no votes between two systems", remedy="give at least one vote")
    coded = _coded(kept)
    options = Options(confidence=confidence, n_resamples=N_RESAMPLES, seed=seed, correction="holm")
    return _as_table(rank_systems(coded, "votes", options, is_order_drawn=True))


Vote = tuple[str, str, str, str, str]
"""First and second system, winner, rater and item; the last two empty where they are not known."""


def _from_file(path: Path) -> Iterator[Vote]:
    source = SourceFile(path)
    source.probe()
    problems = Problems(str(path))
    for record in ArenaVotes().records(Intake(path, source, problems, ImportOptions(), needs_texts=False)):
        if isinstance(record, JudgmentRecord):
            yield (record.shown[0], record.shown[1], str(record.raw), record.rater, record.item)
    if problems.n_errors:
        n_more = problems.n_errors - len(problems.errors)
        raise ImportFileError(problems.errors, n_more=n_more, counts=problems.counts)


def _from_table(table: pl.DataFrame, criterion: str) -> Iterator[Vote]:
    names = set(table.columns)
    if {"order", "choice", "criterion"} <= names:
        for rater, item, choice, order in (
            of_criterion(table, criterion).select("rater", "item", "choice", "order").iter_rows()
        ):
            shown = (order or "").split("|")
            if len(shown) == 2 and choice:
                yield (shown[0], shown[1], choice, str(rater), str(item))
        return
    sides = next((pair for pair in _SIDES if set(pair) <= names), None)
    if sides is None or "winner" not in names:
        wanted = "model_a, model_b and winner" if sides is None else "winner"
        raise DialometerError(f"the votes have no columns {wanted}", remedy=f"the table has {', '.join(table.columns)}")
    rater = next((name for name in _RATERS if name in names), None)
    item = next((name for name in _ITEMS if name in names), None)
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        a, b = (str(row[name]) for name in sides)
        winner = side_of_vote(str(row["winner"]), a, b)
        if not winner:
            remedy = f"write '{a}', '{b}', model_a, model_b, tie, both_bad or cannot_tell"
            raise DialometerError(f"'{row['winner']}' is no winner", where=f"vote {number}", remedy=remedy)
        yield (a, b, winner, str(row[rater]) if rater else "", str(row[item]) if item else "")


def _coded(votes: list[Vote]) -> Votes:
    first, second, winner, rater, item = zip(*votes, strict=True)
    decided = [TIE if who == BOTH_BAD else who for who in winner]
    raters = list(rater) if all(rater) else [f"vote-{number}" for number in range(len(votes))]
    items = {"item": list(item)} if all(item) else {"item": [f"vote-{number}" for number in range(len(votes))]}
    return code_votes(list(first), list(second), decided, rater=raters, **items)


def _as_table(ranking: SystemRanking) -> DataTable:
    rows = []
    for place, system in enumerate(ranking.ranked, start=1):
        record = ranking.records[system]
        ranks = ranking.ranks.ranks[system] if ranking.ranks is not None else None
        rows.append(
            {
                "rank": place,
                "system": system,
                "rank_low": _whole(ranks.low if ranks else math.nan),
                "rank_high": _whole(ranks.high if ranks else math.nan),
                **_three("win_rate", ranking.wins[system]),
                **_three("strength", ranking.strengths[system]),
                "won": record.wins,
                "lost": record.losses,
                "tied": record.ties,
            }
        )
    return DataTable(rows)


def _three(name: str, estimate: Estimate) -> dict[str, float | None]:
    ends = {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return {key: None if math.isnan(value) else value for key, value in ends.items()}


def _whole(number: float) -> int | None:
    return None if math.isnan(number) else round(number)
