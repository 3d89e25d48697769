"""The list of studies, and the overview of one study."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.quality.gold import gold_items
from dialometer.web.dashboard.charts import BarRow, Series, Span, columns, lines_over_time, spans, stacked_bars
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, duration, page
from dialometer.web.dashboard.numbers import StudyNumbers, count_study, over_time
from dialometer.web.dashboard.pages.after.results import written
from dialometer.web.dashboard.records import disagreement
from dialometer.web.dashboard.running_studies import RunningStudy
from dialometer.web.dashboard.translating import current_language, explained, translated, translated_count
from dialometer.web.server.logs import log_failure


def numbers_of(dashboard: Dashboard, running: RunningStudy, at_ms: int, group: str = "") -> StudyNumbers:
    """The numbers of a study for the chosen group of raters, counted at most every few seconds."""
    make = lambda: count_study(running.study, running.store, at_ms, group)  # noqa: E731
    return dashboard.cached(running, ("numbers", group), make)


@page("/", role="guest")
def studies(dashboard: Dashboard, request: PageRequest) -> Response:
    """Every study that the account may see, with how far it has come; drafts and broken ones too."""
    cards = [_card(dashboard, name, request.at_ms) for name in dashboard.visible(request.account)]
    return dashboard.show("studies.html", request, cards=cards, may_grow=dashboard.studies.folders.may_grow)


def _card(dashboard: Dashboard, name: str, at_ms: int) -> dict[str, Any]:
    running_studies = dashboard.studies
    card: dict[str, Any] = {"name": name, "title": name, "state": "draft", "numbers": None, "problem": ""}
    try:
        if running_studies.is_open(name):
            running = running_studies.running(name)
            numbers = numbers_of(dashboard, running, at_ms)
            return card | {"title": running.study.spec.title, "state": dashboard.state_of(running), "numbers": numbers}
        study, problems = running_studies.checked(name)
        n_errors = sum(problem.severity == "error" for problem in problems)
        if study is not None:
            card["title"] = study.spec.title
        if n_errors:
            card["problem"] = translated("{1} to fix", translated_count(n_errors, "problem"))
    except DialometerError as error:
        card |= {"state": "broken", "problem": explained(error.message.splitlines()[0])}
    except Exception as error:  # one study that fails must not take the list from everybody
        card |= {
            "state": "broken",
            "problem": translated("this study cannot be read (reference {1})", log_failure(error)),
        }
    return card


# One study at a glance.


SCREEN_WORDS = {"pre": "questions before", "post": "questions after", "item": "items", "practice": "practice items"}


def screen_words(screen: str) -> str:
    """What a kind of screen is called, in the language of the request."""
    return translated(SCREEN_WORDS.get(screen, screen))


@page("/studies/{study}/", role="viewer", of_running=True)
def overview(dashboard: Dashboard, request: PageRequest) -> Response:
    """Raters over time, conditions, items, times, flags and costs; the page renews itself."""
    running = request.running
    numbers = numbers_of(dashboard, running, request.at_ms, request.group)
    charts = dashboard.cached(
        running, ("charts", numbers.group, numbers.at_ms, current_language()), lambda: draw(numbers)
    )
    status = dashboard.reports.peek(running, dashboard.report_options(running, request.group))
    report = written(status.newest.report, ()) if status.newest else {"headlines": (), "agreed": ""}
    spreads = dashboard.cached(running, ("spread", numbers.group), lambda: disagreement(running, numbers.sources))
    content: dict[str, Any] = {
        "spread": statistics.fmean(spreads.values()) if spreads else None,
        "n_spread": len(spreads),
        "has_gold": bool(gold_items(running.study)),
    }
    content |= {"numbers": numbers, "charts": charts, "status": status, "tab": "overview"}
    return dashboard.show_study(
        "overview.html", request, **content, headlines=report["headlines"], agreed=report["agreed"]
    )


def draw(numbers: StudyNumbers) -> dict[str, object]:
    """The charts of the overview."""
    counts = numbers.counts
    moved = over_time(numbers.marks)
    return {
        "time": lines_over_time(
            [Series(translated(name), points) for name, points in moved.items()],
            translated(
                "Raters over time: {1} arrived, {2} finished, {3} screened out or declined, {4} active now.",
                counts.arrived,
                counts.finished,
                counts.screened_out + counts.declined,
                counts.active,
            ),
        ),
        "cells": stacked_bars(
            [BarRow(translated(cell.label), (cell.finished, cell.active), cell.quota) for cell in numbers.cells],
            (translated("finished and counted"), translated("active, not excluded")),
            translated(
                "Raters by condition: {1}",
                "; ".join(
                    translated(
                        "{1}: {2} finished and counted, {3} active, not excluded",
                        translated(cell.label),
                        cell.finished,
                        cell.active,
                    )
                    for cell in numbers.cells
                ),
            ),
        ),
        "items": _item_chart(numbers),
        "screens": spans(
            [Span(screen_words(time.screen), time.low_s, time.median_s, time.high_s) for time in numbers.screens],
            duration,
            translated(
                "Median seconds by screen: {1}",
                "; ".join(f"{screen_words(time.screen)} {time.median_s:.0f}" for time in numbers.screens),
            ),
            is_log=True,
        ),
    }


def _item_chart(numbers: StudyNumbers) -> object:
    counted = [item for item in numbers.items if item.wanted is not None] or numbers.items
    done = Counter(item.done for item in counted)
    wanted = next((item.wanted for item in counted if item.wanted is not None), None)
    if not any(item.done for item in counted):
        return columns((), wanted, translated("No judgment counts yet."))
    n_full = sum(item.done >= wanted for item in counted) if wanted is not None else None
    alt = translated("Items by number of raters, from {1} to {2}.", min(done), max(done))
    if n_full is not None:
        alt += " " + translated("{1} of {2} items have the {3} raters they need.", n_full, len(counted), wanted)
    return columns(sorted(done.items()), wanted, alt)
