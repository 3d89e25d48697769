"""Where models compute, and with how many bits. Works without torch, for those who encode without it."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal

from dialometer.errors import DialometerError

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str) -> str:
    """The device to compute on: ``auto`` takes a GPU where there is one, and a GPU that is named but missing is an error.

    One GPU of several can be named by its number, as in ``cuda:1``.
    """
    kind = name.partition(":")[0]
    if kind not in DEVICES:
        raise DialometerError(f"unknown device '{name}'", remedy=f"use {', '.join(DEVICES)}")
    if kind == "cpu":
        return name
    present = _gpus()
    if kind == "auto":
        return present[0] if present else "cpu"
    if kind not in present:
        raise DialometerError(
            f"no {'NVIDIA GPU' if kind == 'cuda' else 'Apple GPU'} was found here",
            where=f"--device {name}",
            remedy="use --device cpu, or a machine that has one",
        )
    return name


def _gpus() -> list[str]:
    if importlib.util.find_spec("torch") is None:
        return []
    import torch  # noqa: PLC0415 - very heavy

    is_present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [kind for kind in is_present if is_present[kind]]


def is_half_quicker(device: str) -> bool:
    """Whether the device multiplies 16-bit numbers by itself; elsewhere they would only cost precision."""
    import torch  # noqa: PLC0415 - very heavy

    if device == "cuda":
        return True
    has = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return device == "cpu" and has is not None and bool(has())


def training_precision(device: str, precision: Precision) -> Precision:
    """``auto`` trains in 16 bits wherever the machine multiplies them by itself; final scores on a processor stay in 32."""
    return "bfloat16" if precision == "auto" and is_half_quicker(device) else precision


def autocast(device: str, precision: Precision) -> Any:
    """Computes in 16 bits where asked; ``auto`` asks on a GPU, where it is quicker and memory goes further."""
    import torch  # noqa: PLC0415 - very heavy

    kinds = {"bfloat16": torch.bfloat16, "float16": torch.float16}
    if precision == "auto":
        precision = "bfloat16" if device == "cuda" else "float32"
    return torch.autocast(device, kinds.get(precision, torch.bfloat16), enabled=precision in kinds)
