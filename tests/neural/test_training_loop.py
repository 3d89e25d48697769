"""The one training loop: the best epoch is kept, patience ends it, and checkpoints lead to the same result or are refused."""

import numpy as np
import pytest

from dialometer.errors import DialometerError

torch = pytest.importorskip("torch")

from dialometer.neural.training import (  # noqa: E402 - after the check for torch
    Checkpoint,
    TrainingTask,
    cosine_decay,
    linear_decay,
    run_training,
)

INPUTS = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32))
TARGETS = INPUTS.sum(1, keepdim=True)


class Cut(Exception):
    pass


class Line(TrainingTask):
    """A linear model with dropout, whose random numbers run on from step to step."""

    def __init__(self, scores=(), cut_at=-1):
        torch.manual_seed(3)
        self.network = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        self.optimiser = torch.optim.AdamW([{"params": self.network.parameters(), "rate": 0.02}])
        self.scores, self.cut_at, self.notes = scores, cut_at, []

    def batches(self, epoch):
        return np.array_split(np.random.default_rng(epoch).permutation(40), 5)

    def add_gradients(self, batch, n_done, scale):
        if n_done == self.cut_at:
            raise Cut
        loss = torch.nn.functional.mse_loss(self.network(INPUTS[batch]), TARGETS[batch])
        (scale * loss).backward()
        return loss.detach()

    def measure(self, epoch, loss):
        self.notes.append(epoch)
        return self.scores[epoch] if self.scores else None

    def state(self):
        return {"notes": list(self.notes)}

    def restore(self, state):
        self.notes = list(state["notes"])


def weights(task):
    return [value.clone() for value in task.network.state_dict().values()]


@pytest.mark.parametrize("when", [{"every_s": 0.0}, {"every_s": 1e9, "at_epoch_ends": True}])
@pytest.mark.parametrize("cut_at", [1, 5, 12])
def test_an_interrupted_training_ends_the_same(tmp_path, cut_at, when):
    whole = Line([0.1, 0.3, 0.2])
    history = run_training(whole, 3)
    checkpoint = Checkpoint(tmp_path / "state.pt", {"data": "a"}, **when)
    with pytest.raises(Cut):
        run_training(Line([0.1, 0.3, 0.2], cut_at), 3, checkpoint=checkpoint)
    torch.rand(11)
    resumed = Line([0.1, 0.3, 0.2])
    steps = []
    assert run_training(resumed, 3, checkpoint=checkpoint, report=lambda *now: steps.append(now[1])) == history
    assert steps[0] == {0.0: cut_at, 1e9: cut_at // 5 * 5}[checkpoint.every_s]
    assert all(torch.equal(one, other) for one, other in zip(weights(whole), weights(resumed), strict=True))
    assert resumed.notes == [0, 1, 2]


def test_the_best_epoch_is_kept_and_patience_ends_it():
    task = Line([0.5, 0.2, 0.5, 0.9])
    history = run_training(task, 4, patience=2)
    assert (len(history.losses), history.best_epoch, history.n_steps) == (3, 0, 15)
    assert not task.network.training
    first = Line([0.5])
    first.rate = lambda n_done, n_total: linear_decay(n_done, 20)
    run_training(first, 1)
    assert all(torch.equal(one, other) for one, other in zip(weights(first), weights(task), strict=True))


def test_a_finished_training_is_not_run_again(tmp_path):
    checkpoint = Checkpoint(tmp_path / "state.pt", keeps_result=True)
    done = Line()
    history = run_training(done, 2, checkpoint=checkpoint)
    again = Line(cut_at=0)
    assert run_training(again, 2, checkpoint=checkpoint) == history
    assert all(torch.equal(one, other) for one, other in zip(weights(done), weights(again), strict=True))


def test_other_and_damaged_checkpoints_are_refused(tmp_path):
    path = tmp_path / "state.pt"
    run_training(Line(), 1, checkpoint=Checkpoint(path, {"settings": {"rate": 1, "size": 2}}, at_epoch_ends=True))
    with pytest.raises(DialometerError, match="another training: other settings: rate was 1, now 3"):
        run_training(Line(), 1, checkpoint=Checkpoint(path, {"settings": {"rate": 3, "size": 2}}))
    with pytest.raises(DialometerError, match="belongs to another training"):
        run_training(Line(), 1, checkpoint=Checkpoint(path, {"settings": "x" * 99}))
    path.write_bytes(b"broken")
    with pytest.raises(DialometerError, match="cannot be read"):
        run_training(Line(), 1, checkpoint=Checkpoint(path))


def test_rates_rise_and_fall():
    assert linear_decay(0, 100) == pytest.approx(0.1)
    assert linear_decay(9, 100) == pytest.approx(0.91)
    assert linear_decay(100, 100) == 0
    assert cosine_decay(9, 10, 0.0) == pytest.approx(1.0)
    assert cosine_decay(999, 10, 2.0) == pytest.approx(0.05)
