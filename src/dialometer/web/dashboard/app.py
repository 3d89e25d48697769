"""The desk as an application: every page with the role it needs, and nothing for strangers."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Scope

from dialometer.errors import DialometerError, LockError, Problem, ProblemsError, StorageError
from dialometer.flow.engine import now_ms
from dialometer.storage.store import Store
from dialometer.web.dashboard.dashboard import Desk, Page, Visit, all_pages, is_allowed, read_upload
from dialometer.web.dashboard.login import DeadLink, NotAllowed, NotSignedIn
from dialometer.web.dashboard.login_pages import DESK_COOKIE, Door
from dialometer.web.dashboard.running_studies import Held, IsDraft, NoStudy
from dialometer.web.server.app import STATIC, Assets
from dialometer.web.server.failures import TooLarge, headers_of
from dialometer.web.server.guard import Counting, Guard
from dialometer.web.server.logs import log_failure
from dialometer.web.server.requests import one as one_of
from dialometer.web.server.security import Forged, TooOften, check_csrf, cookie, safe_headers
from dialometer.web.server.service import declare_metrics

# What goes wrong at the desk, as a page that says what to do.


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
    (ProblemsError, 422, "The study is not in order"),
    (StorageError, 409, "This cannot be done"),
    (DialometerError, 422, "This cannot be done"),
)


def refusal(desk: Desk, error: Exception) -> Response:
    """The page for an error. What the server itself got wrong is logged, and told only by a reference."""
    problems: tuple[Problem, ...] = ()
    if isinstance(error, HTTPException):
        status, title, text = error.status_code, "Not found", "There is no such page."
        if status == 400:
            title, text = "This could not be read", "Go back and try again."
    else:
        status, title = next(((s, t) for kind, s, t in _STATUSES if isinstance(error, kind)), (500, "An error"))
        text = str(error)
        if isinstance(error, ProblemsError):
            problems, text = error.problems, f"{error.n_problems} problems; mend them and try again."
    if status >= 500:
        text = f"The server could not do this (reference {log_failure(error)})."
    page = desk.views.render("message.html", None, title=title, text=text, problems=problems)
    return HTMLResponse(page, status, headers_of(error))


MAX_UPLOAD_BYTES = 32 * 1024 * 1024
"""Of files of a study; everything else is as small as what raters send."""
MAX_FIELDS = 200
LIVE = "x-live"
"""Pages that ask again by themselves say so, and are not sent to the door when the sign-in has expired."""

Endpoint = Callable[[Request], Awaitable[Response]]


def create_desk(held: Held, accounts: Store) -> DeskGuard:
    """The application under ``/desk``."""
    desk = Desk(held, accounts)
    door = Door(desk)
    routes: list[Route | Mount] = [
        Mount("/desk/static", Assets(directory=STATIC)),
        *door.routes(),
        *(Route(f"/desk{one.path}", _endpoint(desk, one), methods=[one.method]) for one in all_pages()),
        Route("/desk{rest:path}", _nothing(desk), methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ]

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, NotSignedIn) and request.method == "GET" and LIVE not in request.headers:
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{desk.root}/desk/login?next={quote(wanted)}", 303)
        return await run_in_threadpool(refusal, desk, error)

    app = Router(routes, redirect_slashes=False)
    return DeskGuard(app, desk, Counting(declare_metrics()), refuse)


class DeskGuard(Guard):
    """As for raters, but files may be large, and pages may show each other (the preview) though nobody else may."""

    def __init__(
        self,
        app: ASGIApp,
        desk: Desk,
        counting: Counting,
        refuse: Callable[[Request, Exception], Awaitable[Response]],
    ) -> None:
        super().__init__(app, desk.held.settings, counting, refuse)
        self.desk = desk
        policy = b"content-security-policy"
        self._headers = [
            (name, value + b"; frame-src 'self'" if name == policy else value)
            for name, value in safe_headers(("'self'",))
        ]

    def max_body_bytes(self, scope: Scope) -> int:
        """Much for the files of a study, little for everything else."""
        return MAX_UPLOAD_BYTES if scope["path"].endswith("/files") else super().max_body_bytes(scope)

    def close(self) -> None:
        """Ends what runs aside."""
        self.desk.results.close()


def _endpoint(desk: Desk, one: Page) -> Endpoint:
    async def answer(request: Request) -> Response:
        visit = await _visit(desk, request, one)
        response = await run_in_threadpool(one.work, desk, visit)
        return _unless_known(request, response)

    return answer


def _nothing(desk: Desk) -> Endpoint:
    """Whatever else is asked for: a stranger learns nothing, not even that there is nothing."""

    async def answer(request: Request) -> Response:
        await run_in_threadpool(desk.entry.who, cookie(request, DESK_COOKIE), now_ms())
        raise HTTPException(404)

    return answer


async def _visit(desk: Desk, request: Request, one: Page) -> Visit:
    """Who asks and what for: first the account, then the role, then the form's mark, and only then what was sent."""
    at_ms = now_ms()
    secret = cookie(request, DESK_COOKIE)
    account = await run_in_threadpool(desk.entry.who, secret, at_ms)
    if not is_allowed(account.role, one.role):
        raise NotAllowed(f"your account may not do this; it needs the role {one.role}", remedy="ask an owner")
    fields: dict[str, list[str]] = {}
    files: dict[str, tuple[str, bytes]] = {}
    if request.method == "POST":
        async with request.form(max_fields=MAX_FIELDS, max_part_size=MAX_UPLOAD_BYTES) as sent:
            for name, value in sent.multi_items():
                if isinstance(value, UploadFile):
                    files[name] = await read_upload(value)
                else:
                    fields.setdefault(name, []).append(value)
        check_csrf(request, secret, one_of(fields, "csrf") or request.headers.get("x-csrf-token", ""))
    running = None
    if one.is_of_running:
        running = await run_in_threadpool(desk.held.running, request.path_params["study"])
    return Visit(
        account=account,
        secret=secret,
        root=desk.root,
        path=request.url.path,
        query=request.query_params,
        params=dict(request.path_params),
        fields=fields,
        files=files,
        at_ms=at_ms,
        running=running,
        is_script=request.headers.get("sec-fetch-dest") == "empty",
    )


def _unless_known(request: Request, response: Response) -> Response:
    """An empty answer where the browser has the page already: pages ask again every few seconds."""
    if request.method != "GET" or response.status_code != 200 or isinstance(response, FileResponse):
        return response
    mark = f'"{hashlib.sha256(response.body).hexdigest()[:20]}"'
    if request.headers.get("if-none-match") == mark:
        return Response(status_code=304, headers={"etag": mark})
    response.headers["etag"] = mark
    return response
