"""Servers of one page for one person on their own machine: the avatar's and the labelling page."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp

from dialometer.web.server.failures import as_json, headers_of, status_of
from dialometer.web.server.guard import Guard
from dialometer.web.server.logs import log_failure, set_up
from dialometer.web.server.metrics import RequestCounter, declare_metrics
from dialometer.web.server.settings import Settings


def standalone_app(
    routes: Sequence[BaseRoute], refuse: Callable[[Request, Exception], Awaitable[Response]] | None = None
) -> ASGIApp:
    """These routes behind the same guard as every study."""
    app = Router(routes, redirect_slashes=False)
    settings = Settings(max_body_bytes=16 * 1024)
    return Guard(app, settings, RequestCounter(declare_metrics()), refuse or refuse_plainly)


def serve_standalone(app: ASGIApp, sock: socket.socket) -> None:
    """Serves until a signal ends it."""
    from uvicorn import Config, Server  # noqa: PLC0415 - the rest of the package works without it

    from dialometer.web.server.connections import ConnectionLimits, guarded  # noqa: PLC0415 - as above

    set_up("warning")
    http = guarded(ConnectionLimits(), trusted="127.0.0.1")
    config = Config(app, http=http, log_config=None, access_log=False, server_header=False, lifespan="off", ws="none")
    Server(config).run(sockets=[sock])


async def refuse_plainly(request: Request, error: Exception) -> Response:
    """What went wrong: as JSON for a script, as a line of text for a person."""
    if is_script(request):
        return as_json(error)
    status, _ = status_of(error)
    text = f"The server could not do this (reference {log_failure(error)})." if status >= 500 else str(error)
    return PlainTextResponse(text, status, headers_of(error))


def is_script(request: Request) -> bool:
    """Whether a page's script asks, not a plain form or link."""
    return "json" in request.headers.get("content-type", "") or "json" in request.headers.get("accept", "")
