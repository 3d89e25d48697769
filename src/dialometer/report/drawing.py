"""Figures into drawings: Vega-Lite to SVG and PNG, each made once per rendering and shared by the formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import vl_convert

from dialometer.errors import DialometerError
from dialometer.model.report import Figure
from dialometer.report.theme import narrow_form, themed

_VEGA_LITE = "5.20"
_PNG_SCALE = 2.0
_ID = re.compile(r'\bid="([^"]+)"')
_REFERENCE = re.compile(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"")
_MARK_ROLE = re.compile(r' (?:role="graphics-[^"]*"|aria-roledescription="[^"]*"|aria-hidden="true")')
_ROOT = re.compile(r"<svg\b[^>]*>")
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="([^"]+)"')


class DrawingError(DialometerError):
    """A figure's specification cannot be drawn; the report appears without it and says so."""


class Drawings:
    """The drawings of one rendering. A figure is compiled once for each screen, however many formats use it."""

    def __init__(self) -> None:
        self._svgs: dict[tuple[int, bool], tuple[Figure, str]] = {}

    def svg(self, figure: Figure) -> str:
        """A drawing that stands by itself, for a file."""
        return self._drawn(figure, is_narrow=False)

    def png(self, figure: Figure) -> bytes:
        """The same as pixels, twice as dense as a plain screen."""
        png: bytes = vl_convert.svg_to_png(self.svg(figure), scale=_PNG_SCALE)
        return png

    def inline(self, figure: Figure, name: str, *, is_narrow: bool = False) -> str:
        """The drawing for inside a page: no background of its own, ids that start with its name in this page."""
        place = "narrow" if is_narrow else "wide"
        return for_page(self._drawn(figure, is_narrow=is_narrow), prefix=f"{name}-{place}-", alt=figure.alt)

    def has_narrow(self, figure: Figure) -> bool:
        """Whether the figure has a form for phones."""
        return narrow_form(figure.spec) is not None

    def _drawn(self, figure: Figure, *, is_narrow: bool) -> str:
        key = (id(figure), is_narrow)
        if key not in self._svgs:
            spec = narrow_form(figure.spec) if is_narrow else figure.spec
            svg = draw_svg(spec if spec is not None else figure.spec, where=f"figure '{figure.name}'")
            self._svgs[key] = (figure, svg)  # the figure is kept so that its id is not given to another
        return self._svgs[key][1]


def draw_svg(spec: Mapping[str, Any], *, where: str = "figure") -> str:
    """One specification drawn with the theme; nothing is fetched from anywhere."""
    try:
        svg: str = vl_convert.vegalite_to_svg(themed(spec), vl_version=_VEGA_LITE, allowed_base_urls=[])
    except ValueError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("    at ")]
        reason = (lines[1] if len(lines) > 1 else lines[0] if lines else "no reason given")[:300]
        raise DrawingError(f"cannot be drawn: {reason}", where=where, remedy="correct its specification") from error
    return _renumbered(svg)


def _renumbered(svg: str) -> str:
    """Ids counted from the start of this drawing: the drawing program counts on from one drawing to the next."""
    new = {old: f"d{i}" for i, old in enumerate(dict.fromkeys(_ID.findall(svg)))}
    svg = _ID.sub(lambda match: f'id="{new[match[1]]}"', svg)
    return _REFERENCE.sub(lambda match: _pointing(match, lambda name: new.get(name, name)), svg)


def for_page(svg: str, *, prefix: str, alt: str) -> str:
    """Makes a drawing fit to stand among others in a page: one picture with one description, its parts not read out."""
    svg = svg.split("?>", 1)[-1].strip() if svg.startswith("<?xml") else svg
    safe = re.sub(r"[^A-Za-z0-9_-]", "-", prefix)
    svg = _ID.sub(lambda match: f'id="{safe}{match[1]}"', svg)
    svg = _REFERENCE.sub(lambda match: _pointing(match, lambda name: safe + name), svg)
    svg = _MARK_ROLE.sub("", svg)
    root = _ROOT.match(svg)
    size = _SIZE.search(root[0]) if root else None
    if root is None or size is None:
        raise DrawingError("the drawing has no size", where=prefix)
    head = (
        f'<svg class="chart-drawing" role="img" aria-label="{escape(alt, quote=True)}" '
        f'width="{size[1]}" height="{size[2]}" viewBox="{size[3]}">'
    )
    body = re.sub(rf'^<rect width="{size[1]}" height="{size[2]}" fill="[^"]*"/>', "", svg[root.end() :])
    return head + body


def _pointing(match: re.Match[str], rename: Callable[[str], str]) -> str:
    if match[1] is not None:
        return f"url(#{rename(match[1])})"
    return f'href="#{rename(match[2])}"'
