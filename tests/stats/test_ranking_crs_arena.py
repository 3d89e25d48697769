"""CRSArena-Dial, open votes (Bernard et al. 2024): 81 votes on nine conversational recommenders, 22 of them ties.

Expected values were made by other software: choix 0.4.1 (``ilsr_pairwise(n, data, tol=1e-12)`` on the doubled votes, a tie
being one vote each way), evalica 0.4.2, scipy's ``binomtest`` with Holm's procedure, and an independent minorisation fit for
the penalised strengths (0.1 pseudo-wins for every ordered pair). Elo ratings are those published with the data.
"""

from __future__ import annotations

import csv
import os
import warnings
from pathlib import Path

import evalica
import numpy as np
import pytest

from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.bradley_terry_bootstrap import bradley_terry_bootstrap
from dialometer.stats.ranking.elo import EloRule, elo, elo_shuffled
from dialometer.stats.ranking.head_to_head import head_to_head, overall_records
from dialometer.stats.ranking.votes import Votes, code_votes, repeated_votes, win_matrix

pytestmark = pytest.mark.realdata

PENALISED = {
    "barcor_opendialkg": 0.025287094403145652,
    "barcor_redial": 0.7406172557104383,
    "chatgpt_opendialkg": 1.2266511397286115,
    "chatgpt_redial": 0.6239902883273362,
    "crbcrs_redial": -0.89500005314037,
    "kbrd_opendialkg": -0.6574855241926512,
    "kbrd_redial": 0.1329602370835291,
    "unicrs_opendialkg": -0.6151968796898925,
    "unicrs_redial": -0.5818235582301475,
}
BEATS_AVERAGE = {"chatgpt_opendialkg": 0.7833374846795604, "crbcrs_redial": 0.28647530134909216}
CHOIX_WITHOUT_KBRD = {
    "barcor_opendialkg": -0.004778971247,
    "barcor_redial": 0.688597481443,
    "chatgpt_opendialkg": 1.403316239761,
    "chatgpt_redial": 0.676056618266,
    "crbcrs_redial": -1.053832357745,
    "unicrs_opendialkg": -0.860336999497,
    "unicrs_redial": -0.849022010981,
}
PUBLISHED_ELO = {
    "chatgpt_opendialkg": 1056,
    "barcor_redial": 1052,
    "chatgpt_redial": 1036,
    "kbrd_redial": 1027,
    "unicrs_redial": 991,
    "unicrs_opendialkg": 974,
    "barcor_opendialkg": 968,
    "kbrd_opendialkg": 966,
    "crbcrs_redial": 930,
}
SHUFFLED_ELO_MEAN_SD = {
    "chatgpt_opendialkg": (1054.12, 3.08),
    "chatgpt_redial": (1041.36, 4.47),
    "crbcrs_redial": (917.47, 4.61),
}
# 2,000 resamples by an independent program, 95 % percentiles, 0.1 pseudo-wins.
STRENGTH_INTERVALS = {
    "barcor_redial": (0.1023, 1.5450),
    "chatgpt_opendialkg": (0.3941, 2.3790),
    "crbcrs_redial": (-1.6471, -0.4028),
    "kbrd_redial": (-0.5215, 0.8056),
}
RANK_INTERVALS = {
    "barcor_opendialkg": (3, 8),
    "barcor_redial": (1, 4),
    "chatgpt_opendialkg": (1, 4),
    "chatgpt_redial": (1, 5),
    "crbcrs_redial": (6, 9),
    "kbrd_opendialkg": (5, 9),
    "kbrd_redial": (2, 7),
    "unicrs_opendialkg": (4, 9),
    "unicrs_redial": (4, 9),
}


def rows() -> list[dict[str, str]]:
    folder = os.environ.get("DIALOMETER_DATA")
    if not folder:
        pytest.skip("DIALOMETER_DATA does not name the folder of public data sets")
    path = Path(folder) / "crs_arena" / "votes_open.csv"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def coded(chosen: list[dict[str, str]]) -> Votes:
    columns = ([row[name] for row in chosen] for name in ("crs1", "crs2", "vote"))
    return code_votes(*columns, rater=[row["user_id"] for row in chosen])


@pytest.fixture(scope="module")
def votes() -> Votes:
    return coded(rows())


def test_the_votes_are_counted_whole(votes):
    matrix = win_matrix(votes)
    assert (votes.n, matrix.ties.sum() / 2, len(votes.raters), votes.n_self) == (81, 22, 80, 0)
    totals = {r.a: (r.wins, r.losses, r.ties) for r in overall_records(matrix)}
    assert totals["chatgpt_redial"] == (15, 7, 1)
    assert totals["crbcrs_redial"] == (3, 18, 7)
    assert totals["unicrs_redial"] == (4, 4, 5)


