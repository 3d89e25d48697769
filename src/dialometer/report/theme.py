"""How charts look, on paper and on screens of either brightness.

Charts are drawn once, in the light colours below. Each of these hex values is used for one purpose only, so the page's
style sheet finds them in the inline drawing by value and puts its variable in their place: dark mode needs no second
drawing, and the same drawing stands by itself in a file.

The series colours are told apart in the three forms of colour blindness (Machado, Oliveira & Fernandes 2009) and have a
contrast of at least 3 to 1 with either background (``tests/report/test_report_theme.py`` measures both); builders add a
shape or a label besides.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', sans-serif"
WIDE_PX = 720
"""Outer width of a chart on a desk's screen and on paper."""
NARROW_PX = 340
"""Outer width of a chart on a phone."""

LIGHT: dict[str, str] = {
    "ink": "#1c2330",
    "muted": "#566072",
    "grid": "#e3e7ed",
    "axis": "#a4adba",
    "paper": "#fefeff",
    "on-strong": "#fdfdfc",
    "on-bright": "#17191d",
    "shade": "#c9d1db",
    "series-1": "#0a6ebd",
    "series-2": "#e0660a",
    "series-3": "#054a35",
    "series-4": "#6d1a6d",
    "series-5": "#574f00",
    "series-6": "#bd8088",
    "series-7": "#0c9ad5",
    "series-8": "#4e5a6d",
    "seq-1": "#f0f5fa",
    "seq-2": "#d6e6f4",
    "seq-3": "#b3d2ec",
    "seq-4": "#84b7e0",
    "seq-5": "#4f97cf",
    "seq-6": "#2273b3",
    "seq-7": "#0b4f8a",
    "div-1": "#a33d0a",
    "div-2": "#bd5620",
    "div-3": "#ecab85",
    "div-4": "#f7dccb",
    "div-5": "#f2f3f4",
    "div-6": "#d0e3f3",
    "div-7": "#95c1e5",
    "div-8": "#2f78b8",
    "div-9": "#0c5596",
}
DARK: dict[str, str] = {
    "ink": "#e8ebf0",
    "muted": "#a3adbb",
    "grid": "#2c333d",
    "axis": "#5d6775",
    "paper": "#15191f",
    "on-strong": "#0d1014",
    "on-bright": "#0b0c0f",
    "shade": "#3d4652",
    "series-1": "#5fb0f2",
    "series-2": "#e0701a",
    "series-3": "#3f8558",
    "series-4": "#9a66a3",
    "series-5": "#f2dd55",
    "series-6": "#f7b6b9",
    "series-7": "#b3daff",
    "series-8": "#82878d",
    "seq-1": "#1b232c",
    "seq-2": "#1d3044",
    "seq-3": "#1f4163",
    "seq-4": "#245a8c",
    "seq-5": "#316ea6",
    "seq-6": "#69a9e0",
    "seq-7": "#a6d0f5",
    "div-1": "#f3a06e",
    "div-2": "#d97f4a",
    "div-3": "#9a5732",
    "div-4": "#553625",
    "div-5": "#262b32",
    "div-6": "#21384f",
    "div-7": "#285f92",
    "div-8": "#4f97d6",
    "div-9": "#93c6f2",
}

INK = LIGHT["ink"]
MUTED = LIGHT["muted"]
GRID = LIGHT["grid"]
AXIS = LIGHT["axis"]
PAPER = LIGHT["paper"]
SHADE = LIGHT["shade"]
ON_STRONG = LIGHT["on-strong"]
ON_BRIGHT = LIGHT["on-bright"]
SERIES: tuple[str, ...] = tuple(LIGHT[f"series-{i}"] for i in range(1, 9))
ON_SERIES: tuple[str, ...] = tuple(ON_BRIGHT if i in (2, 6, 7) else ON_STRONG for i in range(1, 9))
"""The colour of writing on each series colour."""
SEQUENTIAL: tuple[str, ...] = tuple(LIGHT[f"seq-{i}"] for i in range(1, 8))
DIVERGING: tuple[str, ...] = tuple(LIGHT[f"div-{i}"] for i in range(1, 10))
SHAPES: tuple[str, ...] = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
)


def vega_config() -> dict[str, Any]:
    """The Vega-Lite ``config`` of every chart."""
    text = {"labelColor": MUTED, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 600}
    return {
        "font": FONT,
        "aria": False,
        "background": PAPER,
        "padding": {"left": 8, "right": 12, "top": 4, "bottom": 4},
        "view": {"stroke": None},
        "axis": {
            **text,
            "gridColor": GRID,
            "domainColor": AXIS,
            "tickColor": AXIS,
            "labelPadding": 6,
            "titlePadding": 10,
            "labelLimit": 0,
            "labelFlush": False,
        },
        "header": {**text, "labelColor": INK, "labelFontWeight": 600, "labelLimit": 0, "labelPadding": 6},
        "legend": {
            **text,
            "labelColor": INK,
            "orient": "top",
            "labelLimit": 0,
            "symbolSize": 90,
            "columnPadding": 20,
            "symbolStrokeWidth": 0,
        },
        "mark": {"color": SERIES[0]},
        "text": {"color": INK, "fontSize": 12, "font": FONT},
        "rule": {"color": INK},
        "range": {"category": list(SERIES), "symbol": list(SHAPES)},
        "locale": {"number": {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["", ""]}},
    }


def themed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The chart with the theme under it: what the chart itself configures stays."""
    full = copy.deepcopy(dict(spec))
    full.pop("usermeta", None)
    full.setdefault("$schema", "https://vega.github.io/schema/vega-lite/v5.json")
    full["config"] = _merged(vega_config(), full.get("config") or {})
    return full


def with_narrow(wide: Mapping[str, Any], narrow: Mapping[str, Any]) -> dict[str, Any]:
    """A chart that carries its form for a phone; both share the wide one's data."""
    slim = {key: value for key, value in narrow.items() if key != "data"}
    return {**wide, "usermeta": {"dialometer": {"narrow": slim}}}


def narrow_form(spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """The chart's form for a phone, where it carries one."""
    own = (spec.get("usermeta") or {}).get("dialometer") or {}
    slim = own.get("narrow")
    if slim is None:
        return None
    return {**({"data": spec["data"]} if "data" in spec else {}), **slim}


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
    return merged
