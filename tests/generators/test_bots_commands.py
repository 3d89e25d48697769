"""The commands of ``dialometer bots`` as a newcomer types them, from dialogues to the report of a study."""

import json
import math
import os
import subprocess
import sys
import time

import pytest
import torch

from commands import result_of
from dialometer.cli.bots.train import _report_progress
from dialometer.design.load import load_study
from dialometer.errors import DialometerError
from dialometer.generators.bot import Bot, load_checkpoint
from dialometer.generators.corpus import load_corpus
from dialometer.generators.measures import log_losses
from dialometer.generators.training import TrainingProgress

SIZES = ["--size", "embedding=16", "--size", "hidden=24", "--size", "n_topic_words=6"]


@pytest.fixture
def run():
    """Types a command; gives back its output, or raises what it raised."""

    def type_in(*arguments, given=""):
        done = result_of(*arguments, input=given, catch_exceptions=True)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    return type_in


def items_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_prepare_shows_what_there_is(run, dialogues, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text("garlic\n", encoding="utf-8")
    out = run(
        "bots", "prepare", dialogues, "--out", tmp_path / "c", "--tokens", 400, "--topics", 0, "--profanity", listed
    )
    assert "Avg. length of utterances, words" in out
    assert "turns with unwanted words" in out
    with pytest.raises(DialometerError, match="exists already"):
        run("bots", "prepare", dialogues, "--out", tmp_path / "c")


def test_train_prepares_a_plain_file_and_tells_how_it_went(run, dialogues, tmp_path):
    arguments = ["--out", tmp_path / "b", "--epochs", 1, "--batch-size", 128, "--device", "cpu", *SIZES, "--json"]
    told = json.loads(run("bots", "train", "seq2seq", _without_topics(dialogues, tmp_path), *arguments))
    assert told["model"] == "seq2seq"
    assert told["n_parameters"] > 0
    assert told["tokens_per_s"] > 0
    with pytest.raises(DialometerError, match="holds a bot already"):
        run("bots", "train", "seq2seq", tmp_path / "c", *arguments)
    with pytest.raises(DialometerError, match="is not a size"):
        run("bots", "train", "seq2seq", tmp_path / "c", "--out", tmp_path / "x", "--size", "hidden=big")


def test_progress_of_a_training_counts_the_steps_of_all_epochs():
    """So the minutes that are left are those of the whole training."""
    heard = []
    for epoch, step in ((0, 50), (1, 20)):
        _report_progress(TrainingProgress(epoch, 4, step, 100, 5.0, 1000.0), lambda *said: heard.append(said))
    assert [(done, of) for _, done, of in heard] == [(50, 400), (120, 400)]
    assert {what.partition(",")[0] for what, _, _ in heard} == {"training"}  # one bar


def _without_topics(dialogues, tmp_path):
    """A prepared corpus without topics: fitting them is what takes the time."""
    from dialometer.generators.preparing import Preparation, prepare_corpus

    prepare_corpus([dialogues], tmp_path / "c", Preparation(n_tokens=400, n_topics=0, near_duplicate=2.0))
    return tmp_path / "c"


def test_evaluate_measures_bots_side_by_side(run, bots, corpus_folder):
    named = [f"{name}={bots / name}" for name in ("seq2seq", "hred")]
    arguments = ["bots", "evaluate", *named, "--corpus", corpus_folder, "--responses", 20, "--resamples", 100]
    out = run(*arguments, "--device", "cpu")
    assert "Perplexity" in out
    assert "agree poorly with people's judgments" in " ".join(out.split())
    told = json.loads(run(*arguments, "--device", "cpu", "--json"))
    assert set(told["bots"]) == {"seq2seq", "hred"}
    value = told["bots"]["hred"]["perplexity"]
    assert value["low"] < value["value"] < value["high"]
    assert "over that of the first" in out
    ratio = told["bots"]["hred"]["perplexity_ratio"]["value"]
    assert ratio == pytest.approx(value["value"] / told["bots"]["seq2seq"]["perplexity"]["value"])
    assert "perplexity_ratio" not in told["bots"]["seq2seq"]
    with pytest.raises(DialometerError, match="two bots are called 'hred'"):
        run("bots", "evaluate", bots / "hred", bots / "hred", "--corpus", corpus_folder)


def test_a_bot_of_another_vocabulary_is_refused(run, bots, dialogues, tmp_path):
    other = _without_topics(dialogues, tmp_path)
    with pytest.raises(DialometerError, match="trained with another vocabulary"):
        run("bots", "evaluate", bots / "hred", "--corpus", other, "--device", "cpu")


def test_responses_become_a_study_that_is_rated_and_reported(run, bots, corpus_folder, tmp_path):
    models = [bots / name for name in ("seq2seq", "hred", "thred")]
    out = tmp_path / "items.jsonl"
    run(
        *("bots", "respond", *models, "--items", corpus_folder, "--contexts", 9, "--practice", 1),
        *("--strategy", "sample", "--seed", 4, "--device", "cpu", "--out", out),
    )
    rows = items_of(out)
    assert len(rows) == 9
    assert all(list(row["responses"]) == ["seq2seq", "hred", "thred"] for row in rows)
    assert all(len(row["context"]) == 2 and row["standard"] for row in rows)
    made = rows[3]["metadata"]["generated"]["thred"]
    assert made["decoding"] == {
        **{"strategy": "sample", "top_k": 0, "top_p": 0.9, "temperature": 1.0},
        **{"min_tokens": 2, "max_tokens": 40, "no_repeat": 3},
    }
    provenance = json.loads((tmp_path / "items.jsonl.provenance.json").read_text(encoding="utf-8"))
    assert provenance["systems"]["thred"]["sha256"] == made["sha256"]
    assert len({row["metadata"]["dialogue"] for row in rows}) == 9

    run("new", "anchoring", tmp_path / "s", "--responses", out)
    study = load_study(tmp_path / "s")
    assert len(study.rated_items) == 8
    assert len(study.practice_items) == 1
    assert [system.label for system in study.spec.systems] == ["Seq2Seq", "HRED", "THRED"]
    assert "8 short conversations" in (tmp_path / "s" / "consent.md").read_text(encoding="utf-8")
    run("simulate", tmp_path / "s", "--raters", 8, "--seed", 1)
    run("report", tmp_path / "s", "--out", tmp_path / "report", "--format", "html", "--resamples", 100)
    assert any((tmp_path / "report").rglob("*.html"))


def test_items_of_a_study_are_answered_as_they_are(run, bots, tmp_path):
    items = tmp_path / "in.jsonl"
    row = {
        "id": "q1",
        "context": [{"speaker": "A", "text": "I like the oven."}],
        "standard": "So do I!",
        "responses": {"person": "Me too."},
        "metadata": {"topic": "cooking"},
    }
    items.write_text(json.dumps(row) + "\n", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    run("bots", "respond", f"h={bots / 'hred'}", "--items", items, "--out", out, "--device", "cpu")
    found = items_of(out)[0]
    assert found["responses"]["person"] == "Me too."
    assert set(found["responses"]) == {"person", "h"}
    assert found["metadata"]["topic"] == "cooking"
    long = {**row, "context": [{"speaker": "A", "text": "I like the oven."}] * 4}
    items.write_text(json.dumps(long) + "\n", encoding="utf-8")
    arguments = [
        "bots",
        "respond",
        bots / "hred",
        "--items",
        items,
        "--device",
        "cpu",
        "--out",
        tmp_path / "long.jsonl",
    ]
    with pytest.raises(DialometerError, match="item q1: 4 turns are more than the 3"):
        run(*arguments)
    assert not (tmp_path / "long.jsonl").exists()
    run(*arguments, "--cut")
    with pytest.raises(DialometerError, match="exists already"):
        run(*arguments, "--cut")


def test_contexts_come_from_a_file_of_dialogues_too(run, bots, dialogues, tmp_path):
    out = tmp_path / "out.jsonl"
    listed = tmp_path / "list.txt"
    listed.write_text("like\nsay\nsaid\n", encoding="utf-8")
    arguments = [
        "--items",
        dialogues,
        "--contexts",
        3,
        "--turns",
        1,
        "--device",
        "cpu",
        "--profanity",
        listed,
        "--json",
    ]
    told = json.loads(run("bots", "respond", bots / "seq2seq", *arguments, "--out", out))
    said = {row["id"]: row["turns"] for row in map(json.loads, dialogues.read_text(encoding="utf-8").splitlines())}
    for row in items_of(out):
        turns = said[row["metadata"]["dialogue"]]
        place = turns.index(row["standard"], 1)
        assert row["context"][0]["text"] == turns[place - 1]
    assert told["unwanted"]
    with pytest.raises(DialometerError, match="only 160 of 500 contexts"):
        run("bots", "respond", bots / "seq2seq", "--items", dialogues, "--contexts", 500, "--out", tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "a"}', r"items.jsonl:1: there is no context \[context\] — call the column"),
        (
            '{"id": "a", "responses": {"x": "y", "z": "w"}, "context": "Hello?"}',
            "no standard response.* add 'standard'",
        ),
        ("{", "items.jsonl:1:2: broken JSON"),
    ],
)
def test_new_refuses_items_that_make_no_study(run, tmp_path, line, words):
    path = tmp_path / "items.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(DialometerError, match=words):
        run("new", "anchoring", tmp_path / "s", "--responses", path)
    assert not (tmp_path / "s").exists()
    with pytest.raises(DialometerError, match=r"are about its own systems .* use 'ratings'"):
        run("new", "likert", tmp_path / "s", "--responses", path)


