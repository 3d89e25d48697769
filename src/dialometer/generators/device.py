"""Where models run."""

from __future__ import annotations

import torch

from dialometer.errors import DialometerError

DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str) -> torch.device:
    """The device of that name; ``auto`` takes a GPU where there is one. One that was asked for and is missing is an error."""
    if name not in DEVICES:
        raise DialometerError(f"unknown device '{name}'", remedy=f"use {', '.join(DEVICES)}")
    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if found[kind])
    if not found[name]:
        raise DialometerError(
            f"no {'NVIDIA GPU' if name == 'cuda' else 'Apple GPU'} was found here",
            where=f"--device {name}",
            remedy="use --device cpu, or a machine that has one",
        )
    return torch.device(name)
