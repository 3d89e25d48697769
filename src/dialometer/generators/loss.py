"""What training makes small, on one batch or on a whole split, and how fast it is allowed to go."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from dialometer.generators.ahead import made_ahead
from dialometer.generators.batches import by_length, examples_of
from dialometer.generators.corpus import Split
from dialometer.generators.generator import Generator
from dialometer.generators.vocabulary import PAD


def losses(scores: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
    """Cross entropy of the targets; padding does not count."""
    flat = scores.flatten(0, 1).float()
    return cross_entropy(
        flat, targets.flatten(), ignore_index=PAD, label_smoothing=label_smoothing, reduction=reduction
    )


def scheduled(n_done: int, n_warmup: int, along: float) -> float:
    """Share of the learning rate: rises in a line over the first steps, falls along half a cosine to a twentieth.

    ``along`` is how much of the training is over, from 0 to 1.
    """
    rise = min(1.0, (n_done + 1) / max(1, n_warmup))
    return rise * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, along))))


@torch.inference_mode()
def validation_sums(model: Generator, split: Split, accelerator: Any, size: int) -> Tensor:
    """Summed negative log likelihood and number of tokens of this process's share of a split."""
    model.eval()
    sums = torch.zeros(2, dtype=torch.float64, device="cpu")
    parts = list(by_length(split, split.examples, size, model.shape.n_turns))[
        accelerator.process_index :: accelerator.num_processes
    ]
    window = model.shape.window
    total = torch.zeros((), device=accelerator.device)
    for batch in made_ahead(lambda rows: examples_of(split, rows, window), parts):
        moved = batch.to(accelerator.device)
        total += losses(model(moved), moved.targets, reduction="sum")
        sums[1] += batch.n_targets
    sums[0] = float(total)
    return sums.to(accelerator.device, torch.float32 if accelerator.device.type == "mps" else torch.float64)