def test_chat_answers_line_by_line(bots):
    command = [sys.executable, "-m", "dialometer", "bots", "chat", str(bots / "hred"), "--json"]
    given = "I like the oven.\nI like the garlic.\n\nnever read\n"
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=600, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["said"] for row in rows] == ["I like the oven.", "I like the garlic."]
    assert all(row["reply"] for row in rows)


def test_a_file_that_cannot_be_learned_from_leaves_no_folder(run, dialogues, tmp_path, monkeypatch):
    single = tmp_path / "single.jsonl"
    single.write_text('{"id": "a", "turns": ["alone"]}\n', encoding="utf-8")
    with pytest.raises(DialometerError, match="none of the 1 dialogues has two turns"):
        run("bots", "train", "hred", single, "--out", tmp_path / "new" / "bot")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(DialometerError, match="several processes cannot prepare"):
        run("bots", "train", "hred", dialogues, "--out", tmp_path / "new" / "bot")
    assert [path.name for path in tmp_path.iterdir()] == ["single.jsonl"]


@pytest.mark.slow
def test_a_killed_training_goes_on_where_it_was(run, corpus_folder, tmp_path):
    """Killed by the system after an epoch, with nothing to say farewell; the weights in the end are the same to the last bit."""
    common = ["bots", "train", "thred", str(corpus_folder), "--epochs", "4", "--batch-size", "16", "--device", "cpu"]
    common += ["--patience", "4", *SIZES]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "dialometer", *common, "--out", str(tmp_path / "cut")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "cut" / "state.pt").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert not (tmp_path / "cut" / "bot.safetensors").exists()
    done = subprocess.run(command, env=environment, capture_output=True, timeout=600, check=True)
    assert b"validation perplexity" in done.stdout
    assert not (tmp_path / "cut" / "state.pt").exists()
    run(*common, "--out", tmp_path / "whole")
    cut, whole = (load_checkpoint(tmp_path / name).model.state_dict() for name in ("cut", "whole"))
    assert all(torch.equal(cut[key], whole[key]) for key in whole)


