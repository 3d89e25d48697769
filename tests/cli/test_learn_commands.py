"""dialometer learn train, score and compare as they are typed, with a very small encoder."""

import contextlib
import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from commands import run
from dialometer.cli import main

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "hello",
    "you",
    "talk",
    "we",
    "like",
    "and",
    "great",
    "fun",
    "sorry",
    "what",
]


def dialometer(*arguments, cwd=None, code=0):
    """The command in this process, since loading torch takes longer than the commands do."""
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    os.chdir(cwd or before)
    ended = 0
    try:
        with (
            mock.patch.object(sys, "argv", ["dialometer", "learn", *map(str, arguments)]),
            mock.patch.dict(os.environ, {"COLUMNS": "200"}),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            main()
    except SystemExit as end:
        ended = end.code or 0
    finally:
        os.chdir(before)
    assert ended == code, out.getvalue() + err.getvalue()
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())


def write_rated(path, n=200, seed=0, rating=None):
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for number in range(n):
            quality = rng.uniform(-1, 1)
            turns = []
            for place in range(int(rng.integers(4, 9))):
                coloured = ["great", "fun"] if rng.uniform(-1, 1) < quality else ["sorry", "what"]
                words = [*rng.choice(WORDS[4:10], 3), str(rng.choice(coloured)), str(rng.choice(WORDS[4:10]))]
                turns.append(
                    {
                        "speaker": ("Agent", "User")[place % 2],
                        "role": ("agent", "user")[place % 2],
                        "text": " ".join(words),
                    }
                )
            given = rating if rating is not None else float(np.clip(np.round(3 + 2.4 * quality), 1, 5))
            metadata = {"rating": given, "user": f"u{number % 50}"}
            file.write(json.dumps({"id": f"d{number}", "turns": turns, "metadata": metadata}) + "\n")
    return path


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=64, **special).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(WORDS), max_position_embeddings=64, **sizes)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    write_rated(folder / "ratings.jsonl")
    options = [
        "--recipe",
        "published",
        "--encoder",
        encoder,
        "--k",
        10,
        "--models",
        2,
        "--learning-rate",
        "3e-3",
        "--device",
        "cpu",
        "--epochs",
        "1,2,2",
    ]
    done = dialometer("train", "ratings.jsonl", *options, "--json", cwd=folder)
    return folder, json.loads(done.stdout), options


def test_train_score_compare(trained):
    folder, about, options = trained
    assert about["n_read"] == 200
    assert about["pairs"] == "held-out ratings 3 points or more apart"
    assert 0 < about["n_not_believed"] < about["n_ratings"]
    low, high = about["interval"]
    assert low < about["stopping_accuracy"] < high
    shown = dialometer("score", "ratings.jsonl", "--out", "scores.csv", "--device", "cpu", cwd=folder).stdout
    assert "200 dialogues" in shown
    rows = list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))
    assert len(rows) == 200
    given = [json.loads(line)["metadata"]["rating"] for line in (folder / "ratings.jsonl").read_text().splitlines()]
    assert np.corrcoef(given, [float(row["score"]) for row in rows])[0, 1] > 0.3
    assert all(float(row["deviation"]) > 0 for row in rows)
    best = max(rows, key=lambda row: float(row["score"]))["id"]
    worst = min(rows, key=lambda row: float(row["score"]))["id"]
    pair = [f"ratings.jsonl#{best}", f"ratings.jsonl#{worst}"]
    found = json.loads(dialometer("compare", *pair, "--json", "--device", "cpu", cwd=folder).stdout)
    assert found["low"] <= found["probability"] <= found["high"]
    assert found["probability"] > 0.5
    assert "A is better with a probability of" in dialometer("compare", *pair, "--device", "cpu", cwd=folder).stdout
    weights = folder / "evaluator" / "member-1.safetensors"
    written_at = weights.stat().st_mtime_ns
    again = dialometer("train", "ratings.jsonl", *options, "--json", cwd=folder)
    assert json.loads(again.stdout) == about
    assert weights.stat().st_mtime_ns == written_at


