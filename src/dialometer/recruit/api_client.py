"""Calling a platform's API: tokens stay out of messages; failures are retried, except where something could be paid twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, Self

import httpx

from dialometer.recruit.platform import PlatformError, UnknownOutcome

N_TRIES = 6
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 120.0
"""A platform that asks for a longer pause is left alone; the message says how long it asked for."""
TIMEOUT_S = 60.0
NOT_DONE = frozenset({429, 503})
"""Statuses that say that nothing was done, so that any request may be sent again."""
MAY_PASS = frozenset({408, 425, 500, 502, 504})
"""Statuses after which nobody knows whether it was done; only what is harmless twice is sent again."""

Safety = Literal["repeatable", "once"]


class ApiClient:
    """One API with one token. ``sleep`` is there for tests."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        n_tries: int = N_TRIES,
        timeout_s: float = TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._client = httpx.Client(timeout=timeout_s, follow_redirects=False)
        self._headers = {"Authorization": f"Token {token}"}
        self._n_tries = n_tries
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def get(self, path: str, **params: str | int) -> Any:
        """The content of a path."""
        return self._call("GET", path, None, params, "repeatable")

    def post(self, path: str, body: Mapping[str, Any], *, safety: Safety = "once") -> Any:
        """Send a body. ``repeatable`` marks what does no harm when it arrives twice."""
        return self._call("POST", path, body, {}, safety)

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None, params: Mapping[str, Any], safety: Safety
    ) -> Any:
        url = f"{self.base_url}{path}"
        for attempt in range(1, self._n_tries + 1):
            pause_s = FIRST_PAUSE_S * 2 ** (attempt - 1)
            is_last = attempt == self._n_tries
            try:
                response = self._client.request(
                    method, url, json=body, params=dict(params) or None, headers=self._headers
                )
            except httpx.ConnectError as error:
                if is_last:
                    raise PlatformError(
                        "the platform cannot be reached", where=self.base_url, remedy="check the network"
                    ) from error
            except (httpx.TransportError, httpx.InvalidURL) as error:
                if safety == "once":
                    raise _unknown(method, path, type(error).__name__) from error
                if is_last:
                    raise PlatformError(
                        f"the platform does not answer ({type(error).__name__})", where=url, remedy="try again later"
                    ) from error
            else:
                if response.is_success:
                    return _content(response)
                if response.status_code in MAY_PASS and safety == "once":
                    raise _unknown(method, path, f"status {response.status_code}")
                if is_last or response.status_code not in NOT_DONE | MAY_PASS:
                    raise _refused(response, method, path)
                pause_s = max(pause_s, _asked_pause_s(response))
                if pause_s > LONGEST_PAUSE_S:
                    raise PlatformError(
                        f"the platform asks to wait {pause_s:.0f} seconds", where=url, remedy="try again after that"
                    )
            self._sleep(min(pause_s, LONGEST_PAUSE_S))
        raise AssertionError("the last try returns or raises")


def _asked_pause_s(response: httpx.Response) -> float:
    """What ``Retry-After`` asks for, as seconds or as a moment; 0 where it asks for nothing."""
    text = response.headers.get("retry-after", "").strip()
    if not text:
        return 0.0
    if text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _content(response: httpx.Response) -> Any:
    if not response.content:
        return {}
    try:
        return response.json()
    except ValueError:
        return {"text": response.text}


def _refused(response: httpx.Response, method: str, path: str) -> PlatformError:
    content = _content(response)
    reason = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(reason, dict):
        reason = reason.get("detail") or reason.get("title") or reason.get("message") or reason
    remedies = {
        401: "check the token in the environment",
        403: "the token's account may not do this",
        404: "check the id of the study",
        429: "wait a while; many requests were sent",
    }
    return PlatformError(
        f"the platform refused with status {response.status_code}: {_in_words(reason)}",
        where=f"{method} {path}",
        remedy=remedies.get(response.status_code, ""),
    )


def _in_words(reason: Any) -> str:
    if isinstance(reason, dict):
        return "; ".join(f"{key}: {_in_words(value)}" for key, value in reason.items())
    if isinstance(reason, list):
        return ", ".join(_in_words(part) for part in reason)
    return str(reason)


def _unknown(method: str, path: str, why: str) -> UnknownOutcome:
    return UnknownOutcome(
        f"nobody knows whether the platform did this ({why})",
        where=f"{method} {path}",
        remedy="look in the platform's own pages before you try again",
    )
