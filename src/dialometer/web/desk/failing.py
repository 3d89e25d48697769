"""What goes wrong at the desk, as a page that says what to do."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from dialometer.errors import DialometerError, LockError, Problem, ProblemsError, StorageError
from dialometer.web.desk.desk import Desk
from dialometer.web.desk.entry import DeadLink, NotAllowed, NotSignedIn
from dialometer.web.desk.shelf import IsDraft, NoStudy
from dialometer.web.failures import TooLarge, headers_of
from dialometer.web.limits import TooOften
from dialometer.web.logs import log_failure
from dialometer.web.security import Forged

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
