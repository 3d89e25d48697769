"""A quantity that changes along another: power over raters, quality over time, success over k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dialometer.report.charts.frame import (
    CHAR_PX,
    LINE_PX,
    ScreenWidth,
    Spec,
    finite,
    group_colour,
    group_shape,
    in_facets,
    in_order,
    is_drawn,
    lines_of,
    on_both_screens,
    value_axis,
    value_scale,
    whole_tick_count,
)
from dialometer.report.theme import INK, SERIES


@dataclass(frozen=True, slots=True)
class LinePoint:
    """One point of a line, with an interval if it has one; ``y`` None leaves a gap."""

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None
    group: str = ""
    facet: str = ""


def lines(
    points: Sequence[LinePoint],
    *,
    x_title: str,
    y_title: str,
    group_title: str = "",
    target: float | None = None,
    mark_x: float | None = None,
    y_domain: tuple[float, float] | None = None,
    is_percent: bool = False,
    is_percent_x: bool = False,
    ideal: str = "",
) -> Spec:
    """Lines by group with bands for intervals; ``target`` draws a horizontal line, for example at a power of 0.8, ``mark_x``
    an upright one, for example at the value that was chosen, and ``ideal`` names a line where y equals x, dashed and
    without points: it is no data.
    """
    rows = [
        {"x": p.x, "y": finite(p.y), "low": finite(p.low), "high": finite(p.high), "group": p.group, "facet": p.facet}
        for p in points
    ]
    groups, facets = in_order(p.group for p in points), in_order(p.facet for p in points)
    is_whole = not is_percent_x and all(float(p.x).is_integer() for p in points)

    def draw(screen: ScreenWidth) -> Spec:
        x_axis = {**value_axis(x_title, is_percent=is_percent_x, screen=screen, n_facets=len(facets)), "grid": False}
        height = 260 if len(facets) == 1 else 170
        title = lines_of(y_title, height // CHAR_PX)
        y_axis = {**value_axis(y_title, is_percent=is_percent, screen=screen), "title": title, "tickCount": 5}
        x = {"field": "x", "type": "quantitative", "axis": x_axis}
        x["scale"] = {"zero": False, "nice": False, "padding": 8}
        if is_whole:
            x_axis["tickCount"] = whole_tick_count((p.x for p in points), x_axis["tickCount"])
        y = {
            "type": "quantitative",
            "axis": {**y_axis, "domain": False, "ticks": False},
            "scale": value_scale(y_domain),
        }
        colour: Spec = {"value": SERIES[0]} if groups == [""] else group_colour(groups, screen, group_title)
        at_y = {"x": x, "y": {"field": "y", **y}, "color": colour}
        band = {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "area", "opacity": 0.18, "clip": True},
            "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}, "color": colour},
        }
        line = {"mark": {"type": "line", "strokeWidth": 2, "clip": True}, "encoding": at_y}
        dot = {
            "transform": [is_drawn("y", y_domain)],
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 50},
            "encoding": at_y if groups == [""] else {**at_y, "shape": group_shape(groups, screen, group_title)},
        }
        layers: list[Spec] = [band, line, dot]
        if ideal:
            layers = [*_ideal([p.x for p in points], ideal), *layers]
        if target is not None:
            layers.insert(0, _rule("y", target))
        if mark_x is not None:
            layers.insert(0, _rule("x", mark_x))
        room = 41 + LINE_PX * len(title)
        return in_facets({"layer": layers}, facets, screen, room_px=room, height_px=height)

    return on_both_screens(draw, rows)


def _ideal(xs: Sequence[float], name: str) -> list[Spec]:
    """The line on which y equals x, with its name at the end."""
    ends = [min(xs), max(xs)]
    at = {"x": {"field": "at", "type": "quantitative"}, "y": {"field": "at", "type": "quantitative"}}
    return [
        {
            "data": {"values": [{"at": end} for end in ends]},
            "mark": {"type": "line", "strokeDash": [4, 3], "color": INK, "strokeWidth": 1},
            "encoding": at,
        },
        {
            "data": {"values": [{"at": ends[1], "name": name}]},
            "mark": {
                "type": "text",
                "align": "right",
                "baseline": "bottom",
                "dx": -6,
                "dy": -6,
                "color": INK,
                "fontSize": 11,
            },
            "encoding": {**at, "text": {"field": "name"}},
        },
    ]


def _rule(axis: str, value: float) -> Spec:
    return {
        "data": {"values": [{"target": value}]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": INK, "strokeWidth": 1},
        "encoding": {axis: {"field": "target", "type": "quantitative"}},
    }
