"""Leaderboards from votes between two systems: as the report of a study has it, and with covariates such as style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from dialometer.analysis.base.family import Options
from dialometer.analysis.families.votes.rankings import SystemRanking, rank_systems
from dialometer.errors import DialometerError, ImportFileError
from dialometer.exchange.formats import ImportOptions, Intake
from dialometer.exchange.formats.votes import ArenaVotes, side_of_vote
from dialometer.exchange.records import JudgmentRecord
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.values import BOTH_BAD, CANNOT_TELL, TIE
from dialometer.public.frames import DataTable, to_frame
from dialometer.public.judged import of_criterion
from dialometer.public.vote_covariates import covariate_columns, style_columns
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.stats.observations import from_the_highest
from dialometer.stats.ranking.covariates import covariate_rows, distinct_covariates, likeliest
from dialometer.stats.ranking.covariates_bootstrap import CovariateBootstrap, bootstrap_with_covariates
from dialometer.stats.ranking.style import STYLE
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
    votes_read = _from_file(Path(votes)) if isinstance(votes, str | Path) else _from_table(to_frame(votes), criterion)
    coded = _coded(_decided(votes_read))
    options = Options(confidence=confidence, n_resamples=N_RESAMPLES, seed=seed, correction="holm")
    return _as_table(rank_systems(coded, "votes", options, is_order_drawn=True))


class CovariateLeaderboard(NamedTuple):
    """Systems by strength, best first, and what the covariates are worth."""

    systems: DataTable
    covariates: DataTable


def leaderboard_with_covariates(
    votes: Any,
    covariates: Sequence[str] = (),
    criterion: str = "",
    *,
    n_resamples: int = 1_000,
    confidence: float = 0.95,
    seed: int = 1,
) -> CovariateLeaderboard:
    """Systems by strength with style (or anything else that differs between the two sides) held equal.

    ``votes`` is a table as for :func:`leaderboard`. A covariate is a column with a number for each vote, the difference of the
    first side to the second, or the beginning of two columns, ``words`` for ``words_a`` and ``words_b``, whose relative
    difference ``(a - b) / (a + b)`` is taken. Without any, style is counted in what both sides wrote (``response_a``,
    ``conversation_a`` and the like): words, headings, list items, bold passages and code.

    The model is Bradley-Terry with the covariates in standard deviations and the advantage of the first place; ties count
    half. Intervals are percentiles of a bootstrap over raters, over raters and items where several raters voted on an item (then as
    wide as the jackknife of a report's section on style), or over votes where raters are not known.
    ``rank_without`` and ``strength_without`` are those without covariates. A covariate that differs only as the systems or those
    before it do has no effect of its own (``null``).
    """
    table = to_frame(votes)
    ballots = _decided(_from_table(table, criterion))
    names = tuple(covariates) or STYLE
    shown = table[ballots["row"]]
    differences = covariate_columns(shown, names) if covariates else style_columns(shown)
    coded = _coded(ballots, is_every_vote_a_rater=False)
    differences = differences[coded.row]
    spread = differences.std(axis=0)
    scaled = np.divide(differences, spread, out=np.zeros_like(differences), where=spread > 1e-9)
    distinct = distinct_covariates(coded, scaled)
    fit = bootstrap_with_covariates(
        coded,
        scaled[:, distinct],
        [names[k] for k in distinct],
        position_effect=True,
        n_resamples=n_resamples,
        confidence=confidence,
        seed=seed,
    )
    plain = covariate_rows(coded, np.zeros((coded.n, 0)), position_effect=True)
    without = dict(zip(coded.systems, likeliest(plain, np.ones(coded.n)).tolist(), strict=False))
    return CovariateLeaderboard(_adjusted(fit, without), _effects(fit, names))


def _adjusted(fit: CovariateBootstrap, without: dict[str, float]) -> DataTable:
    ranked = from_the_highest({name: strength.value for name, strength in fit.strengths.items()})
    plain = from_the_highest(without)
    rows = [
        {
            "rank": place,
            "system": name,
            "rank_low": _whole(fit.ranks.ranks[name].low),
            "rank_high": _whole(fit.ranks.ranks[name].high),
            **_three("strength", fit.strengths[name]),
            "rank_without": plain.index(name) + 1,
            "strength_without": without[name],
        }
        for place, name in enumerate(ranked, start=1)
    ]
    return DataTable(rows)


def _effects(fit: CovariateBootstrap, names: Sequence[str]) -> DataTable:
    known = {estimate.label: estimate for estimate in (*fit.coefficients, fit.position) if estimate is not None}
    nothing = unknown("", "")
    rows = [{"covariate": name, **_three("effect", known.get(name, nothing))} for name in (*names, "shown first")]
    return DataTable(
        rows, schema={"covariate": pl.String, **dict.fromkeys(("effect", "effect_low", "effect_high"), pl.Float64)}
    )


BALLOT = {"first": pl.String, "second": pl.String, "winner": pl.String, "rater": pl.String, "item": pl.String}
"""Columns of votes as they were read; rater and item are null where they are not known, ``row`` is the vote's place."""


def _decided(ballots: pl.DataFrame) -> pl.DataFrame:
    kept = ballots.filter(pl.col("winner") != CANNOT_TELL)
    if kept.is_empty():
        raise DialometerError("there are no votes between two systems", remedy="give at least one vote")
    return kept


def _from_file(path: Path) -> pl.DataFrame:
    source = SourceFile(path)
    source.probe()
    problems = Problems(str(path))
    records = ArenaVotes().records(Intake(path, source, problems, ImportOptions(), needs_texts=False))
    votes = [
        (record.shown[0], record.shown[1], str(record.raw), record.rater, record.item)
        for record in records
        if isinstance(record, JudgmentRecord)
    ]
    if problems.n_errors:
        n_more = problems.n_errors - len(problems.errors)
        raise ImportFileError(problems.errors, n_more=n_more, counts=problems.counts)
    return pl.DataFrame(votes, schema=BALLOT, orient="row").with_row_index("row")


def _from_table(table: pl.DataFrame, criterion: str) -> pl.DataFrame:
    names = set(table.columns)
    if {"order", "choice", "criterion"} <= names:
        shown = pl.col("order").str.split("|")
        numbered = of_criterion(table.with_row_index("row"), criterion)
        return numbered.filter((shown.list.len() == 2) & (pl.col("choice") != "")).select(
            shown.list.get(0, null_on_oob=True).alias("first"),
            shown.list.get(1, null_on_oob=True).alias("second"),
            pl.col("choice").alias("winner"),
            pl.col("rater").cast(pl.String),
            pl.col("item").cast(pl.String),
            "row",
        )
    sides = next((pair for pair in _SIDES if set(pair) <= names), None)
    if sides is None or "winner" not in names:
        needed = "model_a, model_b and winner" if sides is None else "winner"
        raise DialometerError(f"the votes have no columns {needed}", remedy=f"the table has {', '.join(table.columns)}")
    rater = next((name for name in _RATERS if name in names), None)
    item = next((name for name in _ITEMS if name in names), None)
    text = {"first": sides[0], "second": sides[1], "said": "winner", "rater": rater, "item": item}
    ballots = table.select(
        (pl.col(column) if column else pl.lit(None)).cast(pl.String).alias(name) for name, column in text.items()
    ).with_row_index("row")
    return _with_winners(ballots)


def _with_winners(ballots: pl.DataFrame) -> pl.DataFrame:
    """What each vote said as the winner's name; each way of saying it between two systems is read once."""
    ways = ballots.group_by("first", "second", "said").agg(pl.col("row").min())
    meant = [
        side_of_vote(str(said), str(a), str(b)) for a, b, said in ways.select("first", "second", "said").iter_rows()
    ]
    ways = ways.with_columns(pl.Series("winner", meant, dtype=pl.String))
    wrong = ways.filter(pl.col("winner") == "").sort("row")
    if len(wrong):
        a, b, said, row, _ = wrong.row(0)
        remedy = f"write '{a}', '{b}', model_a, model_b, tie, both_bad or cannot_tell"
        raise DialometerError(f"'{said}' is not a winner", where=f"vote {row + 1}", remedy=remedy)
    return ballots.join(
        ways.drop("row"), on=["first", "second", "said"], how="left", maintain_order="left", nulls_equal=True
    )


def _coded(ballots: pl.DataFrame, *, is_every_vote_a_rater: bool = True) -> Votes:
    """Coded votes. Where raters are not known, every vote has one of its own, or (where that is not wanted) none."""
    is_known = {
        name: not ballots.select((pl.col(name).is_null() | (pl.col(name) == "")).any()).item()
        for name in ("rater", "item")
    }
    if is_every_vote_a_rater or any(is_known.values()):
        numbered = pl.format("vote-{}", pl.int_range(pl.len()))
        ballots = ballots.with_columns(numbered.alias(name) for name in is_known if not is_known[name])
        is_known = dict.fromkeys(is_known, True)
    return code_votes(
        ballots["first"].to_numpy(),
        ballots["second"].to_numpy(),
        ballots["winner"].replace(BOTH_BAD, TIE).to_numpy(),
        rater=ballots["rater"].to_numpy() if is_known["rater"] else None,
        item=ballots["item"].to_numpy() if is_known["item"] else None,
    )


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
