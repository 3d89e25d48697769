"""The JSON API: programs take the same way through a study as raters on the pages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dialometer._version import __version__
from dialometer.errors import DialometerError
from dialometer.flow.screen_json import screen_json
from dialometer.model.session import Session
from dialometer.web.api import models
from dialometer.web.rater.arena import ArenaRoom, whole
from dialometer.web.rater.arrival import ArrivingRater
from dialometer.web.rater.chat import ChatRoom
from dialometer.web.rater.service import Service
from dialometer.web.server.failures import RequestError, as_invalid, as_json
from dialometer.web.server.logs import log
from dialometer.web.server.requests import Unreadable
from dialometer.web.server.security import is_same_secret

PATH = "/api/v1"
SUBMISSIONS = "/session/submissions"
_ABOUT = """The same way through a study as human raters take it, for programs: simulated raters, a model as judge.

Open a session with the server's key, then show its token with every request. Ask for the screen, send its answers,
and so on until the screen's kind is `done`."""


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    words = {
        400: "Unreadable body",
        401: "No session, or no key",
        403: "No free slot in the study",
        409: "The session is elsewhere",
        413: "Too large",
        422: "Not in order",
        429: "Too often",
        503: "Try again later",
    }
    return {status: {"description": words[status], "model": models.Problem} for status in statuses}


_SHARED = (401, 413, 422, 429, 503)
_CHAT: dict[int | str, dict[str, Any]] = {
    202: {"description": "A person is still writing: ask again with retry", "model": models.ChatProblem},
    502: {"description": "The agent failed: ask again with retry", "model": models.ChatProblem},
}
_SUBMIT: dict[int | str, dict[str, Any]] = {
    409: {"description": "Outdated, or the session is over", "model": models.SubmissionReceipt | models.Problem}
}
_TOKEN = HTTPBearer(scheme_name="SessionToken", description="The token of a session.", auto_error=False)
_KEY = HTTPBearer(scheme_name="ApiKey", description="The key of the server.", auto_error=False)
Credentials = HTTPAuthorizationCredentials | None


class NoKey(RequestError):
    """A program without the key that opens sessions."""

    status = 401
    page = "blocked"

    def headers(self) -> dict[str, str]:
        return {"www-authenticate": "Bearer"}


def build_api(service: Service, room: ChatRoom, arena: ArenaRoom) -> FastAPI:
    """The API without its busiest route, which is :mod:`dialometer.web.api.fast_lane`."""
    api = FastAPI(title="dialometer", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None)
    for kind in (DialometerError, HTTPException, Exception):
        api.add_exception_handler(kind, _answer_error)
    api.add_exception_handler(RequestValidationError, _answer_invalid)

    async def find(credentials: Annotated[Credentials, Depends(_TOKEN)]) -> Session:
        return await service.find(credentials.credentials if credentials else "")

    async def check_key(credentials: Annotated[Credentials, Depends(_KEY)]) -> None:
        if not is_same_secret(credentials.credentials if credentials else "", service.settings.api_key):
            raise NoKey("this needs the server's key", remedy="send Authorization: Bearer <key>")

    current = Depends(find)

    @api.post(
        "/sessions",
        status_code=201,
        response_model=models.SessionOpened,
        responses=_problems(403, *_SHARED),
        dependencies=[Depends(check_key)],
        tags=["sessions"],
    )
    async def open_session(request: Request, given: models.SessionRequest) -> Response:
        """Open a session for a rater."""
        language = _known_language(service, given.language)
        arriving = ArrivingRater(given.platform, given.external_id, given.params, is_proven=True)
        at_ms = given.at_ms if given.source == "simulated" else None
        arrival = await service.arrive(request.scope, arriving, source=given.source, at_ms=at_ms, language=language)
        session = arrival.session
        log("arrival", rater=session.ordinal, is_new=arrival.is_new, cell=session.draw.cell, source=given.source)
        content = {"session_id": session.id, "session_token": arrival.token, "is_new": arrival.is_new}
        return JSONResponse({**content, "state": session.state, "step": session.step}, 201)

    @api.get("/session", response_model=models.SessionStatus, responses=_problems(*_SHARED), tags=["sessions"])
    async def status(session: Session = current) -> Response:
        """How far the session has come."""
        return JSONResponse(await service.in_thread(lambda: _status(service, session)))

    @api.get("/session/screen", response_model=models.ScreenShown, responses=_problems(409, *_SHARED), tags=["screens"])
    async def screen(
        session: Session = current,
        step: Annotated[int | None, Query(ge=0, le=100_000, description="An earlier step.")] = None,
    ) -> Response:
        """The screen where the session stands, or an earlier one where the study allows going back."""
        return JSONResponse(await service.in_thread(lambda: _screen(service, session, step)))

    @api.post(
        "/session/chat",
        response_model=models.ChatReply | models.ArenaReply,
        responses={**_problems(409, *_SHARED), **_CHAT},
        tags=["chat"],
    )
    async def say(given: models.ChatRequest, session: Session = current) -> Response:
        """Say something in the conversation where the session stands."""
        if service.study.spec.items.kind == "arena":
            said = await arena.say(session, given.text, place=given.place, n_said=given.n_said, at_ms=given.at_ms)
            return _both(await whole(said))
        outcome = await room.say(session, given.text, n_said=given.n_said, at_ms=given.at_ms)
        return JSONResponse(outcome.as_json(), outcome.status)

    @api.post(
        "/session/chat/retry",
        response_model=models.ChatReply | models.ArenaReply,
        responses={**_problems(409, *_SHARED), **_CHAT},
        tags=["chat"],
    )
    async def retry(session: Session = current) -> Response:
        """Ask again for a reply that failed or has not come yet."""
        if service.study.spec.items.kind == "arena":
            return _both(await whole(await arena.retry(session)))
        outcome = await room.retry(session)
        return JSONResponse(outcome.as_json(), outcome.status)

    _describe(api)
    return api


