"""Texts to vectors: a transformer, mean pooled and normalised. The packaged MiniLM by default, any other by name or path.

Pooled is the last layer, or the mean of several.

Reimers and Gurevych, "Sentence-BERT", EMNLP 2019; weights all-MiniLM-L6-v2 of sentence-transformers.
Checked against ``SentenceTransformer(...).encode(texts, normalize_embeddings=True)``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.neural.device import choose_device
from dialometer.neural.embedding_cache import EmbeddingCache
from dialometer.neural.fast_encoding import QuickTextEncoder, has_8_bit_form, rounding
from dialometer.neural.pretrained import PACKAGED, load_model, model_path
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float32]
MAX_TOKENS = 256
TEXTS_PER_COMMIT = 2048


def mean_pooled(network: Any, batch: dict[str, Any], n_layers: int = 1) -> Any:
    """Mean of the last layers over a text's tokens, of length one; 0 layers means all of the transformer's."""
    import torch  # noqa: PLC0415 - very heavy
    from torch.nn import functional  # noqa: PLC0415

    if n_layers == 1:
        hidden = network(**batch).last_hidden_state.float()
    else:  # the first of the hidden states is the table of words, which is no layer
        layers = network(**batch, output_hidden_states=True).hidden_states[1:]
        hidden = torch.stack(layers[-n_layers:]).float().mean(0)
    mask = batch["attention_mask"].unsqueeze(-1).float()
    return functional.normalize((hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9), dim=-1)


class TextEncoder:
    """A model that is loaded when a text is new to it. Texts that were encoded before come from the cache on disk.

    With ``in_8_bits`` a processor reads in 8 bits, where the model has that form: a third of the time, almost the same vectors.
    """

    def __init__(
        self, model: str = PACKAGED, work: Work = QUIET, *, n_layers: int = 1, in_8_bits: bool = False
    ) -> None:
        self.model = model
        self.work = work
        self.n_layers = n_layers
        self.in_8_bits = (
            in_8_bits and n_layers == 1 and self.device == "cpu" and has_8_bit_form(Path(model_path(model)))
        )
        folder = work.folder("embeddings")
        known = KnownModel.read(folder, model) if folder else None
        if known is None:
            width = self._quick.width if self.in_8_bits else int(self.network.config.hidden_size)
            known = KnownModel(self._fingerprint() if folder else "", width)
            if folder:
                known.write(folder, model)
        self.width = known.width
        pooled = known.fingerprint if n_layers == 1 else f"{known.fingerprint}-layers{n_layers}"
        pooled += f"-{rounding()}" if self.in_8_bits else ""
        self.cache = EmbeddingCache(folder, pooled) if folder else None

    @cached_property
    def device(self) -> str:
        """Where the model computes."""
        return choose_device(self.work.device)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        return load_model(self.model, self.device)

    @cached_property
    def _quick(self) -> QuickTextEncoder:
        return QuickTextEncoder(Path(model_path(self.model)), max_tokens=MAX_TOKENS)

    @property
    def tokenizer(self) -> Any:
        """Texts to tokens."""
        return self._loaded[0]

    @property
    def network(self) -> Any:
        """The transformer."""
        return self._loaded[1]

    def encode(self, texts: Sequence[str], what: str = "") -> Floats:
        """One vector per text. Each distinct text is encoded once, in batches of similar length."""
        place: dict[str, int] = {}
        rows = np.array([place.setdefault(text, len(place)) for text in texts], dtype=np.int64)
        distinct = list(place)
        out = np.zeros((len(distinct), self.width), dtype=np.float32)
        missing = self.cache.read(distinct, out) if self.cache is not None else list(range(len(distinct)))
        if missing:
            self._encode_missing(distinct, missing, out, what)
        return out if len(distinct) == len(texts) else out[rows]

    def _encode_missing(self, texts: list[str], missing: list[int], out: Floats, what: str) -> None:
        """Batches hold texts of similar length; every few batches are kept, so that an interruption costs little."""
        order = sorted(missing, key=lambda row: len(texts[row]))
        waiting: list[int] = []
        report = self.work if what else QUIET
        for _, rows in report.portions(what, order, self.work.n_texts_per_batch):
            out[rows] = self.vectors([texts[row] for row in rows])
            waiting += rows
            if self.cache is not None and (len(waiting) >= TEXTS_PER_COMMIT or rows[-1] == order[-1]):
                self.cache.write([texts[row] for row in waiting], out[waiting])
                waiting = []

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Vectors of one batch, not cached."""
        if self.in_8_bits:
            return self._quick.encode(texts)
        import torch  # noqa: PLC0415 - very heavy

        batch = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        ).to(self.device)
        with torch.inference_mode(), torch.autocast("cuda", torch.float16, enabled=self.device == "cuda"):
            pooled = mean_pooled(self.network, dict(batch), self.n_layers)
        return np.asarray(pooled.cpu().numpy(), dtype=np.float32)

    def _fingerprint(self) -> str:
        """Of the weights, so that a model trained further never meets vectors of its past.

        Sums of bits, not of numbers: those would differ with the number of threads that add them up.
        """
        import torch  # noqa: PLC0415 - very heavy

        digest = hashlib.sha256(self.model.encode() if not Path(model_path(self.model)).exists() else b"")
        for name, value in sorted(self.network.state_dict().items()):
            flat = value.flatten()
            bits = flat.view(torch.int32) if flat.dtype == torch.float32 else flat.long()
            first = flat[:64].float().cpu().numpy().tobytes()
            digest.update(name.encode() + first + int(bits.sum(dtype=torch.int64)).to_bytes(16, "little", signed=True))
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class KnownModel:
    """What the cache knows of a model whose files have not changed since, so that it need not be loaded to be recognised."""

    fingerprint: str
    width: int

    @classmethod
    def read(cls, folder: Path, model: str) -> KnownModel | None:
        """None where the model is new, or its files have changed."""
        try:
            known = json.loads(_note(folder, model).read_text(encoding="utf-8"))
            return cls(known["fingerprint"], known["width"]) if known["files"] == _files(model) != [] else None
        except (OSError, ValueError, KeyError):
            return None

    def write(self, folder: Path, model: str) -> None:
        """Only for a model in a folder: of others it is not known which files they are."""
        files = _files(model)
        if files:
            note = _note(folder, model)
            partial = note.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps({**asdict(self), "files": files}), encoding="utf-8")
            partial.replace(note)


def _note(folder: Path, model: str) -> Path:
    name = hashlib.sha256(str(Path(model_path(model)).resolve()).encode()).hexdigest()[:16]
    return folder / f"model-{name}.json"


def _files(model: str) -> list[list[Any]]:
    """Names, sizes and times of change of a model's files; empty where it is no folder."""
    folder = Path(model_path(model))
    if not folder.is_dir():
        return []
    stats = ((path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file())
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]
