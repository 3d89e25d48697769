"""Interim results (verdicts on what was declared, the answer, agreement, figures, with a warning), the report, the export."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.responses import Response

from dialometer.model.report import Figure, Headline, Report, Section
from dialometer.quality.gold import gold_items
from dialometer.storage.looks import Look
from dialometer.web.dashboard.charts import band, interval
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.exploring import chosen, offered
from dialometer.web.dashboard.live_report import LiveReport
from dialometer.web.dashboard.translating import translated

_DECIMAL = re.compile(r"\d\.\d")
ON_AGREEMENT = ("agreement", "consistency")
ON_RULES = ("rule_effects", "sensitivity", "gold_rule")


@page("/studies/{study}/results", role="viewer", of_running=True)
def results(dashboard: Dashboard, request: PageRequest) -> Response:
    """The newest results; newer ones are computed in the background, and every look is logged."""
    running = request.running
    options = dashboard.report_options(running, request.group)
    status = dashboard.reports.latest(running, request.account.name, options)
    looks = [] if options else running.store.looks.all()
    content: dict[str, Any] = {"status": status, "looks": list(reversed(looks)), "tab": "results"}
    content["has_gold"] = bool(gold_items(running.study))
    content["hypotheses"] = [c.hypothesis or c.name for c in running.study.spec.analysis.comparisons]
    content |= {"chosen": chosen(request), "offered": offered(running.study)}
    if status.newest is not None:
        content |= written(status.newest.report, looks) | {"figures": figures_of(status.newest)}
    return dashboard.show_study("results.html", request, **content)


@page("/studies/{study}/report.html", role="viewer", of_running=True)
def report(dashboard: Dashboard, request: PageRequest) -> Response:
    """The whole report as one file to keep; it is opened from disk, where its styles may work."""
    running = request.running
    status = dashboard.reports.latest(running, request.account.name, dashboard.report_options(running, request.group))
    if status.newest is None:
        return dashboard.redirect(
            f"/studies/{running.name}/results",
            request,
            translated("The report is not ready yet; try again in a moment."),
        )
    dashboard.note(request, "downloaded the report")
    name = f'attachment; filename="{running.name}-report.html"'
    return Response(status.newest.page, media_type="text/html; charset=utf-8", headers={"content-disposition": name})


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


def figures_of(live: LiveReport) -> list[tuple[Figure, str]]:
    """The figures that could be drawn, with the name of their files."""
    from dialometer.report.render import with_file_names  # noqa: PLC0415 - brings the drawing program along

    return [(figure, name) for figure, name in with_file_names(live.report.figures()) if f"{name}.svg" in live.figures]


def agreement_sentence(sections: Sequence[Section]) -> str:
    """The first sentence about agreement that has a number in it; empty where there is none yet."""
    paragraphs = (text for section in sections for text in section.paragraphs)
    return next((text for text in paragraphs if _DECIMAL.search(text)), "")


def _bar(headline: Headline) -> object | None:
    """The interval as a picture; None where there is none."""
    from dialometer.report.interval_bar import interval_bar  # noqa: PLC0415 - brings the drawing program along

    bar = interval_bar(headline.estimate)
    if bar is None:
        return None
    alt = translated("The value within its interval.")
    if bar.reference is not None:
        alt = translated("The value within its interval; the mark is at {1}.", bar.reference_text)
    return interval(bar.value, bar.low, bar.high, bar.reference, alt)


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
    alt = translated(
        "{1} from look to look, last {2} with interval {3} to {4}.", headline.label, *(f"{n:.3g}" for n in last[1:])
    )
    return band(points, translated("judgments"), alt)


# The same content gives the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@page("/studies/{study}/export.zip", role="viewer", of_running=True)
def export(dashboard: Dashboard, request: PageRequest) -> Response:
    """Judgments, answers, sessions, screens and findings under pseudonyms, as ``dialometer export`` writes them."""
    from dialometer.exchange.exports.export import export_study  # noqa: PLC0415 - polars is slow to load, and rarely needed

    running = request.running
    with tempfile.TemporaryDirectory(prefix="dialometer-export-") as folder:
        out = Path(folder) / "export"
        export_study(running.study, running.store, out)
        content = zipped(sorted(out.iterdir()), f"{running.name}-export")
    dashboard.note(request, "downloaded the data")
    return _download(content, f"{running.name}-export.zip")


@page("/studies/{study}/study.zip", role="viewer")
def download(dashboard: Dashboard, request: PageRequest) -> Response:
    """The study's file, items, texts and lock; never what was collected, who was invited or who is on a list."""
    dashboard.note(request, "downloaded the study's files")
    return _download(zipped(dashboard.studies.shared_files(request.study), request.study), f"{request.study}.zip")


def zipped(files: list[Path], folder: str) -> bytes:
    """Files in one folder of an archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(f"{folder}/{path.name}", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return out.getvalue()


def _download(content: bytes, name: str) -> Response:
    return Response(
        content, media_type="application/zip", headers={"content-disposition": f'attachment; filename="{name}"'}
    )
