"""Cookies, CSRF tokens, security headers and rate limits."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from dialometer.storage.access.limits import SharedLimits
from dialometer.web.server.failures import RequestError

SESSION_COOKIE = "dialometer_session"
START_COOKIE = "dialometer_start"
LANGUAGE_COOKIE = "dialometer_language"
WIZARD_COOKIE = "dialometer_wizard"
NOT_KEPT_COOKIE = "dialometer_not_kept"
KEPT_S = 30 * 24 * 3600
"""A rater may come back for a month."""
MAX_TOKEN_LENGTH = 128


class Forged(RequestError):
    """A form that does not come from a page of this session."""

    status = 403
    page = "expired"


def csrf_for(secret: str) -> str:
    """The CSRF token of a session's forms, derived from the cookie, which other sites can send but not read."""
    return hmac.new(secret.encode("utf-8", "surrogateescape"), b"dialometer csrf", hashlib.sha256).hexdigest()


def check_csrf(request: Request, secret: str, given: str) -> None:
    """Refuses requests that another site made a browser send."""
    is_foreign = request.headers.get("sec-fetch-site") == "cross-site"
    is_right = hmac.compare_digest(csrf_for(secret).encode(), given.encode("utf-8", "replace"))
    if is_foreign or not secret or not is_right:
        raise Forged("this form does not belong to your session", remedy="reload the page")


def is_same_secret(given: str, expected: str) -> bool:
    """Compares in constant time; an empty secret opens nothing."""
    return bool(expected) and hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def cookie(request: Request, name: str) -> str:
    """The cookie's value, or nothing where it cannot be one of ours."""
    value = request.cookies.get(name, "")
    return value if len(value) <= MAX_TOKEN_LENGTH and value.isascii() and value.isprintable() else ""


def set_cookie(
    request: Request,
    response: Response,
    name: str,
    value: str,
    *,
    path: str,
    is_embedded: bool,
    max_age_s: int = KEPT_S,
) -> None:
    """A cookie that scripts cannot read and other sites cannot use.

    Inside another site's page a browser sends only cookies that allow it, and those must be secure.
    """
    is_https = request.scope["scheme"] == "https"
    response.set_cookie(
        name,
        value,
        max_age=max_age_s,
        path=path or "/",
        secure=is_https,
        httponly=True,
        samesite="none" if is_embedded and is_https else "lax",
    )


def bearer(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The token of an ``Authorization: Bearer`` header, or nothing."""
    for name, value in headers:
        if name == b"authorization":
            kind, _, token = value.partition(b" ")
            if kind.lower() == b"bearer" and len(token) <= MAX_TOKEN_LENGTH:
                return token.strip().decode("latin-1")
    return ""


def safe_headers(frame_ancestors: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Headers for every response: scripts, styles, images and recordings only from here, no framing unless a platform may."""
    framing = " ".join(frame_ancestors) or "'none'"
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; media-src 'self'; "
        f"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {framing}"
    )
    headers: Mapping[str, str] = {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        **({} if frame_ancestors else {"x-frame-options": "DENY"}),
    }
    return [(name.encode(), value.encode("latin-1", "ignore")) for name, value in headers.items()]


def client_address(scope: Scope) -> str:
    """The client's address; used for rate limits, never stored or logged."""
    client = scope.get("client")
    return str(client[0]) if client else ""


N_KEPT = 50_000
"""Keys remembered; the one unused for longest is forgotten first."""


class TooOften(RequestError):
    """Too many requests; ``retry_after_s`` says when to try again."""

    status = 429
    page = "busy"

    def __init__(self, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__("too many requests", remedy=f"try again in {retry_after_s:.0f} s")

    def headers(self) -> dict[str, str]:
        return {"retry-after": str(max(1, math.ceil(self.retry_after_s)))}

    def details(self) -> dict[str, object]:
        return {"may_retry": False}


class RateLimits:
    """A limit per key: ``per_minute`` on average, and that many at once after a pause. 0 is no limit.

    Each process counts for itself. With ``shared``, which counts in the database, the limit holds for all processes and
    hosts together; that is for what is rare (arrivals, logins), not for every screen.
    """

    def __init__(
        self,
        per_minute: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        shared: Callable[[str, int], float] | None = None,
    ) -> None:
        self.per_s = per_minute / 60
        self.size = float(per_minute)
        self._shared = shared
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, key: str) -> float:
        """Takes one from the bucket and gives 0, or says how long to wait for one."""
        if not self.size:
            return 0.0
        now = self._clock()
        left, at = self._buckets.pop(key, (self.size, now))
        left = min(self.size, left + (now - at) * self.per_s)
        is_allowed = left >= 1
        self._buckets[key] = (left - 1 if is_allowed else left, now)
        if len(self._buckets) > N_KEPT:
            self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1 - left) / self.per_s

    def take(self, key: str) -> None:
        """Takes one from the bucket; raises :class:`TooOften` when it is empty."""
        wait = self.wait_s(key)
        if wait:
            raise TooOften(wait)

    async def take_everywhere(self, key: str) -> None:
        """As :meth:`take`, for all processes and hosts together."""
        self.take(key)
        if self._shared is not None and self.size:
            wait = await run_in_threadpool(self._shared, key, int(self.size))
            if wait:
                raise TooOften(wait)


def shared_limit(limits: SharedLimits, kind: str, *, has_others: bool) -> Callable[[str, int], float] | None:
    """Counting in the database, where other processes or hosts may serve the same study; else None."""
    if not has_others and limits.database.is_sqlite:
        return None
    return lambda key, per_minute: limits.take(kind, key, per_minute, time.time_ns() // 1_000_000)


def is_local(address: str) -> bool:
    """Whether a client is on this machine: a person at the keyboard, a test, or a proxy that hides its clients."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address in ("", "localhost", "testclient")
