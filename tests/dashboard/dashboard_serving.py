"""A whole server in a thread, for browsers. Shared with scripts/dashboard_screenshots.py."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from dialometer.web.dashboard.login import first_owner_token
from dialometer.web.dashboard.running_studies import StudyFolders
from dialometer.web.run import ServerApp, open_server
from dialometer.web.server.settings import Settings

API_KEY = "the-key-of-the-tests"
REPORT = (sys.executable, "-m", "dialometer", "report", "{folder}", "--out", "{out}")
COMMAND = (*REPORT, "--format", "json", "--format", "html", "--resamples", "100")


@dataclass
class ServedSite:
    """A server with its address."""

    url: str
    app: ServerApp

    def owner_link(self) -> str:
        """The link that ``dialometer serve`` prints at the start."""
        return f"{self.url}/desk/join?token={first_owner_token(self.app.accounts)}"


@contextlib.contextmanager
def serving_site(parent: Path) -> Iterator[ServedSite]:
    """The server of a folder of studies, on a free port of this machine."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    app = open_server(StudyFolders(parent=str(parent), report_command=COMMAND), Settings(api_key=API_KEY))
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            assert time.monotonic() < deadline, "the server did not start in 20 s"
            time.sleep(0.01)
        yield ServedSite(f"http://127.0.0.1:{port}", app)
    finally:
        server.should_exit = True
        thread.join(20)
