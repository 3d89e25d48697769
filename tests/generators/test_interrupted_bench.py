"""Measuring all generators takes an hour on a processor: what an interrupted run has written is not made again."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bench import _generator_decoding as decoding
from bench import _generator_training as training

from dialometer.generators.bot import BOT_FILE, Bot
from dialometer.generators.decoding import Decoding
from dialometer.generators.training import STATE_FILE
from generators.conftest import SIZES


class Killed(Exception):
    """What ends a run in the middle."""


def measure(corpus, out, follow=lambda _: None):
    training.train_one(
        "hred", corpus, out, SIZES, n_responses=8, follow=follow, n_epochs=2, batch_size=16, device="cpu", seed=1
    )


def test_a_killed_training_continues_and_a_finished_one_stays(corpus, tmp_path):
    def kill(progress):
        if progress.epoch == 1:
            raise Killed

    with pytest.raises(Killed):
        measure(corpus, tmp_path, kill)
    assert (tmp_path / "hred" / STATE_FILE).is_file()
    epochs = []
    measure(corpus, tmp_path, lambda progress: epochs.append(progress.epoch))
    assert set(epochs) == {1}
    before = (tmp_path / "hred" / BOT_FILE).read_bytes()
    measure(corpus, tmp_path, kill)
    assert (tmp_path / "hred" / BOT_FILE).read_bytes() == before


def test_ways_of_decoding_that_were_answered_are_kept(bots, corpus, tmp_path, monkeypatch):
    (tmp_path / "hred").mkdir()
    (tmp_path / "hred" / BOT_FILE).write_bytes((Path(bots) / "hred" / BOT_FILE).read_bytes())
    monkeypatch.setattr(decoding, "WAYS", {"greedy": Decoding("greedy"), "all": Decoding("sample", top_p=1.0)})
    asked = []
    respond = Bot.respond_to_tokens

    def respond_once(self, contexts, way, seeds, **more):
        if asked:
            raise Killed
        asked.append(way)
        return respond(self, contexts, way, seeds, **more)

    with monkeypatch.context() as during:
        during.setattr(Bot, "respond_to_tokens", respond_once)
        with pytest.raises(Killed):
            decoding.answer_in_many_ways(tmp_path, corpus, "cpu", 4)
    half = json.loads((tmp_path / "hred" / "decoding.json").read_text(encoding="utf-8"))["responses"]
    assert set(half) == {decoding.PEOPLE, "greedy"}
    reported = []
    decoding.answer_in_many_ways(tmp_path, corpus, "cpu", 4, lambda what, done, of: reported.append((what, done, of)))
    assert reported == [("hred: all", 1, 2)]
    whole = json.loads((tmp_path / "hred" / "decoding.json").read_text(encoding="utf-8"))["responses"]
    assert set(whole) == {decoding.PEOPLE, "greedy", "all"}
    assert {len(texts) for texts in whole.values()} == {4}


class Wordy:
    """Thinks the better of a dialogue the more words its last turn has."""

    def score(self, dialogues):
        values = np.array([float(len(dialogue.turns[-1].text.split())) for dialogue in dialogues])
        return SimpleNamespace(values=values)


def test_what_an_evaluator_thinks_is_shown_over_seeds_beside_what_needs_no_bot(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(decoding, "WAYS", {"greedy": Decoding("greedy")})
    for seed, longer in enumerate((0, 1, 2)):
        for name, words in (("hred", 4), ("thred", 6)):
            folder = tmp_path / f"seed-{seed}" / name
            folder.mkdir(parents=True)
            said = {decoding.PEOPLE: ["a b c", "d e f g h"], "greedy": [" ".join("x" * (words + longer))] * 2}
            kept = {"contexts": [["Hi.", "Hello."]] * 2, "responses": said, "rows": [1, 2]}
            (folder / "decoding.json").write_text(json.dumps(kept), encoding="utf-8")
    decoding.judge(tmp_path, Wordy(), 2)
    cells = (line.strip("| ").partition(" | ") for line in capsys.readouterr().out.splitlines())
    rows = {name: rest for name, _, rest in cells}
    assert rows["greedy"].startswith(
        "+1.000 [-1.484, +3.484] | +3.000"
    )  # seeds are 0, 1 and 2 words longer than people
    assert rows["mean of all ways"].startswith("+1.000 [-1.484, +3.484] | +3.000")
    assert rows[decoding.ELSEWHERE].startswith("+0.000")
    assert rows[decoding.DULL].startswith("-1.000")
    assert rows["thred less hred"] == "+2.000 [-0.267, +4.267]"  # Student's t with 4 degrees of freedom
