"""One study at a glance."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

from starlette.responses import Response

from dialometer.web.dashboard.charts import BarRow, Series, Span, columns, lines_over_time, spans, stacked_bars
from dialometer.web.dashboard.dashboard import Desk, Visit, duration, page
from dialometer.web.dashboard.numbers import StudyNumbers, over_time
from dialometer.web.dashboard.pages.results import written
from dialometer.web.dashboard.pages.studies import numbers_of
from dialometer.web.dashboard.records import disagreement

SCREEN_WORDS = {"pre": "questions before", "post": "questions after", "item": "items", "practice": "practice items"}


@page("/studies/{study}/", role="viewer", of_running=True)
def overview(desk: Desk, visit: Visit) -> Response:
    """Raters over time, cells, items, times, flags and money; renews itself."""
    running = desk.of(visit)
    source = visit.query.get("source", "")
    numbers = numbers_of(desk, running, visit.at_ms, source)
    charts = desk.kept(running, ("charts", source, numbers.at_ms), lambda: draw(numbers))
    seen = desk.results.peek(running)
    told = written(seen.result.report, ()) if seen.result else {"headlines": (), "agreed": ""}
    spreads = desk.kept(running, ("spread", numbers.source), lambda: disagreement(running, numbers.source))
    content: dict[str, Any] = {
        "spread": statistics.fmean(spreads.values()) if spreads else None,
        "n_spread": len(spreads),
    }
    content |= {"numbers": numbers, "charts": charts, "seen": seen, "tab": "overview"}
    return desk.show_study("overview.html", visit, **content, headlines=told["headlines"], agreed=told["agreed"])


def draw(numbers: StudyNumbers) -> dict[str, object]:
    """The charts of the overview."""
    counts = numbers.counts
    moved = over_time(numbers.marks)
    return {
        "time": lines_over_time(
            [Series(name, points) for name, points in moved.items()],
            f"Raters over time: {counts.arrived} arrived, {counts.finished} finished, "
            f"{counts.screened_out + counts.declined} screened out or declined, {counts.active} active now.",
        ),
        "cells": stacked_bars(
            [BarRow(cell.label, (cell.finished, cell.active), cell.quota) for cell in numbers.cells],
            ("finished", "active"),
            "Raters by condition: "
            + "; ".join(f"{cell.label} {cell.finished} finished, {cell.active} active" for cell in numbers.cells),
        ),
        "items": _item_chart(numbers),
        "screens": spans(
            [
                Span(SCREEN_WORDS.get(one.screen, one.screen), one.low_s, one.median_s, one.high_s)
                for one in numbers.screens
            ],
            duration,
            "Median seconds by screen: "
            + "; ".join(f"{SCREEN_WORDS.get(one.screen, one.screen)} {one.median_s:.0f}" for one in numbers.screens),
            is_log=True,
        ),
    }


def _item_chart(numbers: StudyNumbers) -> object:
    counted = [item for item in numbers.items if item.wanted is not None] or numbers.items
    done = Counter(item.done for item in counted)
    wanted = next((item.wanted for item in counted if item.wanted is not None), None)
    if not any(item.done for item in counted):
        return columns((), wanted, "Nothing has been judged yet.")
    n_full = sum(item.done >= wanted for item in counted) if wanted is not None else None
    told = f"; {n_full} of {len(counted)} items have the {wanted} raters they need" if n_full is not None else ""
    least, most = min(done), max(done)
    return columns(sorted(done.items()), wanted, f"Items by number of raters, from {least} to {most}{told}.")