@pytest.mark.slow
def test_two_processes_train_together(run, corpus_folder, tmp_path):
    """Two processes on the CPU (gloo), started the way several GPUs are, learn what one does with batches twice as large."""
    common = ["bots", "train", "hred", str(corpus_folder), "--epochs", "3", "--device", "cpu", "--json"]
    common += [*SIZES, "--size", "dropout=0", "--learning-rate", "0.02"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command += ["-m", "dialometer", *common, "--out", str(tmp_path / "both"), "--batch-size", "16"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    both = json.loads(done.stdout)
    assert both["n_processes"] == 2
    alone = json.loads(run(*common, "--out", tmp_path / "alone", "--batch-size", 32))
    assert both["validation_perplexity"] == pytest.approx(alone["validation_perplexity"], rel=0.15)
    log = [json.loads(line) for line in (tmp_path / "both" / "training.jsonl").read_text(encoding="utf-8").splitlines()]
    assert log[-1]["validation_perplexity"] < log[0]["validation_perplexity"]
    summed, counted = log_losses(Bot.load(tmp_path / "both"), load_corpus(corpus_folder).split("validation"))
    best = min(entry["validation_perplexity"] for entry in log)  # summed over what each of the two had scored
    assert math.exp(sum(summed) / sum(counted)) == pytest.approx(best, rel=0.01)
