"""Batches without padding: all dialogues in one row, attention inside each of them only.

Dialogues differ much in length, so a padded batch is mostly padding. PyTorch's attention for rows of different lengths
(``torch.nn.attention.varlen``) computes the same on a GPU in 16 bits, without it. It cannot drop out attention weights, so
that is not done anywhere; other dropout is. On a processor that multiplies 16-bit numbers each dialogue's attention is three
plain products, which torch computes quicker there than its own fused attention: the backward pass of that one takes a third of
a training step. Models of the BERT family take both through the transformers library's own register of attention functions.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

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
        parts = [torch.split(one[0], sizes, dim=1) for one in (scaled, key, value)]
        done = [torch.bmm(torch.softmax(torch.bmm(q, k.mT), dim=-1), v) for q, k, v in zip(*parts, strict=True)]
        return torch.cat(done, dim=1).transpose(0, 1)[None], None
    from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415 - not in every version

    half = torch.get_autocast_dtype("cuda")
    rows = [one[0].transpose(0, 1).to(half).contiguous() for one in (query, key, value)]
    q, k, v = rows
    packed: Any = varlen_attn(q, k, v, cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q)
    return packed[None], None
