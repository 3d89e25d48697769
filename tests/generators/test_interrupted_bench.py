"""Measuring all generators takes an hour on a processor: what an interrupted run has written is not made again."""

import json
from pathlib import Path

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
