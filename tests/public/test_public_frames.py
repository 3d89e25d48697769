"""Tables to and from pandas without pyarrow, and leaderboards from tables and files."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dialometer as dm
from dialometer.errors import DialometerError, ImportFileError
from dialometer.exchange.importing import import_files
from dialometer.model.report import Column, Table
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.votes import code_votes, win_matrix

RNG = np.random.default_rng(3)
STRENGTH = {"weak": 0.0, "middle": 0.6, "strong": 1.4}


def battles(n=240):
    rows = []
    for k in range(n):
        a, b = RNG.permutation(list(STRENGTH))[:2].tolist()
        first = RNG.random() < 1 / (1 + np.exp(STRENGTH[b] - STRENGTH[a]))
        winner = "tie (bothbad)" if k % 11 == 0 else "tie" if k % 13 == 0 else "model_a" if first else "model_b"
        rows.append({"model_a": a, "model_b": b, "winner": winner, "judge": f"u{k % 30}"})
    return rows


BATTLES = battles()


def test_a_leaderboard_has_the_strengths_of_the_model():
    board = dm.leaderboard(pl.DataFrame(BATTLES))
    assert board["system"].to_list() == ["strong", "middle", "weak"]
    winners = ["tie" if row["winner"].startswith("tie") else row[row["winner"]] for row in BATTLES]
    votes = code_votes([row["model_a"] for row in BATTLES], [row["model_b"] for row in BATTLES], winners)
    plain = bradley_terry(win_matrix(votes), ties="davidson", position_effect=True)
    assert board["strength"].to_list() == pytest.approx(
        [plain.strengths[name].value for name in board["system"]], abs=1e-6
    )
    assert (board["strength_low"] < board["strength"]).all()
    assert board["tied"].sum() == 2 * sum(row["winner"].startswith("tie") for row in BATTLES)
    assert board["won"].sum() == board["lost"].sum() == sum(row["winner"].startswith("model") for row in BATTLES)


def test_pandas_files_and_studies_give_the_same_leaderboard(tmp_path, monkeypatch):
    board = dm.leaderboard(pl.DataFrame(BATTLES))
    assert dm.leaderboard(pd.DataFrame(BATTLES)).equals(board)
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, BATTLES)))
    assert dm.leaderboard(path).equals(board)
    import_files(tmp_path / "study", [path], tmp_path / "study" / "study.db", at_ms=1)
    judgments = dm.read_judgments(tmp_path / "study")
    again = dm.leaderboard(judgments)
    assert again["system"].to_list() == board["system"].to_list()
    assert again["strength_low"].to_list() == pytest.approx(board["strength_low"].to_list())
    monkeypatch.setattr(pl.DataFrame, "to_pandas", lambda *_: pytest.fail("polars' own method needs pyarrow"))
    frame = judgments.to_pandas()
    assert frame.shape == judgments.shape
    assert dm.compare(frame, "strong", "weak").value == dm.compare(judgments, "strong", "weak").value


def test_votes_that_cannot_be_read_say_why(tmp_path):
    with pytest.raises(DialometerError, match="no columns model_a, model_b and winner"):
        dm.leaderboard(pl.DataFrame({"x": [1]}))
    with pytest.raises(DialometerError, match="vote 1: 'nobody' is not a winner"):
        dm.leaderboard([{"model_a": "x", "model_b": "y", "winner": "nobody"}])
    (tmp_path / "votes.csv").write_text("judge,model_a,model_b,winner\nu,x,y,nobody\n")
    with pytest.raises(ImportFileError, match="'nobody' is none of the two systems"):
        dm.leaderboard(tmp_path / "votes.csv")


def test_tables_of_reports_become_frames():
    estimate = dm.Estimate(value=1.5, low=1.0, high=2.0, method="mean", n=4)
    columns = (Column("system", "System"), Column("mean", "Mean", "estimate"), Column("n", "n", "count"))
    table = Table("t", "T", columns, (("x", estimate, 4), ("y", None, None)))
    frame = dm.to_pandas(table)
    assert frame.columns.tolist() == ["system", "mean", "mean_low", "mean_high", "n"]
    assert frame.loc[0].tolist() == ["x", 1.5, 1.0, 2.0, 4.0]
    assert frame["mean"].isna().tolist() == [False, True]
    assert dm.to_pandas([estimate])["high"].tolist() == [2.0]


PROGRAM = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

sys.meta_path.insert(0, Refused())
import dialometer as dm
judgments = dm.read_judgments(sys.argv[1])
frame = judgments.to_pandas()
assert frame.shape == judgments.shape
assert frame["answered_at"].isna().all()
assert dm.to_frame(frame)["choice"].to_list() == judgments["choice"].to_list()
estimates = [dm.compare(table, "strong", "weak") for table in (judgments, frame)]
assert estimates[0].value == estimates[1].value
assert dm.leaderboard(frame).equals(dm.leaderboard(judgments))
"""


