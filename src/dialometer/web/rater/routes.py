"""The routes of the raters' pages: screens, drafts, withdrawing, and error pages."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dialometer.errors import AnswersRejected, FlowError
from dialometer.flow.engine import Flow
from dialometer.flow.screens import Screen, criterion_of
from dialometer.model.scale import Value
from dialometer.model.session import ERASED_STATES, Receipt, Session
from dialometer.recruit.platforms import platform_of
from dialometer.storage.database import DatabaseFails
from dialometer.storage.submissions import SubmissionRefused
from dialometer.web.rater.arrival import way_back
from dialometer.web.rater.chat import ChatRoom
from dialometer.web.rater.landing import SEE_OTHER, START, keep_cookie, resume_link, to_screen
from dialometer.web.rater.layout import checked_answers
from dialometer.web.rater.pages import SAME_ADDRESS, Pages
from dialometer.web.rater.service import LANGUAGE, Service
from dialometer.web.server.failures import headers_of, is_own_failure, reference_of, status_of
from dialometer.web.server.logs import log
from dialometer.web.server.requests import (
    SENT_FORM,
    Form,
    Unreadable,
    last_value,
    read_form,
    read_json,
    sent_from_form,
    small_number,
)
from dialometer.web.server.security import (
    LANGUAGE_COOKIE,
    NOT_KEPT_COOKIE,
    SESSION_COOKIE,
    START_COOKIE,
    RateLimits,
    check_csrf,
    client_address,
    cookie,
    csrf_for,
)
from dialometer.web.server.submissions import NoSession


def earlier_answers(flow: Flow, session: Session, screen: Screen) -> dict[str, object]:
    """The answers of a screen that the rater goes back to, by field, with systems as position on the screen."""
    step = flow.path(session).steps[screen.step]
    task = step.task
    if task is None:
        return {}
    places = {system: str(place) for place, system in enumerate(task.systems, start=1)}
    values: dict[tuple[str, str], Value] = {}
    for judgment in flow.store.records.of_session(session.id).judgments:
        if judgment.item_id != task.item_id or judgment.is_practice != task.is_practice:
            continue
        target = f"t{judgment.turn}" if judgment.turn is not None else places.get(judgment.system, "")
        values[judgment.criterion, target] = judgment.value
    answers: dict[str, object] = {}
    for field in screen.fields:
        criterion = criterion_of(field)
        # A field about the whole item has no place, but the one system shown has.
        is_whole = not field.target and not field.scale.compares and len(places) == 1
        value = values.get((criterion, "1" if is_whole else field.target))
        if value is not None:
            answers[field.name] = field.scale.rename(value, places) if field.scale.compares else value
    return answers


def ending_of(flow: Flow, session: Session) -> str:
    """How a session ended, as the name of its last page: who failed a check reads something else than who is not wanted."""
    if session.state != "screened_out":
        return session.state
    rules = [
        logged.finding.rule
        for logged in flow.store.records.findings(session.id)
        if logged.finding.action == "screen_out"
    ]
    if not rules or "screening" in rules:
        return "screened_out"
    return "failed_comprehension" if "comprehension" in rules else "failed_checks"


def is_too_late(receipt: Receipt) -> bool:
    """Whether a screen was not stored because the session was past it. A rater who declined has nothing to lose."""
    return receipt.outcome == "outdated" or (receipt.outcome == "ended" and receipt.state != "declined")


NOTICE_S = 60
"""How long the next page may take to say that something was not kept."""
WITHOUT_ANSWERS = ("instructions", "chat")
"""Screens that hold no answers; sending one twice loses nothing."""
MAY_WITHDRAW = ("completed", "screened_out")
"""End states with stored answers that a rater may withdraw."""


class RaterPages:
    """The routes of the pages."""

    def __init__(self, service: Service, room: ChatRoom) -> None:
        self.service = service
        self.room = room
        self.root = service.settings.root_path

    def routes(self) -> list[Route]:
        """All routes, in the order in which they are tried."""
        return [
            Route("/s", self.show, methods=["GET"]),
            Route("/s", self.submit, methods=["POST"]),
            Route("/s/draft", self.save_draft, methods=["POST"]),
            Route("/s/language", self.change_language, methods=["POST"]),
        ]

    # showing

    async def show(self, request: Request) -> Response:
        """The screen at the session's step, or an earlier one."""
        token = cookie(request, SESSION_COOKIE)
        step = small_number(request.query_params.get("step", ""))
        try:
            # One change of threads for both: it costs as much as looking the session up.
            return await self.service.in_thread(lambda: self._page(request, self.service.session_of(token), step=step))
        except FlowError:
            if step is None:
                raise
            return to_screen(self.service)

    def _page(
        self,
        request: Request,
        session: Session,
        *,
        step: int | None = None,
        errors: Mapping[str, str] | None = None,
        typed: Mapping[str, object] | None = None,
        status: int = 200,
    ) -> Response:
        service = self.service
        screen = service.flow.screen(session, step)
        return_url = code = withdrawal = end = ""
        chat = None
        revealed: Sequence[tuple[str, ...]] = ()
        if screen.kind == "done":
            if not session.draw.disputes:
                return_url, code = way_back(service.study, session, service.store.sessions.person(session.id))
            if session.state in MAY_WITHDRAW:
                withdrawal = service.store.withdrawals.code(session.id, cookie(request, SESSION_COOKIE))
            end = ending_of(service.flow, session)
            revealed = service.arenas.revealed(session)
        elif screen.item is not None and screen.item.kind == "chat":
            chat = service.chats.history(session, screen.item.id)
            if screen.kind == "chat":
                self.room.notice(session, screen.item.id)
        screen = service.arenas.shown(session, screen)
        if typed is None:
            typed = service.store.conversations.draft(session.id, screen.key)
        if typed is None and screen.step < session.step and screen.kind != "done":
            typed = earlier_answers(service.flow, session, screen)
        page = service.pages(session.language).render_screen(
            service.flow,
            session,
            screen,
            csrf=csrf_for(cookie(request, SESSION_COOKIE)),
            token=secrets.token_urlsafe(18),
            errors=errors or {},
            typed=typed or {},
            chat=chat,
            root_path=self.root,
            return_url=return_url,
            code=code,
            withdrawal_code=withdrawal,
            ending=end,
            is_not_kept=bool(cookie(request, NOT_KEPT_COOKIE)),
            resume_link=resume_link(service, request, cookie(request, SESSION_COOKIE)),
            revealed=revealed,
        )
        response = HTMLResponse(page, status)
        if cookie(request, NOT_KEPT_COOKIE):
            response.delete_cookie(NOT_KEPT_COOKIE, path=self.root or "/")
        return response

    # sending

    async def submit(self, request: Request) -> Response:
        """Stores a screen and redirects to the next one; invalid answers show the page again with all that was typed.

        What came too late, since the session went on in another tab, is not stored, and the next page says so.
        """
        form = await read_form(request)
        token = cookie(request, SESSION_COOKIE)
        if not token:
            raise NoSession("there is no such session", remedy="open the study's link again")
        check_csrf(request, token, last_value(form, "csrf"))
        try:
            sent = sent_from_form(form, token, lambda screen: checked_answers(screen, form))
            is_late = is_too_late((await self.service.submit(sent)).receipt)
        except AnswersRejected as rejected:
            errors = rejected.fields
            return await self.service.in_thread(lambda: self._again(request, token, errors, form))
        except SubmissionRefused:
            is_late = True  # the session is elsewhere by now; the next page shows where
        response = to_screen(self.service)
        if is_late and last_value(form, "screen").split("/")[0] not in WITHOUT_ANSWERS:
            keep_cookie(self.service, request, response, NOT_KEPT_COOKIE, "yes", max_age_s=NOTICE_S)
        return response

    def _again(self, request: Request, token: str, errors: Mapping[str, str], form: Form) -> Response:
        session = self.service.session_of(token)
        step = self.service.flow.step_of(session, last_value(form, "screen"))
        if step is None:
            return to_screen(self.service)
        return self._page(request, session, step=step, errors=errors, typed=form, status=422)

    async def change_language(self, request: Request) -> Response:
        """Another language for a rater who has answered nothing yet; later ones keep the one they have."""
        form = await read_form(request)
        token = cookie(request, SESSION_COOKIE)
        session = await self.service.find(token)
        check_csrf(request, token, last_value(form, "csrf"))
        language = last_value(form, LANGUAGE)
        await self.service.in_thread(lambda: self.service.flow.change_language(session, language))
        response = to_screen(self.service)
        keep_cookie(self.service, request, response, LANGUAGE_COOKIE, language)
        return response

    async def save_draft(self, request: Request) -> Response:
        """Saves unsent answers."""
        token = cookie(request, SESSION_COOKIE)
        session = await self.service.find(token)
        check_csrf(request, token, request.headers.get("x-csrf-token", ""))
        self.service.drafts.take(session.id)
        content = await read_json(request)
        key, answers = content.get("screen"), content.get("answers")
        if not isinstance(key, str) or not isinstance(answers, dict):
            raise Unreadable("a draft has a screen and answers", remedy='send {"screen": …, "answers": {…}}')

        def save() -> bool:
            flow = self.service.flow
            step = flow.step_of(session, key)
            if step is None:
                return False
            own = flow.path(session).steps[step].key
            self.service.store.conversations.save_draft(session.id, own, answers, flow.clock())
            return True

        if await self.service.in_thread(save):
            return Response(status_code=204)
        return JSONResponse({"error": "this screen is over"}, 409)


