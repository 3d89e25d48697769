"""Errors that requests cause, and what every error becomes: a status, headers and JSON.

An error of the web itself is a :class:`RequestError`, which knows its own status. Errors of the packages below have theirs
in one table here. Pages for people are made in :mod:`dialometer.web.rater.routes` and :mod:`dialometer.web.dashboard.app`.
"""

from __future__ import annotations

from typing import ClassVar

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from dialometer.errors import AnswersRejected, DialometerError, FlowError, StorageError
from dialometer.storage.database import DatabaseFails
from dialometer.storage.submissions import SubmissionRefused
from dialometer.web.server.logs import log_failure
from dialometer.web.server.refused import refusals


class RequestError(DialometerError):
    """An error that the server foresees. ``page`` names the message page that raters get."""

    status: ClassVar[int] = 400
    page: str = "error"

    def headers(self) -> dict[str, str]:
        """Headers that belong to the error."""
        return {}

    def details(self) -> dict[str, object]:
        """What programs learn besides the message."""
        return {}


class TooLarge(RequestError):
    """A body beyond the limit."""

    status = 413
    page = "too_large"


# The first that fits counts; the word names the page.
_STATUSES: tuple[tuple[type[Exception], int, str], ...] = (
    (AnswersRejected, 422, "error"),
    (SubmissionRefused, 409, "elsewhere"),
    (FlowError, 409, "elsewhere"),
    (DatabaseFails, 503, "busy"),
    (StorageError, 503, "error"),
)
RETRY_AFTER_S = 5
"""When to try again after the database failed."""


def status_of(error: Exception) -> tuple[int, str]:
    """The status and the message page of an error; 500 for an unforeseen one."""
    if isinstance(error, RequestError):
        return error.status, error.page
    if isinstance(error, HTTPException):
        return error.status_code, "not_found" if error.status_code in (404, 405) else "error"
    return next(((status, page) for kind, status, page in _STATUSES if isinstance(error, kind)), (500, "error"))


def headers_of(error: Exception) -> dict[str, str]:
    """Headers that belong to an error."""
    if isinstance(error, RequestError):
        return error.headers()
    if isinstance(error, DatabaseFails):
        return {"retry-after": str(RETRY_AFTER_S)}
    return dict(error.headers or {}) if isinstance(error, HTTPException) else {}


def is_own_failure(error: Exception) -> bool:
    """Whether the server itself failed: such an error is logged, and the client gets only a reference."""
    return status_of(error)[0] >= 500 and not isinstance(error, RequestError)


def reference_of(error: Exception) -> str:
    """Logs a failure of the server and gives the reference to it. While the database fails, every request does, so these
    are counted and not logged one by one.
    """
    if isinstance(error, DatabaseFails):
        refusals.not_stored(error.reason)
        return error.reason
    return log_failure(error)


def as_json(error: Exception) -> JSONResponse:
    """An error for a program."""
    content: dict[str, object]
    if is_own_failure(error):
        content = {"error": f"The server could not do this (reference {reference_of(error)})."}
    elif isinstance(error, AnswersRejected):
        content = {"error": "some answers are not in order", "fields": error.fields}
    elif isinstance(error, HTTPException):
        content = {"error": str(error.detail)}
    else:
        content = {"error": str(error)}
    if isinstance(error, RequestError):
        content |= error.details()
    elif isinstance(error, FlowError) and not isinstance(error, AnswersRejected):
        content["may_retry"] = False
    return JSONResponse(content, status_of(error)[0], headers_of(error))


def as_invalid(error: RequestValidationError | ValidationError) -> JSONResponse:
    """A body or parameter that is not as the API describes it; what was sent is not repeated."""
    fields = {".".join(map(str, problem["loc"])): str(problem["msg"]) for problem in error.errors()}
    return JSONResponse({"error": "the request is not in order", "fields": fields}, 422)


def wants_json(request: Request) -> bool:
    """Whether a program or a script asked, not a browser for a page."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    is_script = "json" in request.headers.get("content-type", "") or "json" in request.headers.get("accept", "")
    return is_script or path.startswith(("/api/", "/wizard/", "/healthz", "/metrics"))
