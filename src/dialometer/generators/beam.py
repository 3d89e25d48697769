"""Beam search: several responses grow side by side, and the best ones by log probability for their length are kept.

Length is weighed as ``log p / length ** length_penalty``, end mark counted. The search ends when no beam can still overtake
what is finished, so that with enough beams it finds what trying out everything finds (the tests do both).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dialometer.generators.batches import Batch
from dialometer.generators.decoding import Decoding, allowed_log_probs
from dialometer.generators.generator import Generator, reordered
from dialometer.generators.vocabulary import END, START


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished response: tokens without the end mark, their log probability with it, and the score that ranks it."""

    tokens: tuple[int, ...]
    log_prob: float
    score: float


@torch.inference_mode()
def beam_search(model: Generator, batch: Batch, decoding: Decoding, may_be_said: Tensor) -> list[list[Hypothesis]]:
    """For each context up to ``n_beams`` finished responses, the best first."""
    n_rows, n_beams = len(batch), decoding.n_beams
    device = batch.inputs.device
    first = torch.arange(n_rows, device=device)[:, None]  # (B, 1)
    state = reordered(model.start(batch), first.expand(n_rows, n_beams).flatten())  # B·K conversations
    tokens = torch.full((n_rows * n_beams,), START, device=device)
    said = torch.empty((n_rows * n_beams, 0), dtype=torch.long, device=device)
    totals = torch.full((n_rows, n_beams), float("-inf"), device=device)
    totals[:, 0] = 0.0  # all beams are alike at first: only one of them counts
    finished: list[list[Hypothesis]] = [[] for _ in range(n_rows)]
    for n_said in range(1, decoding.max_tokens + 1):
        scores, state = model.step(tokens, state)
        log_probs = allowed_log_probs(scores, said, may_be_said, decoding).view(n_rows, n_beams, -1)
        values, beams, chosen = _candidates(totals, log_probs, decoding.diversity_penalty)  # (B, C) each
        totals, beams, tokens2 = _divide(values, beams, chosen, said, finished, decoding, n_said)
        rows = (first * n_beams + beams).flatten()  # (B·K,) the conversations that go on
        tokens = tokens2.flatten()
        state = reordered(state, rows)
        said = torch.cat([said.index_select(0, rows), tokens[:, None]], dim=1)
        if not _can_improve(totals, finished, decoding):
            break
    return [sorted(found, key=lambda h: -h.score)[:n_beams] for found in finished]


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
    said: Tensor,
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
        prefix = said[row * n_beams + int(beams[row, place])].tolist()
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
    for possible, found in zip(reach.tolist(), finished, strict=True):
        kept = sorted((h.score for h in found), reverse=True)[: decoding.n_beams]
        worst = kept[-1] if len(kept) == decoding.n_beams else -math.inf
        if possible > worst:
            return True
    return False
