"""Comments of co-authors on a study and its parts. Plain text; they never reach raters, locks or exports."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.storage.access.comments import MAX_LENGTH
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.pages.form import STEPS
from dialometer.web.dashboard.translating import translated

PARTS: Mapping[str, str] = {
    "": "The whole study",
    **{f"form/{key}": title for key, (title, *_) in STEPS.items()},
    "results": "Results",
}
"""What a comment can be about: the study, a step of its form, its results."""


@page("/studies/{study}/comments", role="viewer")
def comments(dashboard: Dashboard, request: PageRequest) -> Response:
    """All comments on the study."""
    dashboard.studies.folders.folder(request.study)  # raises where there is no such study
    state = request.query.get("state", "open")
    shown = [thread for thread in dashboard.comments.threads(request.study) if state != "open" or thread.first.is_open]
    part, whole = request.query.get("part", ""), dashboard.studies.checked(request.study)[0]
    return dashboard.show(
        "comments.html",
        request,
        study=request.study,
        title=whole.spec.title if whole else request.study,
        is_open=dashboard.studies.is_open(request.study),
        threads=shown,
        n_open=dashboard.comments.n_open(request.study),
        state=state,
        part=part if part in PARTS else "",
        parts_of_study=PARTS,
        max_length=MAX_LENGTH,
    )


@page("/studies/{study}/comments", role="viewer", method="POST")
def say(dashboard: Dashboard, request: PageRequest) -> Response:
    """A new comment or a reply; everybody who sees the study may comment on it."""
    dashboard.studies.folders.folder(request.study)
    part, reply_to = request.form.get("part", ""), request.number("reply_to")
    if part not in PARTS:
        raise DialometerError("there is no such part of the study", remedy="choose one from the list")
    name, text = request.account.name, request.form.get("text", "")
    number = dashboard.comments.add(request.study, part, text, name, request.at_ms, reply_to=reply_to)
    dashboard.note(request, "commented", f"comment {number}, {PARTS[part].lower()}")
    return _back(dashboard, request, translated("Your comment is saved."))


@page("/studies/{study}/comments/{number:number}/resolve", role="viewer", method="POST")
def resolve(dashboard: Dashboard, request: PageRequest) -> Response:
    """Marks a comment as resolved, or opens it again."""
    number, is_resolved = int(request.params["number"]), request.form.get("do") != "open"
    dashboard.comments.resolve(request.study, number, request.account.name, request.at_ms, is_resolved=is_resolved)
    dashboard.note(request, "resolved a comment" if is_resolved else "opened a comment again", f"comment {number}")
    return _back(dashboard, request, translated("Resolved." if is_resolved else "Open again."))


def _back(dashboard: Dashboard, request: PageRequest, message: str) -> Response:
    """To the step of the form that the comment was written beside, or to the list."""
    step = request.form.get("back", "")
    known = f"/studies/{request.study}/{step}" if step in PARTS and step else f"/studies/{request.study}/comments"
    return dashboard.redirect(known, request, message)
