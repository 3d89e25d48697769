"""All raters of a study, one rater's path through it, and what raters wrote in their own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.flow.engine import new_token
from dialometer.flow.language import own_name
from dialometer.model.scale import Scale
from dialometer.model.study import Study
from dialometer.storage.sessions import SessionMark
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.pages.studies import numbers_of
from dialometer.web.dashboard.records import analysis_status, rater_names, rater_record
from dialometer.web.dashboard.running_studies import NoStudy, RunningStudy
from dialometer.web.dashboard.table import Grid, GridColumn
from dialometer.web.dashboard.translating import translated
from dialometer.web.rater.landing import RESUME

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
    GridColumn("language", "Language", is_facet=True),
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
    numbers = numbers_of(dashboard, running, request.at_ms, request.group)
    table = dashboard.cached(running, ("raters", numbers.group), lambda: _grid(running, request.root, numbers.marks))
    return dashboard.show_table("raters.html", request, table, tab="raters")


def _grid(running: RunningStudy, root: str, marks: Sequence[SessionMark]) -> Grid:
    names = rater_names(running)
    flags: dict[str, list[str]] = {}
    for logged in running.store.records.findings():
        rules = flags.setdefault(logged.session_id, [])
        rule = logged.finding.rule.replace("_", " ")
        if rule not in rules:
            rules.append(rule)
    n_judgments = Counter({id_: of.judgments for id_, of in running.store.counts.judgments_by_session().items()})
    rows = [
        {
            "rater": names[mark.id],
            "href": f"{root}/dashboard/studies/{running.name}/raters/{mark.ordinal}",
            "state": STATES[mark.state],
            "condition": running.study.cell_label(running.study.cells[mark.cell])
            if mark.cell < len(running.study.cells)
            else "of an earlier version",
            "language": own_name(mark.language) if mark.language else "–",
            "source": mark.source,
            "started": mark.started_at_ms,
            "is_day": mark.is_erased,
            "minutes": None
            if mark.is_erased
            else round(((mark.finished_at_ms or mark.last_seen_at_ms) - mark.started_at_ms) / 60_000, 1),
            "judgments": n_judgments[mark.id],
            "flags": flags.get(mark.id, []),
            "excluded": _analysis_of(mark, n_judgments[mark.id]),
        }
        for mark in marks
    ]
    is_mixed = len({mark.source for mark in marks}) > 1
    left_out = {"source"} if not is_mixed else set()
    left_out |= {"language"} if not running.study.spec.languages else set()
    columns = [column for column in _COLUMNS if column.name not in left_out]
    return Grid(f"{running.name}-raters", columns, rows, start="-started")


def _analysis_of(mark: SessionMark, n_judgments: int) -> str:
    """What becomes of a rater in the analysis; one without judgments is in no result."""
    now = analysis_status(mark)
    return "no judgments" if now == "counts" and not n_judgments else now


@page("/studies/{study}/raters/{ordinal:number}", role="viewer", of_running=True)
def rater(dashboard: Dashboard, request: PageRequest) -> Response:
    """One rater: the path, timings, answers, gold results, why flagged, and every decision about them."""
    return _show(dashboard, request)


@page("/studies/{study}/raters/{ordinal:number}/decision", role="editor", method="POST", of_running=True)
def decide(dashboard: Dashboard, request: PageRequest) -> Response:
    """Excludes a rater from the analysis or takes them back in; the reason is logged, and nothing is deleted."""
    running = request.running
    session_id = _session_id(running, request)
    reason = request.form.get("reason", "").strip()
    if not reason or len(reason) > MAX_REASON:
        raise DialometerError("a decision about a rater needs a reason", remedy="say why, in a sentence")
    if request.form.get("what") == "exclude":
        running.store.exclusions.exclude(session_id, request.account.name, reason, request.at_ms)
        what = "excluded a rater"
        message = translated("Excluded. Their slots are open to others; nothing was deleted.")
    else:
        running.store.exclusions.restore(session_id, request.account.name, reason, request.at_ms)
        what = "took a rater back in"
        message = translated("Taken back into the analysis.")
    dashboard.note(request, what, f"rater {request.params['ordinal']}: {reason}")
    dashboard.cache.clear()
    return dashboard.redirect(f"/studies/{running.name}/raters/{request.params['ordinal']}", request, message)


@page("/studies/{study}/raters/{ordinal:number}/resume", role="editor", method="POST", of_running=True)
def make_resume_link(dashboard: Dashboard, request: PageRequest) -> Response:
    """A new resume link for a rater who lost theirs; shown once, since only its hash is stored. Earlier links end."""
    running = request.running
    session_id, token = _session_id(running, request), new_token()
    if running.store.sessions.get(session_id).source != "person":
        raise DialometerError("only human raters resume a session", remedy="choose a human rater")
    running.store.sessions.renew_token(session_id, token)
    dashboard.note(request, "made a resume link", f"rater {request.params['ordinal']}")
    link = f"{request.origin}{dashboard.studies.address_of(running.name)}{RESUME}/{token}"
    return _show(dashboard, request, link)


def _show(dashboard: Dashboard, request: PageRequest, resume_link: str = "") -> Response:
    record: dict[str, Any] = rater_record(request.running, _session_id(request.running, request))
    return dashboard.show_study(
        "rater.html", request, record=record, states=STATES, tab="raters", resume_link=resume_link
    )


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


def written_questions(study: Study) -> dict[str, Scale]:
    """Questions of the questionnaires that can be answered in own words, with their scales."""
    spec = study.spec
    questions = [*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire]
    scales = {question.name: study.spec.scales[question.scale] for question in questions}
    return {name: scale for name, scale in scales.items() if scale.takes_own_words}


@page("/studies/{study}/texts", role="viewer", of_running=True)
def texts(dashboard: Dashboard, request: PageRequest) -> Response:
    """Everything that raters wrote, with search."""
    running = request.running
    numbers = numbers_of(dashboard, running, request.at_ms, request.group)
    table = dashboard.cached(
        running, ("texts", numbers.group), lambda: _texts_grid(running, request.root, numbers.marks)
    )
    return dashboard.show_table("texts.html", request, table, tab="texts")


def _texts_grid(running: RunningStudy, root: str, marks: Sequence[SessionMark]) -> Grid:
    """Only what was written: of a choice with "other", the options that were chosen are no texts."""
    ordinals, names = {mark.id: mark.ordinal for mark in marks}, rater_names(running)
    scales = written_questions(running.study)
    texts = [
        (a.session_id, a.question, "", a.value, a.answered_at_ms)
        for a in running.store.records.answers_to(list(scales))
        if a.value not in scales[a.question].option_names()
    ]
    texts += [
        (j.session_id, j.criterion, j.item_id, j.value, j.answered_at_ms)
        for j in running.store.records.judgments_on_scales(running.study.written_types)
    ]
    rows = [
        {
            "rater": names[session_id],
            "href": f"{root}/dashboard/studies/{running.name}/raters/{ordinals[session_id]}",
            "question": question,
            "item": item,
            "text": value,
            "written": at_ms,
        }
        for session_id, question, item, value, at_ms in texts
        if session_id in ordinals and isinstance(value, str) and value.strip()
    ]
    return Grid(f"{running.name}-texts", _TEXT_COLUMNS, rows, start="-written")
