"""The dialogue encoder phi: a transformer over all utterances, with a learned embedding of who speaks.

Liang et al. 2020, section 6. Four deviations, each with its reason:

* The packaged encoder is MiniLM instead of BERT, six layers of width 384, so that training needs no download and takes
  minutes on a small machine; any Hugging Face name or folder takes its place.
* A dialogue's feature is the mean over its tokens, since MiniLM was trained for that; ``pooling="first"`` takes [CLS].
  Chunks of a long dialogue count by their tokens, so the mean is over all tokens of the dialogue.
* The paper adds the speaker's embedding through BERT's two segments. Not every model has those, so it is a layer of its own,
  zero at the start: an encoder that was not trained yet gives the features of its pretraining.
* Attention weights are not dropped out in training (:mod:`~dialometer.learned.packed`); other states are, as in BERT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialometer.errors import DialometerError
from dialometer.learned.packed import can_pack, is_half, keep_attention, run_packed
from dialometer.learned.quick_dropout import use_quick_dropout
from dialometer.learned.tokens import N_SPEAKERS, Strip, Tokeniser, Tokens, bucketed, strip_of
from dialometer.model.dialogue import Dialogue
from dialometer.retrieval.packaged import PACKAGED, device_of
from dialometer.retrieval.text_encoder import load_model
from dialometer.retrieval.training import is_half_quicker

Pooling = Literal["mean", "first"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
Report = Callable[[int, int], None]
TOKENS_PER_BATCH = {"cpu": 1024, "cuda": 16_384, "mps": 8_192}
"""A processor is quickest while a batch fits into its cache, a GPU when it has enough to do."""
PACKED_ON_CPU = 2304
"""Tokens of a batch without padding on a processor: fewer gradients of all weights to add up."""
SMALLEST_WINDOW = 8
_OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "mpnet")  # their first position is number 2
_UNBOUNDED = 10**6  # what tokenizers say when they know no limit


class DialogueEncoder(nn.Module):
    """Dialogues in, one vector each out."""

    def __init__(self, tokenizer: Any, network: Any, *, window: int = 0, pooling: Pooling = "mean") -> None:
        super().__init__()
        largest = largest_window(tokenizer, network.config)
        if window and not SMALLEST_WINDOW <= window <= largest:
            raise DialometerError(
                f"a window of {window} tokens does not suit the encoder",
                remedy=f"take {SMALLEST_WINDOW} to {largest}, or an encoder with a longer context",
            )
        self.tokeniser = Tokeniser(tokenizer, window or largest)
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # a layer over [CLS] that nothing here uses
        self.network = network
        self.pooling = pooling
        self.can_pack = can_pack(network)
        if self.can_pack:
            keep_attention(network)
        use_quick_dropout(network)
        self.width = int(network.config.hidden_size)
        self.speaker = nn.Embedding(N_SPEAKERS, self.width)
        nn.init.zeros_(self.speaker.weight)

    @property
    def window(self) -> int:
        """How many tokens are read at once."""
        return self.tokeniser.window

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.speaker.weight.device

    @property
    def is_packed(self) -> bool:
        """Whether batches are computed without padding now; elsewhere dialogues of similar length are padded."""
        return self.can_pack and is_half(self.device.type)

    def forward(self, batch: Strip) -> Tensor:
        """Features of the batch's dialogues, in single precision."""
        hidden, owners, weights = (self._packed if self.is_packed else self._padded)(batch)
        places = torch.arange(len(batch.rows), device=hidden.device)[:, None]
        shares = (owners == places) * weights
        with torch.autocast(hidden.device.type, enabled=False):
            pooled: Tensor = (shares @ hidden.float()) / shares.sum(1, keepdim=True)
        return pooled

    def _packed(self, batch: Strip) -> tuple[Tensor, Tensor, Tensor]:
        """States of all tokens, whose they are, and how much each weighs, all chunks in one row."""
        ends = np.concatenate([[0], np.cumsum(batch.lengths)]).astype(np.int32)
        hidden = run_packed(
            self.network,
            self._words(batch.ids, batch.speakers)[None],
            moved(batch.positions, self.device)[None],
            moved(ends, self.device),
            int(batch.lengths.max()),
        )
        return hidden[0], moved(batch.owners, self.device), moved(self._weights(batch), self.device)

    def _padded(self, batch: Strip) -> tuple[Tensor, Tensor, Tensor]:
        """The same with a row for each chunk; padding belongs to nobody."""
        words = self._words(batch.padded(batch.ids, self.tokeniser.pad), batch.padded(batch.speakers, 0))
        owners = moved(batch.padded(batch.owners, -1), self.device)
        hidden = self.network(inputs_embeds=words, attention_mask=(owners >= 0).long()).last_hidden_state
        weights = batch.padded(self._weights(batch).astype(np.int64), 0).astype(np.float32)
        return hidden.flatten(0, 1), owners.flatten(), moved(weights, self.device).flatten()

    def _words(self, ids: NDArray[np.int64], speakers: NDArray[np.int64]) -> Tensor:
        words: Tensor = self.network.get_input_embeddings()(moved(ids, self.device))
        said_by: Tensor = self.speaker(moved(speakers, self.device))
        return words + said_by

    def _weights(self, batch: Strip) -> NDArray[np.float32]:
        """Every token counts once; or each chunk's first one for all of them."""
        if self.pooling == "mean":
            return np.ones(len(batch.ids), dtype=np.float32)
        return np.asarray(batch.is_first * np.repeat(batch.lengths, batch.lengths), dtype=np.float32)

    def tokens(self, dialogues: Sequence[Dialogue]) -> list[Tokens]:
        """The dialogues as this encoder reads them."""
        return self.tokeniser.tokens(dialogues)

    def batch(self, tokens: Sequence[Tokens], rows: NDArray[np.int64]) -> Strip:
        """The dialogues ``rows`` in one batch."""
        return strip_of(tokens, rows)

    def batches(
        self, tokens: Sequence[Tokens], rows: NDArray[np.int64], n_tokens: int, precision: Precision
    ) -> list[NDArray[np.int64]]:
        """The dialogues ``rows`` in batches of at most ``n_tokens`` (0: what suits the device), as computed at that precision."""
        with half_precision(self.device.type, precision):
            usual = TOKENS_PER_BATCH.get(self.device.type, TOKENS_PER_BATCH["cpu"])
            if self.is_packed and self.device.type == "cpu":
                usual = PACKED_ON_CPU
            return bucketed(tokens, rows, n_tokens or usual, is_padded=not self.is_packed)

    @torch.inference_mode()
    def features(
        self,
        tokens: Sequence[Tokens],
        *,
        tokens_per_batch: int = 0,
        precision: Precision = "auto",
        report: Report | None = None,
    ) -> NDArray[np.float32]:
        """Features of all dialogues, without dropout and in bounded memory."""
        was_training = self.training
        self.eval()
        out = np.empty((len(tokens), self.width), dtype=np.float32)
        n_done = 0
        for rows in self.batches(tokens, np.arange(len(tokens)), tokens_per_batch, precision):
            with half_precision(self.device.type, precision):
                out[rows] = self(self.batch(tokens, rows)).cpu().numpy()
            n_done += len(rows)
            if report is not None:
                report(n_done, len(tokens))
        self.train(was_training)
        return out


