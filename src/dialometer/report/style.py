"""The page's colours as style-sheet variables, and the rules that put them into the inline drawings."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from dialometer.report.theme import DARK, LIGHT

_PAGE_LIGHT = {
    "panel": "#f5f7fa",
    "line": "#d9dee6",
    "accent": "#0a5ea6",
    "good": "#0f6b52",
    "good-soft": "#e2f3ec",
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
    "calm": "#f0c473",
    "calm-soft": "#37290f",
    "insert": "#1d4a37",
    "delete": "#5a2a1e",
}

_FRAGMENT_RULES = (
    *(".hidden", ".muted", ".unknown", ".badge", ".part", ".number", ".caption", ".scroll", ".notes", ".notice"),
    *("table", "thead", "tbody", "th", "td", "sup", ".right", ".center", ".interval", ".tick", ".together", "h3"),
    *(".chart", "@container", ".turns", ".speaker", "ins", "del", ".key"),
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

    def narrowed(found: re.Match[str]) -> str:
        selectors = found[1].strip()
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
