"""What all chart builders share: room for labels, facets, and one drawing each for wide and narrow screens."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialometer.report.theme import INK, MUTED, NARROW_PX, SERIES, SHAPES, WIDE_PX, with_narrow

Spec = dict[str, Any]
"""A Vega-Lite specification with its data inside."""

CHAR_PX = 6.7
LINE_PX = 15
_FACET_GAP_PX = 28
_FONT_SLACK = 0.13
_THREE_FACETS_PX = 500
LOG_SCALE: Spec = {"type": "log", "nice": False, "padding": 8}
"""With room for the marks at its ends."""
COEFFICIENT = (-1.0, 1.0)
"""The limits of correlations and of coefficients of agreement."""
NOT_ENOUGH = "not enough data"


@dataclass(frozen=True, slots=True)
class ScreenWidth:
    """How much room there is."""

    width_px: int
    label_chars: int
    n_facet_columns: int

    @property
    def is_narrow(self) -> bool:
        """Whether it is a phone."""
        return self.width_px < WIDE_PX


def on_both_screens(draw: Callable[[ScreenWidth], Spec], rows: Sequence[dict[str, Any]]) -> Spec:
    """The chart for a wide screen, carrying the one for a phone; without rows it says that there is nothing to draw."""
    if not rows:
        mark = {"type": "text", "fontStyle": "italic", "color": MUTED, "text": NOT_ENOUGH}
        return {"data": {"values": [{}]}, "mark": mark, "width": NARROW_PX - 40, "height": 60}
    wide = draw(ScreenWidth(WIDE_PX, 34, 2))
    narrow = draw(ScreenWidth(NARROW_PX, 17, 1))
    return with_narrow({"data": {"values": list(rows)}, **wide}, narrow)


def finite(value: float | None) -> float | None:
    """The value if it can be drawn."""
    return None if value is None or not math.isfinite(value) else float(value)


def in_order(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of first appearance."""
    return list(dict.fromkeys(names))


def lines_of(label: str, n_chars: float) -> list[str]:
    """A label in lines that fit; long names without spaces are broken, nothing is cut off."""
    return textwrap.wrap(label, int(n_chars), break_long_words=True) or [label]


def label_lookup(labels: Sequence[str], n_chars: int, shown: Mapping[str, str] | None = None) -> str:
    """A Vega expression that gives the lines of the label at hand, or of what is shown for it."""
    texts = shown or {label: label for label in labels}
    pairs = ", ".join(f"{_quoted(label)}: {_listed(lines_of(texts[label], n_chars))}" for label in labels)
    return f"{{{pairs}}}[datum.value]"


def label_index(labels: Sequence[str], of: str) -> str:
    """A Vega expression: the place of a label among all."""
    return f"indexof({_listed(labels)}, {of})"


def label_axis(labels: Sequence[str], screen: ScreenWidth, *, is_numbered: bool = False) -> Spec:
    """A quiet axis of names, wrapped; names of several lines are moved up so that their middle meets the row."""
    shown = {label: f"{label} {i}" if is_numbered else label for i, label in enumerate(labels, start=1)}
    n_lines = {label: len(lines_of(shown[label], screen.label_chars)) for label in labels}
    shifts = [
        {"test": f"indexof({_listed(own)}, datum.value) >= 0", "value": -(n - 1) * LINE_PX / 2}
        for n in sorted(set(n_lines.values()) - {1})
        if (own := [label for label in labels if n_lines[label] == n])
    ]
    return {
        "title": None,
        "ticks": False,
        "domain": False,
        "grid": False,
        "labelPadding": 10,
        "labelExpr": label_lookup(labels, screen.label_chars, shown),
        "labelColor": INK,
        "labelLineHeight": LINE_PX,
        **({"labelOffset": {"condition": shifts, "value": 0}} if shifts else {}),
    }


def label_room_px(labels: Sequence[str], screen: ScreenWidth) -> int:
    """How wide the names will be."""
    longest = max((len(line) for label in labels for line in lines_of(label, screen.label_chars)), default=0)
    return round(longest * CHAR_PX) + 18


def row_height_px(labels: Sequence[str], screen: ScreenWidth, n_groups: int) -> int:
    """The height that lets neighbouring names and grouped marks stand apart."""
    n_lines = max((len(lines_of(label, screen.label_chars)) for label in labels), default=1)
    return max(30, n_groups * 17 + 12, n_lines * LINE_PX + 10)


