"""The application of a whole server (the dashboard and the pages of every study), and running it.

It runs in one process, or in several that share a socket and a database.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import json
import logging
import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dialometer.errors import DialometerError
from dialometer.storage.store import Store
from dialometer.web.dashboard.app import DashboardGuard, create_dashboard
from dialometer.web.dashboard.running_studies import IsDraft, NoStudy, RunningStudies, StudyFolders
from dialometer.web.rater.pages import SAME_ADDRESS, Pages
from dialometer.web.server.connections import ConnectionLimits, LimitedProtocol, OpenConnections, TrustedProxies
from dialometer.web.server.guard import moved
from dialometer.web.server.health import HealthCheck, Unhealthy, as_unhealthy
from dialometer.web.server.logs import log, log_failure, set_up
from dialometer.web.server.metrics import METRICS_TYPE
from dialometer.web.server.refused import refusals
from dialometer.web.server.security import safe_headers
from dialometer.web.server.settings import Settings, known_fields
from dialometer.web.server.supervisor import READY_S, REPLACE, RETIRE, Supervisor, Worker
from dialometer.web.server.turns import HAS_PROCESS_LOCKS, TurnTakingStore

DASHBOARD = "/dashboard"
EARLIER_DASHBOARD = "/desk"
"""Where the dashboard was before; links from then still lead to it."""
TIDY_EVERY_S = 600


class ServerApp:
    """An ASGI application: requests under ``/dashboard`` go to the dashboard, all others to their study."""

    def __init__(self, studies: RunningStudies, accounts: Store, dashboard: DashboardGuard) -> None:
        self.studies = studies
        self.account_store = accounts
        self.accounts = accounts.accounts
        self._check_accounts = HealthCheck(accounts.database)
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
            dashboard = f"{self._root}{DASHBOARD}{path.removeprefix(EARLIER_DASHBOARD)}"
            await _safely(moved(dashboard, scope), scope, receive, send)
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
                page = await self._health() if path == "/healthz" else self._elsewhere(path)
                await _safely(page, scope, receive, send)
                return
            except DialometerError as error:
                message = f"This study cannot be shown at the moment (reference {log_failure(error)})."
                await _safely(PlainTextResponse(message, 503), scope, receive, send)
                return
        if path == f"/{name}":  # links lose their last slash on the way to raters
            await _safely(moved(f"{self._root}{path}/", scope), scope, receive, send)
            return
        await running.app(scope, receive, send)

    def _not_started(self, name: str) -> Response:
        """The page of a study that is still a draft, in its own language; its files come from the dashboard's folder."""
        try:
            pages = Pages(self.studies.loaded(name))
        except DialometerError:  # a draft that is not in order yet
            return PlainTextResponse("This study has not started yet. Please come back later.", 403)
        page = pages.render_message("not_started", root_path=f"{self._root}{DASHBOARD}", reload_url=SAME_ADDRESS)
        return HTMLResponse(page, 403)

    async def _health(self) -> Response:
        """Of the accounts and of every study that raters have opened here."""
        try:
            await self._check_accounts()
            for running in self.studies.opened():
                await running.app.service.check_health()
        except Unhealthy as failing:
            return as_unhealthy(failing)
        return JSONResponse({"status": "ok", "studies": len(self.studies.folders.names())})

    def _elsewhere(self, path: str) -> Response:
        if path in ("", "/"):
            return RedirectResponse(f"{self._root}{DASHBOARD}/", 303)
        if path == "/metrics":
            return PlainTextResponse(refusals.metrics.render({}), media_type=METRICS_TYPE)
        return PlainTextResponse("There is nothing here. Open the study by the link you were given.", 404)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Starts and stops with the server."""
        tidying = asyncio.create_task(self._tidy())
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                tidying.cancel()
                await run_in_threadpool(self.close)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _tidy(self) -> None:
        """Gives places of raters who left to others, and erases those who left before they consented."""
        while True:
            for running in self.studies.opened():
                try:
                    await run_in_threadpool(running.app.service.flow.release_left)
                except DialometerError as error:
                    log_failure(error)
            await asyncio.sleep(TIDY_EVERY_S)

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


SWITCH_INTERVAL_S = 0.001
"""How long the writer thread may keep the answering thread waiting; Python's default of 5 ms would slow every answer."""
GARBAGE_THRESHOLDS = (50_000, 20, 100)
"""Garbage collection runs less often than by default, since it stops everything."""
GRACE_S = 30
DRAIN_S = 3.0
"""How long a process that was replaced still answers on connections that are open."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where and how a server listens."""

    host: str = "127.0.0.1"
    port: int = 8000
    n_processes: int = 1
    trusts_proxy: bool = True
    trusted_proxies: str = "127.0.0.1"
    log_level: str = "info"
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    may_reload: bool = True
    """Whether SIGHUP replaces the processes. On a terminal it ends the server, as closing the terminal should."""