MAX_CODE = 40
"""Characters of a code that the form takes."""
TRIES_PER_MINUTE = 10
"""From one address. A code cannot be guessed anyway."""


class WithdrawPages:
    """Withdrawing with the code shown on the last page: everything the rater gave is erased."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.root = service.settings.root_path
        self.tries = RateLimits(TRIES_PER_MINUTE)

    def routes(self) -> list[Route]:
        """Both routes."""
        return [
            Route("/withdraw", self.show, methods=["GET"]),
            Route("/withdraw", self.erase, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """The form; it needs no session, but where the browser has one, its code is in it."""
        token = cookie(request, SESSION_COOKIE)
        return self._form(request, code=await self.service.in_thread(lambda: self._own_code(token)) if token else "")

    def _own_code(self, token: str) -> str:
        session = self.service.store.sessions.by_token(token)
        if session is None or session.state in ERASED_STATES:
            return ""
        return self.service.store.withdrawals.code(session.id, token)

    async def erase(self, request: Request) -> Response:
        """Erases the person whose code was given; a code that was used before gets the same answer."""
        form = await read_form(request)
        check_csrf(request, cookie(request, START_COOKIE), last_value(form, "csrf"))
        self.tries.take(client_address(request.scope))
        code = last_value(form, "code")
        if not await self.service.in_thread(lambda: self._withdraw(code)):
            return self._form(request, code=code[:MAX_CODE], is_unknown=True, status=422)
        response = HTMLResponse(self._pages(request).render_message("withdrawn", root_path=self.root))
        response.delete_cookie(START_COOKIE, path=self.root or "/")
        token = cookie(request, SESSION_COOKIE)
        # The code may be of another session than the one this browser is in.
        if token and await self.service.in_thread(lambda: self.service.store.sessions.by_token(token)) is None:
            response.delete_cookie(SESSION_COOKIE, path=self.root or "/")
        return response

    def _withdraw(self, code: str) -> bool:
        session_id = self.service.store.withdrawals.session_of_code(code)
        if session_id is None:
            return False
        self.service.store.withdrawals.withdraw(session_id, self.service.flow.clock())
        log("withdrawal")
        return True

    def _pages(self, request: Request) -> Pages:
        return self.service.pages(self.service.language_of(request))

    def _form(self, request: Request, *, code: str = "", is_unknown: bool = False, status: int = 200) -> Response:
        secret = cookie(request, START_COOKIE) or secrets.token_urlsafe(24)
        page = self._pages(request).render_withdraw(
            csrf=csrf_for(secret), root_path=self.root, code=code, is_unknown=is_unknown
        )
        response = HTMLResponse(page, status)
        keep_cookie(self.service, request, response, START_COOKIE, secret)
        return response


MAY_SEND_AGAIN = (429, 503)
"""Refusals that pass by themselves: the page keeps what was sent and sends it again."""


def _again(service: Service, request: Request, form: Form | None) -> str:
    """Where a page is loaded again: at its own address, for that may name the rater; after Start at the link before it."""
    root = service.settings.root_path
    if request.method == "GET":
        return SAME_ADDRESS
    if form is None or request.scope["path"] != f"{root}{START}":
        return f"{root}/s"
    parameters = platform_of(service.study.spec.recruitment).link_parameters
    named = {name: last_value(form, name) for name in form if name in parameters}
    return f"{root}/?{urlencode(named)}" if named else f"{root}/"


def error_page(service: Service, request: Request, error: Exception) -> Response:
    """An error for a person: a page that says what to do, or a redirect to where the session is."""
    root = service.settings.root_path
    status, page = status_of(error)
    is_open = platform_of(service.study.spec.recruitment).is_open
    if isinstance(error, NoSession) and is_open and request.method == "GET":
        return RedirectResponse(f"{root}/", SEE_OTHER)
    if isinstance(error, FlowError | SubmissionRefused):
        return RedirectResponse(f"{root}/s", SEE_OTHER)
    reference = reference_of(error) if is_own_failure(error) else ""
    detail = "" if isinstance(error, DatabaseFails) else reference  # why the database fails is no rater's business
    form = request.scope.get(SENT_FORM)
    pages = service.pages(service.language_of(request))
    if form and status in MAY_SEND_AGAIN:
        action = request.scope["path"]
        content = pages.render_unsent(form, action=action, root_path=root, detail=detail)
    else:
        content = pages.render_message(page, root_path=root, detail=detail, reload_url=_again(service, request, form))
    headers = {name: value for name, value in headers_of(error).items() if name != "www-authenticate"}
    return HTMLResponse(content, status, headers)