def value_axis(title: str, *, is_percent: bool, screen: ScreenWidth, n_facets: int = 1) -> Spec:
    """An axis of numbers with room between its marks."""
    n_columns = min(screen.n_facet_columns, n_facets)
    axis: Spec = {"title": title or None, "tickCount": 4 if screen.is_narrow else max(3, 8 // n_columns)}
    if is_percent:
        axis["format"] = ".0%"
    if n_columns > 1:
        axis["labelFlush"] = True
    return axis


def log_ticks(values: Iterable[float | None], most: int) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2 and 5 of every power of ten, or the powers alone where that is too many."""
    known = [value for value in values if value is not None and value > 0 and math.isfinite(value)]
    if not known:
        return []
    low, high = min(known), max(known)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [digit * 10.0**power for power in powers for digit in digits]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= most:
            break
    return inside if len(inside) > 1 else [low, high]


def whole_tick_count(values: Iterable[float], most: int) -> int:
    """So few marks on an axis of counts that none is between two whole numbers: Vega-Lite drops ``tickMinStep`` beside a
    count of marks."""
    known = list(values)
    return max(1, min(most, int(max(known) - min(known)))) if known else most


def value_scale(domain: tuple[float, float] | None, *, has_zero: bool = False) -> Spec:
    """A scale of numbers; where a domain is given, what lies outside is cut at its border."""
    return (
        {"zero": has_zero, "nice": True, "padding": 0 if has_zero else 6}
        if domain is None
        else {"domain": list(domain), "nice": False, "zero": has_zero}
    )


def drawn_domain(
    values: Iterable[float | None], limits: tuple[float, float] | None = None, *, is_percent: bool = False
) -> tuple[float, float] | None:
    """The part of what is possible that the values need, with some room, so that no axis shows what cannot be.

    Without ``limits``, shares are possible from 0 to 100 % and their differences from −100 to 100 %. None, for a scale that
    finds its own, where nothing limits the values.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known or (limits is None and not is_percent):
        return None
    lowest, highest = limits or ((-1.0 if min(known) < 0 else 0.0), 1.0)
    if min(known) < lowest or max(known) > highest or (math.isinf(lowest) and math.isinf(highest)):
        return None
    room = 0.05 * (max(known) - min(known)) or 0.05
    return max(lowest, min(known) - room), min(highest, max(known) + room)


def is_drawn(field: str, domain: tuple[float, float] | None) -> Spec:
    """A filter of marks that stand whole at the ends of an axis: what is known and, where the axis is given, on it."""
    inside = "" if domain is None else f" && inrange(datum.{field}, [{domain[0]}, {domain[1]}])"
    return {"filter": f"isValid(datum.{field}){inside}"}


def group_colour(
    groups: Sequence[str], screen: ScreenWidth, title: str = "", *, field: str = "group", drawn: Sequence[str] = ()
) -> Spec:
    """Colours by group with a legend above the chart that fits its width, of the groups that are drawn or else of all."""
    longest = max((len(group) for group in groups), default=1)
    n_columns = max(1, min(len(groups), int(screen.width_px // (longest * CHAR_PX + 34))))
    legend: Spec = {"title": title or None, "columns": n_columns, "symbolOpacity": 1}
    if drawn:
        legend["values"] = [group for group in groups if group in drawn]
    return {
        "field": field,
        "type": "nominal",
        "sort": None,
        "scale": {"domain": list(groups), "range": [SERIES[i % len(SERIES)] for i in range(len(groups))]},
        "legend": legend if groups != [""] else None,
    }


def group_shape(groups: Sequence[str], screen: ScreenWidth, title: str = "", *, drawn: Sequence[str] = ()) -> Spec:
    """Shapes by group in the same legend, for eyes and printers that do not tell the colours apart."""
    scale = {"domain": list(groups), "range": [SHAPES[i % len(SHAPES)] for i in range(len(groups))]}
    return {**group_colour(groups, screen, title, drawn=drawn), "scale": scale}


def unknown_text() -> Spec:
    """A layer that says "not enough data" where there is no value to draw."""
    return {
        "transform": [{"filter": "!isValid(datum.value)"}],
        "mark": {"type": "text", "align": "left", "fontSize": 11, "fontStyle": "italic", "color": MUTED},
        "encoding": {"x": {"value": 6}, "text": {"value": NOT_ENOUGH}},
    }


def in_facets(view: Spec, facets: Sequence[str], screen: ScreenWidth, *, room_px: int, height_px: int) -> Spec:
    """The view by itself, or once per facet; both fill the screen's width.

    Names are measured with one font and shown with the reader's, which may be wider: some room is left for that.
    """
    padding = {"left": max(8, round(room_px * _FONT_SLACK)), "right": 12, "top": 4, "bottom": 4}
    if list(facets) == [""]:
        fit = {"type": "fit-x", "contains": "padding"}
        return {"autosize": fit, "width": screen.width_px, "height": height_px, "padding": padding, **view}
    n_columns = min(screen.n_facet_columns, len(facets))
    free = screen.width_px - room_px - padding["left"] - 12
    if len(facets) == 3 and n_columns == 2 and free >= _THREE_FACETS_PX:
        n_columns = 3
    width = (free - _FACET_GAP_PX * (n_columns - 1)) // n_columns
    n_chars = max(12, int(width // CHAR_PX))
    header = {"title": None, "labelExpr": label_lookup(facets, n_chars), "labelAnchor": "start", "labelOrient": "top"}
    return {
        "padding": padding,
        "facet": {"field": "facet", "type": "nominal", "sort": list(facets), "header": header},
        "columns": n_columns,
        "spacing": _FACET_GAP_PX,
        "spec": {"width": max(width, 80), "height": height_px, **view},
    }


def _listed(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"
