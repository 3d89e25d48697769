"""What all pages of the desk share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, RedirectResponse, Response

from dialometer.errors import DialometerError
from dialometer.storage.store import Store
from dialometer.web.desk.cache import Cache
from dialometer.web.desk.entry import Entry
from dialometer.web.desk.held import Held, Running
from dialometer.web.desk.looking import Results
from dialometer.web.desk.views import Views
from dialometer.web.desk.visit import Visit

T = TypeVar("T")


class Desk:
    """The studies, the accounts, and how pages are drawn. Holds nothing that another process would need."""

    def __init__(self, held: Held, accounts: Store) -> None:
        self.held = held
        self.accounts = accounts
        self.root = held.settings.root_path
        self.entry = Entry(accounts)
        self.cache = Cache()
        self.views = Views(self.root)
        self.results = Results(held.shelf.report_command)

    def show(self, template: str, visit: Visit, **content: object) -> Response:
        """A page for somebody who is signed in."""
        return HTMLResponse(self.views.render(template, visit, **content))

    def show_study(self, template: str, visit: Visit, **content: object) -> Response:
        """A page about a running study, with its state in the frame."""
        running = self.of(visit)
        controls = self.cache.get((running.name, "controls"), running.store.controls)
        return self.show(template, visit, running=running, spec=running.study.spec, controls=controls, **content)

    def to(self, path: str, visit: Visit, told: str = "") -> Response:
        """On to another page, with a sentence about what was done; signed, so that no link can put words in our mouth."""
        said = f"?{urlencode({'told': told, 'mark': visit.mark_of(told)})}" if told else ""
        return RedirectResponse(f"{self.root}/desk{path}{said}", 303)

    def of(self, visit: Visit) -> Running:
        """The running study that a visit is about."""
        if visit.running is None:
            raise DialometerError("this page needs a study")
        return visit.running

    def kept(self, running: Running, what: object, make: Callable[[], T]) -> T:
        """Something about a study, computed seldom however many look."""
        return self.cache.get((running.name, what), make)

    def note(self, visit: Visit, what: str, detail: str) -> None:
        """Keeps in the log what an account did."""
        self.accounts.note_deed(visit.account.name, what, detail, visit.at_ms)
