"""Pairs of rated dialogues for experts to compare, drawn by declared rules, as the items of a study.

After Liang, Zou and Yu (ACL 2020, sections 3.1 and 3.3): dialogues of at least ten turns on one topic, without inappropriate
words; 400 random pairs; two experts say which one they would rather come back to, or "cannot tell". Pairs may be of one system.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dialometer.errors import NotEnoughData
from dialometer.learned.data.rated import RatedDialogue, shown_item
from dialometer.readers.turn_parts import turn_as_json

SIDES = ("first", "second")
QUESTION = (
    "If you were the user, after which conversation would you be more likely to come back and talk to the system again?"
)
_TRIES = 200


@dataclass(frozen=True, slots=True)
class PairRules:
    """Which dialogues may be drawn, and which two of them make a pair."""

    n_pairs: int = 400
    fewest_turns: int = 10
    most_turns: int = 0
    """0: no limit."""
    topic: str = ""
    """Dialogues whose metadata name this topic, or in which this word occurs."""
    without: tuple[str, ...] = ()
    """Dialogues with one of these words are not shown to anybody."""
    least_gap: float = 0.0
    """Points between the two ratings."""
    is_even_over_gaps: bool = False
    """As many pairs of each gap as there can be, instead of as chance has it."""
    max_length_difference: int | None = None
    is_same_system: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SampledPairs:
    """Pairs as drawn, which side first by chance, and how many dialogues each rule left out."""

    pairs: tuple[tuple[RatedDialogue, RatedDialogue], ...]
    n_eligible: int
    n_left_out: Mapping[str, int]


def sample_pairs(rated: Sequence[RatedDialogue], rules: PairRules) -> SampledPairs:
    """Draw pairs; no pair twice, no dialogue with itself. Refused where fewer than wanted can be found."""
    n_left_out: Counter[str] = Counter()
    eligible = []
    for row in rated:
        why = _why_not(row, rules)
        if why:
            n_left_out[why] += 1
        else:
            eligible.append(row)
    rng = np.random.default_rng([rules.seed, 403])
    drawn = _draw_even(eligible, rules, rng) if rules.is_even_over_gaps else _draw(eligible, rules, rng)
    if len(drawn) < rules.n_pairs:
        lost = ", ".join(f"{n} {why}" for why, n in n_left_out.items())
        raise NotEnoughData(
            f"{len(drawn)} of {rules.n_pairs} pairs could be drawn from {len(eligible)} dialogues that fit"
            + (f" ({lost})" if lost else ""),
            remedy="ask for fewer pairs, or loosen the rules (turns, topic, gap, length)",
        )
    return SampledPairs(tuple(drawn), len(eligible), dict(n_left_out))


def _why_not(row: RatedDialogue, rules: PairRules) -> str:
    if row.n_utterances < rules.fewest_turns:
        return f"with fewer than {rules.fewest_turns} turns"
    if rules.most_turns and row.n_utterances > rules.most_turns:
        return f"with more than {rules.most_turns} turns"
    if rules.topic and not _is_on(row, rules.topic):
        return f"not about {rules.topic}"
    if any(_has_word(row, word) for word in rules.without):
        return "with an unwanted word"
    return ""


def _is_on(row: RatedDialogue, topic: str) -> bool:
    declared = row.dialogue.metadata.get("topic")
    if declared is not None:
        return str(declared).casefold() == topic.casefold()
    return _has_word(row, topic)


def _has_word(row: RatedDialogue, word: str) -> bool:
    pattern = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    return any(pattern.search(turn.text) for turn in row.dialogue.turns)


def _fits(first: RatedDialogue, second: RatedDialogue, rules: PairRules) -> bool:
    if shown_item(first) == shown_item(second) or abs(first.rating - second.rating) < rules.least_gap:
        return False
    if rules.is_same_system and first.bot != second.bot:
        return False
    limit = rules.max_length_difference
    return limit is None or abs(first.n_utterances - second.n_utterances) <= limit


def _draw(
    rows: Sequence[RatedDialogue], rules: PairRules, rng: np.random.Generator
) -> list[tuple[RatedDialogue, RatedDialogue]]:
    """Random pairs until there are enough, or so many tries failed that there can hardly be more."""
    drawn: dict[tuple[int, int], tuple[RatedDialogue, RatedDialogue]] = {}
    n_failed = 0
    while len(rows) > 1 and len(drawn) < rules.n_pairs and n_failed < _TRIES * rules.n_pairs:
        a, b = rng.choice(len(rows), 2, replace=False).tolist()
        key = (min(a, b), max(a, b))
        if key in drawn or not _fits(rows[a], rows[b], rules):
            n_failed += 1
            continue
        drawn[key] = (rows[a], rows[b])
    return list(drawn.values())


def _draw_even(
    rows: Sequence[RatedDialogue], rules: PairRules, rng: np.random.Generator
) -> list[tuple[RatedDialogue, RatedDialogue]]:
    """The same number from each whole gap between two ratings, as far as there are pairs."""
    by_gap: dict[int, list[tuple[RatedDialogue, RatedDialogue]]] = {}
    n_tries = _TRIES * rules.n_pairs
    seen = set()
    for _ in range(n_tries if len(rows) > 1 else 0):
        a, b = rng.choice(len(rows), 2, replace=False).tolist()
        key = (min(a, b), max(a, b))
        if key not in seen and _fits(rows[a], rows[b], rules):
            seen.add(key)
            by_gap.setdefault(round(abs(rows[a].rating - rows[b].rating)), []).append((rows[a], rows[b]))
    by_gap.pop(0, None)  # equal ratings say nothing about the ratings
    drawn: list[tuple[RatedDialogue, RatedDialogue]] = []
    while any(by_gap.values()) and len(drawn) < rules.n_pairs:
        for gap in sorted(by_gap):
            if by_gap[gap] and len(drawn) < rules.n_pairs:
                drawn.append(by_gap[gap].pop())
    return [drawn[k] for k in rng.permutation(len(drawn)).tolist()]


def pair_items(sampled: SampledPairs) -> list[dict[str, Any]]:
    """The pairs as items of a study; what must not be shown (ratings, systems) stands in the metadata."""
    items = []
    for number, pair in enumerate(sampled.pairs, start=1):
        sides = {
            key: {
                "system": side,
                "turns": [
                    {**turn_as_json(replace(turn, media=())), "speaker": "User" if turn.role == "user" else "System"}
                    for turn in row.dialogue.turns
                ],
            }
            for key, side, row in zip("ab", SIDES, pair, strict=True)
        }
        about = {side: row.id for side, row in zip(SIDES, pair, strict=True)}
        about |= {f"{side}_system": row.bot for side, row in zip(SIDES, pair, strict=True) if row.bot}
        ratings = {f"{side}_rating": row.rating for side, row in zip(SIDES, pair, strict=True)}
        items.append({"id": f"pair-{number:04d}", **sides, "metadata": {**about, **ratings}})
    return items


def study_file(sampled: SampledPairs, rules: PairRules, *, name: str, n_experts: int, source: str) -> dict[str, Any]:
    """The declared study in which experts compare the pairs."""
    n = len(sampled.pairs)
    return {
        "dialometer": 1,
        "name": name,
        "title": "Which of two conversations went better?",
        "description": f"{n} pairs of dialogues from {source}, compared by {n_experts} experts. Drawn at random (seed "
        f"{rules.seed}) from {sampled.n_eligible} dialogues. Experts see neither the users' ratings nor the systems' names.",
        "contact": "the research team (study-team@example.org)",
        "language": "en",
        "seed": rules.seed,
        "speakers": {"User": "user", "System": "agent"},
        "systems": [
            {"name": "first", "label": "First dialogue", "description": "The dialogue filed first in its pair."},
            {"name": "second", "label": "Second dialogue", "description": "The dialogue filed second in its pair."},
        ],
        "items": {"kind": "transcript_pair", "file": "items.jsonl", "pairs": "dialogues"},
        "scales": {"which": {"type": "pairwise", "allow_cannot_tell": True}},
        "criteria": [
            {
                "name": "experience",
                "label": "User experience",
                "question": QUESTION,
                "definition": "Judge the experience of the user, not a single part of the system.",
                "scale": "which",
            }
        ],
        "presentation": {"layout": "together"},
        "design": {
            "items_per_rater": "all",
            "item_order": "random",
            "system_order": "random",
            "stale_after_minutes": 20160,
        },
        "recruitment": {"platform": "link", "quota": n_experts, "minutes": max(1, round(n * 0.75))},
        "texts": {"consent": "consent.md", "instructions": "instructions.md", "debriefing": "debriefing.md"},
        "analysis": {"confidence": 0.95, "n_resamples": 2000},
    }
