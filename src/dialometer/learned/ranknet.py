"""The comparison model: one number per dialogue, and from two numbers the probability that the first is better.

Liang et al. 2020, section 4, after RankNet (Burges et al. 2005): o = f(phi(x)) with a linear f, and
P(x_i better than x_j) = sigmoid(o_i - o_j). A model for the paper's baseline by classes has one output per rating instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialometer.learned.encoder import DialogueEncoder, Precision, Report, half_precision
from dialometer.learned.tokens import Strip, Tokens

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
            with half_precision(self.encoder.device.type, precision):
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
