"""From a batch of contexts to responses: one token after the other, for all conversations at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dialometer.generators.batches import ExampleBatch
from dialometer.generators.decoding import Decoding, allowed_log_probs
from dialometer.generators.generator import Generator, reordered
from dialometer.generators.vocabulary import END, START

# Beam search: several responses grow side by side, and the best ones by log probability for their length are kept.
#
# Length is weighed as ``log p / length ** length_penalty``, end mark counted. The search ends when no beam can still overtake
# what is finished, so that with enough beams it finds what trying out everything finds (the tests do both).


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished response: tokens without the end mark, their log probability with it, and the score that ranks it."""

    tokens: tuple[int, ...]
    log_prob: float
    score: float


@torch.inference_mode()
def beam_search(
    model: Generator, batch: ExampleBatch, decoding: Decoding, may_be_said: Tensor
) -> list[list[Hypothesis]]:
    """For each context up to ``n_beams`` finished responses, the best first."""
    n_rows, n_beams = len(batch), decoding.n_beams
    device = batch.inputs.device
    first = torch.arange(n_rows, device=device)[:, None]  # (B, 1)
    state = reordered(model.start(batch), first.expand(n_rows, n_beams).flatten())  # B·K conversations
    tokens = torch.full((n_rows * n_beams,), START, device=device)
    spoken = torch.empty((n_rows * n_beams, 0), dtype=torch.long, device=device)
    totals = torch.full((n_rows, n_beams), float("-inf"), device=device)
    totals[:, 0] = 0.0  # all beams are alike at first: only one of them counts
    finished: list[list[Hypothesis]] = [[] for _ in range(n_rows)]
    for n_said in range(1, decoding.max_tokens + 1):
        scores, state = model.step(tokens, state)
        log_probs = allowed_log_probs(scores, spoken, may_be_said, decoding).view(n_rows, n_beams, -1)
        values, beams, chosen = _candidates(totals, log_probs, decoding.diversity_penalty)  # (B, C) each
        totals, beams, tokens2 = _divide(values, beams, chosen, spoken, finished, decoding, n_said)
        rows = (first * n_beams + beams).flatten()  # (B·K,) the conversations that go on
        tokens = tokens2.flatten()
        state = reordered(state, rows)
        spoken = torch.cat([spoken.index_select(0, rows), tokens[:, None]], dim=1)
        if not _can_improve(totals, finished, decoding):
            break
    return [sorted(hypotheses, key=lambda h: -h.score)[:n_beams] for hypotheses in finished]


def _candidates(totals: Tensor, log_probs: Tensor, penalty: float) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of each context: log probability, beam and token (B, C), ranked with the diversity penalty.

    Twice as many as there are beams, so that enough go on even where half of them end.
    """
    n_beams, n_tokens = log_probs.shape[1:]
    width = min(2 * n_beams, n_tokens)
    best, tokens = log_probs.topk(width, dim=-1)  # (B, K, W)
    values = totals[:, :, None] + best
    ranks = torch.arange(width, device=values.device)  # place among the children of one beam
    ranked = (values - penalty * ranks).flatten(1)  # (B, K·W)
    _, places = ranked.topk(min(2 * n_beams, ranked.shape[1]), dim=-1)
    return values.flatten(1).gather(1, places), places // width, tokens.flatten(1).gather(1, places)


def _divide(
    values: Tensor,
    beams: Tensor,
    chosen: Tensor,
    spoken: Tensor,
    finished: list[list[Hypothesis]],
    decoding: Decoding,
    n_said: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Files what has ended under ``finished`` and gives back the beams that go on: totals, beams and tokens (B, K)."""
    n_rows, n_beams = len(values), decoding.n_beams
    weight = n_said**decoding.length_penalty
    has_ended = (chosen == END) & values.isfinite()
    # Of the candidates only those within the width of the beam may end; the others are there to fill up.
    for row, place in has_ended[:, :n_beams].nonzero().tolist():
        value = float(values[row, place])
        prefix = spoken[row * n_beams + int(beams[row, place])].tolist()
        finished[row].append(Hypothesis(tuple(prefix), value, value / weight))
    open_values = values.masked_fill(chosen == END, float("-inf"))
    totals, places = open_values.topk(min(n_beams, open_values.shape[1]), dim=-1)
    if places.shape[1] < n_beams:  # a vocabulary smaller than the beam
        missing = n_beams - places.shape[1]
        places = torch.cat([places, places[:, :1].expand(n_rows, missing)], dim=1)
        totals = torch.cat([totals, totals.new_full((n_rows, missing), float("-inf"))], dim=1)
    return totals, beams.gather(1, places), chosen.gather(1, places)


