"""Strangers and slow clients: what connections may take, seen from the other end of the socket."""

import logging
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from dialometer.web.run import GracefulServer, Listening
from dialometer.web.server import connections
from dialometer.web.server.connections import ConnectionLimits, OpenConnections, TrustedProxies, counted_address
from dialometer.web.server.refused import Refusals

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def echo(scope, receive, send):
    """Answers with the length of the body; ``/wait`` keeps its request until it is told to answer."""
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
    n_bytes = 0
    while scope["path"] != "/unread":
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        n_bytes += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    size = int(scope["query_string"] or 0)
    text = b"%d" % n_bytes + b"." * size
    headers = [(b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@contextmanager
def guarded(monkeypatch, trusted="", **limits):
    """A server with these limits, whose sweeps come often."""
    monkeypatch.setattr(connections, "SWEEP_S", 0.02)
    counted = Refusals()
    listening = Listening(limits=ConnectionLimits(**limits), trusted_proxies=trusted)
    server = GracefulServer(echo, listening)
    server.open_connections.refused = counted
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    until = time.monotonic() + 120
    while not server.started:
        assert time.monotonic() < until
        time.sleep(0.005)

    def connect(source="127.0.0.1", sends=b""):
        client = socket.create_connection(sock.getsockname(), timeout=60, source_address=(source, 0))
        if sends:
            client.sendall(sends)
        opened.append(client)
        return client

    opened = []
    sock_name = sock.getsockname()
    connect.address = sock_name
    try:
        yield connect, server.open_connections
    finally:
        for client in opened:
            client.close()
        server.should_exit = True
        thread.join(20)


def told(client):
    """Everything the server says until it closes the connection; nothing where it was cut."""
    received = b""
    try:
        while data := client.recv(65536):
            received += data
    except ConnectionError:
        pass
    return received


def answer(client, sends=HEAD + b"\r\n"):
    client.sendall(sends)
    return client.recv(65536)


def refused(opened):
    text = opened.refused.metrics.render({})
    found = (line.split('reason="')[1].split('"} ') for line in text.splitlines() if line.startswith("dialometer_"))
    return {reason: int(number) for reason, number in found if number != "0"}


def test_a_header_without_an_end_is_refused_at_its_limit(monkeypatch):
    with guarded(monkeypatch, header_bytes=4096) as (connect, opened):
        endless = connect(sends=HEAD + b"X: ")
        n_sent = 0
        try:
            while n_sent < 50_000_000:
                n_sent += endless.send(b"a" * 65536)
                time.sleep(0.001)
        except ConnectionError:
            pass
        assert n_sent < 20_000_000  # what the buffers of both ends take
        whole = connect(sends=HEAD + b"X: " + b"a" * 5000 + b"\r\n\r\n")
        assert told(whole).startswith(b"HTTP/1.1 431")
        many = connect(sends=HEAD + b"".join(b"a%d: 1\r\n" % n for n in range(250)) + b"\r\n")
        assert told(many).startswith(b"HTTP/1.1 431")
        assert answer(connect()).startswith(b"HTTP/1.1 200")
        assert refused(opened) == {"header_size": 3}


def test_trailers_and_empty_lines_are_limited_too(monkeypatch):
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with guarded(monkeypatch, header_bytes=4096) as (connect, opened):
        trailer = connect(sends=head + b"1\r\na\r\n0\r\nX: ")
        time.sleep(0.05)
        trailer.sendall(b"a" * 9000)
        assert told(trailer).startswith(b"HTTP/1.1 431")
        lines = connect(sends=b"\r\n" * 5000)
        assert told(lines).startswith(b"HTTP/1.1 431")
        small = connect(sends=head + b"1\r\na\r\n" * 2000 + b"0\r\nX: y\r\n\r\n")  # tiny chunks are no attack
        assert small.recv(65536).endswith(b"2000")
        assert refused(opened) == {"header_size": 2}


def test_slow_headers_and_bodies_are_given_up_and_slow_servers_are_not(monkeypatch):
    with guarded(monkeypatch, header_s=0.7, body_s=0.7) as (connect, opened):
        body = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"
        began = time.monotonic()
        slow = [connect(), connect(sends=HEAD), connect(sends=body)]
        assert [told(client)[:12] for client in slow] == [b"HTTP/1.1 408"] * 3
        assert time.monotonic() - began < 30
        kept = connect()
        assert answer(kept).startswith(b"HTTP/1.1 200")
        time.sleep(1)  # a connection between two requests has more time
        assert answer(kept).startswith(b"HTTP/1.1 200")
        kept.sendall(b"\r\n")  # but not one that says nothing of use
        assert told(kept).startswith(b"HTTP/1.1 408")
        assert refused(opened) == {"header_time": 3, "body_time": 1}


def test_a_body_that_nobody_wants_does_not_keep_its_connection(monkeypatch):
    monkeypatch.setattr(connections, "LINGER_S", 0.1)
    with guarded(monkeypatch) as (connect, opened):
        client = connect(sends=b"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
        assert told(client).startswith(b"HTTP/1.1 200")
        assert refused(opened) == {}


def test_a_client_that_does_not_read_is_given_up(monkeypatch):
    monkeypatch.setattr(connections, "WRITE_S", 0.2)
    with guarded(monkeypatch) as (connect, opened):
        connect(sends=b"GET /?20000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        until = time.monotonic() + 60
        while not refused(opened):
            assert time.monotonic() < until
            time.sleep(0.02)
        assert refused(opened) == {"slow_reader": 1}


def test_one_address_cannot_take_all_connections(monkeypatch):
    with guarded(monkeypatch, per_address=5, connections=1000) as (connect, opened):
        held = [connect("127.0.0.2", HEAD) for _ in range(20)]
        assert answer(connect("127.0.0.3")).startswith(b"HTTP/1.1 200")
        assert answer(connect("127.0.0.2")).startswith(b"HTTP/1.1 200")  # who sends at once is served there too
        assert refused(opened) == {"address_limit": 16}
        until = time.monotonic() + 60
        while sum(told_nothing(client) for client in held) < 16:
            assert time.monotonic() < until
        assert sum(told_nothing(client) for client in held) == 16
        assert len(opened.of_address["127.0.0.2"]) == 5


def told_nothing(client):
    """Whether a connection was closed by the server."""
    client.settimeout(0.05)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_when_all_connections_are_taken_the_oldest_that_waits_makes_room(monkeypatch):
    with guarded(monkeypatch, connections=10) as (connect, opened):
        first = connect()
        assert answer(first).startswith(b"HTTP/1.1 200")
        for n in range(30):
            connect(f"127.0.1.{n + 1}", HEAD)
        for _ in range(5):
            assert answer(connect()).startswith(b"HTTP/1.1 200")
        assert told(first) == b""
        assert refused(opened) == {"connection_limit": 26}
        assert len(opened.open) == 10


def test_where_every_connection_is_busy_the_next_is_told_to_come_again(monkeypatch):
    with guarded(monkeypatch, connections=3) as (connect, opened):
        body = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"
        busy = [connect(sends=body) for _ in range(3)]
        late = told(connect())
        assert late.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 5" in late
        busy[0].sendall(b"defghij")
        assert busy[0].recv(999).endswith(b"10")
        assert answer(connect()).startswith(b"HTTP/1.1 200")
        assert refused(opened) == {"connection_limit": 2}


def test_clients_behind_a_trusted_proxy_are_counted_one_by_one(monkeypatch):
    def request(client):
        return b"POST / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: %s\r\nContent-Length: 4\r\n\r\nab" % client

    with guarded(monkeypatch, trusted="127.0.0.1", per_address=3) as (connect, opened):
        greedy = [connect(sends=request(b"10.0.0.9, 203.0.113.1")) for _ in range(3)]
        until = time.monotonic() + 60
        while opened.requests_of.get("203.0.113.1") != 3:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert told(connect(sends=request(b"203.0.113.1"))).startswith(b"HTTP/1.1 503")
        other = connect(sends=request(b"203.0.113.2"))
        other.sendall(b"cd")
        assert other.recv(999).startswith(b"HTTP/1.1 200")
        for client in greedy[:2]:
            client.sendall(b"cd")
            assert client.recv(999).startswith(b"HTTP/1.1 200")
        greedy[2].close()
        while opened.requests_of:
            assert time.monotonic() < until
            time.sleep(0.01)
        # From an address that is no proxy the header counts for nothing.
        for _ in range(3):
            connect("127.0.0.2", request(b"203.0.113.7"))
        assert answer(connect("127.0.0.3")).startswith(b"HTTP/1.1 200")
        assert "203.0.113.7" not in opened.requests_of


def test_what_is_no_http_is_refused_without_a_line_for_each(monkeypatch, caplog):
    with guarded(monkeypatch) as (connect, opened), caplog.at_level(logging.INFO):
        for _ in range(20):
            assert told(connect(sends=b"\x16\x03\x01\x02\x00 no http\r\n\r\n")).startswith(b"HTTP/1.1 400")
        assert refused(opened) == {"malformed": 20}
        lines = [record for record in caplog.records if record.getMessage() == "refused"]
        assert len(lines) == 1
        assert len(caplog.records) < 10


def test_refusals_are_logged_once_a_minute(caplog):
    now = [100.0]
    refusals = Refusals(clock=lambda: now[0])
    with caplog.at_level(logging.WARNING, "dialometer"):
        for _ in range(500):
            refusals.connection("header_time")
        refusals.not_stored("locked")
        assert [record.fields for record in caplog.records] == [{"header_time": 1}]
        now[0] += 61
        refusals.log_if_due()
        assert caplog.records[1].fields == {"header_time": 499, "locked": 1}
        now[0] += 61
        refusals.log_if_due()
        assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("listed", "address", "forwarded", "client"),
    [
        ("127.0.0.1", "127.0.0.1", "9.9.9.9, 198.51.100.4", "198.51.100.4"),
        ("10.0.0.0/8, 127.0.0.1", "10.1.2.3", "198.51.100.4, 10.9.9.9", "198.51.100.4"),
        ("*", "192.0.2.1", "198.51.100.4, 10.9.9.9", "198.51.100.4"),
        ("127.0.0.1", "127.0.0.1", "", ""),
    ],
)
def test_trusted_proxies(listed, address, forwarded, client):
    proxies = TrustedProxies(listed)
    assert address in proxies
    assert proxies.client_of(forwarded) == client
    assert ("192.0.2.77" in proxies) == (listed == "*")


def test_an_ipv6_client_is_its_network():
    assert counted_address("2001:db8:1:2:3::4") == counted_address("2001:db8:1:2:ffff::1") == "2001:db8:1:2::/64"
    assert counted_address("::ffff:203.0.113.9") == "203.0.113.9"
    assert (counted_address("::1"), counted_address("203.0.113.9"), counted_address("")) == ("::1", "203.0.113.9", "")


def test_connections_stay_below_what_the_system_lets_it_open(monkeypatch):
    monkeypatch.setattr(connections, "allow_open_files", lambda: 17)
    assert OpenConnections(ConnectionLimits(), TrustedProxies("")).max_connections == 17
    assert connections.RESERVED_FILES < 1024


def test_a_process_that_is_replaced_answers_what_is_on_its_way(monkeypatch):
    with guarded(monkeypatch) as (connect, opened):
        kept, new = connect(), connect()
        assert answer(kept).startswith(b"HTTP/1.1 200")
        server = next(iter(opened.open)).config
        assert isinstance(server, uvicorn.Config)
        opened.drain_s = 30.0
        are_told = threading.Event()
        for connection in list(opened.open):
            connection.loop.call_soon_threadsafe(connection.shutdown)
            connection.loop.call_soon_threadsafe(are_told.set)
        assert are_told.wait(60)
        for client in (kept, new):
            client.sendall(HEAD + b"\r\n")
            last = told(client)
            assert last.startswith(b"HTTP/1.1 200")
            assert b"connection: close" in last
