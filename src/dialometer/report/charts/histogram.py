"""How values are spread: counts per bin, so that a million values draw as fast as a hundred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dialometer.report.charts.frame import Screen, Spec, in_facets, in_order, on_both_screens, value_axis
from dialometer.report.theme import INK, PAPER, SERIES


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
    n_facet_columns: int = 2,
) -> Spec:
    """Counts per bin. Facets share both axes. ``reference`` draws a line, for example at the middle of the scale."""
    rows = [{"low": b.low, "high": b.high, "count": b.count, "facet": b.facet} for b in bins]
    facets = in_order(b.facet for b in bins)

    def draw(screen: Screen) -> Spec:
        x_axis = {**value_axis(value_title, is_percent=False, screen=screen, n_facets=len(facets)), "grid": False}
        y_axis = {
            "title": count_title,
            "tickCount": 4,
            "domain": False,
            "ticks": False,
            "format": ",.0f",
            "tickMinStep": 1,
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

    return on_both_screens(draw, rows, n_facet_columns)