def _can_improve(totals: Tensor, finished: list[list[Hypothesis]], decoding: Decoding) -> bool:
    """Whether some beam could still end better than the worst of the responses that would be kept."""
    reach = totals.max(dim=-1).values / decoding.max_tokens**decoding.length_penalty  # log p only falls from here on
    for possible, hypotheses in zip(reach.tolist(), finished, strict=True):
        kept = sorted((h.score for h in hypotheses), reverse=True)[: decoding.n_beams]
        worst = kept[-1] if len(kept) == decoding.n_beams else -math.inf
        if possible > worst:
            return True
    return False


@dataclass(frozen=True, slots=True)
class GeneratedTokens:
    """A response: its tokens without the end mark, and the log probability that the model gives it, end mark included."""

    tokens: tuple[int, ...]
    log_prob: float


@torch.inference_mode()
def speak(
    model: Generator, batch: ExampleBatch, decoding: Decoding, may_be_said: Tensor, seeds: Sequence[int]
) -> list[GeneratedTokens]:
    """One response to each context. With drawing, a response depends on its own seed alone, not on its neighbours."""
    if decoding.strategy == "beam":
        ranked = beam_search(model, batch, decoding, may_be_said)
        return [GeneratedTokens(best[0].tokens, best[0].log_prob) for best in ranked]
    return _one_by_one(model, batch, decoding, may_be_said, [np.random.default_rng([seed]) for seed in seeds])


def _one_by_one(
    model: Generator, batch: ExampleBatch, decoding: Decoding, may_be_said: Tensor, draws: Sequence[np.random.Generator]
) -> list[GeneratedTokens]:
    """The likeliest token each time, or a drawn one. Conversations that have ended leave the batch."""
    state = model.start(batch)
    device = batch.inputs.device
    rows = torch.arange(len(batch), device=device)  # numbers of the conversations still going on
    tokens = torch.full((len(batch),), START, device=device)
    spoken = torch.empty((len(batch), 0), dtype=torch.long, device=device)
    log_prob = torch.zeros(len(batch), device=device)
    done: dict[int, GeneratedTokens] = {}
    while len(rows):
        scores, state = model.step(tokens, state)
        log_probs = allowed_log_probs(scores, spoken, may_be_said, decoding)  # (R, V)
        if decoding.strategy == "greedy":
            tokens = log_probs.argmax(dim=-1)
        else:
            uniform = [draws[row].random() for row in rows.tolist()]
            tokens = drawn(log_probs, torch.tensor(uniform, device=device), decoding)
        log_prob = log_prob + log_probs.gather(1, tokens[:, None])[:, 0]
        spoken = torch.cat([spoken, tokens[:, None]], dim=1)
        has_ended = tokens == END
        for k in has_ended.nonzero()[:, 0].tolist():
            done[int(rows[k])] = GeneratedTokens(tuple(spoken[k, :-1].tolist()), float(log_prob[k]))
        kept = (~has_ended).nonzero()[:, 0]
        rows, tokens, spoken, log_prob = rows[kept], tokens[kept], spoken[kept], log_prob[kept]
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
