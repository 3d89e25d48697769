"""Training learns, stops at the best epoch, and goes on after an interruption as if nothing had happened."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from dialometer.errors import DialometerError
from dialometer.learned.cmade.ranknet import RankNet
from dialometer.learned.cmade.training import (
    AllPairs,
    Classes,
    CmadeTrainingOptions,
    Regression,
    StopPairs,
    share_right,
    train_ranknet,
)

FAST = CmadeTrainingOptions(
    n_epochs=3, learning_rate=3e-3, head_learning_rate=1e-2, group_size=16, tokens_per_batch=300
)


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(other[name], value, rtol=0, atol=0)


@pytest.fixture(scope="module")
def lesson_and_stop(make_encoder, make_dialogues):
    encoder = make_encoder()
    dialogues, quality = make_dialogues(120)
    ratings = np.clip(np.round(3 + 2 * quality), 1, 5)
    stop_dialogues, stop_quality = make_dialogues(60, seed=9)
    order = np.argsort(stop_quality)
    pairs = np.column_stack([order[30:], order[:30]])
    return AllPairs(encoder.tokens(dialogues), ratings, 16), StopPairs(encoder.tokens(stop_dialogues), pairs)


@pytest.fixture(scope="module")
def whole(make_encoder, lesson_and_stop):
    """A training that runs through, its history and its weights."""
    lesson, stop = lesson_and_stop
    model = RankNet(make_encoder())
    history = train_ranknet(model, lesson, FAST, stop=stop)
    return history, weights(model)


@pytest.mark.slow
def test_all_lessons_learn_to_tell_good_from_bad(make_encoder, lesson_and_stop):
    lesson, stop = lesson_and_stop
    levels = tuple(sorted(set(lesson.ratings)))
    options = FAST.model_copy(update={"n_epochs": 12, "tokens_per_batch": 0})
    for taught, classes in (
        (lesson, ()),
        (Regression(lesson.tokens, lesson.ratings, 16), ()),
        (Classes(lesson.tokens, lesson.ratings, levels, 16), levels),
    ):
        model = RankNet(make_encoder(), levels=classes)
        before = share_right(model.scores(stop.tokens), stop.pairs)
        history = train_ranknet(model, taught, options, stop=stop)
        after = share_right(model.scores(stop.tokens), stop.pairs)
        assert after > max(0.85, before)
        assert after == pytest.approx(max(history.scores))
        assert history.losses[-1] < history.losses[0]
        assert history.n_steps == 12 * 8


def test_the_best_epoch_is_kept_and_patience_ends_it(make_encoder, lesson_and_stop):
    lesson, stop = lesson_and_stop
    upside_down = StopPairs(stop.tokens, stop.pairs[:, ::-1])
    model = RankNet(make_encoder())
    options = FAST.model_copy(update={"n_epochs": 8, "patience": 2})
    history = train_ranknet(model, lesson, options, stop=upside_down)
    assert len(history.losses) < 8
    assert history.best_epoch == int(np.argmax(history.scores))
    kept = share_right(model.scores(stop.tokens), upside_down.pairs)
    assert kept == pytest.approx(max(history.scores))


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("at_step", [1, 8, 13, 23])
def test_an_interrupted_training_ends_the_same(make_encoder, lesson_and_stop, whole, tmp_path, at_step):
    lesson, stop = lesson_and_stop
    whole_history, whole_weights = whole

    def interrupt(what, n_done, n_total):
        if n_done == at_step:
            raise Interrupted

    keep = {"checkpoint": tmp_path / "run.checkpoint", "fingerprint": "f", "keep_every_s": 0.0}
    with pytest.raises(Interrupted):
        train_ranknet(RankNet(make_encoder()), lesson, FAST, stop=stop, report=interrupt, **keep)
    torch.rand(17)  # other draws in between make no difference
    seen = []
    resumed = RankNet(make_encoder(seed=5), seed=6)
    history = train_ranknet(resumed, lesson, FAST, stop=stop, report=lambda what, n, total: seen.append(n), **keep)
    assert seen[0] in (at_step, at_step - 1)
    assert history == whole_history
    assert_same(whole_weights, weights(resumed))
    again = RankNet(make_encoder(seed=7))
    assert train_ranknet(again, lesson, FAST, stop=stop, **keep) == whole_history
    assert_same(whole_weights, weights(again))


def test_a_checkpoint_of_another_training_is_refused(make_encoder, lesson_and_stop, tmp_path):
    lesson, _ = lesson_and_stop
    keep = {"checkpoint": tmp_path / "run.checkpoint"}
    train_ranknet(RankNet(make_encoder()), lesson, FAST, fingerprint="one", **keep)
    with pytest.raises(DialometerError, match="belongs to another training"):
        train_ranknet(RankNet(make_encoder()), lesson, FAST, fingerprint="other", **keep)


def test_seeds_make_a_difference_and_the_same_seed_none(make_encoder, lesson_and_stop):
    lesson, stop = lesson_and_stop
    found = []
    for seed in (0, 0, 1):
        model = RankNet(make_encoder())
        state = torch.random.get_rng_state()
        train_ranknet(model, lesson, FAST.model_copy(update={"seed": seed, "n_epochs": 1}), stop=stop)
        assert torch.equal(state, torch.random.get_rng_state())
        found.append(model.scores(stop.tokens))
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 1e-4


def test_small_batches_and_caching_give_the_same_training(make_encoder, lesson_and_stop, whole):
    lesson, stop = lesson_and_stop
    model = RankNet(make_encoder())
    train_ranknet(model, lesson, FAST.model_copy(update={"tokens_kept": 0}), stop=stop)
    assert_same(whole[1], weights(model))


def test_sixteen_bits_on_a_cpu_learn_too(make_encoder, lesson_and_stop):
    lesson, stop = lesson_and_stop
    model = RankNet(make_encoder())
    train_ranknet(
        model,
        lesson,
        FAST.model_copy(update={"precision": "bfloat16", "n_epochs": 12, "tokens_per_batch": 0}),
        stop=stop,
    )
    assert share_right(model.scores(stop.tokens), stop.pairs) > 0.85


PROGRAM = """
import json, sys
sys.path[:0] = {folders!r}
import numpy as np
from conftest import made_up, tiny_encoder
from dialometer.learned.cmade.training import AllPairs
from dialometer.neural.processes import join
from dialometer.learned.cmade.ranknet import RankNet
from dialometer.learned.cmade.training import CmadeTrainingOptions, train_ranknet
processes, device = join("cpu")
encoder = tiny_encoder()
dialogues, quality = made_up(60)
model = RankNet(encoder)
lesson = AllPairs(encoder.tokens(dialogues), np.round(3 + 2 * quality), 20)
options = CmadeTrainingOptions(
    n_epochs=2, learning_rate=3e-3, group_size=20, tokens_per_batch=200, precision="float32"
)
train_ranknet(model, lesson, options, processes=processes)
assert processes.agree(np.full(3, float(processes.number))).tolist() == [0.0] * 3
processes.wait()
if processes.is_first:
    print("RESULT" + json.dumps([processes.count, model.scores(lesson.tokens).tolist()]))
"""


@pytest.mark.slow
def test_two_processes_take_the_same_steps_as_one(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(folders=[str(folder) for folder in Path(__file__).parents[:2]]))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    found = []
    for command in ([sys.executable], launch):
        done = subprocess.run(
            [*command, str(program)], env=environment, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        line = next(line for line in done.stdout.splitlines() if "RESULT" in line)
        found.append(json.loads(line.split("RESULT")[1]))
    assert [n for n, _ in found] == [1, 2]
    # Comparisons say nothing about the common height of all scores: there rounding alone decides.
    one, two = (np.array(scores) - np.mean(scores) for _, scores in found)
    assert one.std() > 0.005
    np.testing.assert_allclose(one, two, atol=1e-5)
