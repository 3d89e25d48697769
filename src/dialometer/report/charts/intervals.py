"""Points with their intervals: by group and facet, or in a column with the numbers written beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dialometer.model.estimate import Estimate
from dialometer.report.charts.frame import (
    ScreenWidth,
    Spec,
    drawn_domain,
    finite,
    group_colour,
    group_shape,
    in_facets,
    in_order,
    is_drawn,
    label_axis,
    label_room_px,
    on_both_screens,
    row_height_px,
    unknown_text,
    value_axis,
    value_scale,
)
from dialometer.report.numbers import write_estimate
from dialometer.report.theme import INK, MUTED, SERIES

_CHAR_PX = 6.4
_MOST_POINTS = 10
_SHORT_CHARS = 10
"""Texts beside a column that leave room for it on a phone, such as "rank 2–4"."""


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
    bounds: Sequence[float] = (),
    domain: tuple[float, float] | None = None,
    limits: tuple[float, float] | None = None,
    is_percent: bool = False,
    group_order: Sequence[str] = (),
) -> Spec:
    """Estimates with intervals, one row per label in the order given; ``reference`` draws a line (chance, no effect), and
    ``bounds`` weaker ones (a margin). The axis is ``domain``, or what the estimates need within ``limits``, the ends of the
    scale (shares need none: theirs are known). Groups stand below each other in each row; with
    ``group_order`` every label has one group only, and the group is its colour and shape."""
    rows = dot_rows(dots)
    labels, groups = in_order(dot.label for dot in dots), list(group_order) or in_order(dot.group for dot in dots)
    facets = in_order(dot.facet for dot in dots)

    def draw(screen: ScreenWidth) -> Spec:
        y: Spec = {"field": "label", "type": "nominal", "sort": labels, "axis": label_axis(labels, screen)}
        y["scale"] = {"paddingInner": 0.25, "paddingOuter": 0.15}
        encoding: Spec = {"y": y}
        if groups != [""] and not group_order:
            offset = {"domain": groups, "paddingInner": 0.1, "paddingOuter": 0.1}
            encoding["yOffset"] = {"field": "group", "type": "nominal", "sort": groups, "scale": offset}
        x = {
            "type": "quantitative",
            "axis": value_axis(value_title, is_percent=is_percent, screen=screen, n_facets=len(facets))
            | _points(domain),
            "scale": value_scale(
                domain or drawn_domain(_ends(rows, reference, *bounds), limits, is_percent=is_percent)
            ),
        }
        layers = [*(reference_rule(bound, is_strong=False) for bound in bounds)]
        drawn = [dot.group for dot in dots] if group_order else ()
        layers += interval_layers(
            x, groups, screen, group_title, domain=domain, open_ends=_open_ends(dots), drawn=drawn
        )
        if reference is not None:
            layers.insert(0, reference_rule(reference))
        view: Spec = {"encoding": encoding, "layer": layers}
        height = len(labels) * row_height_px(labels, screen, 1 if group_order else len(groups))
        return in_facets(view, facets, screen, room_px=label_room_px(labels, screen), height_px=height)

    return on_both_screens(draw, rows)


def _points(domain: tuple[float, float] | None) -> Spec:
    """Marks at the points of a short scale: so many as there is room for would leave out its ends (from 1 to 7: 2, 4 and 6)."""
    low, high = domain or (0.0, 0.0)
    is_short = low == round(low) and high == round(high) and 2 <= high - low <= _MOST_POINTS
    return {"values": list(range(round(low), round(high) + 1))} if is_short else {}


def dot_rows(dots: Sequence[Dot]) -> list[dict[str, Any]]:
    """The dots as a chart's data; what is not known, or has no end, is null."""
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


def _open_ends(dots: Sequence[Dot]) -> dict[str, float]:
    """Where intervals without an end are drawn to, a little beyond everything else: by the end that they lack."""
    ends = [
        end for dot in dots for end in (dot.estimate.value, dot.estimate.low, dot.estimate.high) if math.isfinite(end)
    ]
    if not ends:
        return {}
    room = 0.1 * (max(ends) - min(ends)) or 0.1
    beyond = {"low": min(ends) - room, "high": max(ends) + room}
    return {end: place for end, place in beyond.items() if any(_lacks(dot.estimate, end) for dot in dots)}


def _lacks(estimate: Estimate, end: str) -> bool:
    """Whether the interval has no such end, and has the other."""
    ends = {"low": estimate.low, "high": estimate.high}
    return math.isinf(ends[end]) and math.isfinite(ends["high" if end == "low" else "low"])


