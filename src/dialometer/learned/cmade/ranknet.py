"""The comparison model: one number per dialogue, and from two numbers the probability that the first is better.

Liang et al. 2020, section 4, after RankNet (Burges et al. 2005): o = f(phi(x)) with a linear f, and
P(x_i better than x_j) = sigmoid(o_i - o_j). A model for the paper's baseline by classes has one output per rating instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from dialometer.learned.cmade.encoder import DialogueEncoder, QuickEncoder, Report, moved
from dialometer.learned.cmade.pairwise import all_pairs_lambdas, all_pairs_loss
from dialometer.learned.cmade.tokens import Strip, Tokens
from dialometer.neural.device import Precision, autocast, training_precision

Floats = NDArray[np.float64]


class RankNet(nn.Module):
    """An encoder with a linear head: one output, or one for each of the ``levels`` of a classifier."""

    def __init__(self, encoder: DialogueEncoder, *, levels: Sequence[float] = (), seed: int = 0) -> None:
        super().__init__()
        self.encoder = encoder
        self.levels = tuple(levels)
        self.head = nn.Linear(encoder.width, len(levels) or 1)
        nn.init.normal_(self.head.weight, std=0.02, generator=torch.Generator().manual_seed(seed))
        nn.init.zeros_(self.head.bias)
        self.head.to(encoder.device)

    def forward(self, batch: Strip) -> Tensor:
        """Outputs of the batch's dialogues, dialogues × outputs, in single precision."""
        features = self.encoder(batch)
        with torch.autocast(features.device.type, enabled=False):
            outputs: Tensor = self.head(features)
        return outputs

    @torch.inference_mode()
    def outputs(
        self,
        tokens: Sequence[Tokens],
        *,
        tokens_per_batch: int = 0,
        precision: Precision = "auto",
        report: Report | None = None,
    ) -> Floats:
        """Outputs of all dialogues, dialogues × outputs, without dropout and in bounded memory."""
        was_training = self.training
        self.eval()
        out = np.empty((len(tokens), self.head.out_features))
        n_done = 0
        for rows in self.encoder.batches(tokens, np.arange(len(tokens)), tokens_per_batch, precision):
            with autocast(self.encoder.device.type, precision):
                out[rows] = self(self.encoder.batch(tokens, rows)).cpu().numpy()
            n_done += len(rows)
            if report is not None:
                report(n_done, len(tokens))
        self.train(was_training)
        return out

    def scores(
        self, tokens: Sequence[Tokens], *, precision: Precision = "auto", report: Report | None = None
    ) -> Floats:
        """One number per dialogue, higher for better ones."""
        outputs = self.outputs(tokens, precision=precision, report=report)
        return expected_rating(outputs, np.array(self.levels)) if self.levels else outputs[:, 0]


def expected_rating(outputs: Floats, levels: Floats) -> Floats:
    """The expected value of a rating under its class probabilities, so that two dialogues hardly ever tie.

    Rothe et al. 2015 (DEX), as the paper's baseline by classes uses it.
    """
    shifted = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return np.asarray(shifted @ levels / shifted.sum(axis=1))


class QuickRankNet:
    """A :class:`RankNet` with 8-bit weights, to score dialogues with on a processor."""

    def __init__(self, model: RankNet) -> None:
        self.encoder = model.encoder
        self._quick = QuickEncoder(model.encoder)
        self._weight = model.head.weight.detach().cpu().numpy().astype(np.float64)
        self._bias = model.head.bias.detach().cpu().numpy().astype(np.float64)
        self._levels = np.array(model.levels)

    def scores(self, tokens: Sequence[Tokens], *, report: Report | None = None) -> Floats:
        """As ``RankNet.scores``."""
        outputs = self._quick.features(tokens, report=report) @ self._weight.T + self._bias
        return expected_rating(outputs, self._levels) if len(self._levels) else np.asarray(outputs[:, 0])


# Training on all pairs of a group with one pass per dialogue (Liang et al. 2020, section 5.4).
#
# The loss over all pairs of N dialogues is a function of N outputs, so its gradient by the weights is a weighted sum of the
# outputs' gradients (Theorem 2). :func:`backward` computes the outputs, asks the loss for one weight per output, and sends
# those back, in batches of bounded size. Where the group is too large to keep all activations, they are computed a second time
# with the same dropout (gradient caching, Gao et al. 2021), so memory does not grow with N and the result is the same.
#
# The paper prints Theorem 2 for one step over the whole training set. A group may be that; by default it is a random part of
# it, because a model needs many steps to learn and a step over everything costs a whole pass.


