"""`accelerate launch` with the command line itself: two processes end with the evaluator of one."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

LIMIT_S = 300
LAUNCH = [
    "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
    "--mixed_precision", "no", "--dynamo_backend", "no", "-m", "dialometer",
]  # fmt: skip


def write_ratings(path, dialogues, quality):
    with path.open("w", encoding="utf-8") as file:
        for number, (one, good) in enumerate(zip(dialogues, quality, strict=True)):
            turns = [{"speaker": turn.speaker, "role": turn.role, "text": turn.text} for turn in one.turns]
            about = {"rating": float(np.clip(round(3 + 2 * good), 1, 5)), "user": f"u{number // 3}"}
            file.write(json.dumps({"id": one.id, "turns": turns, "metadata": about}) + "\n")


@pytest.mark.slow
def test_two_launched_processes_end_with_the_evaluator_of_one(tmp_path, make_dialogues, tiny_encoder_folder):
    write_ratings(tmp_path / "ratings.jsonl", *make_dialogues(120))
    options = [
        "--recipe",
        "published",
        "--encoder",
        tiny_encoder_folder,
        "--k",
        "10",
        "--epochs",
        "1,1,1",
        "--group-size",
        "64",
    ]
    options += ["--learning-rate", "0.001", "--precision", "float32", "--device", "cpu", "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = {}
    for name, program in (("one", ["dialometer"]), ("two", LAUNCH)):
        done = subprocess.run(
            [sys.executable, "-m", *program, "learn", "train", "ratings.jsonl", "--out", name, *options],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        # Only the first process speaks.
        assert done.stdout.count('"n_ratings"') == 1
        found[name] = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert found["two"].pop("evaluator") == "two"
    found["one"].pop("evaluator")
    assert found["two"]["n_not_believed"] == found["one"]["n_not_believed"]
    assert found["two"]["reliability"] == pytest.approx(found["one"]["reliability"], abs=1e-4)
    scores = [scores_of(tmp_path / name, make_dialogues(40, seed=5)[0]) for name in ("one", "two")]
    assert scores[0].std() > 0.01
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-3 * scores[0].std())


def scores_of(folder, dialogues):
    from dialometer.learned.evaluators import load_evaluator

    return load_evaluator(folder, device="cpu").score(dialogues).values
