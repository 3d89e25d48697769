"""The loop that every model here is trained by: warm-up and decay, one progress bar, checkpoints at the ends of epochs.

A run that was interrupted goes on after the last epoch that was kept: half a minute of work is lost at most, or one epoch.
Each epoch draws from a generator of its own, so that a run in two parts sees the same batches as one that was never
interrupted.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic import Field

from dialometer.model.part import Part
from dialometer.neural.work import Work

Batch = TypeVar("Batch")

WARM_UP = 0.1
LARGEST_STEP = 1.0
KEEP_EVERY_S = 30.0
"""Seconds between checkpoints: writing one costs seconds itself."""


class TrainingOptions(Part):
    """How long and how fast."""

    n_epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    batch_size: int = Field(default=64, ge=1)
    seed: int = Field(default=0, ge=0)


def fingerprint(*parts: object) -> str:
    """Of everything that a training depends on; names its files."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def train(
    network: Any,
    batches: Callable[[int, np.random.Generator], Sequence[Batch]],
    loss: Callable[[Batch], Any],
    options: TrainingOptions,
    work: Work,
    *,
    device: str,
    what: str,
    checkpoint: Path | None = None,
    keep_every_s: float = KEEP_EVERY_S,
) -> list[float]:
    """Trains in place and gives the mean loss of each epoch. All epochs have equally many batches."""
    torch.manual_seed(options.seed)
    optimiser = torch.optim.AdamW(network.parameters(), lr=options.learning_rate, weight_decay=0.01)
    first, losses = _resume(network, optimiser, checkpoint)
    network.train()
    kept_at = time.monotonic()
    for epoch in range(first, options.n_epochs):
        portions = batches(epoch, np.random.default_rng([options.seed, epoch]))
        torch.manual_seed(options.seed * 1000 + epoch)
        n_steps = len(portions) * options.n_epochs
        total = 0.0
        for number, batch in enumerate(portions):
            step = epoch * len(portions) + number
            work.report(what, step, n_steps)
            for group in optimiser.param_groups:
                group["lr"] = options.learning_rate * _share(step, n_steps)
            with torch.autocast(device, torch.bfloat16, enabled=is_half_quicker(device)):
                value = loss(batch)
            optimiser.zero_grad(set_to_none=True)
            value.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), LARGEST_STEP)
            optimiser.step()
            total += float(value.detach())
        work.report(what, (epoch + 1) * len(portions), n_steps)
        losses.append(total / max(len(portions), 1))
        if time.monotonic() - kept_at >= keep_every_s:
            _keep(network, optimiser, losses, checkpoint)
            kept_at = time.monotonic()
    network.eval()
    return losses


def is_half_quicker(device: str) -> bool:
    """Whether the device multiplies 16-bit numbers by itself; elsewhere they would only cost precision."""
    if device == "cuda":
        return True
    has = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return device == "cpu" and has is not None and bool(has())


def _share(step: int, n_steps: int) -> float:
    """Share of the learning rate: up to the full rate in the first tenth, then down to nothing."""
    warm = max(1.0, WARM_UP * n_steps)
    return min(1.0, (step + 1) / warm) * max(0.0, 1 - step / max(n_steps, 1))


def _resume(network: Any, optimiser: Any, checkpoint: Path | None) -> tuple[int, list[float]]:
    if checkpoint is None or not checkpoint.is_file():
        return 0, []
    held = torch.load(checkpoint, map_location="cpu", weights_only=True)
    network.load_state_dict(held["network"])
    optimiser.load_state_dict(held["optimiser"])
    return len(held["losses"]), list(held["losses"])


def _keep(network: Any, optimiser: Any, losses: list[float], checkpoint: Path | None) -> None:
    if checkpoint is None:
        return
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    partial = checkpoint.with_suffix(".part")
    state = {"network": network.state_dict(), "optimiser": optimiser.state_dict(), "losses": losses}
    torch.save(state, partial)
    partial.replace(checkpoint)
