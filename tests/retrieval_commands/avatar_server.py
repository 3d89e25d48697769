"""The real server for an avatar, on a free port of this machine. Shared with scripts/avatar_screenshots.py."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import uvicorn

from dialometer.retrieval.avatar import Avatar
from dialometer.web.rater.avatar import create_avatar_app
from dialometer.web.run import Listening, address_of, bind


@contextlib.contextmanager
def served(avatar: Avatar, title: str) -> Iterator[str]:
    """Its address, as long as the context lasts."""
    sock = bind(Listening(port=0))
    app = create_avatar_app(avatar, title=title)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 120
    while not server.started:
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    try:
        yield address_of(sock, "")
    finally:
        server.should_exit = True
        thread.join(20)
        sock.close()
