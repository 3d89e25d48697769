"""The dashboard as an application: every page with the role it needs, and nothing for anybody who is not signed in."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Match, Mount, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dialometer.errors import (
    DialometerError,
    ImportFileError,
    LockError,
    Problem,
    ProblemsError,
    ReadError,
    StorageError,
)
from dialometer.flow.engine import now_ms
from dialometer.storage.access.accounts import Accounts
from dialometer.storage.counting.counts import GROUPS
from dialometer.storage.database import DatabaseFails
from dialometer.web.dashboard.dashboard import Dashboard, Page, PageRequest, all_pages, is_allowed
from dialometer.web.dashboard.login import DeadLink, NotAllowed, NotSignedIn
from dialometer.web.dashboard.login_pages import LoginPages, sign_in_of
from dialometer.web.dashboard.openid.pages import ProviderPages
from dialometer.web.dashboard.pages.after.sharing import shared_routes
from dialometer.web.dashboard.pages.together.review import public_routes
from dialometer.web.dashboard.running_studies import IsDraft, NoStudy, RunningStudies
from dialometer.web.dashboard.stopping import StoppingWatch
from dialometer.web.dashboard.translating import (
    CHOICE,
    choose_language,
    explained_error,
    translated,
    translated_count,
)
from dialometer.web.server.failures import TooLarge, headers_of, reference_of
from dialometer.web.server.guard import Guard, moved
from dialometer.web.server.metrics import RequestCounter, declare_metrics
from dialometer.web.server.requests import last_value
from dialometer.web.server.security import Forged, TooOften, check_csrf, cookie, safe_headers, set_cookie
from dialometer.web.server.static_files import STATIC, Assets

MAX_UPLOAD_BYTES = 32 * 1024 * 1024
"""For the files of a study; other requests are as small as those of raters."""
UPLOADING = ("/files", "/new", "/add-items", "/responses", "/file")
"""Pages that take files."""
MAX_FIELDS = 5000
"""The form of a study has hundreds; only those who are signed in can send any."""
GROUP_COOKIE = "dialometer_source"
"""Holds which raters a browser looks at, for one study: people, simulated raters or models."""
LIVE = "x-live"
"""The header of requests by which an open page renews itself. They are not redirected to the login."""

_STATUSES: tuple[tuple[type[Exception], int, str], ...] = (
    (NotSignedIn, 401, "Please sign in"),
    (NotAllowed, 403, "Not allowed"),
    (DeadLink, 403, "This link does not work"),
    (Forged, 403, "This form is too old"),
    (IsDraft, 409, "Not started yet"),
    (NoStudy, 404, "No such study"),
    (TooOften, 429, "Too many attempts"),
    (TooLarge, 413, "Too large"),
    (LockError, 409, "The study has changed"),
    (ImportFileError, 422, "This cannot be read"),
    (ReadError, 422, "This cannot be read"),
    (ProblemsError, 422, "The study is not in order"),
    (DatabaseFails, 503, "The database does not answer"),
    (StorageError, 409, "This cannot be done"),
    (DialometerError, 422, "This cannot be done"),
)

Endpoint = Callable[[Request], Awaitable[Response]]


def create_dashboard(studies: RunningStudies, accounts: Accounts) -> DashboardGuard:
    """The application under ``/dashboard``."""
    dashboard = Dashboard(studies, accounts)
    login = LoginPages(dashboard)
    pages: list[Route] = [
        *login.routes(),
        *(ProviderPages(login, dashboard.provider).routes() if dashboard.provider is not None else ()),
        *public_routes(dashboard),
        *shared_routes(dashboard),
        *(Route(f"/dashboard{page.path}", _endpoint(dashboard, page), methods=[page.method]) for page in all_pages()),
    ]
    nothing = Route(
        "/dashboard{rest:path}", _nothing(dashboard, pages), methods=["GET", "POST", "PUT", "PATCH", "DELETE"]
    )
    routes = [Mount("/dashboard/static", Assets(directory=STATIC)), *pages, nothing]

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, NotSignedIn) and request.method == "GET" and LIVE not in request.headers:
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{dashboard.root}/dashboard/login?next={quote(wanted)}", 303)
        return await run_in_threadpool(error_page, dashboard, error)

    app = Router(routes, redirect_slashes=False)
    watch = StoppingWatch(studies, dashboard.reports)
    watch.start()
    return DashboardGuard(app, dashboard, RequestCounter(declare_metrics()), refuse, watch)


def error_page(dashboard: Dashboard, error: Exception) -> Response:
    """The page for an error. An error of the server itself is logged, and the page shows only a reference."""
    problems: tuple[Problem, ...] = ()
    if isinstance(error, HTTPException):
        status, title, text = error.status_code, "Not found", translated("There is no such page.")
        if status == 400:
            title, text = "This could not be read", translated("Go back and try again.")
    else:
        status, title = next(((s, t) for kind, s, t in _STATUSES if isinstance(error, kind)), (500, "An error"))
        text = explained_error(error) if isinstance(error, DialometerError) else str(error)
        if isinstance(error, ProblemsError):
            problems, text = error.problems, translated("{1} to fix.", translated_count(error.n_problems, "problem"))
    if status >= 500:
        text = translated("The server could not do this (reference {1}).", reference_of(error))
    page = dashboard.templates.render("message.html", None, title=translated(title), text=text, problems=problems)
    return HTMLResponse(page, status, headers_of(error))


class DashboardGuard(Guard):
    """As for raters, but uploads may be large, and pages may be framed by the dashboard itself (the preview)."""

    def __init__(
        self,
        app: ASGIApp,
        dashboard: Dashboard,
        counter: RequestCounter,
        refuse: Callable[[Request, Exception], Awaitable[Response]],
        watch: StoppingWatch,
    ) -> None:
        super().__init__(app, dashboard.studies.settings, counter, refuse)
        self.dashboard = dashboard
        self.watch = watch
        policy = b"content-security-policy"
        self._headers = [
            (name, value + b"; frame-src 'self'" if name == policy else value)
            for name, value in safe_headers(("'self'",))
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers in the language that was chosen, or that the browser asks for."""
        chosen = ""
        if scope["type"] == "http":
            chosen = choose_language(scope.get("query_string", b""), dict(scope["headers"]))

        async def keep(message: Message) -> None:
            if chosen and message["type"] == "http.response.start":
                path = f"{self.dashboard.root}/dashboard"
                cookie = f"{CHOICE}={chosen}; Path={path}; Max-Age=31536000; SameSite=lax; HttpOnly"
                cookie += "; Secure" if scope["scheme"] == "https" else ""
                message["headers"] = [*message["headers"], (b"set-cookie", cookie.encode())]
            await send(message)

        await super().__call__(scope, receive, keep)

    def max_body_bytes(self, scope: Scope) -> int:
        """Much for the files of a study, little for everything else."""
        return MAX_UPLOAD_BYTES if scope["path"].endswith(UPLOADING) else super().max_body_bytes(scope)

    def close(self) -> None:
        """Stops the analysis that is being computed, and the watch over stopping rules."""
        self.watch.close()
        self.dashboard.reports.close()
        self.dashboard.jobs.close()
        if self.dashboard.provider is not None:
            self.dashboard.provider.close()


