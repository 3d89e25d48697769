"""Limits on connections, below the application: strangers and slow clients cannot use up what raters need.

A request is only seen by the application once its header is complete. Until then a client can send a header without an end,
or open connections and say nothing, so the limits are part of the protocol that reads the socket. Where there are too many
connections, the one that has waited longest without a request is closed to make room: raters, who send their request at once,
are served while an attack goes on.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dialometer.web.server.refused import Refusals, refusals

resource: Any
try:
    import resource
except ImportError:  # pragma: no cover - Windows has no such limit
    resource = None

MAX_HEADERS = 200
MIN_BODY_RATE = 2_000
"""Bytes a second that a body must bring after the first seconds; a phone with a bad connection is faster."""
WRITE_S = 60.0
"""How long a client may leave a response unread."""
LINGER_S = 5.0
"""How long what a client still sends is read after its request was answered or its connection closed."""
SWEEP_S = 1.0
RESERVED_FILES = 256
"""Files that the server needs for itself: databases, logs, studies."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one process takes. The number of connections is also limited by the files that the system lets it open."""

    connections: int = 4_000
    """Open connections of all clients."""
    per_address: int = 256
    """Open connections of one client; behind a trusted proxy, requests under way of one client."""
    header_bytes: int = 32 * 1024
    header_s: float = 15.0
    """For the whole header, from its first byte, or from the connection for the first one."""
    body_s: float = 30.0
    """For the body; one that is large gets more, as long as it comes at ``MIN_BODY_RATE``."""
    idle_s: int = 65
    """How long a connection without a request is kept; longer than the 60 s after which proxies give theirs up."""
    drain_s: float = 0.0
    """How long connections without a request are still served after this process was told to end, because another one
    takes its place: what a client has just sent on them is answered."""


class TrustedProxies:
    """Addresses whose ``X-Forwarded-For`` counts: single ones and networks, with commas between them; * for all."""

    def __init__(self, listed: str) -> None:
        names = [name.strip() for name in listed.split(",") if name.strip()]
        self._are_all = "*" in names
        self._names = frozenset(names)
        self._networks = [network for name in names if (network := _network(name)) is not None]

    def __contains__(self, address: str) -> bool:
        if self._are_all or address in self._names:
            return True
        if not self._networks:
            return False
        try:
            return any(ipaddress.ip_address(address) in network for network in self._networks)
        except ValueError:
            return False

    def client_of(self, forwarded: str) -> str:
        """The last address of the header that is no proxy: who stands before it could have been written by anybody."""
        hosts = [host.strip() for host in forwarded.split(",") if host.strip()]
        if self._are_all:
            return hosts[0] if hosts else ""
        return next((host for host in reversed(hosts) if host not in self), hosts[0] if hosts else "")


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(name)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def counted_address(address: str) -> str:
    """The address by which a client is counted. A client of IPv6 has a whole network of addresses, so the network counts."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return address if parsed.is_loopback else str(ipaddress.IPv6Network((parsed, 64), strict=False))


def allow_open_files() -> int:
    """Asks the system for as many open files as it allows; gives how many connections that leaves."""
    if resource is None:  # pragma: no cover
        return 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard > soft:
        wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
        if wanted > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return int(max(soft - RESERVED_FILES, soft // 2))


class OpenConnections:
    """All connections of one process: who may come in, who must go, and who has taken too long."""

    def __init__(self, limits: ConnectionLimits, trusted: TrustedProxies, refused: Refusals = refusals) -> None:
        self.limits = limits
        self.trusted = trusted
        self.refused = refused
        self.max_connections = min(limits.connections, allow_open_files())
        self.open: dict[LimitedProtocol, None] = {}
        self.of_address: dict[str, dict[LimitedProtocol, None]] = {}
        self.waiting: dict[LimitedProtocol, None] = {}
        """Connections without a request under way, the one that has waited longest first."""
        self.requests_of: dict[str, int] = {}
        """Requests under way of clients behind a trusted proxy."""
        self.drain_s = limits.drain_s
        self._sweeping: asyncio.TimerHandle | None = None

    def admit(self, connection: LimitedProtocol) -> bool:
        """Lets a connection in, if need be in the place of one that waits; says whether there was room."""
        address = connection.address
        own = self.of_address.setdefault(address, {})
        if not connection.is_of_proxy and len(own) >= self.limits.per_address:
            self.refused.connection("address_limit")
            if not self._make_room(own):
                return False
        elif len(self.open) >= self.max_connections:
            self.refused.connection("connection_limit")
            if not self._make_room(self.waiting):
                return False
        self.open[connection] = own[connection] = self.waiting[connection] = None
        if self._sweeping is None:
            self._sweeping = connection.loop.call_later(SWEEP_S, self._sweep, connection.loop)
        return True

    def _make_room(self, among: Iterable[LimitedProtocol]) -> bool:
        oldest = next((connection for connection in among if connection in self.waiting), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.transport.abort()
        return True

    def leave(self, connection: LimitedProtocol) -> None:
        """A connection is over."""
        self.open.pop(connection, None)
        self.waiting.pop(connection, None)
        own = self.of_address.get(connection.address)
        if own is not None:
            own.pop(connection, None)
            if not own:
                del self.of_address[connection.address]
        while connection.clients:
            self.request_done(connection)

    def request_begins(self, connection: LimitedProtocol, client: str) -> bool:
        """A request of a client behind a proxy; says whether that client may have one more."""
        n_under_way = self.requests_of.get(client, 0) if client else 0
        if client and n_under_way >= self.limits.per_address:
            self.refused.connection("address_limit")
            connection.clients.append("")
            return False
        connection.clients.append(client)
        if client:
            self.requests_of[client] = n_under_way + 1
        return True

    def request_done(self, connection: LimitedProtocol) -> None:
        """The oldest request of a connection was answered, or its client has gone."""
        client = connection.clients.popleft() if connection.clients else ""
        if client:
            left = self.requests_of[client] - 1
            if left:
                self.requests_of[client] = left
            else:
                del self.requests_of[client]

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Closes what has taken too long. One timer for all connections costs less than one for each request."""
        now = loop.time()
        for connection in list(self.open):
            connection.check(now)
        self.refused.log_if_due()
        is_needed = bool(self.open) or self.refused.is_unlogged
        self._sweeping = loop.call_later(SWEEP_S, self._sweep, loop) if is_needed else None


