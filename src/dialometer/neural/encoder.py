"""Texts to vectors: a transformer, mean pooled and normalised. The packaged MiniLM by default, any other by name or path.

Reimers and Gurevych, "Sentence-BERT", EMNLP 2019; weights all-MiniLM-L6-v2 of sentence-transformers.
Checked against ``SentenceTransformer(...).encode(texts, normalize_embeddings=True)``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from dialometer.neural.device import choose_device
from dialometer.neural.embedding_cache import EmbeddingCache
from dialometer.neural.pretrained import PACKAGED, load_model, model_path
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float32]
MAX_TOKENS = 256
TEXTS_PER_COMMIT = 2048


def mean_pooled(network: Any, batch: dict[str, Any]) -> Any:
    """Mean of the last layer over a text's tokens, of length one."""
    hidden = network(**batch).last_hidden_state.float()
    mask = batch["attention_mask"].unsqueeze(-1).float()
    return functional.normalize((hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9), dim=-1)


class TextEncoder:
    """A loaded model. Texts that were encoded before come from the cache on disk."""

    def __init__(self, model: str = PACKAGED, work: Work = QUIET) -> None:
        self.model = model
        self.work = work
        self.device = choose_device(work.device)
        self.tokenizer, self.network = load_model(model, self.device)
        self.width = int(self.network.config.hidden_size)
        folder = work.folder("embeddings")
        self.cache = EmbeddingCache(folder, self._fingerprint()) if folder else None

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

    @torch.inference_mode()
    def vectors(self, texts: Sequence[str]) -> Floats:
        """Vectors of one batch, not cached."""
        batch = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        ).to(self.device)
        if self.device == "cuda":
            with torch.autocast("cuda", torch.float16):
                pooled = mean_pooled(self.network, dict(batch))
        else:
            pooled = mean_pooled(self.network, dict(batch))
        return np.asarray(pooled.cpu().numpy(), dtype=np.float32)

    def _fingerprint(self) -> str:
        """Of the weights, so that a model trained further never meets vectors of its past.

        Sums of bits, not of numbers: those would differ with the number of threads that add them up.
        """
        digest = hashlib.sha256(self.model.encode() if not Path(model_path(self.model)).exists() else b"")
        for name, value in sorted(self.network.state_dict().items()):
            flat = value.flatten()
            bits = flat.view(torch.int32) if flat.dtype == torch.float32 else flat.long()
            first = flat[:64].float().cpu().numpy().tobytes()
            digest.update(name.encode() + first + int(bits.sum(dtype=torch.int64)).to_bytes(16, "little", signed=True))
        return digest.hexdigest()[:16]