def _endpoint(dashboard: Dashboard, page: Page) -> Endpoint:
    async def answer(request: Request) -> Response:
        page_request = await _read(dashboard, request, page)
        response = _unless_known(request, await run_in_threadpool(page.work, dashboard, page_request))
        if page.is_of_running and request.query_params.get("source") in GROUPS:
            path = f"{dashboard.root}/dashboard/studies/{page_request.study}"
            set_cookie(request, response, GROUP_COOKIE, page_request.group, path=path, is_embedded=False)
        return response

    return answer


def _nothing(dashboard: Dashboard, pages: Sequence[Route]) -> Endpoint:
    """Every other address. Where only the last slash is missing or too much, it leads to the page; for all others, without a login
    one does not even learn that there is nothing.
    """

    async def answer(request: Request) -> Response:
        path: str = request.scope["path"]
        right = path[:-1] if path.endswith("/") else f"{path}/"
        if any(route.matches({**request.scope, "path": right})[0] == Match.FULL for route in pages):
            return moved(right, request.scope)
        await run_in_threadpool(dashboard.login.account_of, sign_in_of(request), now_ms())
        raise HTTPException(404)

    return answer


async def _read(dashboard: Dashboard, request: Request, page: Page) -> PageRequest:
    """Checks the account, the role and the CSRF token in this order, and reads the form."""
    at_ms = now_ms()
    secret = sign_in_of(request)
    account = await run_in_threadpool(dashboard.login.account_of, secret, at_ms)
    role = await run_in_threadpool(dashboard.role_in, account, request.path_params.get("study", ""))
    if not is_allowed(role, page.role):
        raise NotAllowed(f"your account may not do this; it needs the role {page.role}", remedy="ask an owner")
    fields: dict[str, list[str]] = {}
    files: dict[str, tuple[str, bytes]] = {}
    if request.method == "POST":
        async with request.form(max_fields=MAX_FIELDS, max_part_size=MAX_UPLOAD_BYTES) as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    own = name if name not in files else f"{name}.{len(files):04d}"  # several files in one field
                    files[own] = (value.filename or "", await value.read())
                else:
                    fields.setdefault(name, []).append(value)
        check_csrf(request, secret, last_value(fields, "csrf") or request.headers.get("x-csrf-token", ""))
    opened = None
    if page.is_of_running:
        opened = await run_in_threadpool(dashboard.studies.running, request.path_params["study"])
    return PageRequest(
        account=account,
        role=role,
        secret=secret,
        root=dashboard.root,
        path=request.url.path,
        query=request.query_params,
        params=dict(request.path_params),
        fields=fields,
        files=files,
        at_ms=at_ms,
        opened=opened,
        is_script=request.headers.get("sec-fetch-dest") == "empty",
        origin=f"{request.url.scheme}://{request.url.netloc}",
        group=_group(request),
    )


def _group(request: Request) -> str:
    """The group of raters that the address names, or the one chosen before on another page of the study."""
    named = request.query_params.get("source", "")
    return next((group for group in (named, cookie(request, GROUP_COOKIE)) if group in GROUPS), "")


def _unless_known(request: Request, response: Response) -> Response:
    """An empty answer where the browser has the page already: open pages ask again every few seconds."""
    if request.method != "GET" or response.status_code != 200 or isinstance(response, FileResponse):
        return response
    mark = f'"{hashlib.sha256(response.body).hexdigest()[:20]}"'
    if request.headers.get("if-none-match") == mark:
        return Response(status_code=304, headers={"etag": mark})
    response.headers["etag"] = mark
    return response
