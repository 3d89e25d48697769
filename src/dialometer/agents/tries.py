"""Asking a system again where that can help: how often, how long after, and what to say when it did not."""

from __future__ import annotations

import email.utils
import json
import math
import time
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import httpx

from dialometer.agents.limits import parts_of
from dialometer.errors import AgentError

WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that pass by themselves; 529 is how some providers say that they are overloaded."""
FIRST_PAUSE_S = 0.5
_REMEDY = "check that it runs and is reachable"
_OPTIONS = "check its options (a field that it does not know can be taken out), and whether the conversation is too long for it"
_REMEDIES = {
    400: _OPTIONS,
    401: "check its key",
    402: "check its credit",
    403: "check its key and what the key may do",
    404: "check its address and the name of the model",
    422: _OPTIONS,
    429: "let fewer raters in at once, or raise n_retries and timeout_s",
}
MAX_REASON_LENGTH = 300
MAX_REFUSAL_BYTES = 20_000


class RequestRefused(AgentError):
    """The system answered with a status that says no; asking the same again does not help."""

    def __init__(self, message: str, *, status: int, where: str = "", remedy: str = "") -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.status = status


class Tries:
    """The tries of one request, within one limit of time for all of them together."""

    def __init__(self, timeout_s: float, n_retries: int) -> None:
        self.timeout_s = timeout_s
        self.n_retries = n_retries
        self.began = time.monotonic()
        self.n = 0
        self._failure = ""
        self._pause_s: float | None = None
        self._is_over = False
        self._status = 0

    @property
    def left_s(self) -> float:
        """Seconds until the limit."""
        return self.timeout_s - (time.monotonic() - self.began)

    @property
    def spent_s(self) -> float:
        """Seconds since the first try began."""
        return round(time.monotonic() - self.began, 3)

    def next(self) -> bool:
        """Whether to try (again), after a pause where one is due."""
        if self._is_over or self.n > self.n_retries or self.left_s <= 0:
            return False
        if self.n:
            pause_s = FIRST_PAUSE_S * 2 ** (self.n - 1) if self._pause_s is None else self._pause_s
            if pause_s >= self.left_s:
                if self._pause_s:
                    self._failure += f" and asks to wait {pause_s:g} s, which is more than timeout_s leaves"
                return False
            time.sleep(pause_s)
        self.n += 1
        self._pause_s = None
        return True

    def refused(self, response: httpx.Response, secrets: Collection[str] = ()) -> None:
        """The system answered, but with an error. Its own words are kept, without the secrets that were sent."""
        words = _reason(_start_of(response))
        for secret in secrets:
            words = words.replace(secret, "***") if len(secret) > 3 else words
        self._failure = f"answered with status {response.status_code}" + (f" ({words})" if words else "")
        self._status = response.status_code
        self._pause_s = retry_after_s(response.headers.get("retry-after", ""))
        self._is_over = response.status_code not in WORTH_ANOTHER_TRY

    def unreachable(self, error: Exception) -> None:
        """No connection, or one that ended too early."""
        self._status = 0
        self._failure, self._pause_s = f"cannot be reached ({type(error).__name__})", None

    def timed_out(self) -> None:
        """The limit is reached; what failed before it is the better reason."""
        self._is_over = True

    def error(self, where: str) -> AgentError:
        """Why there is no answer."""
        message = f"the agent {self._failure or f'did not answer within {self.timeout_s:g} s'}"
        remedy = _REMEDIES.get(self._status, _REMEDY)
        if self._status and self._status not in WORTH_ANOTHER_TRY:
            return RequestRefused(message, status=self._status, where=where, remedy=remedy)
        return AgentError(message, where=where, remedy=remedy)


def retry_after_s(text: str, now: datetime | None = None) -> float | None:
    """Seconds that ``Retry-After`` asks to wait: a number, whole or not, or a date; None where it says nothing."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            until = email.utils.parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        seconds = (until - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _start_of(response: httpx.Response) -> bytes:
    content = b""
    with suppress(httpx.RequestError):  # what came by then says enough
        for part in parts_of(response):
            content += part
            if max(len(content), response.num_bytes_downloaded) > MAX_REFUSAL_BYTES:
                break
    return content


def _reason(content: bytes) -> str:
    """What a provider says about its refusal, in one line: ``{"error": {"message": …}}`` and its relatives, or plain words.

    A list of complaints (FastAPI's ``detail``) is shown as it is; a page of HTML is not.
    """
    try:
        content_json: Any = json.loads(content)
    except (ValueError, RecursionError):
        content_json = content.decode("utf-8", "replace")
        content_json = "" if "<" in content_json[:200] else content_json
    for key in ("error", "message", "detail"):
        content_json = (content_json.get(key) or content_json) if isinstance(content_json, dict) else content_json
    words = (
        content_json
        if isinstance(content_json, str)
        else json.dumps(content_json, ensure_ascii=False)
        if content_json
        else ""
    )
    return " ".join(words.split())[:MAX_REASON_LENGTH]
