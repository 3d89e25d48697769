"""Calling a system over HTTP: one limit for the whole reply, a few more tries where they can help, errors in words."""

from __future__ import annotations

import atexit
import json
import re
import time
import unicodedata
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import Any

import httpx
from pydantic import Field, PrivateAttr, field_validator

from dialometer.agents.access import AgentAccess, address_remedy, refusal, variable_remedy
from dialometer.agents.interface import Agent, Reply
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn

MAX_ANSWER_BYTES = 1_000_000
MAX_REPLY_LENGTH = 20_000
WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})
FIRST_PAUSE_S = 0.5
EMPTY = "the agent's response is empty"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Caller(Agent):
    """An agent behind an address. Secrets stand in the environment: ``${NAME}`` in a header is replaced by its value."""

    headers: dict[str, str] = Field(
        default_factory=dict, description="Sent along; ${NAME} is taken from the environment."
    )
    timeout_s: float = Field(default=30.0, gt=0, le=600, description="Seconds for a response, further tries included.")
    n_retries: int = Field(default=2, ge=0, le=10, description="Further tries after failures that may pass.")

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or "\n" in value or "\r" in value:
                raise ValueError(f"'{name}' is no header")
        return headers

    _access: AgentAccess = PrivateAttr(default_factory=AgentAccess)

    def restrict(self, access: AgentAccess) -> None:
        """Says what this agent may use. One that is not restricted belongs to whoever made it, and may use everything."""
        self._access = access

    @property
    @abstractmethod
    def address(self) -> tuple[str, str]:
        """The option that holds the address, and the address."""

    def refusals(self, access: AgentAccess) -> Iterator[tuple[str, str, str]]:
        """What the study may not use, as far as it is known before anybody talks: option, message and remedy."""
        option, url = self.address
        parsed = httpx.URL(url)
        if not access.may_reach_literally(url):
            port = parsed.port or (443 if parsed.scheme == "https" else 80)
            yield option, refusal(parsed.host), address_remedy(parsed.host, port)
        for name in dict.fromkeys(name for value in self.headers.values() for name in _VARIABLE.findall(value)):
            if not access.may_read(name, parsed.host):
                message = f"agents may not read the variable {name}"
                yield "headers", message, variable_remedy(name, parsed.host)

    def secret_headers(self, host: str) -> dict[str, str]:
        """Headers that an agent adds by itself, for this host."""
        return {}

    def ask(self, url: str, body: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The JSON that the system answers with, and how long it took; raises :class:`AgentError`."""
        began = time.monotonic()
        host = httpx.URL(url).host
        own = {name: fill_in(value, self._access, host) for name, value in self.headers.items()}
        headers = {**self.secret_headers(host), **own}
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
        with self._sent(url, json=body, headers=dict(headers), timeout=left_s) as response:
            for part in response.iter_bytes():
                content += part
                if len(content) > MAX_ANSWER_BYTES:
                    raise AgentError("the agent's answer is too large", where=_shown(url), remedy="fix the agent")
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("too slow")
            after = response.headers.get("retry-after", "")
            return response.status_code, content, float(after) if after.isdigit() else None

    def _sent(self, url: str, *, headers: dict[str, str], **options: Any) -> AbstractContextManager[httpx.Response]:
        """The request; where addresses are restricted, to the very IP address that was checked."""
        ip = self._access.ip_for(url)
        if not ip:
            return connections().stream("POST", url, headers=headers, **options)
        named = httpx.URL(url)
        headers = {"Host": named.netloc.decode("ascii"), **{k: v for k, v in headers.items() if k.lower() != "host"}}
        extensions = {"sni_hostname": named.host}  # the certificate is that of the name
        return direct_connections(named.host).stream(
            "POST", named.copy_with(host=ip), headers=headers, extensions=extensions, **options
        )


@lru_cache(maxsize=64)
def direct_connections(host: str) -> httpx.Client:  # noqa: ARG001 - one client a host: TLS is checked by name
    """Connections to one host without proxies and passwords that the environment names (``HTTPS_PROXY``, ``~/.netrc``)."""
    client = httpx.Client(follow_redirects=False, trust_env=False, limits=httpx.Limits(keepalive_expiry=30))
    atexit.register(client.close)
    return client


@cache
def connections() -> httpx.Client:
    """The connections of all agents of this process, kept open from one message to the next."""
    client = httpx.Client(follow_redirects=False, limits=httpx.Limits(max_connections=100, keepalive_expiry=30))
    atexit.register(client.close)
    return client


def fill_in(value: str, access: AgentAccess, host: str) -> str:
    """A text with ``${NAME}`` replaced from the environment; a name that is not there, or not allowed, is an error."""
    return _VARIABLE.sub(lambda match: access.variable(match[1], host), value)


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
        raise AgentError(
            "the agent's answer holds no text", remedy="check reply_field: where in its answer the response is"
        )
    kept = "".join(c for c in text if c in "\n\t\r" or unicodedata.category(c) not in ("Cc", "Cs")).strip()
    if not kept:
        raise AgentError(EMPTY, remedy="fix the agent")
    if len(kept) > MAX_REPLY_LENGTH:
        raise AgentError(f"the agent's response is longer than {MAX_REPLY_LENGTH} characters", remedy="fix the agent")
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
