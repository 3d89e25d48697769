"""The page's colours as style-sheet variables, and the rules that put them into the inline drawings."""

from __future__ import annotations

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


def page_style() -> str:
    """The whole style sheet of a page."""
    sheet = files("dialometer.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    light = _variables({**LIGHT, **_PAGE_LIGHT})
    dark = _variables({**DARK, **_PAGE_DARK})
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"@media print{{:root{{color-scheme:light}}}}\n"
        f"{drawing_rules()}\n{sheet}"
    )


def drawing_rules() -> str:
    """Each colour of the theme, found by value in a drawing, follows the page's variable of the same name."""
    return "\n".join(
        f'.chart-drawing [{part}="{colour}"]{{{part}:var(--{name})}}'
        for name, colour in LIGHT.items()
        for part in ("fill", "stroke")
    )


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())
