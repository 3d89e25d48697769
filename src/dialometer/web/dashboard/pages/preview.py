"""A preview of every condition as raters see it. Nothing is stored: there is no store."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response

from dialometer.design.assign import draw_session
from dialometer.errors import AnswersRejected, AssignmentError, DialometerError, FlowError
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.language import own_name
from dialometer.flow.submissions import read_values
from dialometer.model.dialogue import Turn
from dialometer.model.session import Session, Snapshot
from dialometer.model.study import Study
from dialometer.storage.store import Store
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.running_studies import NoStudy
from dialometer.web.dashboard.translating import translated
from dialometer.web.rater.layout import answers_from_form
from dialometer.web.rater.pages import Pages
from dialometer.web.server.media import study_media
from dialometer.web.server.requests import small_number
from dialometer.web.server.static_files import STATIC

ANY_CODE = "XXXX-XXXX-XXXX-XXXX"
"""In place of the code that only a rater who took part has."""


class _NoRecords:
    """Nobody has taken any time yet."""

    def seconds_on_screens(self, _session_id: str) -> dict[str, float]:
        return {}


class NoStore:
    """Takes the place of a store and stores nothing."""

    records = _NoRecords()

    def __getattr__(self, name: str) -> object:
        raise FlowError("a preview stores nothing", remedy="use the study's own link to try that")


class Preview:
    """One condition of a study in one of its languages, shown screen by screen."""

    def __init__(self, study: Study, cell: int, language: str = "") -> None:
        self.study = study
        self.language = language if language in study.spec.languages else study.spec.language
        self.cell = cell
        self.flow = Flow(study, cast(Store, NoStore()), version=0)
        others = frozenset(range(len(study.cells))) - {cell}
        try:
            draw = draw_session(study, Snapshot(ordinal=1, closed_cells=others))
        except AssignmentError as error:
            raise FlowError(
                f"this condition gives raters nothing to do: {error.message}", remedy="look at the study's design"
            ) from error
        began = now_ms()
        self.session = Session(
            id="preview",
            rater_id="preview",
            ordinal=1,
            condition=study.cells[cell],
            draw=draw,
            language=self.language,
            started_at_ms=began,
            last_seen_at_ms=began,
        )

    @property
    def n_steps(self) -> int:
        """How many screens there are."""
        return len(self.flow.path(self.session).steps)

    def at(self, step: int) -> Session:
        """The session standing at a step."""
        at_ms = now_ms()
        return replace(self.session, step=min(step, self.n_steps), started_at_ms=at_ms, last_seen_at_ms=at_ms)

    def page(
        self,
        step: int,
        *,
        csrf: str = "",
        root: str = "",
        errors: dict[str, str] | None = None,
        typed: dict[str, list[str]] | None = None,
    ) -> str:
        """One screen, exactly as raters get it; after the last one what they read at the end."""
        pages = Pages(self.study.in_language(self.language), is_preview=True)
        session = self.at(step)
        if session.step >= self.n_steps:
            return pages.render_message("completed", root_path=root, withdrawal_code=ANY_CODE)
        shown = self.flow.screen(session)
        is_chat = shown.kind == "chat" and shown.item is not None
        chat = [Turn("Agent", turn.text, "agent") for turn in shown.item.context] if is_chat and shown.item else None
        return pages.render_screen(
            self.flow,
            session,
            shown,
            csrf=csrf,
            token="preview",
            errors=errors,
            typed=dict(typed or {}),
            chat=chat,
            root_path=root,
        )

    def keys(self) -> list[tuple[int, str]]:
        """Every step with what kind of screen it is, for a list to choose from."""
        names = []
        for i, step in enumerate(self.flow.path(self.session).steps):
            about = f" {step.task.item_id}" if step.task is not None else ""
            kind = "practice" if step.task is not None and step.task.is_practice else step.kind
            names.append((i, f"{i + 1}. {translated(kind.replace('_', ' '))}{about}"))
        return names


def first_screen(study: Study, kind: str) -> int:
    """The first screen of a kind, in the first condition; the first of all where there is none."""
    try:
        shown = Preview(study, 0)
        steps = shown.flow.path(shown.session).steps
    except DialometerError:
        return 0
    return next((number for number, step in enumerate(steps) if step.kind == kind or (kind == "item" and step.task)), 0)


INSIDE = "/studies/{study}/preview/{cell}/{step:number}"
"""The number of the condition, in a study of several languages with one of them behind it: ``0-de``."""


@page("/studies/{study}/preview", role="viewer")
def choose(dashboard: Dashboard, request: PageRequest) -> Response:
    """The conditions to choose from, and the chosen one inside a frame."""
    study = dashboard.studies.loaded(request.study)
    cell, step = _number(request, "cell"), _number(request, "step")
    preview = Preview(study, min(cell, len(study.cells) - 1), request.query.get("lang", ""))
    labels = [study.cell_label(condition) for condition in study.cells]
    names = {tag: own_name(tag) for tag in study.spec.languages}
    languages = {"languages": names, "language": preview.language}
    place = f"{preview.cell}-{preview.language}" if names else str(preview.cell)
    content = {
        "labels": labels,
        "cell": preview.cell,
        "place": place,
        **languages,
        "step": min(step, preview.n_steps),
        "steps": preview.keys(),
    }
    is_open = dashboard.studies.is_open(request.study)
    return dashboard.show(
        "preview.html", request, spec=study.spec, study=request.study, is_open=is_open, tab="preview", **content
    )


@page(f"{INSIDE}/s", role="viewer")
def screen(dashboard: Dashboard, request: PageRequest) -> Response:
    """One screen, exactly as raters get it."""
    return _screen(dashboard, request)


@page(f"{INSIDE}/s", role="viewer", method="POST")
def go_on(dashboard: Dashboard, request: PageRequest) -> Response:
    """What a rater would send: read as it would be, with the same complaints, and then forgotten."""
    if request.is_script:  # the script would return to the session's step; the plain form continues from here
        return Response("send the form")
    preview, step = _preview(dashboard, request), int(request.params["step"])
    shown = preview.flow.screen(preview.at(step))
    try:
        read_values(shown.fields, answers_from_form(shown, request.fields))
    except AnswersRejected as error:
        return _screen(dashboard, request, errors=error.fields, typed=dict(request.fields))
    return RedirectResponse(f"{_base(request, step + 1)}/s", 303)


@page(f"{INSIDE}/s/draft", role="viewer", method="POST")
def draft(_dashboard: Dashboard, _request: PageRequest) -> Response:
    """Unsent forms are not kept either."""
    return Response(status_code=204)


@page(f"{INSIDE}/s/arena", role="viewer", method="POST")
def arena(_dashboard: Dashboard, _request: PageRequest) -> Response:
    """No agent is asked in a preview."""
    return chat(_dashboard, _request)


@page(f"{INSIDE}/s/chat", role="viewer", method="POST")
def chat(_dashboard: Dashboard, _request: PageRequest) -> Response:
    """No agent is asked in a preview."""
    return JSONResponse(
        {"error": translated("In a preview the system under test is not asked."), "may_retry": False}, 409
    )


@page(f"{INSIDE}/media/{{file}}", role="viewer")
def media(dashboard: Dashboard, request: PageRequest) -> Response:
    """Recordings of the candidates."""
    return study_media(_preview(dashboard, request).study).response(request.params["file"])


@page(f"{INSIDE}/static/{{file}}", role="viewer")
def asset(_dashboard: Dashboard, request: PageRequest) -> Response:
    """Styles and scripts of the raters' pages."""
    path = STATIC / request.params["file"]
    if path.parent != STATIC or not path.is_file():
        raise NoStudy("there is no such file")
    return FileResponse(path, headers={"cache-control": "private, max-age=3600"})


def _screen(
    dashboard: Dashboard,
    request: PageRequest,
    *,
    errors: dict[str, str] | None = None,
    typed: dict[str, list[str]] | None = None,
) -> Response:
    step = int(request.params["step"])
    content = _preview(dashboard, request).page(
        step, csrf=request.csrf, root=_base(request, step), errors=errors, typed=typed
    )
    return HTMLResponse(content, 422 if errors else 200)


def _base(request: PageRequest, step: int) -> str:
    return f"{request.root}/dashboard/studies/{request.study}/preview/{request.params['cell']}/{step}"


def _preview(dashboard: Dashboard, request: PageRequest) -> Preview:
    study = dashboard.studies.loaded(request.study)
    cell, _, language = request.params["cell"].partition("-")
    number = int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 6 else -1
    if not 0 <= number < len(study.cells):
        raise NoStudy("there is no such condition", remedy="choose another one")
    if int(request.params.get("step", 0)) > 100_000:
        raise DialometerError("there is no such screen")
    return Preview(study, number, language)


def _number(request: PageRequest, name: str) -> int:
    return small_number(request.query.get(name, "")) or 0
