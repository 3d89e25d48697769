"""The server of the demo: its first page and the reports before, and behind them studies and dashboard as they always are."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from dialometer.cli._demo_page import home_page
from dialometer.cli._demo_studies import LIVE, REPORTS, Line, Workshop, report_page
from dialometer.flow.engine import now_ms
from dialometer.storage.store import Store
from dialometer.web.desk.door import DESK_COOKIE
from dialometer.web.desk.entry import Entry, first_owner_token
from dialometer.web.desk.house import House
from dialometer.web.security import set_cookie

DESK_DOOR = "/show-desk"
_STYLED = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}
VISITOR = "visitor"


class DemoHouse:
    """An ASGI application for this machine only: whoever opens the dashboard from the first page is let in as an owner."""

    def __init__(self, house: House, workshop: Workshop) -> None:
        self.folder = folder = workshop.folder
        self.workshop = workshop
        self._house = house
        (folder / REPORTS).mkdir(exist_ok=True)
        self._reports: ASGIApp = StaticFiles(directory=folder / REPORTS, html=True)
        self._entry = Entry(house.accounts)
        self._secret = _owner(house.accounts, self._entry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if path == "/":
            await HTMLResponse(self._home(), headers=_STYLED)(scope, receive, send)
        elif path == DESK_DOOR:
            await self._let_in(Request(scope))(scope, receive, send)
        elif path.startswith(f"/{REPORTS}/"):
            try:
                await self._reports({**scope, "path": path.removeprefix(f"/{REPORTS}")}, receive, send)
            except HTTPException:  # not made yet: the first page says how far it is
                await RedirectResponse("/", 303)(scope, receive, send)
        else:
            await self._house(scope, receive, send)

    def _home(self) -> str:
        def link(line: Line) -> str:
            return f"/{REPORTS}/{line.name}" if report_page(line, self.folder).is_file() else ""

        live = (
            ("Take part in a running study", f"/{LIVE}/", "The pages as a rater sees them."),
            (
                "Watch it fill",
                DESK_DOOR,
                "The experimenter's dashboard; simulated raters arrive while you look. You are under 'person' once you take part.",
            ),
        )
        return home_page(link, self.workshop.failed, n_done=self.workshop.n_done, live=live)

    def _let_in(self, request: Request) -> Response:
        response = RedirectResponse(f"/desk/studies/{LIVE}/?source=simulated", 303)
        set_cookie(request, response, DESK_COOKIE, self._secret, path="/desk", is_embedded=False)
        return response


def _owner(accounts: Store, entry: Entry) -> str:
    """The secret of a browser that is signed in as the demo's only account, whose password nobody needs."""
    token = first_owner_token(accounts)
    secret, _ = entry.join(token, VISITOR, token, now_ms())
    return secret
