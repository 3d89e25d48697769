"""What an interrupted training needs to go on as if nothing had been: weights, optimiser, random states, place."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from dialometer.errors import DialometerError

STATE_FILE = "state.pt"


def write_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Replaces the older state only by a complete one."""
    random = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        random["cuda"] = torch.cuda.get_rng_state()
    part = folder / f"{STATE_FILE}.part"
    torch.save({**state, "random": random}, part)
    part.replace(folder / STATE_FILE)


def read_state(folder: Path, identity: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """The state of the same training; random numbers go on from where they were."""
    path = folder / STATE_FILE
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise DialometerError(
            "there is no interrupted training", where=str(folder), remedy="start it without --resume"
        ) from error
    except (OSError, RuntimeError, EOFError, LookupError, ValueError, pickle.UnpicklingError) as error:
        raise DialometerError(f"the state cannot be read: {error}", where=str(path), remedy="start again") from error
    for key, value in identity.items():
        if state["identity"][key] != value:
            raise DialometerError(
                f"the interrupted training had another {key}: {state['identity'][key]}, now {value}",
                where=str(path),
                remedy="go on with the same corpus, model and settings, or start again in another folder",
            )
    torch.set_rng_state(state["random"]["cpu"])
    if device.type == "cuda" and "cuda" in state["random"]:
        torch.cuda.set_rng_state(state["random"]["cuda"])
    return state
