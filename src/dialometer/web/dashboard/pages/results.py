"""The answer so far: with its interval, with agreement, with what the quality rules changed, and with a warning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from dialometer.model.report import Headline, Report, Section
from dialometer.storage.watching import Look
from dialometer.web.dashboard.charts import band, interval
from dialometer.web.dashboard.dashboard import Desk, Visit, page

_DECIMAL = re.compile(r"\d\.\d")
ON_AGREEMENT = ("agreement", "consistency")
ON_RULES = ("rule_effects", "gold_rule")


@page("/studies/{study}/results", role="viewer", of_running=True)
def results(desk: Desk, visit: Visit) -> Response:
    """Looks at the results; a new look is computed aside, and kept in the study's log of looks."""
    running = desk.of(visit)
    seen = desk.results.see(running, visit.account.name)
    looks = running.store.looks()
    content: dict[str, Any] = {"seen": seen, "looks": list(reversed(looks)), "tab": "results"}
    if seen.result is not None:
        content |= written(seen.result.report, looks)
    return desk.show_study("results.html", visit, **content)


@page("/studies/{study}/report.html", role="viewer", of_running=True)
def report(desk: Desk, visit: Visit) -> Response:
    """The whole report as one file to keep; it is opened from disk, where its styles may work."""
    running = desk.of(visit)
    seen = desk.results.see(running, visit.account.name)
    if seen.result is None:
        return desk.to(f"/studies/{running.name}/results", visit, "The report is not ready yet; try again in a moment.")
    name = f'attachment; filename="{running.name}-report.html"'
    return Response(seen.result.page, media_type="text/html; charset=utf-8", headers={"content-disposition": name})


def written(report: Report, looks: Sequence[Look]) -> dict[str, Any]:
    """A report's first page, its agreement and the effect of its rules, ready for the template."""
    from dialometer.report.numbers import write_headline  # noqa: PLC0415 - brings the drawing program along
    from dialometer.report.written import write_table  # noqa: PLC0415

    agreement = [section for section in report.sections if any(word in section.name for word in ON_AGREEMENT)]
    agreement = agreement or [section for section in report.sections if section.name == "raters"]
    rules = [section for section in report.sections if section.name in ON_RULES]
    return {
        "report": report,
        "headlines": [
            (headline, write_headline(headline), _bar(headline), history(headline, looks))
            for headline in report.summary.headlines
        ],
        "agreement": agreement,
        "agreed": agreement_sentence(agreement),
        "rules": rules,
        "write_table": write_table,
        "tables_of": tables_of,
    }


def agreement_sentence(sections: Sequence[Section]) -> str:
    """The first sentence about agreement that has a number in it; empty where there is none yet."""
    said = (text for section in sections for text in section.paragraphs)
    return next((text for text in said if _DECIMAL.search(text)), "")


def _bar(headline: Headline) -> object | None:
    """The interval as a picture; None where there is none."""
    from dialometer.report.interval_bar import interval_bar  # noqa: PLC0415 - brings the drawing program along

    bar = interval_bar(headline.estimate)
    if bar is None:
        return None
    where = f"; the mark stands at {bar.reference_text}" if bar.reference is not None else ""
    return interval(bar.value, bar.low, bar.high, bar.reference, f"The value within its interval{where}.")


def tables_of(section: Section, at_most: int = 3) -> list[Any]:
    """The tables of a section, the first few."""
    return [part for part in section.parts if hasattr(part, "rows") and hasattr(part, "columns")][:at_most]


def history(headline: Headline, looks: Sequence[Look]) -> object | None:
    """How a number came to be what it is, from look to look; None before the second look."""
    points = []
    for look in looks:
        for seen in look.seen:
            if seen["label"] == headline.label and None not in (seen["value"], seen["low"], seen["high"]):
                points.append((float(look.n_judgments), seen["value"], seen["low"], seen["high"]))
    if len({point[0] for point in points}) < 2:
        return None
    last = points[-1]
    told = f"{headline.label} from look to look, last {last[1]:.3g} with interval {last[2]:.3g} to {last[3]:.3g}."
    return band(points, "judgments", told)
