"""The dashboard: what its pages share (templates, cache, the request of somebody signed in) and how they register.

A page is a function in a module of ``pages``, registered with :func:`page` under an address and the role it needs.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import math
import pkgutil
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TypeVar, cast
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dialometer.errors import DialometerError, few_of_each_kind
from dialometer.report.numbers import write_percent
from dialometer.storage.access.accounts import Account, Accounts, Role
from dialometer.storage.access.audit_log import AuditLog
from dialometer.storage.access.comments import Comments
from dialometer.storage.access.shared_reports import SharedReports
from dialometer.storage.counting.counts import GROUPS, Group
from dialometer.web.dashboard.jobs import Jobs
from dialometer.web.dashboard.live_report import LiveReports
from dialometer.web.dashboard.login import Login
from dialometer.web.dashboard.numbers import chosen_group
from dialometer.web.dashboard.openid.provider import Provider
from dialometer.web.dashboard.running_studies import RunningStudies, RunningStudy
from dialometer.web.dashboard.table import Grid
from dialometer.web.dashboard.translating import (
    BoardLanguage,
    counted,
    current_language,
    dashboard_languages,
    explained,
    said,
    translated,
    translation_for,
)
from dialometer.web.rater.arrival import why_not_running
from dialometer.web.server.requests import small_number
from dialometer.web.server.security import csrf_for
from dialometer.web.server.static_files import static_version

T = TypeVar("T")
FRESH_S = 2.0
MAX_SHARE = 0.05
"""The largest share of the time that goes into computing one value, however many people watch."""
N_KEPT = 400


@dataclass
class _Cached:
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    until: float = 0.0


class Cache:
    """Values by key, computed seldom: watching a study must not slow its raters down.

    Requests for the same value wait for one computation; slow values are kept longer.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: OrderedDict[object, _Cached] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: object, make: Callable[[], T]) -> T:
        """The value, computed again when it is too old."""
        with self._guard:
            entry = self._entries.setdefault(key, _Cached())
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
        """Forgets everything, so that a change shows at once."""
        with self._guard:
            self._entries.clear()


RANKS: Mapping[Role, int] = {"guest": 0, "viewer": 1, "editor": 2, "owner": 3}


def is_allowed(role: Role, needed: Role) -> bool:
    """Whether a role includes the one that is needed."""
    return RANKS[role] >= RANKS[needed]


def signature_of(secret: str, text: str) -> str:
    """A signature that only the browser with this secret can have been given."""
    return hmac.new(secret.encode(), text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:16]


@dataclass(frozen=True)
class PageRequest:
    """A request of somebody who is signed in. ``fields`` holds every value of each field of a submitted form."""

    account: Account
    role: Role
    """What the account may do here: its own role, or a higher one that it has in the study of this address."""
    secret: str
    root: str
    path: str
    query: QueryParams
    params: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, list[str]] = field(default_factory=dict)
    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)
    at_ms: int = 0
    opened: RunningStudy | None = None
    is_script: bool = False
    """Whether a script of the page sent this, not the browser."""
    origin: str = ""
    """How the browser reaches this server, such as https://study.example.org."""
    group: str = ""
    """The group of raters that was chosen for the study, here or on another of its pages; empty where none was."""

    @property
    def running(self) -> RunningStudy:
        """The running study that this request is about."""
        if self.opened is None:
            raise DialometerError("this page needs a study")
        return self.opened

    @property
    def csrf(self) -> str:
        """The CSRF token for forms on the page."""
        return csrf_for(self.secret)

    @property
    def form(self) -> dict[str, str]:
        """The last value of each field."""
        return {name: values[-1] for name, values in self.fields.items()}

    @property
    def study(self) -> str:
        """The name of the study that the address names."""
        return self.params.get("study", "")

    def sign(self, text: str) -> str:
        """A signature that only this login can make."""
        return signature_of(self.secret, text)

    @property
    def message(self) -> str:
        """The sentence with which the page before redirected here."""
        text = self.query.get("message", "")
        signature = self.query.get("signature", "").encode("utf-8", "replace")
        return text if text and hmac.compare_digest(self.sign(text).encode(), signature) else ""

    def may(self, needed: Role) -> bool:
        """Whether the account has the needed role here."""
        return is_allowed(self.role, needed)

    def number(self, name: str) -> int | None:
        """A whole number of at least 0 from the form; None for anything else."""
        return small_number(self.form.get(name, "").strip())


