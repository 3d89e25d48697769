"""How long and how formatted the texts of a study are: the counts that votes and judges are held against."""

from __future__ import annotations

from dialometer.model.item import DialogueItem, PairItem, ResponsesItem
from dialometer.model.study import Study
from dialometer.stats.ranking.style import style_counts

VOTES_PER_PARAMETER = 10
"""Votes that each strength and each style feature needs at least; with fewer, such a model says nothing."""


def style_of(study: Study) -> dict[tuple[str, str], tuple[int, ...]]:
    """Length and formatting of what each system wrote on each item, where the study knows the texts."""
    styles: dict[tuple[str, str], tuple[int, ...]] = {}
    for item in study.items:
        match item:
            case ResponsesItem():
                styles |= {(item.id, system): style_counts([text]) for system, text in item.responses.items()}
            case PairItem():
                for side in (item.a, item.b):
                    said = [turn.text for turn in side.turns if turn.role != "user"]
                    styles[item.id, side.system] = style_counts(said)
            case DialogueItem():
                said = [turn.text for turn in item.turns if turn.role != "user"]
                styles[item.id, item.system] = style_counts(said)
            case _:
                pass
    return styles