def test_one_rater_voted_twice_for_the_same(votes):
    (repeat,) = repeated_votes(votes)
    assert repeat.systems == ("chatgpt_opendialkg", "chatgpt_redial")
    assert repeat.is_same
    assert repeat.rows == (41, 42)


def test_two_systems_are_cut_off_and_the_penalised_strengths_agree(votes):
    result = bradley_terry(win_matrix(votes))
    assert result.is_penalised
    assert set(result.groups) == {
        ("kbrd_opendialkg", "kbrd_redial"),
        tuple(name for name in PENALISED if not name.startswith("kbrd")),
    }
    assert "nor tied with, any of the rest: kbrd_opendialkg, kbrd_redial" in " ".join(result.notes)
    for name, expected in PENALISED.items():
        assert result.strengths[name].value == pytest.approx(expected, abs=1e-6)
        assert result.elo[name].value == pytest.approx(1000 + 400 / np.log(10) * expected, abs=1e-4)
    for name, expected in BEATS_AVERAGE.items():
        assert result.beats_average[name].value == pytest.approx(expected, abs=1e-6)
    assert result.ranked == tuple(sorted(PENALISED, key=lambda name: -PENALISED[name]))


def test_without_them_maximum_likelihood_equals_choix_and_evalica():
    chosen = [row for row in rows() if "kbrd" not in row["crs1"] + row["crs2"]]
    result = bradley_terry(win_matrix(coded(chosen)))
    assert not result.is_penalised
    for name, expected in CHOIX_WITHOUT_KBRD.items():
        assert result.strengths[name].value == pytest.approx(expected, abs=1e-6)
    winner = {True: evalica.Winner.X, False: evalica.Winner.Y}
    winners = [evalica.Winner.Draw if row["vote"] == "tie" else winner[row["vote"] == row["crs1"]] for row in chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = evalica.bradley_terry(
            [row["crs1"] for row in chosen], [row["crs2"] for row in chosen], winners, tolerance=1e-12, limit=100_000
        )
    log = np.log(peer.scores)
    for name, expected in (log - log.mean()).items():
        assert result.strengths[name].value == pytest.approx(expected, abs=1e-6)


def test_elo_equals_the_published_ratings(votes):
    result = elo(votes, EloRule(k=16))
    assert {name: round(rating.value) for name, rating in result.ratings.items()} == PUBLISHED_ELO
    assert result.ranked == tuple(PUBLISHED_ELO)
    assert result.ratings["chatgpt_opendialkg"].value == pytest.approx(1056.0127835326707, abs=1e-9)


def test_shuffled_elo_agrees_with_an_independent_shuffle(votes):
    result = elo_shuffled(votes, n_orders=2000, seed=1)
    for name, (mean, sd) in SHUFFLED_ELO_MEAN_SD.items():
        rating = result.ratings[name]
        assert rating.value == pytest.approx(mean, abs=5 * sd * np.sqrt(1 / 1000 + 1 / 2000))
        assert rating.details["sd_over_orders"] == pytest.approx(sd, rel=0.1)


def test_bootstrap_intervals_agree_with_an_independent_bootstrap(votes):
    boot = bradley_terry_bootstrap(votes, prior=0.1, n_resamples=4000, seed=1)
    for name, (low, high) in STRENGTH_INTERVALS.items():
        assert (boot.strengths[name].low, boot.strengths[name].high) == pytest.approx((low, high), abs=0.12)
    for name, (low, high) in RANK_INTERVALS.items():
        assert abs(boot.ranks.ranks[name].low - low) <= 1
        assert abs(boot.ranks.ranks[name].high - high) <= 1
    loose = bradley_terry_bootstrap(votes, prior=0.01, n_resamples=4000, seed=1).ranks
    assert loose.best_share["chatgpt_opendialkg"] == pytest.approx(0.730, abs=0.04)
    assert loose.best_share["barcor_redial"] == pytest.approx(0.1885, abs=0.04)


def test_one_pair_survives_holm(votes):
    records = head_to_head(win_matrix(votes))
    assert len(records) == 16
    tested = [record for record in records if record.share.is_known]
    assert len(tested) == 15
    (clear,) = [record for record in tested if record.share.details["p_adjusted"] < 0.05]
    assert (clear.a, clear.b, clear.wins, clear.losses) == ("chatgpt_redial", "crbcrs_redial", 13, 1)
    assert clear.share.p_value == pytest.approx(0.0018310546875, abs=1e-12)
    assert clear.share.details["p_adjusted"] == pytest.approx(0.0274658203125, abs=1e-12)
    overall = {record.a: record.share for record in overall_records(win_matrix(votes))}
    assert overall["barcor_redial"].p_value == pytest.approx(0.01171875, abs=1e-12)
    assert overall["crbcrs_redial"].details["p_adjusted"] == pytest.approx(0.013406753540039062, abs=1e-12)
