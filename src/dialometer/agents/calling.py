"""Calling a system over HTTP: one limit for the whole reply, a few more tries where they can help, errors in words.

An answer comes as a whole (:meth:`Caller.ask`) or piece by piece (:meth:`Caller.lines`).
"""

from __future__ import annotations

import atexit
import itertools
import json
import re
import time
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import Any, Self

import httpx
from pydantic import Field, PrivateAttr, field_validator

from dialometer.agents.access import AgentAccess, address_remedy, refusal, variable_remedy
from dialometer.agents.interface import Agent, Reply
from dialometer.agents.limits import PACKED, Until, limited, parts_of
from dialometer.agents.tries import Tries
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn

MAX_ANSWER_BYTES = 1_000_000
MAX_STREAM_BYTES = 20_000_000
"""A stream wraps every word in some hundred bytes."""
MAX_REPLY_LENGTH = 20_000
FEW_STREAMS, READ_PAUSE_S, MAX_READ_PAUSE_S = 10, 0.0015, 0.25
"""Beyond a few streams at once, each is read after a pause that grows with their number."""
MAX_KEYS, MAX_KEY_DEPTH = 20, 4
MAX_PORT = 65_535
JSON_TYPES = {bool: "true or false", int: "a number", float: "a number", dict: "an object", list: "a list"}
EMPTY = "the agent's response is empty"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")
_PLACE = re.compile(r"[0-9]{1,9}")
_ACCEPTED = {"Accept-Encoding": PACKED}
_OF_THE_REQUEST = ("content-length", "transfer-encoding")


