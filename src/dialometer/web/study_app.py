"""The application of one study: the raters' pages, the JSON API, health and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from dialometer.model.study import Study
from dialometer.storage.store import Store
from dialometer.web.api.fast_lane import FastLane
from dialometer.web.api.routes import PATH, SUBMISSIONS, build_api
from dialometer.web.rater.adjudicate import AdjudicationPages
from dialometer.web.rater.arena import ArenaPages, ArenaRoom
from dialometer.web.rater.chat import ChatPages, ChatRoom
from dialometer.web.rater.landing import LandingPages
from dialometer.web.rater.routes import RaterPages, WithdrawPages, error_page
from dialometer.web.rater.service import Service
from dialometer.web.rater.wizard import WizardPages, WizardQueue
from dialometer.web.server.failures import as_json, wants_json
from dialometer.web.server.guard import Guard
from dialometer.web.server.health import Unhealthy, as_unhealthy
from dialometer.web.server.last_known import LastKnown
from dialometer.web.server.media import study_media
from dialometer.web.server.metrics import METRICS_TYPE, RequestCounter
from dialometer.web.server.refused import refusals
from dialometer.web.server.settings import Settings
from dialometer.web.server.static_files import STATIC, Assets

Endpoint = Callable[[Request], Awaitable[Response]]


class StudyApp:
    """An ASGI application for one study. Call :meth:`close` at the end, so that waiting screens are stored."""

    def __init__(self, service: Service, guard: Guard, lane: FastLane) -> None:
        self.service = service
        self._guard = guard
        self._lane = lane
        self._fast = {f"{root}{PATH}{SUBMISSIONS}" for root in ("", service.settings.root_path)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in self._fast and scope["method"] == "POST":
            await self._lane(scope, receive, send)
        else:
            await self._guard(scope, receive, send)

    def close(self) -> None:
        """Stores screens that wait to be stored."""
        self.service.stop()


def create_app(study: Study, store: Store, *, settings: Settings | None = None) -> StudyApp:
    """The application for a study and its store."""
    settings = settings or Settings()
    service = Service(study, store, settings)
    queue = WizardQueue(service.chats)
    room = ChatRoom(service, queue)
    arena = ArenaRoom(service)

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.stop)

    async def refuse(request: Request, error: Exception) -> Response:
        if wants_json(request):
            return as_json(error)
        return await run_in_threadpool(error_page, service, request, error)

    pages = RaterPages(service, room).routes()
    routes = [
        Route(f"{PATH}{SUBMISSIONS}", _only_post, methods=["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]),
        *LandingPages(service).routes(),
        *AdjudicationPages(service).routes(),
        *pages,
        *ChatPages(service, room).routes(),
        *ArenaPages(service, arena).routes(),
        *WithdrawPages(service).routes(),
        Mount(PATH, build_api(service, room, arena)),
        Mount("/static", Assets(directory=STATIC)),
        study_media(study).route(),
        *WizardPages(service, queue).routes(),
        *_monitoring(service),
    ]
    # A plain router does not answer errors itself, so every error reaches the guard.
    app = BusiestFirst(
        Router(routes, lifespan=lifespan, redirect_slashes=False),
        {
            (method, f"{settings.root_path}{route.path}"): route.endpoint
            for route in pages
            for method in route.methods or ()
        },
    )
    counter = RequestCounter(service.metrics)
    return StudyApp(service, Guard(app, settings, counter, refuse), FastLane(service, counter))


class BusiestFirst:
    """A router, and before it the routes that nearly all requests go to, found without trying the others."""

    def __init__(self, router: Router, busiest: Mapping[tuple[str, str], Endpoint]) -> None:
        self.router = router
        self.busiest = busiest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self.busiest.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if endpoint is None:
            await self.router(scope, receive, send)
            return
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


async def _only_post(_request: Request) -> Response:
    """Other methods on the address of the fast lane."""
    raise HTTPException(405, headers={"Allow": "POST"})


def _monitoring(service: Service) -> Iterable[Route]:
    """Health and metrics."""
    count = LastKnown(service.store.counts.session_counts)

    async def health(_request: Request) -> Response:
        try:
            await service.check_health()
        except Unhealthy as failing:
            return as_unhealthy(failing)
        return JSONResponse({"status": "ok", "study": service.study.spec.name, "n_waiting": service.writer.n_waiting})

    async def metrics(_request: Request) -> Response:
        counts, age_s = await count()
        states: dict[str, int] = {}
        for (_cell, state), n in (counts or {}).items():
            states[state] = states.get(state, 0) + n
        sessions = [(f'{{state="{state}"}}', float(n)) for state, n in sorted(states.items())]
        waiting = [("", float(service.writer.n_waiting))]
        known = "How old the count of sessions is; it grows where the database does not answer."
        gauges = {
            "dialometer_sessions": ("Sessions by state.", sessions),
            "dialometer_sessions_age_seconds": (known, [("", age_s)] if counts is not None else []),
            "dialometer_waiting": ("Screens waiting to be stored, in this process.", waiting),
        }
        of_server = "" if service.settings.is_among_studies else refusals.metrics.render({})
        text = service.metrics.render(gauges) + of_server
        return PlainTextResponse(text, media_type=METRICS_TYPE)

    return [Route("/healthz", health), Route("/metrics", metrics)]
