"""How two partners behave in a conversation, counted from its words: length, repetition, questions, praise and complaint.

Shares and means, hardly any totals: the number of utterances is one feature of its own, and the others should say something
beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.gaussian import word_lists
from dialometer.model.dialogue import Dialogue

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
_SMILEY = re.compile(r"[:;]-?[)D]|\)\)|[^(]*\)$")
_LAUGHTER = re.compile(r"a?haha|\blol\b|\blmao\b|хаха|\bhehe")
_DIGIT = re.compile(r"\d|<num>")
_NOT_LATIN = re.compile(r"[^\W\d_a-zA-Z\u00c0-\u024f]")
_N_LAST = 3


def words_of(text: str) -> list[str]:
    """Words in lower case, with their apostrophes."""
    return _WORD.findall(text.lower().replace("’", "'"))


def behaviour(dialogue: Dialogue) -> dict[str, float]:
    """The features by name: of the user, of the agent, and of how their turns follow each other."""
    turns = dialogue.turns
    by_role = {"user": dialogue.said_by("user"), "agent": dialogue.said_by("agent")}
    n = len(turns)
    features = {
        "log_utterances": math.log1p(n),
        "user_share": len(by_role["user"]) / max(1, n),
        "user_is_last": float(n > 0 and turns[-1].role == "user"),
        "user_is_first": float(n > 0 and turns[0].role == "user"),
    }
    for role, spoken in by_role.items():
        texts = [turn.text for turn in spoken]
        features |= {f"{role}_{name}": value for name, value in _side(texts).items()}
    return features | _adjacency(dialogue)


def _side(texts: Sequence[str]) -> dict[str, float]:
    words = [words_of(text) for text in texts]
    return _lengths(words) | _surface(texts) | _vocabulary(words) | _repetition(words) | _attitude(words)


def _lengths(words: Sequence[Sequence[str]]) -> dict[str, float]:
    lengths = [len(length) for length in words]
    half = max(1, len(lengths) // 2)
    mean = _mean(lengths)
    return {
        "log_turns": math.log1p(len(words)),
        "words": math.log1p(mean),
        "words_max": math.log1p(max(lengths, default=0)),
        "words_deviation": math.log1p(math.sqrt(_mean([(length - mean) ** 2 for length in lengths]))),
        "words_last": math.log1p(lengths[-1] if lengths else 0),
        "words_trend": math.log1p(_mean(lengths[-half:])) - math.log1p(_mean(lengths[:half])),
        "one_word": _mean([length <= 1 for length in lengths]),
    }


def _surface(texts: Sequence[str]) -> dict[str, float]:
    """Marks of the writing, which go with how much trouble a person takes."""
    stripped = [text.rstrip() for text in texts]
    return {
        "questions": _mean(["?" in text for text in texts]),
        "puzzled": _mean(["??" in text for text in texts]),
        "exclamations": _mean(["!" in text for text in texts]),
        "emoji": _mean([bool(_EMOJI.search(text)) for text in texts]),
        "smileys": _mean([bool(_SMILEY.search(text)) for text in stripped]),
        "laughter": _mean([bool(_LAUGHTER.search(text.lower())) for text in texts]),
        "capital_first": _mean([text[:1].isupper() for text in texts]),
        "capitals": _mean([sum(map(str.isupper, text)) / max(1, len(text)) for text in texts]),
        "full_stops": _mean([text[-1:] in (".", "!", "?") for text in stripped]),
        "commas": _mean([text.count(",") for text in texts]),
        "numbers": _mean([bool(_DIGIT.search(text)) for text in texts]),
        "other_script": _mean([bool(_NOT_LATIN.search(text)) for text in texts]),
    }


def _vocabulary(words: Sequence[Sequence[str]]) -> dict[str, float]:
    flat = [word for turn in words for word in turn]
    bigrams = [two for turn in words for two in pairwise(turn)]
    return {
        "richness": len(set(flat)) / max(1, len(flat)) ** 0.7,
        "distinct_bigrams": len(set(bigrams)) / len(bigrams) if bigrams else 1.0,
        "word_length": _mean([len(word) for word in flat]),
        "apostrophes": _mean(["'" in word for word in flat]),
        "you": _share(flat, word_lists.ABOUT_YOU),
        "me": _share(flat, word_lists.ABOUT_ME),
        "question_words": _mean([bool(turn) and turn[0] in word_lists.QUESTION_WORDS for turn in words]),
    }


def _repetition(words: Sequence[Sequence[str]]) -> dict[str, float]:
    sets = [frozenset(turn) for turn in words]
    inner = [1 - len(set(pairwise(turn))) / (len(turn) - 1) for turn in words if len(turn) > 1]
    return {
        "duplicates": 1 - len({tuple(turn) for turn in words}) / len(words) if words else 0.0,
        "like_previous": _mean([_overlap(a, b) for a, b in pairwise(sets)]),
        "like_any_earlier": _mean([max(_overlap(sets[n], turn) for turn in sets[:n]) for n in range(1, len(sets))]),
        "within_turn": _mean(inner),
    }


def _attitude(words: Sequence[Sequence[str]]) -> dict[str, float]:
    flat = [word for turn in words for word in turn]
    last = [word for turn in words[-_N_LAST:] for word in turn]
    return {
        "complaint": _share(flat, word_lists.COMPLAINTS),
        "complaint_last": _share(last, word_lists.COMPLAINTS),
        "complaint_turns": _mean([not word_lists.COMPLAINTS.isdisjoint(turn) for turn in words]),
        "approval": _share(flat, word_lists.APPROVAL),
        "approval_last": _share(last, word_lists.APPROVAL),
        "approval_turns": _mean([not word_lists.APPROVAL.isdisjoint(turn) for turn in words]),
        "denial": _share(flat, word_lists.DENIALS),
        "farewell": float(any(not word_lists.FAREWELLS.isdisjoint(turn) for turn in words[-2:])),
        "greeting": _mean([not word_lists.GREETINGS.isdisjoint(turn) for turn in words]),
        "thanks": _mean([any(word.startswith("thank") for word in turn) for turn in words]),
    }


def _adjacency(dialogue: Dialogue) -> dict[str, float]:
    """Who echoes whom, who speaks twice, and whether questions get something that looks like an answer."""
    replies: dict[tuple[str, str], list[float]] = {}
    answered: list[float] = []
    turns = [(turn.role, turn.text, frozenset(words_of(turn.text))) for turn in dialogue.turns]
    for (role, text, words), (next_role, next_text, next_said) in pairwise(turns):
        replies.setdefault((role, next_role), []).append(_overlap(words, next_said))
        if role == "user" and next_role == "agent" and "?" in text:
            answered.append(float("?" not in next_text))
    n_steps = max(1, len(turns) - 1)
    return {
        "agent_echo": _mean(replies.get(("user", "agent"), [])),
        "user_echo": _mean(replies.get(("agent", "user"), [])),
        "agent_again": len(replies.get(("agent", "agent"), [])) / n_steps,
        "user_again": len(replies.get(("user", "user"), [])) / n_steps,
        "answers_without_question": _mean(answered),
    }


def _overlap(a: AbstractSet[str], b: AbstractSet[str]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 0.0


def _share(words: Sequence[str], listed: AbstractSet[str]) -> float:
    return sum(word in listed for word in words) / max(1, len(words))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


# How a conversation hangs together in meaning: similarities between the sentence vectors of its turns.
#
# A reply that has nothing to do with what was said, an agent that says the same thing over and over, a user who asks again or
# comes near to "you already told me that": each is a cosine between two vectors of a frozen encoder.


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SeedVectors:
    """Unit vectors of the sentences in :mod:`dialometer.learned.gaussian.word_lists`."""

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
    features = {
        "reply_near": _meaning_mean(replies),
        "reply_near_least": float(replies.min()) if len(replies) else 0.0,
        "reply_near_most": float(replies.max()) if len(replies) else 0.0,
        "reply_near_last": _meaning_mean(replies[-_N_LAST:]),
        "answer_near": _meaning_mean(steps[(is_user & asked)[:-1] & is_agent[1:]]),
        "reaction_near": _meaning_mean(reactions),
        "reaction_near_last": _meaning_mean(reactions[-_N_LAST:]),
    }
    for role, mask, sentences in (("user", is_user, seeds.user), ("agent", is_agent, seeds.agent)):
        features |= {f"{role}_{name}": value for name, value in _own(vectors[mask]).items()}
        features |= {f"{role}_{name}": value for name, value in _seeded(vectors[mask], sentences).items()}
    return features


def _own(vectors: Floats) -> dict[str, float]:
    """How much a side repeats itself in meaning."""
    n = len(vectors)
    near = vectors @ vectors.T
    earlier = np.array([near[row, :row].max() for row in range(1, n)])
    return {
        "near_previous": _meaning_mean(np.diag(near, 1)),
        "near_earlier": _meaning_mean(earlier),
        "near_earlier_most": float(earlier.max()) if n > 1 else 0.0,
        "near_earlier_last": float(earlier[-1]) if n > 1 else 0.0,
        "near_all": float((near.sum() - np.trace(near)) / (n * (n - 1))) if n > 1 else 0.0,
    }


def _seeded(vectors: Floats, seeds: Floats) -> dict[str, float]:
    """Nearness to each seed sentence: the nearest turn, and the mean turn."""
    if not len(vectors):
        return {f"seed_{n:02d}_{kind}": 0.0 for n in range(len(seeds)) for kind in ("most", "mean")}
    near = vectors @ seeds.T
    nearness = {f"seed_{n:02d}_most": float(value) for n, value in enumerate(near.max(axis=0))}
    return nearness | {f"seed_{n:02d}_mean": float(value) for n, value in enumerate(near.mean(axis=0))}


def seed_sentences() -> tuple[Sequence[str], Sequence[str]]:
    """The sentences whose vectors are wanted: the user's, then the agent's."""
    return word_lists.USER_SENTENCES, word_lists.AGENT_SENTENCES


def _meaning_mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