Loss = Callable[[Tensor], Tensor]
"""From the outputs of a group, dialogues × outputs, to one number."""
DIRECT_UP_TO = 1024
"""Dialogues whose pairs are summed one by one, on the device; above, the sub-quadratic sums are quicker."""
_BYTES_A_STATE = 170
"""Of activations, for each token, layer and dimension of a BERT; measured at 150, attention of usual lengths included."""
_MEMORY = Path("/proc/meminfo")
_N_TOLD = 4096  # dialogues from which the loss of a larger group is estimated; its gradient is exact


class _Factored(torch.autograd.Function):
    """The mean loss over all pairs of a large group, its gradient by :func:`~dialometer.learned.cmade.pairwise.all_pairs_lambdas`."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, ratings: NDArray[np.float64]) -> Tensor:
        o = outputs.detach().double().cpu().numpy()
        lambdas, n_pairs = all_pairs_lambdas(o, ratings)
        ctx.save_for_backward(torch.from_numpy(lambdas / max(1, n_pairs)).to(outputs))
        some = np.linspace(0, len(o) - 1, min(len(o), _N_TOLD)).astype(np.int64)
        return outputs.new_tensor(all_pairs_loss(o[some], ratings[some]))

    @staticmethod
    def backward(ctx: Any, *wanted: Any) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        return weights * wanted[0], None


def pairwise_loss(outputs: Tensor, ratings: NDArray[np.float64]) -> Tensor:
    """Mean of -log P(the higher rated is better) over all pairs with different ratings; 0 where there are none."""
    if len(ratings) > DIRECT_UP_TO:
        loss: Tensor = _Factored.apply(outputs, ratings)  # type: ignore[no-untyped-call]
        return loss
    is_above = ratings[:, None] > ratings[None, :]
    above, n_pairs = moved(is_above, outputs.device), int(is_above.sum())
    losses = functional.softplus(outputs[None, :] - outputs[:, None])
    return (losses * above).sum() / max(1, n_pairs)


def backward(
    model: RankNet,
    tokens: Sequence[Tokens],
    rows: NDArray[np.int64],
    loss: Loss,
    *,
    seed: int,
    tokens_per_batch: int = 0,
    tokens_kept: int = 262_144,
    precision: Precision = "auto",
    scale: float = 1.0,
    share: tuple[int, int] = (0, 1),
    add_up: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Adds the gradient of ``loss`` over the dialogues ``rows`` to the model and returns the loss.

    ``seed`` decides dropout, batch by batch. Activations of up to ``tokens_kept`` tokens are kept where half of the free memory
    holds them, others are computed again. ``scale`` multiplies the gradient (16-bit floats need it). Of several processes each
    takes its ``share`` (its number, how many) of the batches; ``add_up`` sums outputs over them, gradients are left for the
    caller to sum.
    """
    device = model.encoder.device
    precision = training_precision(device.type, precision)
    place = {int(row): number for number, row in enumerate(rows)}
    batches = model.encoder.batches(tokens, rows, tokens_per_batch, precision)
    own = range(share[0], len(batches), share[1])
    n_tokens = sum(tokens[row].longest * len(tokens[row].chunks) for row in rows) / share[1]
    is_kept = n_tokens <= min(tokens_kept, _tokens_that_fit(model, device))

    def run(number: int) -> Tensor:
        torch.manual_seed(_mixed(seed, number))
        with autocast(device.type, precision):
            result: Tensor = model(model.encoder.batch(tokens, batches[number]))
        return result

    outputs = torch.zeros(len(rows), model.head.out_features, device=device)
    kept: dict[int, Tensor] = {}
    for number in own:
        with torch.set_grad_enabled(is_kept):
            part = run(number)
        if is_kept:
            kept[number] = part
        outputs[_places(place, batches[number], device)] = part.detach()
    if add_up is not None:
        outputs = add_up(outputs)
    outputs.requires_grad_()
    value = loss(outputs)
    (weights,) = torch.autograd.grad(value, outputs)
    for number in own:
        part = kept.pop(number) if is_kept else run(number)
        part.backward(scale * weights[_places(place, batches[number], device)])  # type: ignore[no-untyped-call]
    return value.detach()


def _tokens_that_fit(model: RankNet, device: torch.device) -> float:
    """How many tokens' activations half of the free memory holds; no limit where that is not known."""
    config = model.encoder.network.config
    n_bytes = _BYTES_A_STATE * int(getattr(config, "num_hidden_layers", 12)) * model.encoder.width
    if device.type == "cuda":
        # What torch holds back for later counts as free.
        held_back = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return (torch.cuda.mem_get_info(device)[0] + held_back) / 2 / n_bytes
    try:
        lines = _MEMORY.read_text().splitlines() if device.type == "cpu" else []
    except OSError:
        lines = []
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
    return free[0] / 2 / n_bytes if free else math.inf


def _places(place: dict[int, int], batch: NDArray[np.int64], device: torch.device) -> Tensor:
    return moved(np.array([place[int(row)] for row in batch], dtype=np.int64), device)


def _mixed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> np.uint64(1))