def training_precision(device: str, precision: Precision) -> Precision:
    """``auto`` trains in 16 bits wherever the machine multiplies them by itself; final scores on a processor stay in 32."""
    return "bfloat16" if precision == "auto" and is_half_quicker(device) else precision


def half_precision(device: str, precision: Precision) -> Any:
    """Computes in 16 bits where asked; ``auto`` asks on a GPU, where it is quicker and memory goes further."""
    kinds = {"bfloat16": torch.bfloat16, "float16": torch.float16}
    if precision == "auto":
        precision = "bfloat16" if device == "cuda" else "float32"
    return torch.autocast(device, kinds.get(precision, torch.bfloat16), enabled=precision in kinds)


def moved(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array on the device; the program does not wait for the copy to a GPU."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def largest_window(tokenizer: Any, config: Any) -> int:
    """The most tokens that an encoder can read at once."""
    positions = getattr(config, "max_position_embeddings", None) or _UNBOUNDED
    if config.model_type in _OFFSET_POSITIONS:
        positions -= 2
    return int(min(positions, tokenizer.model_max_length, _UNBOUNDED))


def load_encoder(
    model: str | Path = PACKAGED, *, device: str = "auto", window: int = 0, pooling: Pooling = "mean"
) -> DialogueEncoder:
    """A pretrained encoder: the packaged one, a folder, or a Hugging Face name."""
    place = device_of(device)
    tokenizer, network = load_model(str(model), place)
    return DialogueEncoder(tokenizer, network, window=window, pooling=pooling).to(place)
