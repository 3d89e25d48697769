"""Training over several GPUs or machines: who this process is, and sums over all of them, by accelerate.

``accelerate launch -m dialometer learn train …`` starts one process per GPU. Each computes its share of a group's batches;
outputs and gradients are summed, so the steps are those of one process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialometer.neural.device import choose_device

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Processes:
    """``number`` counts from 0; only the first one writes files and speaks."""

    number: int = 0
    count: int = 1
    device: str = "cpu"

    @property
    def is_first(self) -> bool:
        """Whether this one writes and speaks."""
        return self.number == 0

    def add_up(self, tensor: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        if self.count == 1:
            return tensor
        torch.distributed.all_reduce(tensor)
        return tensor

    def add_up_gradients(self, model: nn.Module) -> None:
        """Sums the gradients of all processes in one message; a weight without any counts as zero."""
        if self.count == 1:
            return
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        flat = torch.cat(
            [(weight.grad if weight.grad is not None else torch.zeros_like(weight)).flatten() for weight in weights]
        )
        torch.distributed.all_reduce(flat)
        for weight, part in zip(weights, torch.split(flat, [weight.numel() for weight in weights]), strict=True):
            weight.grad = part.view_as(weight)

    def shared(self, model: nn.Module) -> nn.Module:
        """The model as processes train it together: each backward pass leaves the mean of their gradients."""
        if self.count == 1:
            return model
        where = torch.device(self.device)
        devices = [where] if where.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(model, device_ids=devices)

    def agree(self, values: Floats) -> Floats:
        """The numbers of the first process, for all: a difference in the last digit must not part their ways."""
        if self.count == 1:
            return values
        shared = torch.from_numpy(np.array(values, dtype=np.float64)).to(self.device)
        torch.distributed.broadcast(shared, src=0)
        return np.asarray(shared.cpu().numpy())

    def wait(self) -> None:
        """Until all have come here."""
        if self.count > 1:
            torch.distributed.barrier()


ALONE = Processes()


def join(device: str) -> tuple[Processes, str]:
    """The processes that were launched together, and the device of this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ALONE, choose_device(device)
    from accelerate import PartialState  # noqa: PLC0415 - only where several processes were launched

    state = PartialState(cpu=choose_device(device) == "cpu")
    return Processes(state.process_index, state.num_processes, str(state.device)), str(state.device)
