"""All raters of a study, and one rater's way through it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.storage.table import rater_name
from dialometer.web.dashboard.dashboard import Desk, Visit, page
from dialometer.web.dashboard.records import rater_record
from dialometer.web.dashboard.running_studies import NoStudy, Running
from dialometer.web.dashboard.table import Grid, GridColumn

MAX_REASON = 500
STATES = {
    "active": "active",
    "completed": "finished",
    "screened_out": "screened out",
    "declined": "declined",
    "stale": "left",
    "withdrawn": "withdrawn",
}
_COLUMNS = (
    GridColumn("rater", "Rater"),
    GridColumn("state", "State", is_facet=True),
    GridColumn("condition", "Condition", is_facet=True),
    GridColumn("source", "Source", is_facet=True),
    GridColumn("started", "Arrived", "time"),
    GridColumn("minutes", "Minutes", "number"),
    GridColumn("judgments", "Judgments", "count"),
    GridColumn("flags", "Flags", "marks"),
    GridColumn("excluded", "Analysis", is_facet=True),
)


@page("/studies/{study}/raters", role="viewer", of_running=True)
def raters(desk: Desk, visit: Visit) -> Response:
    """A table of raters under their pseudonyms."""
    running = desk.of(visit)
    grid = desk.kept(running, "raters", lambda: _grid(running, visit.root))
    view = grid.view(visit.query)
    if visit.query.get("format") == "csv":
        return view.csv()
    return desk.show_study("raters.html", visit, grid=view, tab="raters")


def _grid(running: Running, root: str) -> Grid:
    flags: dict[str, list[str]] = {}
    for logged in running.store.findings():
        rules = flags.setdefault(logged.session_id, [])
        if logged.finding.rule not in rules:
            rules.append(logged.finding.rule)
    n_judgments = running.store.n_judgments_by_session()
    rows = [
        {
            "rater": rater_name(mark.ordinal),
            "href": f"{root}/desk/studies/{running.name}/raters/{mark.ordinal}",
            "state": STATES[mark.state],
            "condition": running.study.cell_label(running.study.cells[mark.cell])
            if mark.cell < len(running.study.cells)
            else "of an earlier version",
            "source": mark.source,
            "started": mark.started_at_ms,
            "minutes": round(((mark.finished_at_ms or mark.last_seen_at_ms) - mark.started_at_ms) / 60_000, 1),
            "judgments": n_judgments.get(mark.id, 0),
            "flags": flags.get(mark.id, []),
            "excluded": "excluded" if mark.is_excluded else "counts",
        }
        for mark in running.store.session_marks()
    ]
    return Grid(f"{running.name}-raters", _COLUMNS, rows, start="-started")


@page("/studies/{study}/raters/{ordinal:int}", role="viewer", of_running=True)
def rater(desk: Desk, visit: Visit) -> Response:
    """One rater: the path, timings, answers, gold results, why flagged, and every decision about them."""
    running = desk.of(visit)
    record: dict[str, Any] = rater_record(running, _session_id(running, visit))
    return desk.show_study("rater.html", visit, record=record, states=STATES, tab="raters")


@page("/studies/{study}/raters/{ordinal:int}/decision", role="editor", method="POST", of_running=True)
def decide(desk: Desk, visit: Visit) -> Response:
    """Excludes a rater from the analysis or takes them back in; the reason is logged, and nothing is deleted."""
    running = desk.of(visit)
    session_id = _session_id(running, visit)
    reason = visit.form.get("reason", "").strip()
    if not reason or len(reason) > MAX_REASON:
        raise DialometerError("a decision about a rater needs a reason", remedy="say why, in a sentence")
    if visit.form.get("what") == "exclude":
        running.store.exclude(session_id, visit.account.name, reason, visit.at_ms)
        told = "Excluded. Their places are open to others; nothing was deleted."
    else:
        running.store.restore(session_id, visit.account.name, reason, visit.at_ms)
        told = "Taken back into the analysis."
    desk.cache.clear()
    return desk.to(f"/studies/{running.name}/raters/{visit.params['ordinal']}", visit, told)


def _session_id(running: Running, visit: Visit) -> str:
    session_id = running.store.session_id_of(int(visit.params["ordinal"]))
    if session_id is None:
        raise NoStudy("there is no such rater", remedy="go back to the list of raters")
    return session_id
