"""The dialogue encoder phi: a transformer over all utterances, with a learned embedding of who speaks.

Liang et al. 2020, section 6. Four deviations, each with its reason:

* The packaged encoder is MiniLM instead of BERT, six layers of width 384, so that training needs no download and takes
  minutes on a small machine; any Hugging Face name or folder takes its place.
* A dialogue's feature is the mean over its tokens, since MiniLM was trained for that; ``pooling="first"`` takes [CLS].
  Chunks of a long dialogue count by their tokens, so the mean is over all tokens of the dialogue.
* The paper adds the speaker's embedding through BERT's two segments. Not every model has those, so it is a layer of its own,
  zero at the start: an encoder that was not trained yet gives the features of its pretraining.
* Attention weights are not dropped out in training (:mod:`~dialometer.learned.cmade.encoder`); other states are, as in BERT.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dialometer.errors import DialometerError
from dialometer.learned.cmade.tokens import N_SPEAKERS, Strip, Tokeniser, Tokens, batch_of, bucketed, strip_of
from dialometer.model.dialogue import Dialogue
from dialometer.neural import fast_encoding
from dialometer.neural.device import Precision, autocast, choose_device
from dialometer.neural.pretrained import PACKAGED, load_model

# Batches without padding: all dialogues in one row, attention inside each of them only.
#
# Dialogues differ much in length, so a padded batch is mostly padding. PyTorch's attention for rows of different lengths
# (``torch.nn.attention.varlen``) computes the same on a GPU in 16 bits, without it. It cannot drop out attention weights, so
# that is not done anywhere; other dropout is. On a processor that multiplies 16-bit numbers each dialogue's attention is three
# plain products, which torch computes quicker there than its own fused attention: the backward pass of that one takes a third of
# a training step. Models of the BERT family take both through the transformers library's own register of attention functions.


NAME = "dialometer_packed"


def can_pack(network: Any) -> bool:
    """Whether a network's attention can be exchanged and counts positions from 0."""
    has_kernel = importlib.util.find_spec("torch.nn.attention.varlen") is not None
    is_open = bool(getattr(network, "_supports_attention_backend", False))
    return has_kernel and is_open and network.config.model_type == "bert"


def keep_attention(network: Any) -> None:
    """No attention weight is dropped out, with or without padding: the same training on every machine, and a quicker one."""
    for module in network.modules():
        if type(module).__name__.endswith("SelfAttention") and isinstance(getattr(module, "dropout", None), nn.Dropout):
            module.dropout.p = 0.0


def is_half(device: str) -> bool:
    """Whether 16 bits are in use just now, on a device where packing is quicker with them."""
    return device in ("cuda", "cpu") and torch.is_autocast_enabled(device)


def run_packed(network: Any, words: Tensor, positions: Tensor, ends: Tensor, longest: int) -> Tensor:
    """Last states of one row of embedded tokens (1 × tokens × width) that holds several texts, ``ends`` where each ends."""
    _register()
    before = network.config._attn_implementation
    network.config._attn_implementation = NAME
    try:
        states: Tensor = network(
            inputs_embeds=words,
            position_ids=positions,
            cu_seq_lens_q=ends,
            cu_seq_lens_k=ends,
            max_length_q=longest,
            max_length_k=longest,
        ).last_hidden_state
    finally:
        network.config._attn_implementation = before
    return states


@cache
def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface  # noqa: PLC0415 - very heavy

    interfaces: Any = (AttentionInterface, AttentionMaskInterface)
    interfaces[0].register(NAME, _attention)
    interfaces[1].register(NAME, _no_mask)


def _no_mask(*_: Any, **__: Any) -> None:
    """The ends say all."""


def _attention(
    module: Any,  # noqa: ARG001 - as the library calls it
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,  # noqa: ARG001
    *,
    cu_seq_lens_q: Tensor,
    max_length_q: int,
    **_: Any,
) -> tuple[Tensor, None]:
    """1 × heads × tokens × size in, 1 × tokens × heads × size out."""
    if not query.is_cuda:
        sizes = cu_seq_lens_q.diff().tolist()
        scaled = query * query.shape[-1] ** -0.5
        parts = [torch.split(tensor[0], sizes, dim=1) for tensor in (scaled, key, value)]
        done = [torch.bmm(torch.softmax(torch.bmm(q, k.mT), dim=-1), v) for q, k, v in zip(*parts, strict=True)]
        return torch.cat(done, dim=1).transpose(0, 1)[None], None
    from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415 - not in every version

    half = torch.get_autocast_dtype("cuda")
    rows = [tensor[0].transpose(0, 1).to(half).contiguous() for tensor in (query, key, value)]
    q, k, v = rows
    packed: Any = varlen_attn(q, k, v, cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q)
    return packed[None], None


