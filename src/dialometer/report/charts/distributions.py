"""How values are spread: counts per bin, or every value as a small mark with quartiles on top.

Bins draw a million values as fast as a hundred; marks show how raters, items or durations differ behind a mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dialometer.report.charts.frame import (
    LOG_SCALE,
    ScreenWidth,
    Spec,
    drawn_domain,
    in_facets,
    in_order,
    label_axis,
    label_room_px,
    lines_of,
    log_ticks,
    on_both_screens,
    value_axis,
    value_scale,
    whole_tick_count,
)
from dialometer.report.charts.intervals import reference_rule
from dialometer.report.theme import INK, PAPER, SERIES

_ROW_PX = 46
_SPREAD_PX = 13


@dataclass(frozen=True, slots=True)
class Bin:
    """How many values lie from ``low`` up to ``high``."""

    low: float
    high: float
    count: int
    facet: str = ""


def bin_values(values: ArrayLike, *, edges: ArrayLike | None = None, n_bins: int = 30, facet: str = "") -> list[Bin]:
    """The bins of raw values; unknown values are left out, so say how many there are in the caption."""
    array = np.asarray(values, dtype=float)
    counts, borders = np.histogram(array[np.isfinite(array)], bins=n_bins if edges is None else np.asarray(edges))
    return [Bin(float(a), float(b), int(n), facet) for a, b, n in zip(borders, borders[1:], counts, strict=False)]


def histogram(
    bins: Sequence[Bin],
    *,
    value_title: str,
    count_title: str = "judgments",
    reference: float | None = None,
) -> Spec:
    """Counts per bin. Facets share both axes. ``reference`` draws a line, for example at the middle of the scale."""
    rows = [{"low": b.low, "high": b.high, "count": b.count, "facet": b.facet} for b in bins]
    facets = in_order(b.facet for b in bins)

    def draw(screen: ScreenWidth) -> Spec:
        x_axis = {**value_axis(value_title, is_percent=False, screen=screen, n_facets=len(facets)), "grid": False}
        y_axis = {
            "title": count_title,
            "tickCount": whole_tick_count([0, *(b.count for b in bins)], 4),
            "domain": False,
            "ticks": False,
            "format": ",.0f",
        }
        layers: list[Spec] = [
            {
                "mark": {"type": "bar", "color": SERIES[0], "stroke": PAPER, "strokeWidth": 0.5},
                "encoding": {
                    "x": {
                        "field": "low",
                        "type": "quantitative",
                        "axis": x_axis,
                        "scale": {"zero": False, "nice": False},
                    },
                    "x2": {"field": "high"},
                    "y": {"field": "count", "type": "quantitative", "axis": y_axis, "scale": {"zero": True}},
                    "y2": {"datum": 0},
                },
            }
        ]
        if reference is not None:
            layers.append(
                {
                    "data": {"values": [{"reference": reference}]},
                    "mark": {"type": "rule", "strokeDash": [4, 3], "color": INK},
                    "encoding": {"x": {"field": "reference", "type": "quantitative"}},
                }
            )
        return in_facets({"layer": layers}, facets, screen, room_px=64, height_px=200 if len(facets) == 1 else 130)

    return on_both_screens(draw, rows)


def strip(
    samples: Mapping[str, ArrayLike],
    *,
    value_title: str,
    reference: float | None = None,
    limits: tuple[float, float] | None = None,
    is_percent: bool = False,
    is_log: bool = False,
    n_points_max: int = 300,
) -> Spec:
    """A row per sample. Quartiles use every value; of more than ``n_points_max`` values evenly spaced order ones are drawn.

    The axis is what the values need within ``limits``, as in ``dot_interval``.
    """
    rows: list[dict[str, object]] = []
    for label, values in samples.items():
        array = np.sort(np.asarray(values, dtype=float))
        array = array[np.isfinite(array) & (array > 0 if is_log else True)]
        rows.extend(_points(label, array, n_points_max))
        quartiles = np.quantile(array, [0.25, 0.5, 0.75]).tolist() if len(array) else [None] * 3
        rows.append({"label": label, "kind": "box", "low": quartiles[0], "value": quartiles[1], "high": quartiles[2]})
    labels = list(samples)

    def draw(screen: ScreenWidth) -> Spec:
        axis = value_axis(value_title, is_percent=is_percent, screen=screen)
        scale = value_scale(drawn_domain([*_all_values(rows), reference], limits, is_percent=is_percent))
        if is_log:
            scale = LOG_SCALE
            axis |= {"values": log_ticks(_all_values(rows), axis["tickCount"]), "format": "~g"}
        x = {"type": "quantitative", "axis": axis, "scale": scale}
        y = {"field": "label", "type": "nominal", "sort": labels, "axis": label_axis(labels, screen)}
        n_lines = max((len(lines_of(label, screen.label_chars)) for label in labels), default=1)
        row_px = max(_ROW_PX, n_lines * 15 + 8)
        layers: list[Spec] = [*_layers(x, row_px), *([] if reference is None else [reference_rule(reference)])]
        return in_facets(
            {"encoding": {"y": y}, "layer": layers},
            [""],
            screen,
            room_px=label_room_px(labels, screen),
            height_px=len(labels) * row_px,
        )

    return on_both_screens(draw, rows)


def _all_values(rows: Sequence[Mapping[str, object]]) -> list[float]:
    return [float(row["value"]) for row in rows if isinstance(row["value"], int | float)]


def _points(label: str, array: np.ndarray, n_max: int) -> Sequence[dict[str, object]]:
    kept = array
    if len(array) > n_max:
        kept = array[np.linspace(0, len(array) - 1, n_max).round().astype(int)]
    golden = (np.arange(1, len(kept) + 1) * 0.6180339887498949) % 1  # spreads neighbours without chance
    return [
        {"label": label, "kind": "point", "value": float(v), "lift": round(float(g) - 0.5, 4)}
        for v, g in zip(kept, golden, strict=True)
    ]


def _layers(x: Spec, row_px: int) -> list[Spec]:
    range_px = [row_px / 2 - _SPREAD_PX, row_px / 2 + _SPREAD_PX]
    lift = {"field": "lift", "type": "quantitative", "scale": {"domain": [-0.5, 0.5], "range": range_px}}
    return [
        {
            "transform": [{"filter": "datum.kind == 'point'"}],
            "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.45, "color": SERIES[0]},
            "encoding": {"x": {"field": "value", **x}, "yOffset": lift},
        },
        {
            "transform": [{"filter": "datum.kind == 'box' && isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 3, "color": INK},
            "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}},
        },
        {
            "transform": [{"filter": "datum.kind == 'box' && isValid(datum.value)"}],
            "mark": {"type": "tick", "thickness": 4, "height": 20, "color": INK, "opacity": 1},
            "encoding": {"x": {"field": "value", **x}},
        },
        {
            "transform": [{"filter": "datum.kind == 'box' && !isValid(datum.value)"}],
            "mark": {"type": "text", "align": "left", "fontStyle": "italic", "fontSize": 11},
            "encoding": {"x": {"value": 6}, "text": {"value": "not enough data"}},
        },
    ]
