"""From a batch of contexts to responses: one token after the other, for all conversations at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dialometer.generators.batches import Batch
from dialometer.generators.beam import beam_search
from dialometer.generators.decoding import Decoding, allowed_log_probs
from dialometer.generators.generator import Generator, reordered
from dialometer.generators.vocabulary import END, START


@dataclass(frozen=True, slots=True)
class Said:
    """A response: its tokens without the end mark, and the log probability that the model gives it, end mark included."""

    tokens: tuple[int, ...]
    log_prob: float


@torch.inference_mode()
def speak(model: Generator, batch: Batch, decoding: Decoding, may_be_said: Tensor, seeds: Sequence[int]) -> list[Said]:
    """One response to each context. With drawing, a response depends on its own seed alone, not on its neighbours."""
    if decoding.strategy == "beam":
        found = beam_search(model, batch, decoding, may_be_said)
        return [Said(best[0].tokens, best[0].log_prob) for best in found]
    return _one_by_one(model, batch, decoding, may_be_said, [np.random.default_rng([seed]) for seed in seeds])


def _one_by_one(
    model: Generator, batch: Batch, decoding: Decoding, may_be_said: Tensor, draws: Sequence[np.random.Generator]
) -> list[Said]:
    """The likeliest token each time, or a drawn one. Conversations that have ended leave the batch."""
    state = model.start(batch)
    device = batch.inputs.device
    rows = torch.arange(len(batch), device=device)  # numbers of the conversations still going on
    tokens = torch.full((len(batch),), START, device=device)
    said = torch.empty((len(batch), 0), dtype=torch.long, device=device)
    log_prob = torch.zeros(len(batch), device=device)
    done: dict[int, Said] = {}
    while len(rows):
        scores, state = model.step(tokens, state)
        log_probs = allowed_log_probs(scores, said, may_be_said, decoding)  # (R, V)
        if decoding.strategy == "greedy":
            tokens = log_probs.argmax(dim=-1)
        else:
            uniform = [draws[row].random() for row in rows.tolist()]
            tokens = drawn(log_probs, torch.tensor(uniform, device=device), decoding)
        log_prob = log_prob + log_probs.gather(1, tokens[:, None])[:, 0]
        said = torch.cat([said, tokens[:, None]], dim=1)
        has_ended = tokens == END
        for k in has_ended.nonzero()[:, 0].tolist():
            done[int(rows[k])] = Said(tuple(said[k, :-1].tolist()), float(log_prob[k]))
        kept = (~has_ended).nonzero()[:, 0]
        rows, tokens, said, log_prob = rows[kept], tokens[kept], said[kept], log_prob[kept]
        state = reordered(state, kept)
    return [done[number] for number in range(len(batch))]


def drawn(log_probs: Tensor, uniform: Tensor, decoding: Decoding) -> Tensor:
    """A token per row (R,) from the likeliest ``top_k`` that together reach ``top_p``, by one uniform number each."""
    probs = torch.softmax(log_probs / decoding.temperature, dim=-1)
    ranked, tokens = probs.sort(dim=-1, descending=True, stable=True)  # (R, V)
    before = ranked.cumsum(dim=-1) - ranked  # mass of the likelier tokens
    is_kept = before < decoding.top_p
    if decoding.top_k:
        is_kept[:, decoding.top_k :] = False
    kept = ranked * is_kept
    reached = kept.cumsum(dim=-1)
    chosen = (reached <= uniform[:, None] * reached[:, -1:]).sum(dim=-1)  # (R,)
    last = is_kept.sum(dim=-1) - 1
    return tokens.gather(1, torch.minimum(chosen, last)[:, None])[:, 0]
