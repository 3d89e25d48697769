"""How a conversation hangs together in meaning: similarities between the sentence vectors of its turns.

A reply that has nothing to do with what was said, an agent that says the same thing over and over, a user who asks again or
comes near to "you already told me that": each is a cosine between two vectors of a frozen encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.learned import word_lists
from dialometer.model.dialogue import Dialogue

Floats = NDArray[np.float64]
_N_LAST = 3
_FADE = 0.7  # weight of a turn against the next one in the vector that stands for the end


@dataclass(frozen=True, slots=True)
class SeedVectors:
    """Unit vectors of the sentences in :mod:`dialometer.learned.word_lists`."""

    user: Floats
    agent: Floats


def meaning(dialogue: Dialogue, vectors: Floats, seeds: SeedVectors) -> dict[str, float]:
    """Features by name; ``vectors`` are the unit vectors of the turns, in order."""
    is_user = np.array([turn.role == "user" for turn in dialogue.turns], dtype=bool)
    is_agent = np.array([turn.role == "agent" for turn in dialogue.turns], dtype=bool)
    steps = np.einsum("ij,ij->i", vectors[1:], vectors[:-1]) if len(vectors) > 1 else np.empty(0)
    replies = steps[is_user[:-1] & is_agent[1:]]
    reactions = steps[is_agent[:-1] & is_user[1:]]
    asked = np.array(["?" in turn.text for turn in dialogue.turns], dtype=bool)
    found = {
        "reply_near": _mean(replies),
        "reply_near_least": float(replies.min()) if len(replies) else 0.0,
        "reply_near_most": float(replies.max()) if len(replies) else 0.0,
        "reply_near_last": _mean(replies[-_N_LAST:]),
        "answer_near": _mean(steps[(is_user & asked)[:-1] & is_agent[1:]]),
        "reaction_near": _mean(reactions),
        "reaction_near_last": _mean(reactions[-_N_LAST:]),
    }
    for role, mask, sentences in (("user", is_user, seeds.user), ("agent", is_agent, seeds.agent)):
        found |= {f"{role}_{name}": value for name, value in _own(vectors[mask]).items()}
        found |= {f"{role}_{name}": value for name, value in _seeded(vectors[mask], sentences).items()}
    return found


def _own(vectors: Floats) -> dict[str, float]:
    """How much a side repeats itself in meaning."""
    n = len(vectors)
    near = vectors @ vectors.T
    earlier = np.array([near[row, :row].max() for row in range(1, n)])
    return {
        "near_previous": _mean(np.diag(near, 1)),
        "near_earlier": _mean(earlier),
        "near_earlier_most": float(earlier.max()) if n > 1 else 0.0,
        "near_earlier_last": float(earlier[-1]) if n > 1 else 0.0,
        "near_all": float((near.sum() - np.trace(near)) / (n * (n - 1))) if n > 1 else 0.0,
    }


def _seeded(vectors: Floats, seeds: Floats) -> dict[str, float]:
    """Nearness to each seed sentence: the nearest turn, and the mean turn."""
    if not len(vectors):
        return {f"seed_{n:02d}_{kind}": 0.0 for n in range(len(seeds)) for kind in ("most", "mean")}
    near = vectors @ seeds.T
    found = {f"seed_{n:02d}_most": float(value) for n, value in enumerate(near.max(axis=0))}
    return found | {f"seed_{n:02d}_mean": float(value) for n, value in enumerate(near.mean(axis=0))}


def pooled(dialogue: Dialogue, vectors: Floats) -> Floats:
    """One vector for the dialogue: mean and fading mean of the user's turns, then the same of the agent's."""
    parts = []
    for role in ("user", "agent"):
        said = vectors[np.array([turn.role == role for turn in dialogue.turns], dtype=bool)]
        if not len(said):
            parts += [np.zeros(vectors.shape[1])] * 2
            continue
        weights = _FADE ** np.arange(len(said))[::-1]
        parts += [said.mean(axis=0), (weights[:, None] * said).sum(axis=0) / weights.sum()]
    return np.concatenate(parts)


def seed_sentences() -> tuple[Sequence[str], Sequence[str]]:
    """The sentences whose vectors are wanted: the user's, then the agent's."""
    return word_lists.USER_SENTENCES, word_lists.AGENT_SENTENCES


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
