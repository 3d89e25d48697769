"""The outermost layer of an application: paths, limits, security headers, counting and logging for every request."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dialometer.web.server.failures import TooLarge
from dialometer.web.server.logs import log_request
from dialometer.web.server.metrics import RequestCounter
from dialometer.web.server.security import safe_headers
from dialometer.web.server.settings import Settings

_NO_STORE = (b"cache-control", b"no-store")
_LABELS = {
    ("GET", "/"): "start",
    ("POST", "/start"): "start",
    ("GET", "/s"): "screen",
    ("POST", "/s"): "submit",
    ("POST", "/s/draft"): "draft",
    ("POST", "/s/chat"): "chat",
    ("POST", "/s/chat/retry"): "chat",
    ("POST", "/s/arena"): "chat",
    ("POST", "/s/arena/retry"): "chat",
    ("POST", "/api/v1/session/submissions"): "api_submit",
    ("GET", "/healthz"): "health",
    ("GET", "/metrics"): "health",
}
_PREFIXES = (
    ("/resume", "start"),
    ("/api/", "api"),
    ("/static/", "static"),
    ("/media/", "static"),
    ("/wizard", "wizard"),
    ("/dashboard", "dashboard"),
)
_UNLOGGED = ("static", "health")
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")

Refuse = Callable[[Request, Exception], Awaitable[Response]]


def label_of(method: str, path: str) -> str:
    """The name under which a request is counted; never its address, which may contain a rater's identifier."""
    known = _LABELS.get((method, path))
    return known or next((label for prefix, label in _PREFIXES if path.startswith(prefix)), "other")


def moved(path: str, scope: Scope) -> Response:
    """To the same page at its right path."""
    query = scope["query_string"].decode("latin-1")
    return RedirectResponse(f"{quote(path)}?{query}" if query else quote(path), 308)


class Guard:
    """Wraps an application. ``refuse`` makes the response to an error that the application did not handle."""

    def __init__(self, app: ASGIApp, settings: Settings, counter: RequestCounter, refuse: Refuse) -> None:
        self.app = app
        self.settings = settings
        self.counter = counter
        self._refuse = refuse
        self._headers = safe_headers(settings.frame_ancestors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        self._place(scope)
        status = 0
        is_complete = False

        async def send_safely(message: Message) -> None:
            nonlocal status, is_complete
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message.setdefault("headers", [])
                own = {name for name, _ in headers}
                if b"cache-control" not in own:
                    headers.append(_NO_STORE)
                headers.extend(header for header in self._headers if header[0] not in own)
            is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            try:
                await self.app(scope, self._limited(scope, receive), send_safely)
            except ClientDisconnect:  # a half-sent request is not stored
                return
            except Exception as error:
                if status and not is_complete:  # the response has begun: only the connection can be ended
                    raise
                if not status:
                    response = await self._refuse(Request(scope), error)
                    await response(scope, receive, send_safely)
        finally:
            self._count(scope, status, time.perf_counter() - began)

    def _place(self, scope: Scope) -> None:
        """Puts the root before the path, whether a proxy has removed it or not."""
        root = self.settings.root_path
        path = scope["path"]
        if root and path != root and not path.startswith(f"{root}/"):
            scope["path"] = root + path
        scope["root_path"] = root
        scope["app"] = self  # inside an application, a router raises 404 instead of answering it

    def max_body_bytes(self, scope: Scope) -> int:
        """The largest body of a request; subclasses may allow more."""
        return self.settings.max_body_bytes

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        limit = self.max_body_bytes(scope)
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and (len(value) > 15 or int(value) > limit):
                raise TooLarge("the body is too large", remedy=f"send at most {limit} bytes")
        n_bytes = 0

        async def receive_within_limit() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > limit:
                raise TooLarge("the body is too large", remedy=f"send at most {limit} bytes")
            return message

        return receive_within_limit

    def _count(self, scope: Scope, status: int, duration_s: float) -> None:
        path = scope["path"].removeprefix(self.settings.root_path) or "/"
        label = label_of(scope["method"], path)
        self.counter.count(label, status, duration_s)
        if label not in _UNLOGGED:
            method = scope["method"]
            log_request(method if method in _METHODS else "other", label, status, duration_s)
