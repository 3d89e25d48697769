"""Beginnings of texts as a tree: the first word, what follows it, and what follows that, each as high as it is frequent.

A ring (sunburst) shows the same with words at every angle; in columns they stay level and can be read on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dialometer.report.charts.frame import ScreenWidth, Spec, on_both_screens
from dialometer.report.theme import INK, ON_STRONG, PAPER, SEQUENTIAL

_COLOURS = (SEQUENTIAL[5], SEQUENTIAL[2], SEQUENTIAL[1])
_LEAST_PX, _MOST_PX = 240, 960
_LEAF_PX = 22
_LABEL_PX, _SMALL_PX = 9, 14
"""Blocks lower than the first have no label, those lower than the second a small one."""


@dataclass(frozen=True, slots=True)
class WordBranch:
    """Words in order, and how many texts begin with them."""

    words: tuple[str, ...]
    n: int


def word_tree(branches: Sequence[WordBranch]) -> Spec:
    """The tree, the most frequent words on top at every level."""
    height = min(_MOST_PX, max(_LEAST_PX, _LEAF_PX * len(branches)))
    rows = _blocks(list(branches), height)
    n_levels = max((row["level"] + 1 for row in rows), default=1)

    def draw(screen: ScreenWidth) -> Spec:
        width = screen.width_px - 8
        n_chars = int(width / n_levels / 7.2)
        y = {
            "field": "start",
            "type": "quantitative",
            "axis": None,
            "scale": {"reverse": True, "nice": False, "zero": True},
        }
        x: dict[str, Any] = {"type": "quantitative", "axis": None, "scale": {"domain": [0, n_levels], "nice": False}}
        ink = {"condition": {"test": "datum.level == 0", "value": ON_STRONG}, "value": INK}
        colour = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
        block = {
            "mark": {"type": "rect", "stroke": PAPER, "strokeWidth": 1.5, "cornerRadius": 2},
            "encoding": {
                "x": {**x, "field": "level"}, "x2": {"field": "next"}, "y": y, "y2": {"field": "end"}, "color": colour,
            },
        }  # fmt: skip
        label = {
            "transform": [{"filter": f"datum.height_px >= {_LABEL_PX}"}],
            "mark": {"type": "text", "align": "left", "dx": 6, "limit": n_chars * 7},
            "encoding": {
                "x": {**x, "field": "level"}, "y": {**y, "field": "middle"}, "text": {"field": "text"}, "color": ink,
                "size": {"field": "font_px", "type": "quantitative", "scale": None},
            },
        }  # fmt: skip
        return {
            "layer": [block, label],
            "width": width,
            "height": height,
            "autosize": {"type": "none", "contains": "padding"},
        }

    return on_both_screens(draw, rows)


def _blocks(branches: list[WordBranch], height_px: int) -> list[dict[str, Any]]:
    """One block for every word in its place; a text that ends early leaves the rest of its row empty."""
    total = sum(branch.n for branch in branches)
    rows: list[dict[str, Any]] = []

    def add(members: list[WordBranch], level: int, start: float) -> None:
        groups: dict[str, list[WordBranch]] = {}
        for branch in members:
            if level < len(branch.words):
                groups.setdefault(branch.words[level], []).append(branch)
        for word, own in sorted(groups.items(), key=lambda entry: (-sum(phrase.n for phrase in entry[1]), entry[0])):
            n = sum(branch.n for branch in own)
            rows.append(
                {
                    "level": level,
                    "next": level + 1,
                    "start": start,
                    "end": start + n,
                    "middle": start + n / 2,
                    "text": f"{word}  {n}",
                    "colour": _COLOURS[min(level, len(_COLOURS) - 1)],
                    "height_px": height_px * n / total,
                    "font_px": 12 if height_px * n / total >= _SMALL_PX else 9,
                }
            )
            add(own, level + 1, start)
            start += n

    add(branches, 0, 0.0)
    return rows
