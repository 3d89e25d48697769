"""The application of a whole server (the dashboard and the pages of every study), and running it.

It runs in one process, or in several that share a socket and a database.
"""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dialometer.errors import DialometerError
from dialometer.model.study import Study
from dialometer.storage.store import Store
from dialometer.web.dashboard.app import DashboardGuard, create_dashboard
from dialometer.web.dashboard.running_studies import IsDraft, NoStudy, RunningStudies, StudyFolders
from dialometer.web.rater.pages import Pages
from dialometer.web.rater.wizard import has_wizard
from dialometer.web.server.logs import log_failure, set_up
from dialometer.web.server.security import safe_headers
from dialometer.web.server.settings import ENVIRONMENT, Settings
from dialometer.web.server.turns import HAS_PROCESS_LOCKS, TurnTakingStore

if TYPE_CHECKING:
    from uvicorn import Config


DASHBOARD = "/dashboard"
EARLIER_DASHBOARD = "/desk"
"""Where the dashboard was before; links from then still lead to it."""


class ServerApp:
    """An ASGI application: requests under ``/dashboard`` go to the dashboard, all others to their study."""

    def __init__(self, studies: RunningStudies, accounts: Store, dashboard: DashboardGuard) -> None:
        self.studies = studies
        self.account_store = accounts
        self.accounts = accounts.accounts
        self._dashboard = dashboard
        self._root = studies.settings.root_path
        self._single: ASGIApp | None = None
        if studies.folders.is_single:
            self._single = studies.running(studies.folders.names()[0]).app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path: str = scope["path"]
        if self._root and path.startswith(f"{self._root}/"):
            path = path[len(self._root) :]
        if path == DASHBOARD or path.startswith(f"{DASHBOARD}/"):
            await self._dashboard(scope, receive, send)
        elif path == EARLIER_DASHBOARD or path.startswith(f"{EARLIER_DASHBOARD}/"):
            await _safely(self._moved(path, scope), scope, receive, send)
        elif self._single is not None:
            await self._single(scope, receive, send)
        else:
            await self._among_studies(path, scope, receive, send)

    async def _among_studies(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        name = path.split("/", 2)[1] if path.count("/") else ""
        running = self.studies.known(name)
        if running is None:
            try:
                running = await run_in_threadpool(self.studies.running, name)
            except IsDraft:
                page = await run_in_threadpool(self._not_started, name)
                await _safely(page, scope, receive, send)
                return
            except NoStudy:
                await _safely(self._elsewhere(path), scope, receive, send)
                return
            except DialometerError as error:
                message = f"This study cannot be shown at the moment (reference {log_failure(error)})."
                await _safely(PlainTextResponse(message, 503), scope, receive, send)
                return
        await running.app(scope, receive, send)

    def _not_started(self, name: str) -> Response:
        """The page of a study that is still a draft, in its own language; its files come from the dashboard's folder."""
        try:
            pages = Pages(self.studies.loaded(name))
        except DialometerError:  # a draft that is not in order yet
            return PlainTextResponse("This study has not started yet. Please come back later.", 403)
        return HTMLResponse(pages.render_message("not_started", root_path=f"{self._root}{DASHBOARD}"), 403)

    def _moved(self, path: str, scope: Scope) -> Response:
        """To the same page of the dashboard at its address of today."""
        query = scope["query_string"].decode("latin-1")
        address = f"{self._root}{DASHBOARD}{quote(path.removeprefix(EARLIER_DASHBOARD))}"
        return RedirectResponse(f"{address}?{query}" if query else address, 308)

    def _elsewhere(self, path: str) -> Response:
        if path in ("", "/"):
            return RedirectResponse(f"{self._root}{DASHBOARD}/", 303)
        if path == "/healthz":
            return JSONResponse({"status": "ok", "studies": len(self.studies.folders.names())})
        return PlainTextResponse("There is nothing here. Open the study by the link you were given.", 404)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Starts and stops with the server."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await run_in_threadpool(self.close)
                await send({"type": "lifespan.shutdown.complete"})
                return

    def close(self) -> None:
        """Stores waiting screens and closes all databases."""
        self._dashboard.close()
        is_own = not self.studies.holds(self.account_store)
        self.studies.close()
        if is_own:
            self.account_store.close()


async def _safely(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    for name, value in safe_headers(()):
        response.headers[name.decode()] = value.decode("latin-1")
    await response(scope, receive, send)


def open_server(folders: StudyFolders, settings: Settings) -> ServerApp:
    """The application for the studies in these folders."""
    studies = RunningStudies(folders, settings)
    try:
        accounts = _accounts(studies)
        return ServerApp(studies, accounts, create_dashboard(studies, accounts.accounts))
    except BaseException:
        studies.close()
        raise


def _accounts(studies: RunningStudies) -> Store:
    """The accounts' store; where they share a database with a study, it is the study's own store."""
    target = studies.folders.accounts_database()
    for name in studies.folders.names():
        if studies.folders.is_named(name) and str(studies.folders.database_of(name)) == str(target):
            return studies.running(name).store
    return TurnTakingStore.open(target)


_FOLDERS, _LEVEL = f"{ENVIRONMENT}_FOLDERS", f"{ENVIRONMENT}_LOG_LEVEL"
SWITCH_INTERVAL_S = 0.001
"""How long the writer thread may keep the answering thread waiting; Python's default of 5 ms would slow every answer."""
GARBAGE_THRESHOLDS = (50_000, 20, 100)
"""Garbage collection runs less often than by default, since it stops everything."""
GRACE_S = 30
KEEP_ALIVE_S = 65


@dataclass(frozen=True, slots=True)
class Listening:
    """Where and how a server listens."""

    host: str = "127.0.0.1"
    port: int = 8000
    n_processes: int = 1
    trusts_proxy: bool = True
    trusted_proxies: str = "127.0.0.1"
    log_level: str = "info"


def new_key() -> str:
    """A random secret."""
    return secrets.token_urlsafe(24)


def bind(listening: Listening) -> socket.socket:
    """The socket of a server; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind((listening.host, listening.port))
    except OSError as error:
        server.close()
        raise DialometerError(
            f"cannot listen on {listening.host}:{listening.port}: {error.strerror or error}",
            remedy="choose another --port, or stop what uses this one"
            if error.errno == errno.EADDRINUSE
            else "choose another --host or --port",
        ) from error
    server.set_inheritable(True)
    return server


def address_of(server: socket.socket, root_path: str) -> str:
    """The address to open in a browser."""
    host, port = server.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}{root_path}/"


def check_processes(study: Study, n_processes: int) -> None:
    """Refuses more processes than the study or the system allows."""
    if n_processes > 1 and has_wizard(study):
        raise DialometerError(
            "a study with a wizard is served by one process, which knows who answers whom", remedy="leave out --workers"
        )
    if n_processes > 1 and not HAS_PROCESS_LOCKS:
        raise DialometerError("this system cannot share the database between processes", remedy="leave out --workers")


def serve(folders: StudyFolders, listening: Listening, settings: Settings, sock: socket.socket) -> None:
    """Serves until a signal ends it. Running requests are finished, and every acknowledged screen is on disk."""
    set_up(listening.log_level)
    signal.signal(signal.SIGTERM, _end)
    if listening.n_processes == 1:
        serve_app(open_server(folders, settings), listening, sock)
        return
    runtime = tempfile.mkdtemp(prefix="dialometer-")
    shared = replace(settings, runtime_folder=runtime)
    os.environ |= {
        ENVIRONMENT: shared.as_json(),
        _FOLDERS: folders.as_json(),
        _LEVEL: listening.log_level,
    }
    try:
        _serve_in_processes(listening, sock)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _end(_signal: int, _frame: object) -> None:
    """Stopping is not a failure. Raised once all requests are finished, so that callers can clean up."""
    raise SystemExit(0)


def serve_app(app: ASGIApp, listening: Listening, sock: socket.socket) -> None:
    """Serves an application in this process until a signal ends it."""
    from uvicorn import Server  # noqa: PLC0415 - the rest of the package works without it

    _tune()
    Server(_config(app, listening)).run(sockets=[sock])


def _serve_in_processes(listening: Listening, sock: socket.socket) -> None:
    from uvicorn.supervisors import Multiprocess  # noqa: PLC0415

    config = _config("dialometer.web.run:app_of_process", listening)
    Multiprocess(config, sockets=[sock]).run()


def app_of_process() -> ASGIApp:
    """The application of one of several processes, with the settings that the first process left in the environment."""
    threading.Thread(target=_end_with_first_process, daemon=True).start()
    set_up(os.environ[_LEVEL])
    app = open_server(StudyFolders.from_json(os.environ[_FOLDERS]), Settings.from_json(os.environ[ENVIRONMENT]))
    _tune()
    return app


def _end_with_first_process() -> None:
    """Stops this process when the first one was killed; it would keep the port otherwise."""
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _tune() -> None:
    """Sets the interpreter up for a server: garbage collection skips what is loaded by now."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def _config(app: ASGIApp | str, listening: Listening) -> Config:
    from uvicorn import Config  # noqa: PLC0415

    return Config(
        app,
        factory=isinstance(app, str),
        workers=listening.n_processes,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=listening.trusts_proxy,
        forwarded_allow_ips=listening.trusted_proxies,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEEP_ALIVE_S,
        lifespan="on",
        ws="none",
        backlog=2048,
    )
