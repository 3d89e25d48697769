"""Nine conversational recommenders ranked from the open votes of CRSArena-Dial."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

from dialometer.analysis.reproduce.compared import (
    REPRODUCTIONS,
    ComparedNumber,
    NumberComparison,
    Reproduction,
    data_file,
    expected,
    named_rows,
)
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.bradley_terry_bootstrap import bradley_terry_bootstrap
from dialometer.stats.ranking.elo import EloRule, elo
from dialometer.stats.ranking.head_to_head import head_to_head, overall_records
from dialometer.stats.ranking.votes import Votes, WinMatrix, code_votes, repeated_votes, win_matrix

CITATION = "Bernard et al., CRSArena-Dial, 2024: 81 open votes, 22 of them ties"
CUT_OFF = "kbrd"
"""Two versions of one system that were never preferred to any other: maximum likelihood exists without them only."""
N_RESAMPLES = 2000
ONE_RANK = 1.0
"""Two bootstraps of 81 votes may disagree by a rank at an interval's end."""


@REPRODUCTIONS.register("crs-arena")
def crs_arena(data: Path | None) -> Reproduction:
    """Reads ``crs_arena/votes_open.csv``."""
    with data_file(data, "crs_arena", "votes_open.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    votes, other = _coded(rows), expected("crs-arena")
    matrix = win_matrix(votes)
    connected = [row for row in rows if CUT_OFF not in row["crs1"] + row["crs2"]]
    fit = bradley_terry(matrix)
    repeats = repeated_votes(votes)
    return Reproduction(
        "crs-arena",
        "CRSArena-Dial: nine conversational recommenders",
        CITATION,
        (
            _counts(votes, matrix, len(repeats), other),
            *_elo(votes, other),
            NumberComparison(
                "Bradley-Terry, penalised (0.1 pseudo-wins for every ordered pair)",
                "independent minorisation-maximisation fit",
                tuple(named_rows({n: e.value for n, e in fit.strengths.items()}, other["penalised"])),
            ),
            NumberComparison(
                "Probability of beating an average opponent, from that fit",
                "independent minorisation-maximisation fit",
                tuple(named_rows({n: e.value for n, e in fit.beats_average.items()}, other["beats_average"])),
            ),
            NumberComparison(
                f"Bradley-Terry, maximum likelihood without {CUT_OFF}",
                "choix 0.4.1, ilsr_pairwise(tol=1e-12) on doubled votes, a tie being one vote each way",
                tuple(named_rows(_likeliest(connected), other["maximum_likelihood_without_kbrd"])),
            ),
            *_tests(matrix, other),
            _ranks(votes, other),
        ),
        (
            *(f"{note[0].upper()}{note[1:]}." for note in fit.notes),
            *(f"One rater voted {len(r.rows)} times on {' and '.join(r.systems)}." for r in repeats),
        ),
    )


def _coded(rows: list[dict[str, str]]) -> Votes:
    first, second, winner, rater = ([row[key] for row in rows] for key in ("crs1", "crs2", "vote", "user_id"))
    return code_votes(first, second, winner, rater=rater)


def _likeliest(rows: list[dict[str, str]]) -> dict[str, float]:
    return {name: e.value for name, e in bradley_terry(win_matrix(_coded(rows))).strengths.items()}


def _counts(votes: Votes, matrix: WinMatrix, n_repeats: int, other: dict[str, Any]) -> NumberComparison:
    there = other["counts"]
    rows = [
        ComparedNumber("votes", votes.n, there["votes"], 0),
        ComparedNumber("ties", float(matrix.ties.sum() / 2), there["ties"], 0),
        ComparedNumber("raters", len(votes.raters), there["raters"], 0),
        ComparedNumber("repeated votes of one rater on one pair", n_repeats, there["repeated"], 0),
    ]
    return NumberComparison("Counts", "pandas", tuple(rows))


def _elo(votes: Votes, other: dict[str, Any]) -> list[NumberComparison]:
    ours = {name: rating.value for name, rating in elo(votes, EloRule(k=16)).ratings.items()}
    published = [
        ComparedNumber(name, round(ours.get(name, math.nan)), there, 0)
        for name, there in other["elo_published"].items()
    ]
    return [
        NumberComparison(
            "Elo, K = 16, in file order", "evalica 0.4.2, elo(k=16)", tuple(named_rows(ours, other["elo"]))
        ),
        NumberComparison("Elo, rounded", "published with the data", tuple(published)),
    ]


def _tests(matrix: WinMatrix, other: dict[str, Any]) -> list[NumberComparison]:
    pairs = {f"{r.a} over {r.b}": r for r in head_to_head(matrix)}
    rows = []
    for label, there in other["head_to_head"].items():
        share = pairs[label].share
        rows.append(ComparedNumber(f"{label}: p", share.p_value, there["p"], is_relative=True))
        rows.append(
            ComparedNumber(
                f"{label}: p, Holm", share.details.get("p_adjusted", math.nan), there["p_holm"], is_relative=True
            )
        )
    overall = {r.a: r.share for r in overall_records(matrix)}
    totals = [
        ComparedNumber(f"{name}: p, Holm", overall[name].details["p_adjusted"], p, is_relative=True)
        for name, p in other["overall_p_holm"].items()
    ]
    source = "scipy.stats.binomtest on decisive votes, Holm's procedure"
    return [
        NumberComparison("Head to head", source, tuple(rows)),
        NumberComparison("Each system against all others", source, tuple(totals)),
    ]


def _ranks(votes: Votes, other: dict[str, Any]) -> NumberComparison:
    boot = bradley_terry_bootstrap(votes, prior=0.1, n_resamples=N_RESAMPLES, seed=1)
    rows = []
    for name, (low, high) in other["rank_intervals"].items():
        ours = boot.ranks.ranks[name]
        rows += [
            ComparedNumber(f"{name}: best rank", ours.low, low, ONE_RANK),
            ComparedNumber(f"{name}: worst rank", ours.high, high, ONE_RANK),
        ]
    return NumberComparison(
        "Rank intervals, 95%, votes resampled (another random sequence: one rank apart is allowed)",
        f"independent bootstrap of {N_RESAMPLES} resamples",
        tuple(rows),
    )