# Dropout that a processor draws quickly.
#
# ``torch.nn.Dropout`` draws one random number for each state, one after the other in one thread: a tenth of a training step on two
# cores. Here every draw of 64 bits decides about four states. On other devices it is torch's own.


_RANGE = 2**16
_LOWEST = -(2**15)


class QuickDropout(nn.Dropout):
    """As ``torch.nn.Dropout``, with a share rounded to 1/65,536; it draws from torch's generator, so seeds decide it."""

    def forward(self, states: Tensor) -> Tensor:
        """The states with some of them zero, the others larger by as much."""
        n_dropped = round(self.p * _RANGE)
        if not self.training or not n_dropped or states.device.type != "cpu":
            return super().forward(states)
        draws = torch.empty(states.numel() // 4 + 1, dtype=torch.int64).random_(-(2**63), None)
        numbers = draws.view(torch.int16)[: states.numel()].view(states.shape)
        kept = (numbers >= _LOWEST + n_dropped).to(states.dtype) * (_RANGE / (_RANGE - n_dropped))
        return states * kept


def use_quick_dropout(network: Any) -> None:
    """Exchanges a network's dropout in place."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout and 0 < child.p < 1:
                setattr(module, name, QuickDropout(child.p).train(child.training))


Pooling = Literal["mean", "first"]
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
        with autocast(self.device.type, precision):
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
            with autocast(self.device.type, precision):
                out[rows] = self(self.batch(tokens, rows)).cpu().numpy()
            n_done += len(rows)
            if report is not None:
                report(n_done, len(tokens))
        self.train(was_training)
        return out


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
    place = choose_device(device)
    tokenizer, network = load_model(str(model), place)
    return DialogueEncoder(tokenizer, network, window=window, pooling=pooling).to(place)


class QuickEncoder:
    """A :class:`DialogueEncoder` with 8-bit weights, to read features with on a processor."""

    def __init__(self, encoder: DialogueEncoder) -> None:
        config = encoder.network.config.to_dict()
        if not fast_encoding.is_supported(config):
            raise DialometerError("this encoder has no quick form", remedy="use it with torch")
        weights = {name: value.detach().cpu().numpy() for name, value in encoder.network.state_dict().items()}
        speakers = encoder.speaker.weight.detach().cpu().numpy()
        self.pooling = encoder.pooling
        self.pad = encoder.tokeniser.pad
        self.width = encoder.width
        self._quick = fast_encoding.QuickBert(
            fast_encoding.bert_graph(weights, fast_encoding.BertShape.of(config), speakers, fast_encoding.n_levels())
        )

    def features(self, tokens: Sequence[Tokens], *, report: Report | None = None) -> NDArray[np.float32]:
        """As ``DialogueEncoder.features``: all chunks of a dialogue count by their tokens."""
        out = np.empty((len(tokens), self.width), dtype=np.float32)
        n_done = 0
        for rows in bucketed(tokens, np.arange(len(tokens)), fast_encoding.TOKENS_PER_BATCH):
            batch = batch_of(tokens, rows, self.pad)
            sums, firsts = self._quick.run(batch.ids, batch.mask, batch.speakers)
            n_tokens = batch.mask.sum(axis=1, keepdims=True).astype(np.float32)
            totals, counts = np.zeros((len(rows), self.width), np.float32), np.zeros((len(rows), 1), np.float32)
            np.add.at(totals, batch.owners, sums if self.pooling == "mean" else firsts * n_tokens)
            np.add.at(counts, batch.owners, n_tokens)
            out[rows] = totals / counts
            n_done += len(rows)
            if report is not None:
                report(n_done, len(tokens))
        return out


def has_quick_form(encoder: DialogueEncoder) -> bool:
    """Whether an encoder can be run in 8 bits where it is."""
    return (
        encoder.device.type == "cpu"
        and fast_encoding.is_available()
        and fast_encoding.is_supported(encoder.network.config.to_dict())
    )


def quick_features(
    encoder: DialogueEncoder, tokens: Sequence[Tokens], *, report: Report | None = None
) -> NDArray[np.float32]:
    """Features by the quickest way there is: 8 bits on a processor, torch on a GPU or where the quick form is missing."""
    if has_quick_form(encoder):
        return QuickEncoder(encoder).features(tokens, report=report)
    return encoder.features(tokens, report=report)
