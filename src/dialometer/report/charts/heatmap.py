"""A matrix in colours with its numbers written in: who beats whom, strategy by question, agreement between raters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dialometer.report.charts.frame import (
    ScreenWidth,
    Spec,
    finite,
    in_facets,
    in_order,
    label_axis,
    label_index,
    label_lookup,
    label_room_px,
    lines_of,
    on_both_screens,
)
from dialometer.report.numbers import write_number, write_percent
from dialometer.report.theme import DIVERGING, INK, MUTED, ON_STRONG, PAPER, SEQUENTIAL

_SLANT_CHARS = 18


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell; ``value`` None is shown as a dash, ``text`` replaces the number written in."""

    row: str
    column: str
    value: float | None
    text: str = ""


def heatmap(
    cells: Sequence[HeatCell],
    *,
    value_title: str,
    domain: tuple[float, float] | None = None,
    midpoint: float | None = None,
    is_percent: bool = False,
) -> Spec:
    """The matrix in the order given. With ``midpoint`` (0.5 for wins, 0 for differences) two colours part there."""
    low, high = _ends(cells, domain, midpoint)
    ramp = SEQUENTIAL if midpoint is None else DIVERGING
    steps = step_labels(low, high, len(ramp), is_percent=is_percent)
    rows = _cell_rows(cells, (low, high), steps, lambda value: _number(value, is_percent))
    names, columns = in_order(c.row for c in cells), in_order(c.column for c in cells)

    def draw(screen: ScreenWidth) -> Spec:
        room = label_room_px(names, screen)
        width = max(18, min(96, (screen.width_px - room - 12) // max(1, len(columns))))
        x_axis = _column_axis(columns, names, width)
        y_axis = label_axis(names, screen, is_numbered="+ 1" in x_axis["labelExpr"])
        encoding = {
            "x": {"field": "column", "type": "nominal", "sort": columns, "axis": x_axis},
            "y": {"field": "row", "type": "nominal", "sort": names, "axis": y_axis},
        }
        ink = [{"test": "datum.step == null", "value": MUTED}, {"test": "datum.is_strong", "value": ON_STRONG}]
        size = 12 if width >= 40 else 10
        layers = [
            {
                "mark": {"type": "rect", "stroke": PAPER, "strokeWidth": 2, "cornerRadius": 2},
                "transform": [{"filter": "isValid(datum.step)"}],
                "encoding": {
                    "color": _key(
                        steps, ramp, lines_of(value_title, (screen.width_px - room) // 7), width * len(columns)
                    )
                },
            },
            {
                "mark": {"type": "text", "fontSize": size},
                "encoding": {"text": {"field": "text"}, "color": {"condition": ink, "value": INK}},
            },
        ]
        n_lines = max((len(lines_of(name, screen.label_chars)) for name in names), default=1)
        step = max(30, n_lines * 15 + 6)
        view = {"encoding": encoding, "layer": layers}
        spec = in_facets(view, [""], screen, room_px=room, height_px=step * len(names))
        return {**spec, "autosize": {"type": "pad"}, "width": width * len(columns)}

    return on_both_screens(draw, rows)


def _ends(cells: Sequence[HeatCell], domain: tuple[float, float] | None, midpoint: float | None) -> tuple[float, float]:
    """Where the colours begin and end; around a midpoint equally far on both sides."""
    known = [c.value for c in cells if finite(c.value) is not None and c.value is not None]
    low, high = domain or (min(known, default=0.0), max(known, default=1.0))
    if midpoint is None:
        return (low, high) if high > low else (low - 0.5, low + 0.5)
    reach = max(high - midpoint, midpoint - low) or 1.0
    return midpoint - reach, midpoint + reach


def step_labels(low: float, high: float, n_steps: int, *, is_percent: bool) -> list[str]:
    """What each colour stands for: "0–11%", "11–22%" and so on."""
    scale, sign = (100, "%") if is_percent else (1, "")
    n_digits = 0 if is_percent else 2
    edges = [scale * (low + (high - low) * i / n_steps) for i in range(n_steps + 1)]
    written = [f"{edge:.{n_digits}f}".replace("-", "−") for edge in edges]
    dash = " to " if low < 0 else "–"
    return [f"{start}{dash}{end}{sign}" for start, end in pairwise(written)]


def _key(steps: Sequence[str], ramp: Sequence[str], title: Sequence[str], room_px: float) -> Spec:
    """The colours with a key below the matrix; they come from a fixed ramp so that they can follow a dark page."""
    longest = max(map(len, steps))
    legend = {
        "title": list(title),
        "titleLimit": 600,
        "orient": "bottom",
        "direction": "horizontal",
        "columns": max(1, min(len(steps), int(room_px // (longest * 7 + 30)))),
        "symbolType": "square",
        "symbolSize": 140,
        "symbolStrokeWidth": 0,
    }
    return {
        "field": "step",
        "type": "ordinal",
        "scale": {"domain": list(steps), "range": list(ramp)},
        "legend": legend,
    }


def _cell_rows(
    cells: Sequence[HeatCell], ends: tuple[float, float], steps: Sequence[str], write: Callable[[float | None], str]
) -> list[dict[str, Any]]:
    """Each cell with its step of colour and its writing."""
    strong = {5, 6} if len(steps) == len(SEQUENTIAL) else {0, 1, 7, 8}
    rows = []
    for cell in cells:
        value = finite(cell.value)
        step = None if value is None else step_of(value, *ends, len(steps))
        rows.append(
            {
                "row": cell.row,
                "column": cell.column,
                "text": cell.text or write(value),
                "step": None if step is None else steps[step],
                "is_strong": step in strong,
            }
        )
    return rows


def _column_axis(columns: list[str], names: list[str], width: int) -> Spec:
    """Names above the columns; where they do not fit, their numbers (a square matrix) or the names at a slant."""
    n_chars = max(1, int(width // 7))
    n_lines = {name: len(lines_of(name, n_chars)) for name in columns}
    axis: Spec = {
        **label_axis([], ScreenWidth(0, 0, 1)),
        "orient": "top",
        "labelAngle": 0,
        "labelBaseline": "bottom",
    }
    if max(n_lines.values(), default=1) <= 3 and all(len(word) <= n_chars for name in columns for word in name.split()):
        rooms = [
            {"test": f"{label_index(columns, 'datum.value')} == {i}", "value": 4 + (n_lines[name] - 1) * 15}
            for i, name in enumerate(columns)
            if n_lines[name] > 1
        ]
        padding: Spec | int = {"condition": rooms, "value": 4} if rooms else 4
        return {**axis, "labelExpr": label_lookup(columns, n_chars), "labelPadding": padding}
    if columns == names:
        return {**axis, "labelExpr": f"{label_index(columns, 'datum.value')} + 1", "labelPadding": 4}
    longest = max(map(len, columns))
    if longest <= _SLANT_CHARS:
        slant = {"labelAngle": -45, "labelAlign": "left", "labelBaseline": "middle", "labelPadding": 6}
        return {**axis, **slant, "labelExpr": "datum.value"}
    upright = label_axis(columns, ScreenWidth(0, max(_SLANT_CHARS, -(-longest // max(1, width // 15)) + 2), 1))
    turned = {"labelAngle": -90, "labelAlign": "left", "labelBaseline": "middle", "labelPadding": 6}
    return {**axis, **upright, **turned}


def step_of(value: float, low: float, high: float, n_steps: int) -> int:
    """Which of equally wide steps from low to high holds the value; what lies outside counts with the nearest."""
    if high <= low:
        return n_steps // 2
    return min(n_steps - 1, max(0, int((value - low) / (high - low) * n_steps)))


def _number(value: float | None, is_percent: bool) -> str:
    if value is None:
        return "–"
    return write_percent(value) if is_percent else write_number(value, 2)
