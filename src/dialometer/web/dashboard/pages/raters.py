"""All raters of a study, one rater's path through it, and what raters wrote in their own words."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.model.session import ERASED_STATES
from dialometer.model.study import Study
from dialometer.storage.counts import does_count
from dialometer.storage.table import rater_name
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.records import rater_record
from dialometer.web.dashboard.running_studies import NoStudy, RunningStudy
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
def raters(dashboard: Dashboard, request: PageRequest) -> Response:
    """A table of raters under their pseudonyms."""
    running = request.running
    table = dashboard.cached(running, "raters", lambda: _grid(running, request.root))
    return dashboard.show_table("raters.html", request, table, tab="raters")


def _grid(running: RunningStudy, root: str) -> Grid:
    flags: dict[str, list[str]] = {}
    for logged in running.store.records.findings():
        rules = flags.setdefault(logged.session_id, [])
        if logged.finding.rule not in rules:
            rules.append(logged.finding.rule)
    counts = running.store.counts.judgments_by_session()
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
            "is_day": mark.state in ERASED_STATES,
            "minutes": None
            if mark.state in ERASED_STATES
            else round(((mark.finished_at_ms or mark.last_seen_at_ms) - mark.started_at_ms) / 60_000, 1),
            "judgments": counts[mark.id].judgments if mark.id in counts else 0,
            "flags": flags.get(mark.id, []),
            "excluded": "excluded" if mark.is_excluded else "counts" if does_count(mark) else "does not count",
        }
        for mark in running.store.sessions.marks()
    ]
    return Grid(f"{running.name}-raters", _COLUMNS, rows, start="-started")


@page("/studies/{study}/raters/{ordinal:int}", role="viewer", of_running=True)
def rater(dashboard: Dashboard, request: PageRequest) -> Response:
    """One rater: the path, timings, answers, gold results, why flagged, and every decision about them."""
    running = request.running
    record: dict[str, Any] = rater_record(running, _session_id(running, request))
    return dashboard.show_study("rater.html", request, record=record, states=STATES, tab="raters")


@page("/studies/{study}/raters/{ordinal:int}/decision", role="editor", method="POST", of_running=True)
def decide(dashboard: Dashboard, request: PageRequest) -> Response:
    """Excludes a rater from the analysis or takes them back in; the reason is logged, and nothing is deleted."""
    running = request.running
    session_id = _session_id(running, request)
    reason = request.form.get("reason", "").strip()
    if not reason or len(reason) > MAX_REASON:
        raise DialometerError("a decision about a rater needs a reason", remedy="say why, in a sentence")
    if request.form.get("what") == "exclude":
        running.store.exclusions.exclude(session_id, request.account.name, reason, request.at_ms)
        message = "Excluded. Their places are open to others; nothing was deleted."
    else:
        running.store.exclusions.restore(session_id, request.account.name, reason, request.at_ms)
        message = "Taken back into the analysis."
    dashboard.cache.clear()
    return dashboard.redirect(f"/studies/{running.name}/raters/{request.params['ordinal']}", request, message)


def _session_id(running: RunningStudy, request: PageRequest) -> str:
    session_id = running.store.sessions.id_of(int(request.params["ordinal"]))
    if session_id is None:
        raise NoStudy("there is no such rater", remedy="go back to the list of raters")
    return session_id


_TEXT_COLUMNS = (
    GridColumn("rater", "Rater"),
    GridColumn("question", "Question", is_facet=True),
    GridColumn("item", "Item"),
    GridColumn("text", "Text"),
    GridColumn("written", "When", "time"),
)


def written_questions(study: Study) -> dict[str, str]:
    """Questions of the questionnaires that can be answered in own words, with their texts."""
    spec = study.spec
    questions = [*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire]
    return {q.name: q.text for q in questions if study.spec.scales[q.scale].takes_own_words}


@page("/studies/{study}/texts", role="viewer", of_running=True)
def texts(dashboard: Dashboard, request: PageRequest) -> Response:
    """Everything that raters wrote, with search."""
    running = request.running
    table = dashboard.cached(running, "texts", lambda: _texts_grid(running, request.root))
    return dashboard.show_table("texts.html", request, table, tab="texts")


def _texts_grid(running: RunningStudy, root: str) -> Grid:
    ordinals = {mark.id: mark.ordinal for mark in running.store.sessions.marks()}
    questions = written_questions(running.study)
    texts = [
        (a.session_id, a.question, "", a.value, a.answered_at_ms)
        for a in running.store.records.answers_to(list(questions))
    ]
    texts += [
        (j.session_id, j.criterion, j.item_id, j.value, j.answered_at_ms)
        for j in running.store.records.judgments_on_scales(running.study.written_types)
    ]
    rows = [
        {
            "rater": rater_name(ordinals[session_id]),
            "href": f"{root}/desk/studies/{running.name}/raters/{ordinals[session_id]}",
            "question": question,
            "item": item,
            "text": value,
            "written": at_ms,
        }
        for session_id, question, item, value, at_ms in texts
        if session_id in ordinals and isinstance(value, str) and value.strip()
    ]
    return Grid(f"{running.name}-texts", _TEXT_COLUMNS, rows, start="-written")
