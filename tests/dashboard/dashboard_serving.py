"""A whole server in a thread, for browsers. Shared with scripts/dashboard_screenshots.py."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from commands import program
from dialometer.web.dashboard.live_report import REPORT_FORMATS
from dialometer.web.dashboard.login import first_owner_token
from dialometer.web.dashboard.running_studies import StudyFolders
from dialometer.web.run import ServerApp, open_server
from dialometer.web.server.settings import Settings
from loopback import serving_app

API_KEY = "the-key-of-the-tests"


def report_command() -> tuple[str, ...]:
    """The command that computes the answer so far, with few resamples."""
    report = (program(), "report", "{folder}", "--out", "{out}")
    return (*report, *REPORT_FORMATS, "--resamples", "100")


@dataclass
class ServedSite:
    """A server with its address."""

    url: str
    app: ServerApp

    def owner_link(self) -> str:
        """The link that ``dialometer serve`` prints at the start."""
        return f"{self.url}/dashboard/join?token={first_owner_token(self.app.accounts)}"


@contextlib.contextmanager
def serving_site(parent: Path) -> Iterator[ServedSite]:
    """The server of a folder of studies, on a free port of this machine."""
    app = open_server(StudyFolders(parent=str(parent), report_command=report_command()), Settings(api_key=API_KEY))
    with serving_app(app) as port:
        yield ServedSite(f"http://127.0.0.1:{port}", app)
