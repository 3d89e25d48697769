"""Training: it learns, it can be interrupted, it stops by itself; checkpoints hold all that a bot needs."""

import json
import math
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save

from dialometer.errors import DialometerError
from dialometer.generators.batches import Window, examples_of
from dialometer.generators.bot import Bot, load_checkpoint, same_vocabulary
from dialometer.generators.corpus import load_corpus
from dialometer.generators.decoding import Decoding
from dialometer.generators.measures import log_losses
from dialometer.generators.training import STATE_FILE, GeneratorTraining, losses, train
from dialometer.generators.vocabulary import PAD, Vocabulary
from dialometer.neural.training import KEEP_EVERY_S, cosine_decay

SIZES = {"embedding": 16, "hidden": 32, "n_layers": 1, "n_heads": 2, "n_topic_words": 6, "n_turns": 3, "dropout": 0.1}
QUICK = GeneratorTraining(n_epochs=2, batch_size=64, learning_rate=5e-3, n_warmup_steps=10, device="cpu")


def weights_of(path):
    return load_checkpoint(path).model.state_dict()


def test_every_model_learns(bots, corpus):
    """Perplexity falls far below that of the tokens' own frequencies in the same split."""
    split = corpus.split("validation")
    counts = np.bincount(np.asarray(split.tokens), minlength=len(corpus.vocabulary))
    shares = counts[counts > 0] / counts.sum()
    by_frequency = math.exp(-(shares * np.log(shares)).sum())
    for name in ("seq2seq", "hred", "thred", "transformer"):
        record = load_checkpoint(bots / name).record
        assert record["validation_perplexity"] < 0.75 * by_frequency, (name, record)
        lines = (bots / name / "training.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["epoch"] for line in lines] == list(range(1, len(lines) + 1))
        assert not (bots / name / STATE_FILE).exists()


@pytest.mark.parametrize("attention", ["none", "additive"])
def test_hred_with_lstms_learns_speaks_and_comes_back(attention, corpus, tmp_path):
    """HRED as in the study's paper, and with attention: the loss falls, every way of decoding works, the file is the bot."""
    settings = replace(QUICK, n_epochs=3, learning_rate=1e-2)
    built = {"cell": "lstm", "attention": attention}
    path = train("hred", corpus, tmp_path / "a", settings, sizes={**SIZES, **built})
    lines = [json.loads(line) for line in (tmp_path / "a" / "training.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines[-1]["training_loss"] < 0.8 * lines[0]["training_loss"]
    assert lines[-1]["validation_perplexity"] < 0.8 * lines[0]["validation_perplexity"]
    bot = Bot.load(path)
    assert {"cell": bot.model.shape.cell, "attention": bot.model.shape.attention} == built
    assert bot.checkpoint.record["shape"]["cell"] == "lstm"
    assert "LSTM" in bot.model.description
    assert ("no attention" in bot.model.description) == (attention == "none")
    moved = tmp_path / "moved.safetensors"
    moved.write_bytes(path.read_bytes())
    asked = [["I like the oven.", "I like the garlic."], ["I like the comet."]]
    for strategy in ("greedy", "beam", "sample"):
        said = bot.respond(asked, Decoding(strategy), seeds=[1, 2])
        assert all(response.text for response in said)
        assert Bot.load(moved).respond(asked, Decoding(strategy), seeds=[1, 2]) == said


def test_a_checkpoint_from_before_cells_could_be_chosen_still_loads(bots, tmp_path):
    """Such a file says nothing of cells and attention: it was GRUs with attention."""
    path = bots / "hred" / "bot.safetensors"
    with safe_open(path, framework="pt") as kept:
        metadata = kept.metadata()
        tensors = {key: kept.get_tensor(key) for key in kept.keys()}  # noqa: SIM118 - not a dictionary
    about = json.loads(metadata["about"])
    for name in ("cell", "attention"):
        del about["shape"][name]
    old = tmp_path / "old.safetensors"
    old.write_bytes(save(tensors, {**metadata, "about": json.dumps(about)}))
    asked = [["I like the oven."]]
    assert Bot.load(old).model.shape.cell == "gru"
    assert Bot.load(old).respond(asked) == Bot.load(path).respond(asked)


def test_perplexity_is_that_of_a_plain_sum_over_tokens(bots, corpus):
    """One example at a time, one token at a time, in double precision."""
    bot = Bot.load(bots / "hred")
    split = corpus.split("test")
    summed, counted = log_losses(bot, split)
    log_loss, n_tokens = 0.0, 0
    for row in split.examples:
        batch = examples_of(split, np.array([row]), Window(3, 64))
        with torch.no_grad():
            probs = torch.softmax(bot.model(batch)[0].double(), dim=-1)
        for t, token in enumerate(batch.targets[0].tolist()):
            if token != PAD:
                log_loss -= math.log(probs[t, token])
                n_tokens += 1
    assert sum(counted) == n_tokens
    assert sum(summed) == pytest.approx(log_loss, rel=1e-5)
    assert len(summed) == len(np.unique(np.asarray(split.dialogues)))


def test_fewer_turns_can_be_shown_than_a_bot_reads(bots, corpus):
    """Some examples with their last turn alone: as if nothing had been said before it."""
    bot = Bot.load(bots / "hred")
    split = corpus.split("test")
    rows = split.examples[np.asarray(split.places[split.examples]) >= 3]
    summed, counted = log_losses(bot, split, rows=rows, n_turns=1)
    batch = examples_of(split, rows, Window(1, 64))
    with torch.no_grad():
        expected = losses(bot.model(batch), batch.targets, reduction="sum").item()
    assert sum(summed) == pytest.approx(expected, rel=1e-5)
    assert sum(counted) == batch.n_targets
    whole = log_losses(bot, split, rows=rows)[0]
    assert log_losses(bot, split, rows=rows, n_turns=9)[0] == pytest.approx(whole)
    assert abs(sum(whole) - sum(summed)) > 1e-3 * sum(whole)


class _PowerCut(Exception):
    pass


@pytest.fixture(scope="module", params=["thred", "transformer"])
def whole(request, corpus_folder, tmp_path_factory):
    """A training that ran through: the model's name and its weights."""
    folder = tmp_path_factory.mktemp("whole")
    return request.param, weights_of(train(request.param, load_corpus(corpus_folder), folder, QUICK, sizes=SIZES))


@pytest.mark.parametrize("cut_after", [3, 9])
def test_an_interrupted_training_ends_with_the_same_weights(corpus, tmp_path, monkeypatch, whole, cut_after):
    """In its first epoch too: by the clock, since an epoch on a processor may take hours."""
    name, first = whole

    from dialometer.generators.training import _GeneratorTask

    clock = count(step=2 * KEEP_EVERY_S)
    monkeypatch.setattr("dialometer.neural.training.time", SimpleNamespace(monotonic=lambda: next(clock)))
    real = _GeneratorTask.add_gradients

    def add_gradients(self, batch, n_done, scale):
        if n_done >= cut_after:
            raise _PowerCut
        return real(self, batch, n_done, scale)

    monkeypatch.setattr(_GeneratorTask, "add_gradients", add_gradients)
    with pytest.raises(_PowerCut):
        train(name, corpus, tmp_path / "cut", QUICK, sizes=SIZES)
    monkeypatch.setattr(_GeneratorTask, "add_gradients", real)
    assert not (tmp_path / "cut" / "bot.safetensors").exists()
    state = torch.load(tmp_path / "cut" / STATE_FILE, weights_only=True)
    assert state["history"]["n_steps"] == cut_after
    torch.manual_seed(999)
    resumed = train(name, corpus, tmp_path / "cut", QUICK, sizes=SIZES)
    second = weights_of(resumed)
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_resuming_something_else_is_refused(corpus, tmp_path, monkeypatch):
    from dialometer.generators.training import _GeneratorTask

    real = _GeneratorTask.batches

    def batches(self, epoch):
        if epoch:
            raise _PowerCut
        return real(self, epoch)

    monkeypatch.setattr(_GeneratorTask, "batches", batches)
    with pytest.raises(_PowerCut):
        train("seq2seq", corpus, tmp_path / "a", QUICK, sizes=SIZES)
    with pytest.raises(
        DialometerError, match=r"another training: other settings: learning_rate was 0\.005, now 0\.0001"
    ):
        train("seq2seq", corpus, tmp_path / "a", replace(QUICK, learning_rate=1e-4), sizes=SIZES)
    (tmp_path / "a" / STATE_FILE).write_bytes(b"broken")
    with pytest.raises(DialometerError, match="cannot be read"):
        train("seq2seq", corpus, tmp_path / "a", QUICK, sizes=SIZES)


def test_it_stops_when_the_validation_gets_no_better(corpus, tmp_path, monkeypatch):
    from dialometer.generators.training import _GeneratorTask

    values = iter([3.0, 2.0, 2.5, 2.4, 1.0])
    monkeypatch.setattr(_GeneratorTask, "_validation_loss", lambda self: next(values))
    seen = []
    settings = replace(QUICK, n_epochs=9, patience=2)
    path = train("seq2seq", corpus, tmp_path / "a", settings, sizes=SIZES, report=seen.append)
    epochs = [p for p in seen if p.validation_perplexity is not None]
    assert len(epochs) == 4
    assert load_checkpoint(path).record["best_epoch"] == 2
    assert all(p.tokens_per_s > 0 for p in seen)


def test_the_rate_rises_then_falls_to_a_twentieth():
    assert cosine_decay(0, 10, 0.0) == pytest.approx(0.1)
    assert cosine_decay(9, 10, 0.0) == pytest.approx(1.0)
    assert cosine_decay(500, 10, 0.5) == pytest.approx(0.525)
    assert cosine_decay(999, 10, 2.0) == pytest.approx(0.05)


def test_a_time_limit_ends_it_with_a_bot(corpus, tmp_path):
    settings = replace(QUICK, n_epochs=500, max_minutes=0.01)
    path = train("seq2seq", corpus, tmp_path / "a", settings, sizes=SIZES)
    assert Bot.load(path).respond([["I like the oven."]], Decoding("greedy"))[0].text


def test_a_bot_is_not_overwritten_and_topics_are_needed(bots, corpus, tmp_path):
    with pytest.raises(DialometerError, match="holds a bot already"):
        train("hred", corpus, bots / "hred", QUICK, sizes=SIZES)
    with pytest.raises(DialometerError, match="the corpus has none"):
        train("thred", replace(corpus, topics=None), tmp_path / "t", QUICK, sizes=SIZES)
    with pytest.raises(DialometerError, match="did you mean 'seq2seq'"):
        train("seq2sec", corpus, tmp_path / "t", QUICK)
    assert not (tmp_path / "t").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without an NVIDIA GPU")
def test_a_missing_gpu_is_said_before_anything_is_written(corpus, tmp_path):
    with pytest.raises(DialometerError, match="no NVIDIA GPU was found"):
        train("hred", corpus, tmp_path / "t", replace(QUICK, device="cuda"), sizes=SIZES)
    assert not (tmp_path / "t").exists()
    with pytest.raises(DialometerError, match="unknown device"):
        Bot.load(tmp_path, "gpu")


def test_a_checkpoint_is_the_whole_bot(bots, corpus, tmp_path):
    moved = tmp_path / "elsewhere.safetensors"
    moved.write_bytes((bots / "thred" / "bot.safetensors").read_bytes())
    bot = Bot.load(moved)
    assert bot.checkpoint.name == "thred"
    assert bot.checkpoint.record["corpus"] == corpus.fingerprint
    assert bot.model.shape.hidden == 32
    np.testing.assert_array_equal(bot.checkpoint.topics.top_words(6), corpus.topics.top_words(6))
    before = Bot.load(bots / "thred").respond([["I like the oven."]])
    assert bot.respond([["I like the oven."]]) == before


def test_broken_and_foreign_checkpoints_are_refused(bots, tmp_path):
    with pytest.raises(DialometerError, match="no trained bot"):
        load_checkpoint(tmp_path)
    content = (bots / "hred" / "bot.safetensors").read_bytes()
    (tmp_path / "half.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(DialometerError, match="no trained bot"):
        load_checkpoint(tmp_path / "half.safetensors")
    other = Vocabulary.train(["some other words"] * 5, 300)
    with pytest.raises(DialometerError, match="trained with another vocabulary"):
        same_vocabulary(load_checkpoint(bots / "hred"), other, "corpus")


def test_contexts_beyond_the_window_are_errors_unless_they_may_be_cut(bots):
    bot = Bot.load(bots / "hred")
    long = ["I like the oven."] * 4
    with pytest.raises(DialometerError, match="item 7: 4 turns are more than the 3"):
        bot.respond([long], names=["item 7"])
    with pytest.raises(DialometerError, match="tokens is longer than the 63"):
        bot.respond([["garlic pepper " * 60]])
    with pytest.raises(DialometerError, match="nothing to answer"):
        bot.respond([[]])
    with pytest.raises(DialometerError, match="nothing to answer"):
        bot.respond([["  "]])
    assert bot.respond([long], is_cut=True) == bot.respond([long[1:]])
    assert bot.respond([long], is_cut=True)[0].n_turns_read == 3


def test_responses_do_not_depend_on_what_else_is_asked(bots):
    bot = Bot.load(bots / "thred")
    histories = [
        ["I like the oven."],
        ["I like the guitar.", "I like the album."],
        ["You said league, now I say corner!"],
    ]
    for decoding in (Decoding("beam", n_beams=3), Decoding("sample"), Decoding("greedy")):
        together = bot.respond(histories, decoding, seeds=[5, 6, 7])
        alone = [bot.respond([h], decoding, seeds=[s])[0] for h, s in zip(histories, [5, 6, 7], strict=True)]
        assert [s.text for s in together] == [s.text for s in alone]
