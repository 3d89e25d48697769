"""Controlling a running study: start, pause, close, quotas. Every decision is logged with who, when and why."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.recruit.platforms import platform_of
from dialometer.storage.controls import StudyState
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.pages.studies import numbers_of
from dialometer.web.dashboard.qr_code import qr_svg
from dialometer.web.dashboard.translating import translated
from dialometer.web.rater.wizard import has_wizard

_STATES: dict[str, tuple[StudyState, str]] = {
    "start": ("running", "The study is running: new raters may come."),
    "pause": ("paused", "The study is paused: nobody new comes in, raters who have started may finish."),
    "close": ("closed", "The study is closed: nobody new comes in, raters who have started may finish."),
}

_LOGGED = {
    "start": "started the study",
    "pause": "paused the study",
    "close": "closed the study",
    "open": "opened a condition",
    "shut": "closed a condition",
    "quota": "set a quota",
}


@page("/studies/{study}/control", role="viewer", of_running=True)
def control(dashboard: Dashboard, request: PageRequest) -> Response:
    """The current state and the log of decisions."""
    running = request.running
    log = list(reversed(running.store.control.log()))
    numbers = numbers_of(dashboard, running, request.at_ms, request.group)
    address = dashboard.studies.address_of(running.name) + "/"
    labels = [running.study.cell_label(cell) for cell in running.study.cells]
    may_see_link = has_wizard(running.study) and request.may("editor")
    wizard = f"{address}wizard?key={dashboard.studies.settings.wizard_key}" if may_see_link else ""
    link = f"{request.origin}{address}"
    platform = platform_of(running.study.spec.recruitment)
    content: dict[str, object] = {"wizard": wizard, "log": log, "numbers": numbers, "labels": labels, "tab": "control"}
    content |= {
        "link": link,
        "code": qr_svg(link, translated("QR code of {1}", link)) if platform.is_open else "",
        "platform": platform.label,
    }
    return dashboard.show_study("control.html", request, **content)


@page("/studies/{study}/control", role="editor", method="POST", of_running=True)
def decide(dashboard: Dashboard, request: PageRequest) -> Response:
    """One decision, which counts from the next arrival; raters who have started may always finish."""
    running = request.running
    store, what = running.store, request.form.get("what", "")
    who = {"by": request.account.name, "at_ms": request.at_ms}
    reason = request.form.get("reason", "").strip()[:500] or "from the dashboard"
    cell = request.number("cell")
    if cell is not None and cell >= len(running.study.cells):
        raise DialometerError("there is no such condition")
    label = running.study.cell_label(running.study.cells[cell]) if cell is not None else ""
    if what in _STATES and cell is None:
        state, message = _STATES[what]
        message = translated(message)
        store.control.set_state(state, reason=reason, **who)  # type: ignore[arg-type]
    elif what in ("open", "shut") and cell is not None:
        store.control.set_cell_open(cell, what == "open", reason=reason, **who)  # type: ignore[arg-type]
        message = translated("{1} is open." if what == "open" else "{1} is closed.", label)
    elif what == "quota":
        text = request.form.get("quota", "").strip()
        quota = request.number("quota")
        if text and quota is None:
            raise DialometerError(f"'{text[:20]}' is not a number", remedy="a whole number, or nothing to lift it")
        if cell is None:
            store.control.set_quota(quota, reason=reason, **who)  # type: ignore[arg-type]
        else:
            store.control.set_cell_quota(cell, quota, reason=reason, **who)  # type: ignore[arg-type]
        limit = "{1}: at most {2} raters." if quota is not None else "{1}: no limit beyond what the study file says."
        message = translated(limit, label or translated("The study"), quota)
    else:
        raise DialometerError("there is no such decision", remedy="go back and choose again")
    dashboard.note(request, _LOGGED[what], f"{label}: {reason}" if label else reason)
    dashboard.cache.clear()
    return dashboard.redirect(f"/studies/{running.name}/control", request, message)
