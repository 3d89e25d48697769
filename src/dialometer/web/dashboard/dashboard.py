"""What all pages of the desk share."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import math
import pkgutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, cast
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import QueryParams, UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dialometer.errors import DialometerError
from dialometer.storage.accounts import Account, Role
from dialometer.storage.store import Store
from dialometer.web.dashboard.live_report import Results
from dialometer.web.dashboard.login import Entry
from dialometer.web.dashboard.running_studies import Held, Running
from dialometer.web.rater.pages import static_version
from dialometer.web.server.security import csrf_for

# Numbers that are shown again and again, computed seldom: watching a study must not slow its raters down.


T = TypeVar("T")
FRESH_S = 2.0
MAX_SHARE = 0.05
"""Of the time at most so much goes into one number, however many watch."""
N_KEPT = 400


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    until: float = 0.0


class Cache:
    """Values by key. Several who ask at once wait for one computation; slow ones are kept the longer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: OrderedDict[object, _Entry] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: object, make: Callable[[], T]) -> T:
        """The value, made anew when it is too old."""
        with self._guard:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if len(self._entries) > N_KEPT:
                self._entries.popitem(last=False)
        with entry.lock:
            began = self._clock()
            if began >= entry.until:
                entry.value = make()
                ended = self._clock()
                entry.until = ended + max(FRESH_S, (ended - began) / MAX_SHARE)
            return cast(T, entry.value)

    def clear(self) -> None:
        """Forgets everything, for those who have just changed something and want to see it."""
        with self._guard:
            self._entries.clear()


# One request of somebody who is signed in: what a page of the desk works with.


RANKS: Mapping[Role, int] = {"viewer": 0, "editor": 1, "owner": 2}


def is_allowed(role: Role, needed: Role) -> bool:
    """Whether a role may do what another is needed for."""
    return RANKS[role] >= RANKS[needed]


@dataclass(frozen=True)
class Visit:
    """Who asks for what. ``fields`` are what a form sent, each with all its values; empty for pages only looked at."""

    account: Account
    secret: str
    root: str
    path: str
    query: QueryParams
    params: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, list[str]] = field(default_factory=dict)
    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)
    at_ms: int = 0
    running: Running | None = None
    is_script: bool = False
    """Whether a script of a page asks, and not the browser for a page."""

    @property
    def csrf(self) -> str:
        """The mark for forms on the page."""
        return csrf_for(self.secret)

    @property
    def form(self) -> dict[str, str]:
        """The last value of each field."""
        return {name: values[-1] for name, values in self.fields.items()}

    @property
    def study(self) -> str:
        """The name of the study that the address names."""
        return self.params.get("study", "")

    def mark_of(self, text: str) -> str:
        """A mark that only this sign-in can put under a text."""
        return hmac.new(self.secret.encode(), text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:16]

    @property
    def told(self) -> str:
        """What the page before wanted to say."""
        text = self.query.get("told", "")
        mark = self.query.get("mark", "").encode("utf-8", "replace")
        return text if text and hmac.compare_digest(self.mark_of(text).encode(), mark) else ""

    def may(self, needed: Role) -> bool:
        """Whether this account may do what ``needed`` is needed for."""
        return is_allowed(self.account.role, needed)

    def number(self, name: str) -> int | None:
        """A whole number from 0 on in the form; None where the field is empty or something else."""
        text = self.form.get(name, "").strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


async def read_upload(upload: UploadFile) -> tuple[str, bytes]:
    """The name and content of a file that was sent."""
    return upload.filename or "", await upload.read()


# How pages of the desk are drawn: templates, and numbers and times in a form that people read.


class Views:
    """The templates of the desk."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._env = Environment(
            loader=PackageLoader("dialometer.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._env.filters.update(
            moment=moment, duration=duration, milliseconds=lambda ms: duration(ms / 1000), count=count, percent=percent
        )
        self._env.globals.update(
            root=root, desk=f"{root}/desk", asset=lambda name: f"{root}/desk/static/{name}?v={static_version()}"
        )

    def render(self, template: str, visit: Visit | None, **content: object) -> str:
        """One page; without a visit it is for somebody who is not signed in."""
        content.setdefault("told", visit.told if visit else "")
        content.setdefault("csrf", visit.csrf if visit else "")
        return self._env.get_template(f"desk/{template}").render(
            visit=visit, running=content.pop("running", None), **content
        )


def moment(at_ms: int | None) -> Markup:
    """A time that the page turns into the reader's own zone."""
    if not at_ms:
        return Markup("–")
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.strftime("%Y-%m-%dT%H:%M:%SZ"), at.strftime("%d %b %H:%M UTC")
    )


def duration(seconds: float | None) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds is None or math.isnan(seconds):
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def count(number: float | None) -> str:
    """A whole number with its thousands apart."""
    return "–" if number is None else f"{number:,.0f}"


def percent(share: float | None) -> str:
    """A share in hundredths."""
    return "–" if share is None or math.isnan(share) else f"{share:.0%}"


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


# What a page of the desk is: an address, who may open it, and what it does. Files of ``pages`` register theirs here.


Work = Callable[["Desk", "Visit"], Response]
Method = Literal["GET", "POST"]


@dataclass(frozen=True)
class Page:
    """One address under ``/desk``. ``is_of_running`` pages need a study that collects data."""

    path: str
    method: Method
    role: Role
    work: Work
    is_of_running: bool = False


_pages: list[Page] = []


def page(path: str, *, role: Role, method: Method = "GET", of_running: bool = False) -> Callable[[Work], Work]:
    """Registers a page; a page without a role cannot be written."""

    def add(work: Work) -> Work:
        _pages.append(Page(path, method, role, work, of_running))
        return work

    return add


def all_pages() -> list[Page]:
    """Every page of the folder."""
    folder = importlib.import_module("dialometer.web.dashboard.pages")
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
    return list(_pages)
