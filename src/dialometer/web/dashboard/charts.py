"""Charts as SVG without scripts; colours come from CSS classes, so that light and dark schemes both work.

Every chart is drawn twice, for wide and for narrow screens, and has a text alternative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

from dialometer.web.dashboard.translating import translated

WIDEST, WIDE, NARROW = 960, 640, 330
_ROW = 26
_CHAR = 6.6


@dataclass(frozen=True, slots=True)
class Series:
    """A line: its name and points (x, y) in order of x."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class BarRow:
    """A bar made of parts; ``target`` is where it should end."""

    label: str
    parts: Sequence[float]
    target: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A value between two ends."""

    label: str
    low: float
    middle: float
    high: float
    note: str = ""


def lines_over_time(series: Sequence[Series], alt: str) -> Markup:
    """Counts over time as steps; x is milliseconds since 1970."""
    if not any(line.points for line in series):
        return _nothing(translated("No arrival times to show yet."))
    return _both(lambda width: _lines_over_time(series, width), alt, [line.name for line in series], wide=WIDEST)


def stacked_bars(rows: Sequence[BarRow], parts: Sequence[str], alt: str) -> Markup:
    """A bar per row, its parts one after the other, a tick where it should end."""
    return _both(lambda width: _stacked_bars(rows, width), alt, parts)


def columns(counts: Sequence[tuple[int, int]], target: int | None, alt: str) -> Markup:
    """How often each whole number occurs, with the wanted one marked."""
    if not counts:
        return _nothing(translated("No judgment counts yet."))
    return _both(lambda width: _columns(counts, target, width), alt, ())


def spans(rows: Sequence[Span], words: Callable[[float], str], alt: str, *, is_log: bool = False) -> Markup:
    """A point between two ends for every row."""
    if not rows:
        return _nothing(translated("No screen has been answered yet."))
    return _both(lambda width: _spans(rows, words, width, is_log=is_log), alt, ())


def band(points: Sequence[tuple[float, float, float, float]], x_title: str, alt: str) -> Markup:
    """A line with its interval: (x, value, low, high)."""
    if not points:
        return _nothing(translated("No results yet."))
    return _both(lambda width: _band(points, x_title, width), alt, ())


def interval(value: float, low: float, high: float, reference: float | None, alt: str) -> Markup:
    """Where a value and its interval lie; all in percent of the width, with a mark at what no effect would be."""

    def draw(width: int) -> tuple[int, list[str]]:
        def at(share: float) -> float:
            return 6 + share / 100 * (width - 12)

        parts = [_line(6, 12, width - 6, 12, "grid"), _line(at(low), 12, at(high), 12, "span")]
        if reference is not None:
            parts.append(_line(at(reference), 2, at(reference), 22, "target"))
        return 24, [*parts, f'<circle class="dot" cx="{at(value):.1f}" cy="12" r="5"/>']

    return _both(draw, alt, ())


def _nothing(words: str) -> Markup:
    """In place of a chart that has nothing to show."""
    return Markup(f'<p class="small">{escape(words)}</p>')  # nosec B704  # the words are escaped


def _both(draw: Callable[[int], tuple[int, list[str]]], alt: str, legend: Sequence[str], *, wide: int = WIDE) -> Markup:
    drawn = []
    for width, name in ((wide, "wide"), (NARROW, "narrow")):
        height, parts = draw(width)
        drawn.append(
            f'<svg class="chart {name}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-label="{escape(alt)}">{"".join(parts)}</svg>'
        )
    keys = "".join(f'<li class="key k{i}">{escape(name)}</li>' for i, name in enumerate(legend, start=1))
    listed = f'<ul class="legend" aria-hidden="true">{keys}</ul>' if len(legend) > 1 else ""
    return Markup(f'<div class="figure">{listed}{"".join(drawn)}</div>')  # nosec B704  # names are escaped


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "tick", attributes: str = "") -> str:
    more = f" {attributes}" if attributes else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def nice_ticks(low: float, high: float, n: int) -> list[float]:
    """About ``n`` round numbers from low to high."""
    if not high > low:
        return [low]
    raw = (high - low) / max(1, n)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _whole_ticks(high: float, n: int) -> list[float]:
    return [tick for tick in nice_ticks(0, max(1.0, high), n) if float(tick).is_integer()]


def _lines_over_time(series: Sequence[Series], width: int) -> tuple[int, list[str]]:
    height, left, right, top, bottom = 220, 40, 10, 10, 26
    xs = [x for line in series for x, _ in line.points]
    x0, x1 = min(xs), max(*xs, min(xs) + 60_000)
    y1 = max([1.0, *(y for line in series for _, y in line.points)])

    def at(x: float, y: float) -> tuple[float, float]:
        return left + (x - x0) / (x1 - x0) * (width - left - right), height - bottom - y / y1 * (height - top - bottom)

    parts = []
    for tick in _whole_ticks(y1, 4):
        y = at(x0, tick)[1]
        parts += [_line(left, y, width - right, y, "grid"), _text(left - 6, y + 4, f"{tick:,.0f}", anchor="end")]
    ticks, form = time_ticks(x0, x1, 6 if width > NARROW else 3)
    for moment in ticks:
        x = at(moment, 0)[0]
        anchor = "start" if x < left + 20 else "end" if x > width - right - 60 else "middle"
        attributes = f'data-time="{moment:.0f}" data-form="{form}"'
        parts.append(_text(x, height - 8, _clock(moment, form), anchor=anchor, attributes=attributes))
    parts.append(_text(left - 6, height - 8, "UTC", anchor="end", attributes=f'data-zone="{x1:.0f}"'))
    for i, line in enumerate(series, start=1):
        steps, last = [], 0.0
        for x, y in _thinned(line.points, x1):
            steps += [at(x, last), at(x, y)]
            last = y
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in steps)
        parts.append(f'<polyline class="line s{i}" points="{path}"/>')
    return height, parts


def _thinned(points: Sequence[tuple[float, float]], end: float, n: int = 400) -> list[tuple[float, float]]:
    """At most so many steps, the last one reaching the end."""
    stride = max(1, len(points) // n)
    kept = list(points[::stride])
    if points:
        kept += [points[-1], (end, points[-1][1])]
    return kept


_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_TIME_STEPS = [_MINUTE_MS * n for n in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)]
_TIME_STEPS += [_DAY_MS * n for n in (1, 2, 7, 14, 28, 91, 182, 364)]


def time_ticks(start: float, end: float, n: int) -> tuple[list[float], str]:
    """At most ``n`` round times whose labels all differ, and which part of a time labels them: clock, day or both."""
    step = next((step for step in _TIME_STEPS if (end - start) / step <= n - 1), _TIME_STEPS[-1])
    first = math.ceil(start / step)
    ticks = [float(i * step) for i in range(first, math.floor(end / step) + 1)] or [start]
    is_one_day = end - start < _DAY_MS
    return ticks, "day" if step >= _DAY_MS else "clock" if is_one_day else "both"


def _clock(at_ms: float, form: str) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    on = f"{at.day} {translated(f'{at:%b}')}"
    return {"clock": f"{at:%H:%M}", "day": on, "both": f"{on} {at:%H:%M}"}[form]


def _stacked_bars(rows: Sequence[BarRow], width: int) -> tuple[int, list[str]]:
    room, head = _label_room([row.label for row in rows], width)
    end = max((max(sum(row.parts), row.target or 0) for row in rows), default=0) or 1
    scale = (width - room - 46) / end
    parts = []
    for i, row in enumerate(rows):
        y = i * (_ROW + head) + head + 4
        parts.append(_text(0, y + (-5 if head else 14), row.label, kind="name"))
        x = room
        for k, value in enumerate(row.parts, start=1):
            if value:
                parts.append(
                    f'<rect class="block b{k}" x="{x:.1f}" y="{y}" width="{max(1.0, value * scale - 1):.1f}" height="18" rx="2"/>'
                )
            x += value * scale
        if row.target is not None:
            at = room + row.target * scale
            parts.append(_line(at, y - 2, at, y + 20, "target"))
        parts.append(_text(max(x, room + (row.target or 0) * scale) + 6, y + 14, row.note or f"{sum(row.parts):,.0f}"))
    return max(1, len(rows)) * (_ROW + head) + 6, parts


def _label_room(labels: Sequence[str], width: int) -> tuple[float, int]:
    """Room for names at the side, or none and instead a line above each row where the names are long."""
    room = max(map(len, labels), default=0) * _CHAR + 12
    return (room, 0) if room <= width * 0.45 else (0.0, _ROW - 6)


def _columns(counts: Sequence[tuple[int, int]], target: int | None, width: int) -> tuple[int, list[str]]:
    height, left, bottom, top = 180, 40, 26, 16
    last = max([target or 0, *(n for n, _ in counts)])
    most = max(n_items for _, n_items in counts)
    step = (width - left - 8) / (last + 1)
    parts = []
    for tick in _whole_ticks(most, 3):
        y = height - bottom - tick / most * (height - top - bottom)
        parts += [_line(left, y, width - 4, y, "grid"), _text(left - 6, y + 4, f"{tick:,.0f}", anchor="end")]
    every = max(1, math.ceil((last + 1) / (width / 40)))
    for n in range(0, last + 1, every):
        parts.append(_text(left + (n + 0.5) * step, height - 8, str(n), anchor="middle"))
    for n, n_items in counts:
        tall = n_items / most * (height - top - bottom)
        kind = "b1" if target is None or n >= target else "b2"
        parts.append(
            f'<rect class="block {kind}" x="{left + n * step + 1:.1f}" y="{height - bottom - tall:.1f}" '
            f'width="{max(1.0, step - 2):.1f}" height="{tall:.1f}" rx="1"/>'
        )
    if target is not None:
        at = left + (target + 0.5) * step
        parts += [
            _line(at, top - 4, at, height - bottom, "target"),
            _text(at, top - 6, translated("wanted"), anchor="middle"),
        ]
    return height, parts


def _spans(rows: Sequence[Span], words: Callable[[float], str], width: int, *, is_log: bool) -> tuple[int, list[str]]:
    room, head = _label_room([row.label for row in rows], width)
    turn = (lambda value: math.log(max(value, 0.1))) if is_log else (lambda value: value)
    ends = [turn(value) for row in rows for value in (row.low, row.high)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    high = high if high > low else low + 1
    right = 84 if width > NARROW else 56

    def at(value: float) -> float:
        return room + 6 + (turn(value) - low) / (high - low) * (width - room - right - 12)

    parts = []
    for i, row in enumerate(rows):
        y = i * (_ROW + head) + head + 13
        parts.append(_text(0, y + (-12 if head else 4), row.label, kind="name"))
        parts.append(_line(at(row.low), y, at(row.high), y, "span"))
        parts.append(f'<circle class="dot" cx="{at(row.middle):.1f}" cy="{y}" r="4.5"/>')
        parts.append(_text(width, y + 4, row.note or words(row.middle), anchor="end"))
    return max(1, len(rows)) * (_ROW + head) + 4, parts


def _band(points: Sequence[tuple[float, float, float, float]], x_title: str, width: int) -> tuple[int, list[str]]:
    height, left, right, top, bottom = 200, 46, 12, 10, 40
    x0, x1 = points[0][0], max(points[-1][0], points[0][0] + 1)
    low, high = min(p[2] for p in points), max(p[3] for p in points)
    high = high if high > low else low + 1

    def at(x: float, y: float) -> str:
        px = left + (x - x0) / (x1 - x0) * (width - left - right)
        return f"{px:.1f},{height - bottom - (y - low) / (high - low) * (height - top - bottom):.1f}"

    parts = []
    for tick in nice_ticks(low, high, 4):
        y = float(at(x0, tick).split(",")[1])
        parts += [_line(left, y, width - right, y, "grid"), _text(left - 6, y + 4, f"{tick:g}", anchor="end")]
    around = [at(p[0], p[3]) for p in points] + [at(p[0], p[2]) for p in reversed(points)]
    parts.append(f'<polygon class="band" points="{" ".join(around)}"/>')
    parts.append(f'<polyline class="line s1" points="{" ".join(at(p[0], p[1]) for p in points)}"/>')
    for p in points:
        across, down = at(p[0], p[1]).split(",")
        parts.append(f'<circle class="dot" cx="{across}" cy="{down}" r="3.5"/>')
    parts += [_text(left, height - 22, f"{x0:,.0f}"), _text(width - right, height - 22, f"{x1:,.0f}", anchor="end")]
    parts.append(_text((left + width - right) / 2, height - 5, x_title, anchor="middle"))
    return height, parts