def test_scores_in_eight_bits(trained):
    folder, _, _ = trained
    exact, quick = (
        json.loads(
            dialometer("score", "ratings.jsonl", "--speed", speed, "--json", "--device", "cpu", cwd=folder).stdout
        )
        for speed in ("exact", "quick")
    )
    scores = [np.array([row["score"] for row in rows]) for rows in (exact, quick)]
    assert np.abs(scores[0] - scores[1]).max() > 0
    ranks = [np.argsort(np.argsort(one)) for one in scores]
    assert np.corrcoef(ranks[0], ranks[1])[0, 1] > 0.98
    refused = dialometer("score", "ratings.jsonl", "--speed", "fast", cwd=folder, code=1)
    assert "there is no speed 'fast'" in refused.stderr


def test_two_collections(trained, tmp_path):
    folder, _, _ = trained
    lines = (folder / "ratings.jsonl").read_text().splitlines()
    good = [line for line in lines if json.loads(line)["metadata"]["rating"] >= 4]
    bad = [line for line in lines if json.loads(line)["metadata"]["rating"] <= 2]
    (tmp_path / "good.jsonl").write_text("\n".join(good))
    (tmp_path / "bad.jsonl").write_text("\n".join(bad))
    options = ["--evaluator", folder / "evaluator", "--json", "--device", "cpu"]
    found = json.loads(dialometer("compare", "good.jsonl", "bad.jsonl", *options, cwd=tmp_path).stdout)
    assert 0.5 < found["low"] < found["probability"] < found["high"]
    assert (found["n_a"], found["n_b"]) == (len(good), len(bad))


def test_dialogues_without_a_turn_of_an_agent_are_named(trained, tmp_path):
    folder, _, _ = trained
    lines = (folder / "ratings.jsonl").read_text().splitlines()[:40]
    mute = {"id": "mute", "turns": [{"speaker": "U", "role": "user", "text": "hi"}] * 4, "metadata": {"rating": 3}}
    (tmp_path / "mixed.jsonl").write_text("\n".join([*lines, json.dumps(mute)]))
    options = ["--evaluator", folder / "evaluator", "--device", "cpu"]
    scored = dialometer("score", "mixed.jsonl", "--out", "scores.csv", *options, cwd=tmp_path)
    assert "1 dialogue without a turn of an agent, and so without a score: 'mute'." in scored.stderr
    assert "40 dialogues, the best first" in scored.stdout
    assert (tmp_path / "scores.csv").read_text().splitlines()[-1] == "mute,,,"
    rows = json.loads(dialometer("score", "mixed.jsonl", "--json", *options, cwd=tmp_path).stdout)
    assert (len(rows), rows[-1]["id"], rows[-1]["score"]) == (41, "mute", None)
    compared = dialometer("compare", "mixed.jsonl", "mixed.jsonl#d1", "--json", *options, cwd=tmp_path)
    assert json.loads(compared.stdout)["n_a"] == 40
    assert "1 dialogue without a turn of an agent, excluded from mixed.jsonl: 'mute'." in compared.stderr
    refused = dialometer("compare", "mixed.jsonl#mute", "mixed.jsonl#d1", *options, cwd=tmp_path, code=1)
    assert "dialogue 'mute' has no turn of an agent" in refused.stderr
    evaluated = dialometer("evaluate", "mixed.jsonl", *options, "--json", cwd=tmp_path)
    assert json.loads(evaluated.stdout)["n_rated"] == 40
    assert "1 dialogue excluded: fewer than 2 utterances on a side" in evaluated.stderr
    (tmp_path / "mute.jsonl").write_text(json.dumps(mute))
    assert (
        "no dialogue has a turn of an agent" in dialometer("score", "mute.jsonl", *options, cwd=tmp_path, code=1).stderr
    )