GROUP_WORDS: Mapping[Group, str] = {"people": "human raters", "simulated": "simulated raters", "models": "models"}


class Templates:
    """The dashboard's templates, with filters for numbers and times."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._environments: dict[str, Environment] = {}

    def _environment(self, language: str) -> Environment:
        if language not in self._environments:
            self._environments[language] = self._made(language)
        return self._environments[language]

    def _made(self, language: str) -> Environment:
        root = self.root
        env = Environment(
            loader=PackageLoader("dialometer.web"),
            extensions=[translation_for(language)],
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        env.filters.update(
            moment=moment,
            day=day,
            duration=duration,
            milliseconds=lambda ms: duration(ms / 1000),
            count=count,
            grouped=lambda n: f"{n:,}",
            plural=partial(counted, language),
            said=partial(said, language),
            first_sentence=first_sentence,
            explained=partial(explained, language=language),
            few_of_each_kind=few_of_each_kind,
            percent=percent,
        )
        env.tests["in_part"] = lambda path, part: path.startswith(f"{part}.")
        env.globals.update(
            board=BoardLanguage(language),
            board_languages=[BoardLanguage(tag) for tag in dashboard_languages()],
            root=root,
            home=f"{root}/dashboard",
            asset=lambda name: f"{root}/dashboard/static/{name}?v={static_version()}",
        )
        return env

    def render(self, template: str, request: PageRequest | None, **content: object) -> str:
        """One page; without a request it is for somebody who is not signed in."""
        defaults = {
            "message": request.message if request else "",
            "csrf": request.csrf if request else "",
            "running": None,
        }
        env = self._environment(current_language())
        return env.get_template(f"dashboard/{template}").render(request=request, **(defaults | content))


def moment(at_ms: int | None) -> Markup:
    """A time with its zone; the page's script converts it to the reader's zone, in the same form."""
    if not at_ms:
        return Markup("–")
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.strftime("%Y-%m-%dT%H:%M:%SZ"), f"{at.day} {translated(f'{at:%b}')} {at:%Y, %H:%M} UTC"
    )


def day(at_ms: int) -> str:
    """The day alone, for what is kept no more exactly."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at.day} {translated(f'{at:%b}')} {at:%Y}"


def duration(seconds: float | None) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds is None or math.isnan(seconds):
        return "–"
    if seconds < 90:
        return translated("{1} s", f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}")
    if seconds < 5400:
        return translated("{1} min", f"{seconds / 60:.0f}")
    hours = f"{seconds / 3600:.1f}"
    return translated("{1} h", hours) if seconds < 48 * 3600 else translated("{1} days", f"{seconds / 86400:.1f}")


def count(number: float | None) -> str:
    """A whole number with a thousands separator."""
    return "–" if number is None else f"{number:,.0f}"


def plural(number: int, what: str) -> str:
    """A number with its noun: 1 rater, 2 raters."""
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


def first_sentence(text: str) -> str:
    """What a docstring says first, without the marks of code."""
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0].replace("``", "")


def percent(share: float | None) -> str:
    """A share in percent."""
    return "–" if share is None or math.isnan(share) else f"{write_percent(share)}"