def _answer(status: str, text: str, *more: str) -> bytes:
    head = [f"HTTP/1.1 {status}", "content-type: text/plain; charset=utf-8", f"content-length: {len(text)}", *more]
    return ("\r\n".join([*head, "connection: close"]) + "\r\n\r\n" + text).encode()


_ANSWERS = {
    "header_size": _answer("431 Request Header Fields Too Large", "The header of this request is too large."),
    "header_time": _answer("408 Request Timeout", "This request took too long to arrive."),
    "body_time": _answer("408 Request Timeout", "This request took too long to arrive."),
    "malformed": _answer("400 Bad Request", "Invalid HTTP request received."),
    "too_many": _answer("503 Service Unavailable", "Too many connections; try again in a moment.", "retry-after: 5"),
}


def _refusing(status: int, text: bytes, *more: tuple[bytes, bytes]) -> Callable[..., Any]:
    """An application that refuses one request."""

    async def refuse(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text)), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})
        await send({"type": "http.response.body", "body": text})

    return refuse


_too_large = _refusing(431, b"The header of this request is too large.")
_too_many = _refusing(503, b"Too many requests at once; try again in a moment.", (b"retry-after", b"5"))


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol within the limits of a :class:`OpenConnections`. It only looks on; parsing and answering stay as they are."""

    def __init__(self, connections: OpenConnections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.open_connections = connections
        self.address = ""
        self.is_of_proxy = False
        self.clients: deque[str] = deque()
        self.deadline: float | None = None
        """When the part of the request that is being sent must be here; None while the server works or nothing is sent."""
        self._part = "header_time"
        self._is_in_head = True
        self._n_head = 0
        self._n_wire = 0
        self._n_body = 0
        self._unread_since: float | None = None
        self._closing_since: float | None = None
        self._is_draining = False

    # connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = counted_address(self.client[0] if self.client else "")
        self.is_of_proxy = self.client is not None and self.client[0] in self.open_connections.trusted
        if not self.open_connections.admit(self):
            transport.write(_ANSWERS["too_many"])
            transport.close()
            return
        self.deadline = self.loop.time() + self.open_connections.limits.header_s

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.open_connections.leave(self)

    def check(self, now: float) -> None:
        """Called once a second: is this connection too slow?"""
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            if now - self._closing_since > LINGER_S:
                self.transport.abort()
        elif self._unread_since is not None and now - self._unread_since > WRITE_S:
            self.open_connections.refused.connection("slow_reader")
            self.transport.abort()
        elif self.deadline is not None and now > self.deadline:
            if not self._is_in_head and self.cycle.response_complete:  # more of a request that was answered already
                self.transport.close()
            elif not self._is_in_head and self.flow.read_paused:  # the server reads slowly, not the client
                self.deadline = now + self.open_connections.limits.body_s
            else:
                self.refuse(self._part)

    def refuse(self, reason: str) -> None:
        """Closes the connection with a word about why, where no response has begun yet."""
        self.deadline = None
        self.open_connections.refused.connection(reason)
        is_before_answer = self.cycle is None or not self.cycle.response_started
        if is_before_answer or (self._is_in_head and self.cycle.response_complete):
            self.transport.write(_ANSWERS[reason])
        self.transport.close()

    # what comes in

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._n_wire += len(data)
        if self._is_in_head:
            self._n_head += len(data)
            if self.deadline is None:
                self._expect("header_time", self.open_connections.limits.header_s)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # answered as a plain request
        except httptools.HttpParserError:
            self.refuse("malformed")
            return
        # After the header, trailers and the frames of chunks are no body and have no end either.
        n_bytes = self._n_head if self._is_in_head else self._n_wire - 9 * self._n_body
        if n_bytes > self.open_connections.limits.header_bytes and not self.transport.is_closing():
            self.refuse("header_size")

    def _expect(self, part: str, within_s: float) -> None:
        self._part = part
        self.deadline = self.loop.time() + within_s

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.deadline is None:
            self._expect("header_time", self.open_connections.limits.header_s)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:  # what follows the body is of no use
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._n_wire = self._n_body = self._n_head = 0
        self.open_connections.waiting.pop(self, None)
        self._expect("body_time", self.open_connections.limits.body_s)
        app = self.app
        n_bytes = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if n_bytes > self.open_connections.limits.header_bytes or len(self.headers) > MAX_HEADERS:
            self.open_connections.refused.connection("header_size")
            self.clients.append("")
            self.app = _too_large
        elif not self.open_connections.request_begins(self, self._forwarded_client()):
            self.app = _too_many
        try:
            super().on_headers_complete()
        finally:
            self.app = app
        if self._is_draining:
            self.cycle.keep_alive = False

    def _forwarded_client(self) -> str:
        """Who is behind a trusted proxy; nobody where there is none, since then the connection itself was counted."""
        if not self.is_of_proxy:
            return ""
        values = [value for name, value in self.headers if name == b"x-forwarded-for"]
        if not values:
            return ""
        return counted_address(self.open_connections.trusted.client_of(b",".join(values).decode("latin-1")))

    def on_body(self, body: bytes) -> None:
        self._n_body += len(body)
        if self.deadline is not None and not self.cycle.response_complete:
            self.deadline += len(body) / MIN_BODY_RATE
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.deadline = None
        self._is_in_head = True
        self._n_wire = self._n_body = self._n_head = 0

    # what goes out

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.open_connections.request_done(self)
        if self.pipeline or self.transport.is_closing():
            return
        self.open_connections.waiting[self] = None
        if not self._is_in_head and self.deadline is not None:  # answered before the body was here
            self._unset_keepalive_if_required()
            self.deadline = min(self.deadline, self.loop.time() + LINGER_S)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_since = self.loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_since = None

    def shutdown(self) -> None:
        """The process ends. Where another one takes its place, what is on its way is still answered, with a last word."""
        if not self.open_connections.drain_s or (self.cycle is not None and not self.cycle.response_complete):
            super().shutdown()
            return
        self._is_draining = True
        self.loop.call_later(self.open_connections.drain_s, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()


def guarded(limits: ConnectionLimits, trusted: str = "") -> type[asyncio.Protocol]:
    """The protocol of a server with these limits, as uvicorn takes it."""
    return cast("type[asyncio.Protocol]", partial(LimitedProtocol, OpenConnections(limits, TrustedProxies(trusted))))
