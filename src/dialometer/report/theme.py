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
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
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


# The page's colours as style-sheet variables, and the rules that put them into the inline drawings.


_PAGE_LIGHT = {
    "panel": "#f5f7fa",
    "line": "#d9dee6",
    "accent": "#0a5ea6",
    "good": "#0f6b52",
    "good-soft": "#e2f3ec",
    "bad": "#a3261b",
    "bad-soft": "#fbe9e6",
    "calm": "#7a4a00",
    "calm-soft": "#fdf3e0",
    "insert": "#d3f0e0",
    "delete": "#fbe0d8",
}
_PAGE_DARK = {
    "panel": "#1d232b",
    "line": "#353d48",
    "accent": "#7cbcf5",
    "good": "#7fdcbd",
    "good-soft": "#17352c",
    "bad": "#ffb4a8",
    "bad-soft": "#4a1f19",
    "calm": "#f0c473",
    "calm-soft": "#37290f",
    "insert": "#1d4a37",
    "delete": "#5a2a1e",
}

_FRAGMENT_RULES = (
    *(".hidden", ".muted", ".unknown", ".badge", ".part", ".number", ".caption", ".scroll", ".notes", ".notice"),
    *("table", "thead", "tbody", "th", "td", "sup", ".right", ".center", ".interval", ".tick", ".together", "h3"),
    *(".chart", "@container", ".turns", ".speaker", "ins", "del", ".heat", ".key"),
)


_SCOPE = ".dialometer-part" * 3
"""Named three times, so that the rules weigh more than those of notebooks, which set every table to the right and in stripes."""
_NOTEBOOK_RULES = "table{margin:0;font-size:1em}tr{text-align:start}tbody tr:nth-child(n){background:none}"


def page_style() -> str:
    """The whole style sheet of a page."""
    light = _variables({**LIGHT, **_PAGE_LIGHT})
    dark = _variables({**DARK, **_PAGE_DARK})
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"@media print{{:root{{color-scheme:light}}}}\n"
        f"{drawing_rules()}\n{_sheet()}"
    )


def fragment_style() -> str:
    """The style of a part inside somebody else's page: every rule reaches no further than the part."""
    basic = _sheet().split("@media", 1)[0]
    rules = "\n".join(line for line in basic.splitlines() if line.startswith(_FRAGMENT_RULES))
    light = _variables({**LIGHT, **_PAGE_LIGHT})
    dark = _variables({**DARK, **_PAGE_DARK})
    own = f"color:var(--ink);background:var(--paper);padding:.5rem 1rem;{light}"
    return (
        f".dialometer-part{{{own}}}\n"
        f"@media (prefers-color-scheme:dark){{.dialometer-part{{{dark}}}}}\n"
        f"{_within(_SCOPE, _NOTEBOOK_RULES)}\n{_within(_SCOPE, drawing_rules())}\n{_within(_SCOPE, rules)}"
    )


def _within(scope: str, rules: str) -> str:
    """The rules with every selector put below ``scope``; conditions (``@…``) stay as they are."""

    def narrowed(match: re.Match[str]) -> str:
        selectors = match[1].strip()
        if selectors.startswith("@"):
            return f"{selectors}{{"
        return ",".join(f"{scope} {selector.strip()}" for selector in selectors.split(",")) + "{"

    return re.sub(r"([^{}]+)\{", narrowed, rules).replace("}" + scope, "}\n" + scope)


def drawing_rules() -> str:
    """Each colour of the theme, found by value in a drawing, follows the page's variable of the same name."""
    return "\n".join(
        f'.chart-drawing [{part}="{colour}"]{{{part}:var(--{name})}}'
        for name, colour in LIGHT.items()
        for part in ("fill", "stroke")
    )


@cache
def _sheet() -> str:
    return files("dialometer.report").joinpath("templates/report.css").read_text(encoding="utf-8")


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())
