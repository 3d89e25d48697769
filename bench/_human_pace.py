"""Raters at human pace, for ``bench.server --humans``: each sends a screen every two to five seconds and then loads the next.

They send what browsers send: a form, then the page that it leads to. One thread serves all connections, so that this program
takes little of the machine it shares with the server.
"""

from __future__ import annotations

import heapq
import random
import re
import select
import socket
import time
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from dialometer.flow.engine import Flow
from dialometer.web.server.security import SESSION_COOKIE, csrf_for

END = b"\r\n\r\n"
PACE_S = (2.0, 5.0)


@dataclass
class Waits:
    """What raters waited for, in seconds, by what they did."""

    of: dict[str, list[float]] = field(default_factory=lambda: {"submission": [], "page": []})
    n_failed: int = 0

    def ms(self, what: str, share: float) -> float:
        waits = sorted(self.of[what])
        return 1000 * waits[min(len(waits) - 1, int(share * len(waits)))] if waits else float("nan")

    @property
    def n_requests(self) -> int:
        return sum(map(len, self.of.values()))


@dataclass
class Rater:
    """One rater's browser."""

    socket: socket.socket
    posts: list[bytes]
    page: bytes
    doing: str = ""
    began: float = 0.0
    got: bytes = b""

    def send(self, doing: str, request: bytes) -> None:
        self.doing, self.began, self.got = doing, time.perf_counter(), b""
        self.socket.sendall(request)

    def answer(self) -> int | None:
        """The status of a whole answer, once it is there."""
        data = self.socket.recv(262_144)
        if not data:
            raise SystemExit("the server closed a connection")
        self.got += data
        head, found, body = self.got.partition(END)
        length = re.search(rb"content-length: (\d+)", head) if found else None
        return int(head[9:12]) if length and len(body) >= int(length[1]) else None


def page_requests(
    flow: Flow, url: str, sessions: list[tuple[str, str]], screens: list[list[tuple[str, dict[str, object]]]]
) -> list[tuple[list[bytes], bytes]]:
    """For every rater the forms of all screens, and the request for the page."""
    host = urlsplit(url).netloc
    made = []
    for (session_id, token), own in zip(sessions, screens, strict=True):
        cookie = f"Cookie: {SESSION_COOKIE}={token}\r\n"
        posts = []
        for key, answers in own:
            fields = {**answers, **({"consent": "agree"} if key == "consent" else {})}
            form = {"csrf": csrf_for(token), "screen": key, "token": f"{session_id[:20]}-{len(posts)}", **fields}
            body = urlencode({**form, "shown_at_ms": flow.clock()}, doseq=True).encode()
            head = f"POST /s HTTP/1.1\r\nHost: {host}\r\nOrigin: {url.rstrip('/')}\r\n{cookie}"
            kind = "Content-Type: application/x-www-form-urlencoded\r\n"
            posts.append(f"{head}{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        made.append((posts, f"GET /s HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n".encode()))
    return made


def send_at_pace(url: str, requests: list[tuple[list[bytes], bytes]], seconds: float, seed: int = 1) -> Waits:
    """Raters who each wait two to five seconds between screens, for so long."""
    parts = urlsplit(url)
    rng, waits, poll = random.Random(seed), Waits(), select.epoll()
    raters: dict[int, Rater] = {}
    due: list[tuple[float, int]] = []
    start = time.perf_counter()
    for posts, page in requests:
        connection = socket.create_connection((parts.hostname or "", parts.port or 80))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = connection.fileno()
        raters[number] = Rater(connection, posts[::-1], page)
        poll.register(number, select.EPOLLIN)
        due.append((start + rng.uniform(0, PACE_S[1]), number))
    heapq.heapify(due)
    n_under_way = 0
    while time.perf_counter() - start < seconds or n_under_way:
        now = time.perf_counter()
        while due and due[0][0] <= now and now - start < seconds:
            rater = raters[heapq.heappop(due)[1]]
            if rater.posts:
                rater.send("submission", rater.posts.pop())
                n_under_way += 1
        for number, _ in poll.poll(max(0.001, min(0.05, due[0][0] - now if due else 0.05))):
            rater = raters[number]
            status = rater.answer()
            if status is None:
                continue
            waits.of[rater.doing].append(time.perf_counter() - rater.began)
            waits.n_failed += status not in (200, 303)
            if rater.doing == "submission":
                rater.send("page", rater.page)
            else:
                n_under_way -= 1
                heapq.heappush(due, (time.perf_counter() + rng.uniform(*PACE_S), number))
    for rater in raters.values():
        rater.socket.close()
    return waits