class Dashboard:
    """The studies, the accounts, and how pages are drawn. Holds nothing that another process would need."""

    def __init__(self, studies: RunningStudies, accounts: Accounts) -> None:
        self.studies = studies
        self.accounts = accounts
        self.root = studies.settings.root_path
        self.login = Login(accounts)
        declared = studies.settings.provider
        self.provider = Provider(declared) if declared is not None else None
        self.audit = AuditLog(accounts.database)
        self.comments = Comments(accounts.database)
        self.shared = SharedReports(accounts.database)
        self.cache = Cache()
        self.templates = Templates(self.root)
        self.jobs = Jobs()
        self.reports = LiveReports(studies.folders.report_command)

    def role_in(self, account: Account, study: str) -> Role:
        """What an account is in a study: its own role, or the one it has there, whichever allows more."""
        here = self.accounts.studies_of(account.id).get(study, account.role) if study else account.role
        return max(here, account.role, key=RANKS.__getitem__)

    def visible(self, account: Account) -> list[str]:
        """The names of the studies that an account may see."""
        names = self.studies.folders.names()
        if is_allowed(account.role, "viewer"):
            return names
        own = self.accounts.studies_of(account.id)
        return [name for name in names if name in own]

    def show(self, template: str, request: PageRequest, **content: object) -> Response:
        """A page for somebody who is signed in."""
        return HTMLResponse(self.templates.render(template, request, **content))

    def show_study(self, template: str, request: PageRequest, **content: object) -> Response:
        """A page about a running study, with its state in the frame."""
        running = request.running
        controls = self.cached(running, "controls", running.store.control.current)
        groups = self.cached(running, "groups", running.store.counts.groups)
        chosen = {"groups": groups, "group": chosen_group(groups, request.group), "group_words": GROUP_WORDS}
        frame = {
            "running": running,
            "spec": running.study.spec,
            "controls": controls,
            "state": self.state_of(running),
            **chosen,
        }
        return self.show(template, request, **frame, **content)

    def state_of(self, running: RunningStudy) -> str:
        """Running, paused or closed; one that was frozen here has not started until somebody starts it."""
        return self.cached(running, "state", lambda: why_not_running(running.store) or "running")

    def report_options(self, running: RunningStudy, group: str) -> tuple[str, ...]:
        """The options of a report about a group of raters; none for the study's main group."""
        groups = self.cached(running, "groups", running.store.counts.groups)
        chosen = chosen_group(groups, group)
        if not groups or chosen == groups[0]:
            return ()
        return tuple(word for source in GROUPS[chosen] for word in ("--source", source))

    def show_table(self, template: str, request: PageRequest, table: Grid, **content: object) -> Response:
        """A page of a running study with a table, or the table alone as CSV where the address asks for that."""
        view = table.view(request.query)
        if request.query.get("format") == "csv":
            return view.csv()
        return self.show_study(template, request, grid=view, **content)

    def redirect(self, path: str, request: PageRequest, message: str = "") -> Response:
        """To another page, with a sentence about what was done; signed, so that no link can make the page say anything else."""
        query = f"?{urlencode({'message': message, 'signature': request.sign(message)})}" if message else ""
        return RedirectResponse(f"{self.root}/dashboard{path}{query}", 303)

    def cached(self, running: RunningStudy, what: object, make: Callable[[], T]) -> T:
        """Something about a study, computed seldom however many people look at it."""
        return self.cache.get((running.name, what), make)

    def note(self, request: PageRequest, what: str, detail: str = "", *, study: str = "") -> None:
        """Adds to the audit log what an account did, in the study of the address unless another is named."""
        self.audit.add(request.account.name, what, detail, request.at_ms, study=study or request.study)


Work = Callable[["Dashboard", "PageRequest"], Response]
Method = Literal["GET", "POST"]


@dataclass(frozen=True)
class Page:
    """One address under ``/dashboard``. Pages with ``is_of_running`` need a study that collects data."""

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
    """Every page of the folder and the folders in it."""
    folder = importlib.import_module("dialometer.web.dashboard.pages")
    for module in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
        importlib.import_module(module.name)
    return list(_pages)
