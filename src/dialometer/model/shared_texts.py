"""Which items are no separate draws: those of one prompt, and pairs that show a transcript again.

A system that did well on a prompt, or in one dialogue, does well in every pair that shows it. Who counts such pairs as separate
items is too sure: with transcripts in eight pairs each, 45 % of studies without any difference claimed one
(``python -m bench.calibrate.shared_texts``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dialometer.model.dialogue import NO_TEXT
from dialometer.model.item import Item, PairItem, Transcript
from dialometer.model.study import Study

PROMPT = "prompt"
"""Where the metadata of an item name the prompt that it is one of several items of."""


def prompt_of(item: Item) -> str:
    """The prompt of an item, empty where it names none."""
    prompt = item.metadata.get(PROMPT)
    return str(prompt) if isinstance(prompt, str | int) and not isinstance(prompt, bool) else ""


def shared_prompts(study: Study) -> Mapping[str, str]:
    """The prompt of each item, where several items have one; an item without a prompt stands for itself. Else empty."""
    prompts = {item.id: prompt_of(item) for item in study.items}
    counts = Counter(prompt for prompt in prompts.values() if prompt)
    if max(counts.values(), default=0) < 2:
        return {}
    # A prompt and an item may have the same name.
    return {item: f"prompt {prompt}" if prompt else f"item {item}" for item, prompt in prompts.items()}


def first_shown(study: Study) -> Mapping[tuple[str, str], str]:
    """For what a system shows in an item: the first item that shows the same. Empty where nothing is shown again."""
    first: dict[object, str] = {}
    first_items: dict[tuple[str, str], str] = {}
    for item in study.items:
        prompt = prompt_of(item)
        for system in item.systems:
            key = (system, prompt) if prompt else _said(item, system)
            if key is not None:
                first_items[item.id, system] = first.setdefault(key, item.id)
    return first_items if any(item != where for (item, _), where in first_items.items()) else {}


def _said(item: Item, system: str) -> tuple[object, ...] | None:
    """What tells a transcript from others; None where its text is not known or too short to be told from another."""
    if not isinstance(item, PairItem):
        return None
    side: Transcript = item.a if item.a.system == system else item.b
    texts = tuple(turn.text for turn in side.turns)
    return None if len(texts) < 2 or NO_TEXT in texts else (system, texts, side.system_prompt)
