"""The application of a whole server: the desk, and the pages of every study it looks after."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dialometer.errors import DialometerError
from dialometer.storage.store import Store
from dialometer.web.dashboard.app import DeskGuard, create_desk
from dialometer.web.dashboard.running_studies import Held, NoStudy, Shelf
from dialometer.web.server.logs import log_failure
from dialometer.web.server.security import safe_headers
from dialometer.web.server.settings import Settings
from dialometer.web.server.turns import TurnTakingStore

DESK = "/desk"


class House:
    """An ASGI application. What raters send goes straight to their study; only the desk's own addresses stop here."""

    def __init__(self, held: Held, accounts: Store, desk: DeskGuard) -> None:
        self.held = held
        self.accounts = accounts
        self._desk = desk
        self._root = held.settings.root_path
        self._single: ASGIApp | None = None
        if held.shelf.is_single:
            self._single = held.running(held.shelf.names()[0]).app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path: str = scope["path"]
        if self._root and path.startswith(f"{self._root}/"):
            path = path[len(self._root) :]
        if path.startswith(DESK) and (len(path) == len(DESK) or path[len(DESK)] == "/"):
            await self._desk(scope, receive, send)
        elif self._single is not None:
            await self._single(scope, receive, send)
        else:
            await self._among_studies(path, scope, receive, send)

    async def _among_studies(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        name = path.split("/", 2)[1] if path.count("/") else ""
        running = self.held.known(name)
        if running is None:
            try:
                running = await run_in_threadpool(self.held.running, name)
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
            return JSONResponse({"status": "ok", "studies": len(self.held.shelf.names())})
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
        self._desk.close()
        is_own = not self.held.holds(self.accounts)
        self.held.close()
        if is_own:
            self.accounts.close()


async def _safely(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    for name, value in safe_headers(()):
        response.headers[name.decode()] = value.decode("latin-1")
    await response(scope, receive, send)


def open_house(shelf: Shelf, settings: Settings) -> House:
    """The application for a shelf of studies."""
    held = Held(shelf, settings)
    try:
        accounts = _accounts(held)
        return House(held, accounts, create_desk(held, accounts))
    except BaseException:
        held.close()
        raise


def _accounts(held: Held) -> Store:
    """The store of the accounts: a study's own where they share a database, since two stores would not take turns."""
    target = held.shelf.accounts_database()
    for name in held.shelf.names():
        if held.shelf.is_named(name) and str(held.shelf.database_of(name)) == str(target):
            return held.running(name).store
    return TurnTakingStore.open(target)