def _known_language(service: Service, wanted: str) -> str:
    known = service.study.spec.all_languages
    if wanted and wanted not in known:
        raise Unreadable(f"the study has no language '{wanted}'", remedy=f"choose one of {', '.join(known)}")
    return wanted


def _both(replies: dict[str, Any]) -> Response:
    """The replies of both systems; a gateway's error where none of them came."""
    came = [side["reply"] is not None for side in replies["replies"]]
    return JSONResponse(replies, 200 if any(came) or not came else 502)


def _status(service: Service, session: Session) -> dict[str, object]:
    n_steps = len(service.flow.path(session).steps)
    is_active = session.state == "active"
    return {
        "session_id": session.id,
        "state": session.state,
        "source": session.source,
        "language": service.flow.shown_study(session).spec.language,
        "step": session.step,
        "n_steps": n_steps,
        "progress": min(1.0, session.step / n_steps),
        "remaining_s": service.flow.remaining_s(session) if is_active else None,
    }


def _screen(service: Service, session: Session, step: int | None) -> dict[str, Any]:
    screen = service.flow.screen(session, step)
    chat = None
    if screen.item is not None and screen.item.kind == "chat":
        chat = service.chats.history(session, screen.item.id)
    return screen_json(service.flow, session, service.arenas.shown(session, screen), chat)


async def _answer_error(_request: Request, error: Exception) -> Response:
    return as_json(error)


async def _answer_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return as_invalid(error)


def _describe(api: FastAPI) -> None:
    """Adds the busiest route to the API's description."""

    def submit(given: models.SubmissionRequest) -> models.SubmissionReceipt:  # noqa: ARG001 - only described
        """Send the answers of a screen. When this answers 200, they are on disk."""
        raise AssertionError("the plain route beside the API answers this")

    route = APIRoute(
        SUBMISSIONS,
        submit,
        methods=["POST"],
        response_model=models.SubmissionReceipt,
        responses={**_problems(*_SHARED), **_SUBMIT},
        dependencies=[Depends(_TOKEN)],
        tags=["screens"],
    )

    def describe() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = get_openapi(
                title=api.title,
                version=api.version,
                description=api.description,
                routes=[*api.routes, route],
                servers=[{"url": PATH}],
            )
        return api.openapi_schema

    api.openapi = describe  # type: ignore[method-assign]
