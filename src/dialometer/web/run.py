"""Running the application: one process, or several that share a socket and a database."""

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

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dialometer.errors import DialometerError
from dialometer.model.study import Study
from dialometer.storage.store import Store
from dialometer.web.dashboard.app import DashboardGuard, create_dashboard
from dialometer.web.dashboard.running_studies import NoStudy, RunningStudies, StudyFolders
from dialometer.web.rater.wizard import has_wizard
from dialometer.web.server.logs import log_failure, set_up
from dialometer.web.server.security import safe_headers
from dialometer.web.server.settings import ENVIRONMENT, Settings
from dialometer.web.server.turns import HAS_PROCESS_LOCKS, TurnTakingStore

if TYPE_CHECKING:
    from uvicorn import Config


# The application of a whole server: the desk, and the pages of every study it looks after.


DESK = "/desk"


class ServerApp:
    """An ASGI application. What raters send goes straight to their study; only the desk's own addresses stop here."""

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
        if path.startswith(DESK) and (len(path) == len(DESK) or path[len(DESK)] == "/"):
            await self._dashboard(scope, receive, send)
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
            except NoStudy:
                await _safely(self._elsewhere(path), scope, receive, send)
                return
            except DialometerError as error:
                told = f"This study cannot be shown at the moment (reference {log_failure(error)})."
                await _safely(PlainTextResponse(told, 503), scope, receive, send)
                return
        await running.app(scope, receive, send)

    def _elsewhere(self, path: str) -> Response:
        if path in ("", "/"):
            return RedirectResponse(f"{self._root}{DESK}/", 303)
        if path == "/healthz":
            return JSONResponse({"status": "ok", "studies": len(self.studies.folders.names())})
        return PlainTextResponse("There is nothing here. Open the study by the link you were given.", 404)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begins and ends with the server."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await run_in_threadpool(self.close)
                await send({"type": "lifespan.shutdown.complete"})
                return

    def close(self) -> None:
        """Stores what waits and closes all databases."""
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
    """The application for a shelf of studies."""
    studies = RunningStudies(folders, settings)
    try:
        accounts = _accounts(studies)
        return ServerApp(studies, accounts, create_dashboard(studies, accounts.accounts))
    except BaseException:
        studies.close()
        raise


def _accounts(studies: RunningStudies) -> Store:
    """The store of the accounts: a study's own where they share a database, since two stores would not take turns."""
    target = studies.folders.accounts_database()
    for name in studies.folders.names():
        if studies.folders.is_named(name) and str(studies.folders.database_of(name)) == str(target):
            return studies.running(name).store
    return TurnTakingStore.open(target)


_FOLDERS, _LEVEL = f"{ENVIRONMENT}_FOLDERS", f"{ENVIRONMENT}_LOG_LEVEL"
SWITCH_INTERVAL_S = 0.001
"""How long the thread that stores may keep the one that answers waiting; Python's usual 5 ms would show in every answer."""
GARBAGE_THRESHOLDS = (50_000, 20, 100)
"""How much is made before it is looked through for rings of garbage: less often, since a look stops everything."""
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
    """A secret nobody can guess."""
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
    """What to type into a browser."""
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
    """Serves until a signal ends it; what was acknowledged by then is on disk, and what is under way is finished."""
    set_up(listening.log_level)
    signal.signal(signal.SIGTERM, _end)
    if listening.n_processes == 1:
        _serve_here(folders, listening, settings, sock)
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
    """Being told to stop is no failure; raised once everything is finished, so that whoever waits can clean up."""
    raise SystemExit(0)


def _serve_here(folders: StudyFolders, listening: Listening, settings: Settings, sock: socket.socket) -> None:
    serve_app(open_server(folders, settings), listening, sock)


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
    """The application of one of several processes, set up as the first process left word."""
    threading.Thread(target=_end_with_first_process, daemon=True).start()
    set_up(os.environ[_LEVEL])
    app = open_server(StudyFolders.from_json(os.environ[_FOLDERS]), Settings.from_json(os.environ[ENVIRONMENT]))
    _tune()
    return app


def _end_with_first_process() -> None:
    """Where the first process was killed, nobody could tell the others to stop, and they would keep the port."""
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _tune() -> None:
    """Sets the interpreter up for a server: what was loaded so far stays, so nobody need look through it again."""
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