@pytest.mark.slow
def test_pandas_needs_no_other_package(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, BATTLES)))
    import_files(tmp_path / "study", [path], tmp_path / "study" / "study.db", at_ms=1)
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "study")], check=True)


def test_a_leaderboard_with_covariates():
    """Strengths with a covariate are those of the model; style is counted where none is named."""
    rows = [
        {
            **row,
            "words_a": 10 + k % 7,
            "words_b": 10 + k % 5,
            "response_a": "a " * (10 + k % 7),
            "response_b": "b " * (10 + k % 5),
        }
        for k, row in enumerate(BATTLES)
    ]
    table = pl.DataFrame(rows)
    board, worth = dm.leaderboard_with_covariates(table, ["words"], n_resamples=50)
    by_style, style = dm.leaderboard_with_covariates(pd.DataFrame(rows), n_resamples=50)
    assert board["strength_high"].to_list() == pytest.approx(by_style["strength_high"].to_list())
    assert worth.row(0)[1:] == pytest.approx(style.row(0)[1:])
    assert style["covariate"].to_list() == ["words", "headings", "lists", "bold", "code", "shown first"]
    assert style["effect"].null_count() == 4
    assert board["system"].to_list() == ["strong", "middle", "weak"]
    assert (board["strength_low"] < board["strength"]).all()
    assert board["strength_without"].to_list() != board["strength"].to_list()
    assert board["rank_high"].to_list()[0] >= board["rank"].to_list()[0]
    with pytest.raises(DialometerError, match="neither a column 'word' nor 'word_a' and 'word_b' — did you mean"):
        dm.leaderboard_with_covariates(table, ["word"])
    with pytest.raises(DialometerError, match="2 votes have no number in 'words_b'"):
        gaps = pl.Series("words_b", [None, 1, None, *[2] * (len(rows) - 3)])
        dm.leaderboard_with_covariates(table.with_columns(gaps), ["words"])
    with pytest.raises(DialometerError, match="no texts to count style in"):
        dm.leaderboard_with_covariates(pl.DataFrame(BATTLES))


def test_a_table_without_criteria_is_about_one():
    """It was refused for want of a column that says the same in every row."""
    rows = [
        {
            "rater": f"r{rater}",
            "item": f"i{item}",
            "system": system,
            "value": int(RNG.integers(1, 6)),
        }
        for rater in range(6)
        for item in range(5)
        for system in ("old", "new")
    ]
    own = pd.DataFrame(rows)
    named = dm.compare(own.assign(criterion="quality"), "new", "old", "quality")
    assert dm.compare(own, "new", "old") == named
    assert dm.icc(own).value == dm.icc(own.assign(criterion="value")).value
    for column in ("system", "value"):
        with pytest.raises(DialometerError, match=f"no column '{column}'"):
            dm.compare(own.drop(columns=column), "new", "old")
    with pytest.raises(DialometerError, match="no column 'criterion'"):
        dm.compare(own, "new", "old", "quality")
