"""Plain amounts as bars: costs, counts, shares of a whole. For estimates use ``dot_interval``, which shows the interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dialometer.report.charts.frame import (
    ScreenWidth,
    Spec,
    finite,
    group_colour,
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
from dialometer.report.numbers import write_percent
from dialometer.report.theme import DIVERGING, INK, ON_SERIES, ON_STRONG, PAPER, SEQUENTIAL, SERIES


@dataclass(frozen=True, slots=True)
class Bar:
    """One amount; None means it is not known."""

    label: str
    value: float | None
    group: str = ""
    facet: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """One part's share (0 to 1) of a row that adds up to 1."""

    label: str
    part: str
    share: float
    facet: str = ""


def bars(
    items: Sequence[Bar],
    *,
    value_title: str,
    is_percent: bool = False,
) -> Spec:
    """Bars from zero, one row per label in the order given, side by side where there are groups."""
    rows = [{"label": i.label, "value": finite(i.value), "group": i.group, "facet": i.facet} for i in items]
    labels, groups, facets = (in_order(getattr(i, key) for i in items) for key in ("label", "group", "facet"))

    def draw(screen: ScreenWidth) -> Spec:
        axis = value_axis(value_title, is_percent=is_percent, screen=screen, n_facets=len(facets))
        x = {"field": "value", "type": "quantitative", "axis": axis, "scale": value_scale(None, has_zero=True)}
        y = {"field": "label", "type": "nominal", "sort": labels, "axis": label_axis(labels, screen)}
        encoding: Spec = {"y": {**y, "scale": {"paddingInner": 0.3, "paddingOuter": 0.15}}}
        colour: Spec = {"value": SERIES[0]}
        if groups != [""]:
            encoding["yOffset"] = {"field": "group", "type": "nominal", "sort": groups, "scale": {"domain": groups}}
            colour = group_colour(groups, screen, "")
        bar = {
            "transform": [{"filter": "isValid(datum.value)"}],
            "mark": {"type": "bar", "cornerRadiusEnd": 2},
            "encoding": {"x": x, "color": colour},
        }
        height = len(labels) * row_height_px(labels, screen, len(groups))
        view: Spec = {"encoding": encoding, "layer": [bar, unknown_text()]}
        return in_facets(view, facets, screen, room_px=label_room_px(labels, screen), height_px=height)

    return on_both_screens(draw, rows)


def stacked_shares(
    shares: Sequence[Share],
    *,
    parts: Sequence[str],
    part_title: str = "",
    value_title: str = "share",
    is_ordered: bool = False,
) -> Spec:
    """Rows that add up to 100 %, cut into ``parts`` in that order; an ordered scale gets colours that run from low to high."""
    colours, inks = part_colours(len(parts), is_ordered=is_ordered)
    index = {part: i for i, part in enumerate(parts)}
    facets, labels = in_order(s.facet for s in shares), in_order(s.label for s in shares)
    rows = []
    ends: dict[tuple[str, str], float] = {}
    for share in sorted(shares, key=lambda s: index[s.part]):
        start = ends.get((share.facet, share.label), 0.0)
        ends[share.facet, share.label] = end = start + share.share
        rows.append(
            {
                "label": share.label,
                "part": share.part,
                "facet": share.facet,
                "start": start,
                "end": end,
                "middle": (start + end) / 2,
                "text": write_percent(share.share) if share.share >= 0.045 else "",
                "text_narrow": write_percent(share.share) if share.share >= 0.13 else "",
                "ink": inks[index[share.part]],
            }
        )

    def draw(screen: ScreenWidth) -> Spec:
        axis = {**value_axis(value_title, is_percent=True, screen=screen, n_facets=len(facets)), "grid": False}
        x = {"type": "quantitative", "axis": axis, "scale": {"domain": [0, 1], "nice": False}}
        y = {"field": "label", "type": "nominal", "sort": labels, "axis": label_axis(labels, screen)}
        colour = group_colour(list(parts), screen, part_title, field="part")
        colour["scale"] = {"domain": list(parts), "range": colours}
        block = {
            "mark": {"type": "bar", "stroke": PAPER, "strokeWidth": 1},
            "encoding": {"x": {"field": "start", **x}, "x2": {"field": "end"}, "color": colour},
        }
        number = {
            "mark": {"type": "text", "fontSize": 11},
            "encoding": {
                "x": {"field": "middle", **x},
                "text": {"field": "text_narrow" if screen.is_narrow or len(facets) > 1 else "text"},
                "color": {
                    "condition": [{"test": f"datum.ink == '{ink}'", "value": ink} for ink in sorted(set(inks))],
                    "value": INK,
                },
            },
        }
        view = {"encoding": {"y": {**y, "scale": {"paddingInner": 0.25}}}, "layer": [block, number]}
        height = len(labels) * row_height_px(labels, screen, 1)
        return in_facets(view, facets, screen, room_px=label_room_px(labels, screen), height_px=height)

    return on_both_screens(draw, rows)


def part_colours(n_parts: int, *, is_ordered: bool) -> tuple[list[str], list[str]]:
    """A colour per part, and the colour of the writing on it."""
    if not is_ordered:
        places = [i % len(SERIES) for i in range(n_parts)]
        return [SERIES[place] for place in places], [ON_SERIES[place] for place in places]
    if n_parts <= 2:
        return [SEQUENTIAL[2], SEQUENTIAL[5]][:n_parts], [INK, ON_STRONG][:n_parts]
    last = len(DIVERGING) - 1
    places = [round(i * last / (n_parts - 1)) for i in range(n_parts)]
    strong = (0, 1, last - 1, last)
    return [DIVERGING[place] for place in places], [ON_STRONG if place in strong else INK for place in places]
