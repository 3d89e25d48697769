"""Estimates in a column with their numbers beside them: effects under test, and systems in the order of their strength."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialometer.report.charts.dot_interval import Dot, dot_rows, interval_layers, reference_rule
from dialometer.report.charts.frame import (
    Screen,
    Spec,
    in_facets,
    in_order,
    label_axis,
    label_room_px,
    on_both_screens,
    row_height_px,
    value_axis,
    value_scale,
)
from dialometer.report.numbers import write_estimate
from dialometer.report.theme import MUTED

_CHAR_PX = 6.4


def forest(
    dots: Sequence[Dot],
    *,
    value_title: str,
    reference: float | None = 0.0,
    domain: tuple[float, float] | None = None,
    is_percent: bool = False,
) -> Spec:
    """Effects with intervals, the numbers written at the right, and a line at ``reference`` (no effect)."""
    texts = {dot.label: write_estimate(dot.estimate, is_percent=is_percent).text for dot in dots}
    return _column(dots, texts, value_title, reference, domain, is_percent)


def ranking_intervals(
    dots: Sequence[Dot],
    *,
    value_title: str,
    rank_ranges: Mapping[str, tuple[int, int]] | None = None,
    reference: float | None = None,
    domain: tuple[float, float] | None = None,
    is_percent: bool = False,
) -> Spec:
    """Systems from the strongest to the weakest; ``rank_ranges`` (label to best and worst plausible rank) stands beside."""
    known = sorted((dot for dot in dots if dot.estimate.is_known), key=lambda dot: -dot.estimate.value)
    ordered = [*known, *(dot for dot in dots if not dot.estimate.is_known)]
    texts = {}
    for dot in ordered:
        low, high = (rank_ranges or {}).get(dot.label, (0, 0))
        texts[dot.label] = "" if not low else f"rank {low}" if low == high else f"rank {low}–{high}"
    if not rank_ranges:
        texts = {dot.label: write_estimate(dot.estimate, is_percent=is_percent).text for dot in ordered}
    return _column(ordered, texts, value_title, reference, domain, is_percent)


def _column(
    dots: Sequence[Dot],
    texts: Mapping[str, str],
    value_title: str,
    reference: float | None,
    domain: tuple[float, float] | None,
    is_percent: bool,
) -> Spec:
    rows = [{**row, "text": texts[row["label"]]} for row in dot_rows(dots)]
    labels = in_order(dot.label for dot in dots)
    longest = max((len(text) for text in texts.values()), default=0)

    def draw(screen: Screen) -> Spec:
        axis = label_axis(labels, screen)
        y: Spec = {"field": "label", "type": "nominal", "sort": labels, "axis": axis}
        x = {
            "type": "quantitative",
            "axis": value_axis(value_title, is_percent=is_percent, screen=screen),
            "scale": value_scale(domain),
        }
        layers = interval_layers(x, [""], screen)
        if reference is not None:
            layers.insert(0, reference_rule(reference))
        if not screen.is_narrow:
            layers.append(
                {
                    "transform": [{"filter": "isValid(datum.value)"}],
                    "mark": {"type": "text", "align": "left", "color": MUTED, "fontSize": 12},
                    "encoding": {"x": {"value": {"expr": "width + 12"}}, "text": {"field": "text"}},
                }
            )
        height = len(labels) * row_height_px(labels, screen, 1)
        return in_facets(
            {"encoding": {"y": y}, "layer": layers},
            [""],
            screen,
            room_px=label_room_px(labels, screen) + round(longest * _CHAR_PX),
            height_px=height,
        )

    return on_both_screens(draw, rows)