class WrongOption(AgentError):
    """An answer shows that an option of the agent does not fit the system behind it."""

    def __init__(self, option: str, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.option = option


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
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"'{name}' is not a header")
            if name.lower() in _OF_THE_REQUEST:
                raise ValueError(f"'{name}' follows from what is sent; leave it out")
        return headers

    _access: AgentAccess = PrivateAttr(default_factory=AgentAccess)
    _conversation_id: str = PrivateAttr(default="")
    _on_answer: Callable[[Any], None] | None = PrivateAttr(default=None)

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

    def in_conversation(self, conversation_id: str) -> Self:
        """The same agent, with an id that its requests carry, for systems that remember what was said."""
        copy = self.model_copy()
        copy._conversation_id = conversation_id
        return copy

    def watched(self, on_answer: Callable[[Any], None]) -> Self:
        """The same agent, which hands over every whole answer of the system as it came."""
        watched = self.model_copy()
        watched._on_answer = on_answer
        return watched

    def ask(self, url: str, body: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The JSON that the system answers with, and how long it took; raises :class:`AgentError`."""
        tries = Tries(self.timeout_s, self.n_retries)
        headers, secrets = self._headers(url)
        while tries.next():
            try:
                with self._sent(url, json=body, headers=headers, timeout=Until(tries.left_s)) as response:
                    if response.status_code != 200:
                        tries.refused(response, secrets)
                        continue
                    content = b"".join(_within(response, tries, MAX_ANSWER_BYTES, url))
            except httpx.TimeoutException:
                tries.timed_out()
            except (httpx.RequestError, httpx.InvalidURL) as error:
                tries.unreachable(error)
            else:
                answer = parse_json(content)
                if self._on_answer is not None:
                    self._on_answer(answer)
                return answer, self._times(tries, tries.spent_s)
        raise tries.error(shown_address(url))

    def lines(self, url: str, body: Mapping[str, Any], times: dict[str, Any]) -> Iterator[str]:
        """The lines of an answer as they come; ``times`` is kept up to date with them.

        A failure before the first line is tried again. Later ones are not, since what came is shown by then.
        """
        tries = Tries(self.timeout_s, self.n_retries)
        headers, secrets = self._headers(url)
        while tries.next():
            n_lines = 0
            try:
                with self._sent(url, json=body, headers=headers, timeout=Until(tries.left_s)) as response:
                    if response.status_code != 200:
                        tries.refused(response, secrets)
                        continue
                    times.update(self._times(tries, tries.spent_s))
                    parts = _together(_within(response, tries, MAX_STREAM_BYTES, url))
                    for line in split_lines(parts):
                        n_lines += 1
                        times["latency_s"] = tries.spent_s
                        yield line
            except httpx.TimeoutException:
                if n_lines:
                    message = f"the agent's response was not complete within {self.timeout_s:g} s"
                    remedy = "raise timeout_s, or let it say less"
                    raise AgentError(message, where=shown_address(url), remedy=remedy) from None
                tries.timed_out()
            except (httpx.RequestError, httpx.InvalidURL) as error:
                if n_lines:
                    raise broken_off(type(error).__name__, url) from error
                tries.unreachable(error)
            else:
                return
        raise tries.error(shown_address(url))

    def _headers(self, url: str) -> tuple[dict[str, str], list[str]]:
        """The headers of a request, and what of them must not be repeated in messages."""
        host = httpx.URL(url).host
        own = {name: fill_in(value, self._access, host) for name, value in self.headers.items()}
        wrong = next((name for name, value in own.items() if not _HEADER_VALUE.fullmatch(value)), None)
        if wrong is not None:
            raise AgentError(f"no header can hold what '{wrong}' becomes", remedy="check the variable in it")
        headers = {**self.secret_headers(host), **own}
        return headers, [part for value in headers.values() for part in (value, value.rpartition(" ")[2])]

    def _times(self, tries: Tries, latency_s: float) -> dict[str, Any]:
        details: dict[str, Any] = {"latency_s": latency_s, "n_tries": tries.n}
        return details | ({"conversation_id": self._conversation_id} if self._conversation_id else {})

    def _sent(self, url: str, *, headers: dict[str, str], **options: Any) -> AbstractContextManager[httpx.Response]:
        """The request; where addresses are restricted, to the very IP address that was checked."""
        ip = self._access.ip_for(url)
        if not ip:
            return connections().stream("POST", url, headers=headers, **options)
        target = httpx.URL(url)
        headers = {"Host": target.netloc.decode("ascii"), **{k: v for k, v in headers.items() if k.lower() != "host"}}
        extensions = {"sni_hostname": target.host}  # the certificate is that of the name
        return direct_connections(target.host).stream(
            "POST", target.copy_with(host=ip), headers=headers, extensions=extensions, **options
        )


@lru_cache(maxsize=64)
def direct_connections(host: str) -> httpx.Client:  # noqa: ARG001 - one client a host: TLS is checked by name
    """Connections to one host without proxies and passwords that the environment names (``HTTPS_PROXY``, ``~/.netrc``)."""
    limits = httpx.Limits(keepalive_expiry=30)
    client = limited(httpx.Client(follow_redirects=False, trust_env=False, limits=limits, headers=_ACCEPTED))
    atexit.register(client.close)
    return client


@cache
def connections() -> httpx.Client:
    """The connections of all agents of this process, kept open from one message to the next."""
    limits = httpx.Limits(max_connections=512, keepalive_expiry=30)
    client = limited(httpx.Client(follow_redirects=False, limits=limits, headers=_ACCEPTED))
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
        elif isinstance(content, Sequence) and not isinstance(content, str) and _PLACE.fullmatch(part):
            content = content[int(part)] if int(part) < len(content) else None
        else:
            return None
    return content


def keys_of(content: Any) -> list[str]:
    """What an answer holds, as paths that :func:`pick` takes; the first twenty. What is no text has its type behind it."""
    return list(itertools.islice(_paths(content, ""), MAX_KEYS))


def _paths(content: Any, path: str) -> Iterator[str]:
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(content, dict):
        inner = content.items()
    elif isinstance(content, list):
        inner = enumerate(content[:3])
    for name, value in inner:
        place = f"{path}.{name}" if path else str(name)
        if isinstance(value, dict | list) and value and place.count(".") < MAX_KEY_DEPTH:
            yield from _paths(value, place)
        else:
            yield place if isinstance(value, str) else f"{place} ({JSON_TYPES.get(type(value), 'null')})"


def as_reply(text: object, details: Mapping[str, Any]) -> Reply:
    """A reply that can be shown: some text, not endless, without control characters (which are taken out and counted)."""
    if not isinstance(text, str):
        raise AgentError(
            "the agent's answer holds no text", remedy="check reply_field: where in its answer the response is"
        )
    kept = printable(text)
    n_removed = len(text) - len(kept)
    kept = kept.strip()
    if not kept:
        raise AgentError(EMPTY, remedy="fix the agent")
    check_length(kept)
    return Reply(kept, {**details, "n_characters_removed": n_removed} if n_removed else details)


def printable(text: str) -> str:
    """A text without characters that cannot be shown."""
    if text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\t\r" or unicodedata.category(c) not in ("Cc", "Cs"))


def check_length(text: str) -> None:
    """Refuses a response that does not end."""
    if len(text) > MAX_REPLY_LENGTH:
        raise AgentError(
            f"the agent's response is longer than {MAX_REPLY_LENGTH:,} characters",
            remedy="limit it, for example with max_tokens",
        )


def broken_off(why: str, url: str) -> AgentError:
    """The error for a stream that ended in the middle."""
    return AgentError(
        f"the agent's response broke off ({why})", where=shown_address(url), remedy="check that it runs, and ask again"
    )


def split_lines(parts: Iterable[bytes]) -> Iterator[str]:
    """Lines of text from bytes that come in any pieces."""
    rest = bytearray()
    for part in parts:
        begun = len(rest)
        rest += part
        if b"\n" in part:
            *whole, rest = rest.split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace").rstrip("\r")
        elif begun > MAX_ANSWER_BYTES:
            raise AgentError("the agent's answer has a line without an end", remedy="fix the agent")
    if rest:
        yield rest.decode("utf-8", "replace").rstrip("\r")


_streams = itertools.count()
_open_streams: set[int] = set()


def _together(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Parts of a stream, read less often the more streams are open: words that came meanwhile are one part then.

    With few streams every word is passed on at once. With two hundred, each is looked at four times a second, which keeps
    the cost of a word far below that of a request.
    """
    number = next(_streams)
    _open_streams.add(number)
    try:
        for part in parts:
            yield part
            pause_s = min(MAX_READ_PAUSE_S, READ_PAUSE_S * (len(_open_streams) - FEW_STREAMS))
            if pause_s > 0:
                time.sleep(pause_s)
    finally:
        _open_streams.discard(number)


def _within(response: httpx.Response, tries: Tries, max_bytes: int, url: str) -> Iterator[bytes]:
    """What comes, never longer or larger than allowed."""
    n_bytes = 0
    for part in parts_of(response):
        n_bytes += len(part)
        if n_bytes > max_bytes:
            raise AgentError("the agent's answer is too large", where=shown_address(url), remedy="fix the agent")
        if tries.left_s < 0:
            raise httpx.ReadTimeout("too slow")
        yield part


def last_message(history: Sequence[Turn]) -> str:
    """What the rater said last."""
    return next((turn.text for turn in reversed(history) if turn.role == "user"), "")


def is_address(url: str) -> str:
    """The address, if it is one of the web."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"'{url}' is not an address: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"'{url}' is not an address that begins with http:// or https://")
    if (parsed.port or 0) > MAX_PORT:
        raise ValueError(f"'{url}' is not an address: there is no port {parsed.port}")
    return url


def parse_json(content: bytes | str) -> Any:
    """What a system answered, as JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise AgentError("the agent's answer is not JSON", remedy="fix the agent") from error


def shown_address(url: str) -> str:
    """The address without what may be secret in it."""
    parsed = httpx.URL(url)
    return str(parsed.copy_with(username=None, password=None, query=None, fragment=None))