def test_bad_input_is_told_before_training(tmp_path, encoder):
    write_rated(tmp_path / "few.jsonl", 40)
    insisting = ("train", "few.jsonl", "--recipe", "published")
    assert "too few for 50 neighbours" in dialometer(*insisting, cwd=tmp_path, code=1).stderr
    write_rated(tmp_path / "outside.jsonl", 60, rating=7)
    assert "outside the scale" in dialometer("train", "outside.jsonl", cwd=tmp_path, code=1).stderr
    write_rated(tmp_path / "equal.jsonl", 60, rating=3)
    assert "equal" in dialometer("train", "equal.jsonl", cwd=tmp_path, code=1).stderr
    (tmp_path / "pairs.csv").write_text("first,second,better\nd1,d2,first\nd1,zz,first\n")
    told = dialometer("train", "few.jsonl", "--pairs", "pairs.csv", cwd=tmp_path, code=1).stderr
    assert "pairs.csv:3" in told
    assert "zz" in told
    mute = {"id": "m", "turns": [{"speaker": "U", "role": "user", "text": "hi"}] * 4, "metadata": {"rating": 3}}
    (tmp_path / "mute.jsonl").write_text(json.dumps(mute) + "\n")
    assert "agent" in dialometer("train", "mute.jsonl", cwd=tmp_path, code=1).stderr
    assert "--stages cannot be" in dialometer(*insisting, "--stages", "3,1", cwd=tmp_path, code=1).stderr
    assert "--drop" in dialometer(*insisting, "--drop", "all", cwd=tmp_path, code=1).stderr
    assert "no evaluator here" in dialometer("score", "few.jsonl", cwd=tmp_path, code=1).stderr
    assert not (tmp_path / "evaluator").exists()


def test_judgments_of_a_study_go_in_directly(encoder, tmp_path):
    for arguments in (["new", "chat", "s"], ["simulate", "s", "--raters", "60"]):
        run(*arguments, cwd=tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "s" / "study.db")) as database:
        # Simulated raters all say the same; people do not.
        database.execute("UPDATE chat_turns SET text = text || ' ' || session_id WHERE role = 'user'")
        database.commit()
    options = [
        "--recipe",
        "published",
        "--encoder",
        encoder,
        "--k",
        5,
        "--device",
        "cpu",
        "--epochs",
        "1,1,1",
        "--json",
    ]
    about = json.loads(dialometer("train", "s", *options, cwd=tmp_path).stdout)
    assert about["n_read"] == 80
    assert (tmp_path / "evaluator" / "ratings.jsonl").read_text().count("juno-1") > 10


def test_ablate(encoder, tmp_path):
    write_rated(tmp_path / "ratings.jsonl", 300)
    options = ["--encoder", encoder, "--k", 10, "--splits", 2, "--device", "cpu", "--epochs", "1,1,1"]
    rows = "utterances,tfidf-ridge,pairwise,2-3"
    found = json.loads(dialometer("ablate", "ratings.jsonl", *options, "--rows", rows, "--json", cwd=tmp_path).stdout)
    assert [one["row"] for one in found] == rows.split(",")
    assert found[1]["accuracy"]["wide"] > 0.8
    assert found[2]["standard_error"]["wide"] is not None
    shown = dialometer("ablate", "ratings.jsonl", *options, "--rows", rows, cwd=tmp_path).stdout
    assert "TF-IDF + ridge" in shown
    assert "| stages 2 + 3 |" in (tmp_path / "ablation" / "table.md").read_text()
    assert (tmp_path / "ablation" / "splits.json").is_file()
    assert (
        "no row 'pairwize'" in dialometer("ablate", "ratings.jsonl", "--rows", "pairwize", cwd=tmp_path, code=1).stderr
    )


def test_help_shows_an_example_and_needs_no_torch():
    for verb in ("train", "ablate", "score", "compare"):
        assert "Example" in dialometer(verb, "--help").stdout
    probe = "import sys\nfrom dialometer.cli import build_app\nbuild_app()\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "False"


def test_the_recipe_is_the_best_one_and_options_of_the_other_are_not_passed_over(tmp_path):
    write_rated(tmp_path / "few.jsonl", 60)
    ran = dialometer("train", "few.jsonl", "--aspects", "words,behaviour", "--json", cwd=tmp_path)
    about = json.loads(ran.stdout)
    assert about["recipe"] == "best"
    low, high = about["interval"]
    assert low <= about["cross_validated_accuracy"] <= high
    told = dialometer("train", "few.jsonl", "--k", 5, "--drop-share", "0.2", cwd=tmp_path, code=1).stderr
    assert "--k and --drop-share belong to --recipe published" in told
    assert "add --recipe published" in told
    told = dialometer("train", "few.jsonl", "--recipe", "published", "--aspects", "words", cwd=tmp_path, code=1).stderr
    assert "--aspects belongs to --recipe best" in told
    assert "no recipe 'bets'" in dialometer("train", "few.jsonl", "--recipe", "bets", cwd=tmp_path, code=1).stderr