def _ends(rows: Sequence[Mapping[str, Any]], *values: float | None) -> list[float | None]:
    return [*(row[key] for row in rows for key in ("value", "low", "high")), *values]


def interval_layers(
    x: Spec,
    groups: list[str],
    screen: ScreenWidth,
    group_title: str = "",
    *,
    domain: tuple[float, float] | None = None,
    open_ends: Mapping[str, float] = MappingProxyType({}),
    drawn: Sequence[str] = (),
) -> list[Spec]:
    """The interval as a line and the value as a point; where a ``domain`` is given, what is beyond its ends is not drawn.

    An interval that lacks an end is an arrow to the place that ``open_ends`` give.
    """
    colour: Spec = {"value": SERIES[0]}
    shape: Spec = {}
    if groups != [""]:
        colour = group_colour(groups, screen, group_title, drawn=drawn)
        shape = {"shape": group_shape(groups, screen, group_title, drawn=drawn)}
    line: Spec = {"type": "rule", "strokeWidth": 2.5, "strokeCap": "round", "clip": True}
    arrows: list[Spec] = []
    for end, place in open_ends.items():
        other, head = ("high", "triangle-left") if end == "low" else ("low", "triangle-right")
        is_open = {"filter": f"!isValid(datum.{end}) && isValid(datum.{other}) && isValid(datum.value)"}
        transform = [is_open, {"calculate": f"{place}", "as": "beyond"}]
        arrows += [
            {
                "transform": transform,
                "mark": line,
                "encoding": {"x": {"field": other, **x}, "x2": {"field": "beyond"}, "color": colour},
            },
            {
                "transform": transform,
                "mark": {"type": "point", "shape": head, "filled": True, "opacity": 1, "size": 60},
                "encoding": {"x": {"field": "beyond", **x}, "color": colour},
            },
        ]
    return [
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": line,
            "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}, "color": colour},
        },
        *arrows,
        {
            "transform": [is_drawn("value", domain)],
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 75},
            "encoding": {"x": {"field": "value", **x}, "color": colour, **shape},
        },
        unknown_text(),
    ]


def reference_rule(value: float, *, is_strong: bool = True) -> Spec:
    """A dashed line at the value that would mean "no difference"."""
    return {
        "data": {"values": [{"reference": value}]},
        "mark": {
            "type": "rule",
            "strokeDash": [4, 3] if is_strong else [1, 3],
            "color": INK if is_strong else MUTED,
            "strokeWidth": 1 if is_strong else 2,
        },
        "encoding": {
            "x": {"field": "reference", "type": "quantitative"},
            "y": {"value": 0},
            "y2": {"value": "height"},
            "yOffset": {"value": 0},
        },
    }


def forest(
    dots: Sequence[Dot],
    *,
    value_title: str,
    reference: float | None = 0.0,
    n_digits: int | None = None,
) -> Spec:
    """Effects with intervals, the numbers written at the right, and a line at ``reference`` (no effect)."""
    texts = {dot.label: write_estimate(dot.estimate, n_digits=n_digits).text for dot in dots}
    return _column(dots, texts, value_title, reference)


def ranking_intervals(
    dots: Sequence[Dot],
    *,
    value_title: str,
    rank_ranges: Mapping[str, tuple[int, int]] | None = None,
    reference: float | None = None,
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
    return _column(ordered, texts, value_title, reference, is_percent=is_percent)


def _column(
    dots: Sequence[Dot],
    texts: Mapping[str, str],
    value_title: str,
    reference: float | None,
    *,
    is_percent: bool = False,
) -> Spec:
    rows = [{**row, "text": texts[row["label"]]} for row in dot_rows(dots)]
    labels = in_order(dot.label for dot in dots)
    longest = max((len(text) for text in texts.values()), default=0)

    def draw(screen: ScreenWidth) -> Spec:
        axis = label_axis(labels, screen)
        y: Spec = {"field": "label", "type": "nominal", "sort": labels, "axis": axis}
        x = {
            "type": "quantitative",
            "axis": value_axis(value_title, is_percent=is_percent, screen=screen),
            "scale": value_scale(drawn_domain(_ends(rows, reference), is_percent=is_percent)),
        }
        layers = interval_layers(x, [""], screen, open_ends=_open_ends(dots))
        if reference is not None:
            layers.insert(0, reference_rule(reference))
        if not screen.is_narrow or longest <= _SHORT_CHARS:
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
