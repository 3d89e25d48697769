"""What goes wrong, as a status, a page or JSON: one place that knows which error means what."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from dialometer.errors import AnswersRejected, DialometerError, FlowError, StorageError
from dialometer.recruit.platforms import platform_of
from dialometer.storage.corrections import SubmissionRefused
from dialometer.web.rater.wizard import NoWizard
from dialometer.web.server.arrival import NotInvited
from dialometer.web.server.logs import log_failure
from dialometer.web.server.requests import Unreadable
from dialometer.web.server.security import Forged, TooOften
from dialometer.web.server.service import NoPlace, Service
from dialometer.web.server.submissions import NoSession, ServerBusy


class TooLarge(DialometerError):
    """A body beyond the limit."""


class NoKey(DialometerError):
    """A program without the key that opens sessions."""


# The first that fits counts; the word names the page.
_STATUSES: tuple[tuple[type[Exception], int, str], ...] = (
    (NoSession, 401, "no_session"),
    (NoKey, 401, "blocked"),
    (NoWizard, 403, "blocked"),
    (Forged, 403, "expired"),
    (NotInvited, 403, "invitation"),
    (NoPlace, 403, "full"),
    (TooOften, 429, "busy"),
    (ServerBusy, 503, "busy"),
    (TooLarge, 413, "too_large"),
    (Unreadable, 400, "error"),
    (AnswersRejected, 422, "error"),
    (SubmissionRefused, 409, "elsewhere"),
    (FlowError, 409, "elsewhere"),
    (StorageError, 503, "error"),
)


def status_of(error: Exception) -> tuple[int, str]:
    """The status and the page of an error; 500 for what nobody foresaw."""
    if isinstance(error, NoPlace):
        return 403, error.kind
    if isinstance(error, HTTPException):
        return error.status_code, "not_found" if error.status_code in (404, 405) else "error"
    return next(((status, page) for kind, status, page in _STATUSES if isinstance(error, kind)), (500, "error"))


def headers_of(error: Exception) -> dict[str, str]:
    """Headers that belong to an error."""
    if isinstance(error, TooOften):
        return {"retry-after": str(max(1, math.ceil(error.retry_after_s)))}
    if isinstance(error, ServerBusy):
        return {"retry-after": "1"}
    if isinstance(error, NoSession | NoKey):
        return {"www-authenticate": "Bearer"}
    return dict(error.headers or {}) if isinstance(error, HTTPException) else {}


def as_json(error: Exception) -> JSONResponse:
    """An error for a program. What the server itself got wrong is logged, and told only by a reference."""
    status, _ = status_of(error)
    content: dict[str, object]
    if status >= 500 and not isinstance(error, ServerBusy):
        content = {"error": f"The server could not do this (reference {log_failure(error)})."}
    elif isinstance(error, AnswersRejected):
        content = {"error": "some answers are not in order", "fields": error.fields}
    elif isinstance(error, HTTPException):
        content = {"error": str(error.detail)}
    else:
        content = {"error": str(error)}
    if isinstance(error, NoPlace):
        content["reason"] = error.kind
    if isinstance(error, FlowError | TooOften) and not isinstance(error, AnswersRejected):
        content["may_retry"] = False
    return JSONResponse(content, status, headers_of(error))


def as_invalid(error: RequestValidationError | ValidationError) -> JSONResponse:
    """A body or parameter that is not as the API describes it; what was sent is not repeated."""
    fields = {".".join(str(part) for part in found["loc"]): str(found["msg"]) for found in error.errors()}
    return JSONResponse({"error": "the request is not in order", "fields": fields}, 422)


def as_page(service: Service, request: Request, error: Exception) -> Response:
    """An error for a person: a page that says what to do, or the way to where it goes on."""
    root = service.settings.root_path
    status, page = status_of(error)
    is_open = platform_of(service.study.spec.recruitment).is_open
    if isinstance(error, NoSession) and is_open and request.method == "GET":
        return RedirectResponse(f"{root}/", 303)
    if isinstance(error, FlowError | SubmissionRefused):
        return RedirectResponse(f"{root}/s", 303)
    detail = log_failure(error) if status >= 500 and not isinstance(error, ServerBusy) else ""
    content = service.pages.render_message(page, root_path=root, detail=detail)
    return HTMLResponse(content, status, _without(headers_of(error), "www-authenticate"))


def wants_json(request: Request) -> bool:
    """Whether a program or a script asked, not a browser for a page."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    is_script = "json" in request.headers.get("content-type", "") or "json" in request.headers.get("accept", "")
    return is_script or path.startswith(("/api/", "/wizard/", "/healthz", "/metrics"))


def _without(headers: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key != name}