def new_key() -> str:
    """A random secret."""
    return secrets.token_urlsafe(24)


def bind(listening: Listening) -> socket.socket:
    """The socket of a server; port 0 takes a free one. A socket that systemd has opened is used as it is."""
    given = _given_socket()
    if given is not None:
        return given
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


FIRST_GIVEN = 3
"""The file in which systemd hands a socket over (sd_listen_fds(3))."""


def _given_socket() -> socket.socket | None:
    """The socket that systemd listens on for this server: connections wait there while the server is restarted."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or not os.environ.get("LISTEN_FDS", "").isdigit():
        return None
    n_given = int(os.environ["LISTEN_FDS"])
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)
    given = socket.socket(fileno=FIRST_GIVEN) if n_given == 1 else None
    if given is None or given.family not in (socket.AF_INET, socket.AF_INET6) or given.type != socket.SOCK_STREAM:
        raise DialometerError(
            "the service manager handed over something else than one listening TCP socket",
            remedy="one ListenStream=ADDRESS:PORT in the .socket unit",
        )
    given.set_inheritable(True)
    return given


def address_of(server: socket.socket, root_path: str) -> str:
    """The address to open in a browser."""
    host, port = server.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}{root_path}/"


def check_processes(n_processes: int) -> None:
    """Refuses more processes than the system allows."""
    if n_processes > 1 and not HAS_PROCESS_LOCKS:
        raise DialometerError("this system cannot share the database between processes", remedy="leave out --workers")


def serve(folders: StudyFolders, listening: Listening, settings: Settings, sock: socket.socket) -> None:
    """Serves until a signal ends it. Running requests are finished, and every acknowledged screen is on disk.

    SIGHUP replaces the processes one by one; a single process is then followed by another one, and only watches over it.
    """
    set_up(listening.log_level)
    signal.signal(signal.SIGTERM, _end)
    if listening.n_processes == 1:
        start = _starting(folders, listening, settings, sock)
        following = _serve_until_replaced(open_server(folders, settings), listening, sock, start)
        if following is not None:
            _supervise(start, [following], listening)
        return
    runtime = tempfile.mkdtemp(prefix="dialometer-")
    Path(runtime, REFUSED_FOLDER).mkdir()
    start = _starting(folders, listening, replace(settings, runtime_folder=runtime), sock)
    try:
        _supervise(start, [start() for _ in range(listening.n_processes)], listening)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _end(_signal: int, _frame: object) -> None:
    """Stopping is not a failure. Raised once all requests are finished, so that callers can clean up."""
    raise SystemExit(0)


def serve_app(app: ASGIApp, listening: Listening, sock: socket.socket) -> None:
    """Serves an application in this process until a signal ends it."""
    _tune()
    GracefulServer(app, listening).run(sockets=[sock])


def _supervise(start: Callable[[], Worker], workers: list[Worker], listening: Listening) -> None:
    supervisor = Supervisor(start, workers, replaces=listening.may_reload)
    supervisor.run()
    if supervisor.has_failed:
        raise DialometerError("the server's processes could not be started", remedy="the log above says why")


def _serve_until_replaced(
    app: ASGIApp, listening: Listening, sock: socket.socket, start: Callable[[], Worker]
) -> Worker | None:
    """Serves in this process. After SIGHUP gives the process that has taken over; None when a signal ended the server."""
    _tune()
    server = GracefulServer(app, listening)
    following: list[Worker] = []

    started: list[Worker] = []

    def follow() -> None:
        worker = start()
        started.append(worker)
        while worker.is_alive and not worker.look() and time.monotonic() - worker.since < READY_S:
            time.sleep(0.05)
        if worker.is_ready:
            following.append(worker)
            server.retire()
        else:  # this process goes on
            log("worker_not_replaced", level=logging.ERROR, exit_code=worker.process.exitcode)
            worker.process.kill()
            worker.end()

    threads: list[threading.Thread] = []

    def replace_this(_signal: int, _frame: object) -> None:
        if not any(thread.is_alive() for thread in threads):
            threads.append(threading.Thread(target=follow, name="follow", daemon=True))
            threads[-1].start()

    if listening.may_reload and REPLACE is not None:
        signal.signal(REPLACE, replace_this)
    try:
        # The socket is kept for those who follow: uvicorn closes the one it is given.
        server.run(sockets=[sock.dup()])
    except BaseException:
        for worker in started:
            worker.send_signal(signal.SIGTERM)
            worker.end()
        raise
    return following[0] if following else None


class GracefulServer(uvicorn.Server):
    """uvicorn's server within the limits of a :class:`OpenConnections`, which can hand over to another process."""

    def __init__(self, app: ASGIApp, listening: Listening, when_ready: Callable[[], None] = lambda: None) -> None:
        self.open_connections = OpenConnections(
            listening.limits, TrustedProxies(listening.trusted_proxies if listening.trusts_proxy else "")
        )
        self._when_ready = when_ready
        super().__init__(_config(app, listening, self.open_connections))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, and says so."""
        await super().startup(sockets=sockets)
        if self.started:
            self._when_ready()

    def retire(self) -> None:
        """Ends because another process has taken over: requests on their way to this one are still answered."""
        self.open_connections.drain_s = self.open_connections.drain_s or DRAIN_S
        self.should_exit = True


REFUSED_FOLDER = ".refused"
"""Where the processes of a server count together what they refused; not the name of a study."""


def _starting(
    folders: StudyFolders, listening: Listening, settings: Settings, sock: socket.socket
) -> Callable[[], Worker]:
    """Starts one more process. Its settings are text, because after an update it runs newer code than this one."""
    job = {"folders": folders.as_json(), "settings": settings.as_json(), "listening": asdict(listening)}
    return lambda: Worker(serve_as_worker, json.dumps(job), sock)


def serve_as_worker(job: str, sock: socket.socket, ready: Connection) -> None:
    """One of several processes, or the one that follows a single one. Earlier versions call it by this name."""
    threading.Thread(target=_end_with_first_process, daemon=True).start()
    if REPLACE is not None:
        signal.signal(REPLACE, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    told = json.loads(job)
    listening = known_fields(Listening, told["listening"])
    listening = replace(listening, limits=known_fields(ConnectionLimits, told["listening"]["limits"]))
    settings = Settings.from_json(told["settings"])
    set_up(listening.log_level)
    if settings.runtime_folder:
        refusals.count_in(str(Path(settings.runtime_folder) / REFUSED_FOLDER))
    app = open_server(StudyFolders.from_json(told["folders"]), settings)
    _tune()
    server = GracefulServer(app, listening, lambda: ready.send(True))
    if RETIRE != signal.SIGTERM:
        signal.signal(RETIRE, lambda _signal, _frame: server.retire())
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl+C reaches all processes
        server.run(sockets=[sock])


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


def _config(app: ASGIApp, listening: Listening, connections: OpenConnections) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", partial(LimitedProtocol, connections)),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=listening.trusts_proxy,
        forwarded_allow_ips=listening.trusted_proxies,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=listening.limits.idle_s,
        lifespan="on",
        ws="none",
        backlog=2048,
    )
