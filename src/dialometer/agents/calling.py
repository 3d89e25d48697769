"""Calling a system over HTTP: one limit for the whole reply, a few more tries where they can help, errors in words."""

from __future__ import annotations

import atexit
import json
import os
import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import httpx
from pydantic import Field, field_validator

from dialometer.agents.interface import Agent, Reply
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn

MAX_ANSWER_BYTES = 1_000_000
MAX_REPLY_LENGTH = 20_000
WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})
FIRST_PAUSE_S = 0.5
EMPTY = "the agent's reply is empty"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Caller(Agent):
    """An agent behind an address. Secrets stand in the environment: ``${NAME}`` in a header is replaced by its value."""

    headers: dict[str, str] = Field(
        default_factory=dict, description="Sent along; ${NAME} is taken from the environment."
    )
    timeout_s: float = Field(default=30.0, gt=0, le=600, description="Seconds for a reply, further tries included.")
    n_retries: int = Field(default=2, ge=0, le=10, description="Further tries after failures that may pass.")

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or "\n" in value or "\r" in value:
                raise ValueError(f"'{name}' is no header")
        return headers

    def secret_headers(self) -> dict[str, str]:
        """Headers that an agent adds by itself."""
        return {}

    def ask(self, url: str, body: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The JSON that the system answers with, and how long it took; raises :class:`AgentError`."""
        began = time.monotonic()
        headers = {**self.secret_headers(), **{name: fill_in(value) for name, value in self.headers.items()}}
        failure = ""
        for attempt in range(self.n_retries + 1):
            left_s = self.timeout_s - (time.monotonic() - began)
            if left_s <= 0:
                break
            try:
                status, content, pause_s = self._try(url, body, headers, left_s)
            except httpx.TimeoutException:
                break
            except (httpx.TransportError, httpx.InvalidURL) as error:
                failure, pause_s = f"cannot be reached ({type(error).__name__})", None
            else:
                if status == 200:
                    details = {"latency_s": round(time.monotonic() - began, 3), "n_tries": attempt + 1}
                    return _parse(content), details
                failure = f"answered with status {status}"
                if status not in WORTH_ANOTHER_TRY:
                    break
            if attempt < self.n_retries:
                pause_s = FIRST_PAUSE_S * 2**attempt if pause_s is None else pause_s
                if time.monotonic() - began + pause_s >= self.timeout_s:
                    break
                time.sleep(pause_s)
        message = failure or f"did not answer within {self.timeout_s:g} s"
        raise AgentError(f"the agent {message}", where=_shown(url), remedy="see whether it runs and is reachable")

    def _try(
        self, url: str, body: Mapping[str, Any], headers: Mapping[str, str], left_s: float
    ) -> tuple[int, bytes, float | None]:
        """One try: the status, what came, and how long the system asks to wait; never longer or larger than allowed."""
        until = time.monotonic() + left_s
        content = b""
        with connections().stream("POST", url, json=body, headers=dict(headers), timeout=left_s) as response:
            for part in response.iter_bytes():
                content += part
                if len(content) > MAX_ANSWER_BYTES:
                    raise AgentError("the agent's answer is too large", where=_shown(url), remedy="fix the agent")
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("too slow")
            after = response.headers.get("retry-after", "")
            return response.status_code, content, float(after) if after.isdigit() else None


@cache
def connections() -> httpx.Client:
    """The connections of all agents of this process, kept open from one message to the next."""
    client = httpx.Client(follow_redirects=False, limits=httpx.Limits(max_connections=100, keepalive_expiry=30))
    atexit.register(client.close)
    return client


def fill_in(value: str) -> str:
    """A text with ``${NAME}`` replaced from the environment; a name that is not there is an error."""

    def look_up(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise AgentError(f"the environment has no {match[1]}", remedy=f"set {match[1]} before serving")
        return os.environ[match[1]]

    return _VARIABLE.sub(look_up, value)


def pick(content: Any, path: str) -> Any:
    """What stands at a dotted path, such as ``choices.0.message.content``; None where there is nothing."""
    for part in path.split("."):
        if isinstance(content, Mapping):
            content = content.get(part)
        elif isinstance(content, Sequence) and not isinstance(content, str) and part.isdigit():
            content = content[int(part)] if int(part) < len(content) else None
        else:
            return None
    return content


def as_reply(text: object, details: Mapping[str, Any]) -> Reply:
    """A reply that can be shown: some text, not endless, without control characters (which are taken out and counted)."""
    if not isinstance(text, str):
        raise AgentError("the agent's answer holds no text", remedy="check where in its answer the reply stands")
    kept = "".join(c for c in text if c in "\n\t\r" or unicodedata.category(c) not in ("Cc", "Cs")).strip()
    if not kept:
        raise AgentError(EMPTY, remedy="fix the agent")
    if len(kept) > MAX_REPLY_LENGTH:
        raise AgentError(f"the agent's reply is longer than {MAX_REPLY_LENGTH} characters", remedy="fix the agent")
    n_removed = sum(unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t\r" for c in text)
    return Reply(kept, {**details, "n_characters_removed": n_removed} if n_removed else details)


def last_message(history: Sequence[Turn]) -> str:
    """What the rater said last."""
    return next((turn.text for turn in reversed(history) if turn.role == "user"), "")


def is_address(url: str) -> str:
    """The address, if it is one of the web."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"'{url}' is no address: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"'{url}' is no address that begins with http:// or https://")
    return url


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise AgentError("the agent's answer is not JSON", remedy="fix the agent") from error


def _shown(url: str) -> str:
    """The address without what may be secret in it."""
    parsed = httpx.URL(url)
    return str(parsed.copy_with(username=None, password=None, query=None, fragment=None))
