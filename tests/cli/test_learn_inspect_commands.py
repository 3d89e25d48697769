"""dialometer learn ratings, curve, noise, noisy and judge as they are typed, on dialogues whose quality can be read off."""

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from dialometer.cli import main
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.learned.data.rated import read_rated
from dialometer.simulate.rater import Habits
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

GOOD = ["That is a lovely idea.", "I play the guitar too!", "Thanks, I enjoyed our chat.", "What a great story."]
BAD = ["Sorry, I did not get that.", "Please repeat the question.", "Error, no answer found.", "I said that already."]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with ratings of which every fifth is turned round, and a cache that all tests share."""
    folder = tmp_path_factory.mktemp("inspect")
    rng = np.random.default_rng(0)
    with (folder / "ratings.jsonl").open("w") as out:
        for number in range(200):
            quality = int(rng.integers(1, 6))
            turns = []
            for place in range(6):
                said = (GOOD if rng.random() < (quality - 1) / 4 else BAD)[int(rng.integers(4))]
                turns.append(
                    {"speaker": "Bot" if place % 2 else "User", "role": "agent" if place % 2 else "user", "text": said}
                )
            turns[0]["text"] = f"Hello number {number}. {turns[0]['text']}"
            rating = 6 - quality if number % 5 == 0 else quality
            record = {"id": f"d{number}", "turns": turns, "metadata": {"rating": rating, "user": f"u{number % 50}"}}
            out.write(json.dumps(record) + "\n")
    with (folder / "pairs.csv").open("w") as out:
        out.write("first,second,better\n")
        out.writelines(f"d{n},d{n + 1},first\n" for n in range(1, 41, 3))
    return folder


def dialometer(folder, *arguments, code=0):
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    ended = 0
    try:
        with (
            mock.patch.object(sys, "argv", ["dialometer", "learn", *map(str, arguments)]),
            mock.patch.dict(os.environ, {"COLUMNS": "200", "DIALOMETER_CACHE": str(folder / "cache")}),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            main()
    except SystemExit as end:
        ended = end.code or 0
    finally:
        os.chdir(before)
    assert ended == code, out.getvalue() + err.getvalue()
    return out.getvalue() + err.getvalue() if code else out.getvalue()


def test_noisy_ratings_are_found_and_shown(place):
    rows = json.loads(
        dialometer(place, "noisy", "ratings.jsonl", "--k", "15", "--top", "12", "--device", "cpu", "--json")
    )
    assert len(rows) == 12
    assert np.mean([int(row["id"][1:]) % 5 == 0 for row in rows]) > 0.8
    page = (place / "noisy.html").read_text()
    assert rows[0]["id"] in page
    assert "dialometer learn noisy ratings.jsonl --k 15" in page
    assert (place / "cache" / "embeddings").is_dir()


def test_noisy_ratings_by_expert_pairs(place):
    told = dialometer(
        place,
        "noisy",
        "ratings.jsonl",
        "--pairs",
        "pairs.csv",
        "--k",
        "10",
        "--device",
        "cpu",
        "--out",
        "by/experts.html",
    )
    assert "ratings have a negative value" in told
    assert "valued by the experts' pairs" in (place / "by" / "experts.html").read_text()


def test_ratings_are_described(place):
    told = dialometer(place, "ratings", "ratings.jsonl", "--k", "15", "--device", "cpu", "--pairs", "pairs.csv")
    assert "Share of each rating" in told
    content = json.loads(dialometer(place, "ratings", "ratings.jsonl", "--no-features", "--json"))
    assert [section["name"] for section in content["sections"]] == ["shape", "gaps"]
    assert "give --pairs" in content["sections"][1]["problem"]
    assert (place / "ratings-report" / "index.html").exists()


def test_the_curve_has_a_row_for_each_k(place):
    told = dialometer(
        place,
        "curve",
        "ratings.jsonl",
        "--neighbours",
        "1,5",
        "--splits",
        "2",
        "--k",
        "15",
        "--any-length",
        "--device",
        "cpu",
    )
    assert "Lowest value first" in told
    assert (place / "curve" / "tables" / "removal.csv").exists()
    assert list((place / "curve").rglob("*.svg"))
    assert "--neighbours needs whole numbers" in dialometer(
        place, "curve", "ratings.jsonl", "--neighbours", "a", code=1
    )


def test_the_noise_experiment_prints_every_detector(place):
    told = dialometer(place, "noise", "ratings.jsonl", "--repetitions", "2", "--k", "15", "--device", "cpu")
    for detector in ("Shapley value", "loss", "combination", "observed rating alone", "true quality"):
        assert detector in told
    assert "a share of 2 cannot be changed" in dialometer(place, "noise", "ratings.jsonl", "--share", "2", code=1)


def test_what_cannot_be_valued_is_told(place):
    assert "unknown engine 'rai'" in dialometer(place, "noisy", "ratings.jsonl", "--engine", "rai", code=1)
    assert "too few for 500 neighbours" in dialometer(
        place, "noisy", "ratings.jsonl", "--k", "500", "--device", "cpu", code=1
    )
    assert "--flag needs the folder of a study" in dialometer(place, "noisy", "ratings.jsonl", "--flag", code=1)


def test_a_studys_flags_and_judges(tmp_path):
    copy_template("chat", tmp_path / "chat")
    copy_template("likert", tmp_path / "likert")
    for name in ("chat", "likert"):
        study = load_study(tmp_path / name)
        with Store.open(tmp_path / name / "study.db") as store:
            door = EngineAccess(Flow(study, store, clock=lambda: 1_800_000_000_000))
            truth = draw_truth(study, 5)
            simulate(study, door, truth, n_raters=16, seed=5, start_ms=1_800_000_000_000, habits=Habits())
    # Simulated raters all say the same, so that only experts can tell their conversations apart.
    rated = sorted(read_rated(tmp_path / "chat"), key=lambda one: one.rating)
    pairs = [f"{high.id},{low.id},first" for low, high in zip(rated[:4], rated[-4:], strict=True)]
    (tmp_path / "pairs.csv").write_text("\n".join(["first,second,better", *pairs]))
    arguments = ("--pairs", "pairs.csv", "--flag", "--k", "3", "--top", "2", "--device", "cpu")
    told = dialometer(tmp_path, "noisy", "chat", *arguments)
    assert "new flags in the study" in told
    study = load_study(tmp_path / "likert")
    lines = [f"{item.id},{system},{3 + n % 3}" for n, item in enumerate(study.rated_items) for system in item.systems]
    (tmp_path / "scores.csv").write_text("\n".join(["id,system,score", *lines]))
    told = json.loads(dialometer(tmp_path, "judge", "likert", "scores.csv", "--name", "LLM judge", "--json"))
    assert told == {"name": "LLM judge", "n_judgments": len(lines)}
