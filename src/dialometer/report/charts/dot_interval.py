"""Points with their intervals, by group and facet: the chart most results are best read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dialometer.model.estimate import Estimate
from dialometer.report.charts.frame import (
    Screen,
    Spec,
    finite,
    group_colour,
    group_shape,
    in_facets,
    in_order,
    label_axis,
    label_room_px,
    on_both_screens,
    row_height_px,
    unknown_text,
    value_axis,
    value_scale,
)
from dialometer.report.theme import AXIS, INK, SERIES


@dataclass(frozen=True, slots=True)
class Dot:
    """One estimate of a chart: the row it stands in, and its group (colour) and facet (panel) if there are any."""

    label: str
    estimate: Estimate
    group: str = ""
    facet: str = ""


def dot_interval(
    dots: Sequence[Dot],
    *,
    value_title: str,
    group_title: str = "",
    reference: float | None = None,
    domain: tuple[float, float] | None = None,
    is_percent: bool = False,
    n_facet_columns: int = 2,
) -> Spec:
    """Estimates with intervals, one row per label in the order given; ``reference`` draws a line (chance, no effect)."""
    rows = dot_rows(dots)
    labels, groups = in_order(dot.label for dot in dots), in_order(dot.group for dot in dots)
    facets = in_order(dot.facet for dot in dots)

    def draw(screen: Screen) -> Spec:
        y: Spec = {"field": "label", "type": "nominal", "sort": labels, "axis": label_axis(labels, screen)}
        y["scale"] = {"paddingInner": 0.25, "paddingOuter": 0.15}
        encoding: Spec = {"y": y}
        if groups != [""]:
            offset = {"domain": groups, "paddingInner": 0.1, "paddingOuter": 0.1}
            encoding["yOffset"] = {"field": "group", "type": "nominal", "sort": groups, "scale": offset}
        x = {
            "type": "quantitative",
            "axis": value_axis(value_title, is_percent=is_percent, screen=screen, n_facets=len(facets)),
            "scale": value_scale(domain),
        }
        layers = interval_layers(x, groups, screen, group_title)
        if reference is not None:
            layers.insert(0, reference_rule(reference))
        view: Spec = {"encoding": encoding, "layer": layers}
        height = len(labels) * row_height_px(labels, screen, len(groups))
        return in_facets(view, facets, screen, room_px=label_room_px(labels, screen), height_px=height)

    return on_both_screens(draw, rows, n_facet_columns)


def dot_rows(dots: Sequence[Dot]) -> list[dict[str, Any]]:
    """The dots as a chart's data; what is not known is null."""
    return [
        {
            "label": dot.label,
            "group": dot.group,
            "facet": dot.facet,
            "value": finite(dot.estimate.value),
            "low": finite(dot.estimate.low),
            "high": finite(dot.estimate.high),
        }
        for dot in dots
    ]


def interval_layers(x: Spec, groups: list[str], screen: Screen, group_title: str = "") -> list[Spec]:
    """The interval as a line, the value as a point with the background's colour around it."""
    colour: Spec = {"value": SERIES[0]}
    shape: Spec = {}
    if groups != [""]:
        colour = group_colour(groups, screen, group_title)
        shape = {"shape": group_shape(groups, screen, group_title)}
    return [
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "rule", "strokeWidth": 2.5, "strokeCap": "round", "clip": True},
            "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}, "color": colour},
        },
        {
            "transform": [{"filter": "isValid(datum.value)"}],
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 75, "clip": True},
            "encoding": {"x": {"field": "value", **x}, "color": colour, **shape},
        },
        unknown_text(),
    ]


def reference_rule(value: float, *, is_strong: bool = True) -> Spec:
    """A dashed line at the value that would mean "no difference"."""
    return {
        "data": {"values": [{"reference": value}]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": INK if is_strong else AXIS, "strokeWidth": 1},
        "encoding": {
            "x": {"field": "reference", "type": "quantitative"},
            "y": {"value": 0},
            "y2": {"value": "height"},
            "yOffset": {"value": 0},
        },
    }
