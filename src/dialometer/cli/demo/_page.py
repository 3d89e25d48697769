"""The demo's application: its first page and the reports, before the studies and the dashboard of any server."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from dialometer.cli.demo._studies import CHAT, DEMO_REPORTS, LIVE, REPORTS, DemoReport, ReportMaker, report_page
from dialometer.flow.engine import now_ms
from dialometer.storage.access.accounts import Accounts
from dialometer.web.dashboard.login import Login, first_owner_token
from dialometer.web.dashboard.login_pages import DASHBOARD_COOKIE
from dialometer.web.run import ServerApp
from dialometer.web.server.security import set_cookie

REFRESH_S = 3
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>dialometer at work</title>{refresh}
<style>
:root {{ color-scheme: light dark; --ink: light-dark(#1b2430, #e6e9ee); --soft: light-dark(#566273, #a3adba);
  --line: light-dark(#d5dbe3, #39424f); --card: light-dark(#fff, #1d242e); --link: light-dark(#0b5c8a, #79c0f2); }}
body {{ font: 17px/1.55 system-ui, sans-serif; color: var(--ink); background: light-dark(#f6f7f9, #141a22); margin: 0; }}
main {{ max-width: 60rem; margin: 0 auto; padding: 2.4rem 1.2rem 3rem; }}
h1 {{ font-size: 1.8rem; line-height: 1.2; margin: 0 0 .4rem; }}
h2 {{ font-size: 1.25rem; margin: 2rem 0 .25rem; }} h3 {{ font-size: 1.1rem; margin: 0 0 .25rem; }}
p {{ margin: .3rem 0; }} .soft {{ color: var(--soft); }} a {{ color: var(--link); }}
.cards {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem; margin: .8rem 0; }}
article {{ background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.2rem; min-width: 0; }}
ol {{ list-style: none; margin: .8rem 0 0; padding: .7rem 0 0; border-top: 1px solid var(--line); color: var(--soft); }}
li {{ font-size: .8rem; line-height: 1.5; padding: .1rem 0 .1rem 2.4ch; text-indent: -2.4ch; }} li::before {{ content: "$ "; }}
li span {{ white-space: nowrap; }} li.now {{ color: var(--ink); font-weight: 650; }}
@media (max-width: 30rem) {{ li span {{ white-space: normal; overflow-wrap: anywhere; }} }}
.bad {{ color: light-dark(#9b1c1c, #ff9d94); }}
</style></head><body><main>
<h1>dialometer at work</h1>
<p class="soft">Studies from the templates and rated conversations, all simulated so that the truth is known, and reported as real
ones would be. {progress}</p>
{live}
<h2>Reports, and the commands that made them</h2>
<div class="cards">
{cards}
</div>
</main></body></html>
"""


def home_page(
    link: Callable[[DemoReport], str],
    failed: Mapping[str, str],
    *,
    n_done: Mapping[str, int] | None = None,
    live: Sequence[tuple[str, str, str]] = (),
) -> str:
    """The page. ``link`` gives the folder of a finished report, or nothing; ``live`` are titles, addresses and words.

    ``n_done`` says how many commands of a line have ended; a line that is not in it has not begun.
    """
    n_open = sum(not link(line) and line.name not in failed for line in DEMO_REPORTS)
    progress = (
        f"{n_open} of {len(DEMO_REPORTS)} reports are still being made; this page looks again by itself."
        if n_open
        else ""
    )
    begun = n_done or {}
    cards = "\n".join(_card(line, link(line), failed.get(line.name, ""), begun.get(line.name)) for line in DEMO_REPORTS)
    running = "".join(
        f"<article><h3>{_anchor(address, title)}</h3><p>{html.escape(about)}</p></article>"
        for title, address, about in live
    )
    return _PAGE.format(
        refresh=f'<meta http-equiv="refresh" content="{REFRESH_S}">' if n_open and live else "",
        progress=progress,
        live=f'<h2>Running now</h2>\n<div class="cards">{running}</div>' if running else "",
        cards=cards,
    )


def _card(line: DemoReport, folder: str, failure: str, n_done: int | None) -> str:
    pages = [(words, f"{folder}/{file}") for words, file in line.pages] if folder else []
    head = _anchor(pages[0][1], line.title) if pages else html.escape(line.title)
    if pages:
        state = f"<p>{' · '.join(_anchor(address, words) for words, address in pages)}</p>"
    elif failure:
        state = f'<p class="bad">Could not be made: {html.escape(failure)}</p>'
    else:
        state = '<p class="soft">' + ("Waits for its turn." if n_done is None else "Being made …") + "</p>"
    reached = len(line.commands) if pages else n_done
    commands = "".join(_command(parts, number == reached) for number, parts in enumerate(line.shown()))
    return f"<article><h3>{head}</h3><p>{html.escape(line.about)}</p>{state}<ol>{commands}</ol></article>"


def _command(parts: Sequence[str], is_at_work: bool) -> str:
    """One command, with line breaks only between its parts; the running one is highlighted."""
    words = " ".join(f"<span>{html.escape(part)}</span>" for part in parts)
    return f"<li{' class=now' if is_at_work else ''}><code>{words}</code></li>"


def _anchor(address: str, words: str) -> str:
    """A link that opens in a new tab."""
    return f'<a href="{html.escape(address)}" target="_blank" rel="noopener">{html.escape(words)}</a>'


DASHBOARD_LOGIN = "/show-dashboard"
_STYLED = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}
VISITOR = "visitor"


class DemoApp:
    """An ASGI application for this machine only: the first page's link to the dashboard signs in as an owner."""

    def __init__(self, server: ServerApp, maker: ReportMaker, *, has_chat: bool = False) -> None:
        self.has_chat = has_chat
        self.folder = folder = maker.folder
        self.maker = maker
        self._server = server
        (folder / REPORTS).mkdir(exist_ok=True)
        self._reports: ASGIApp = StaticFiles(directory=folder / REPORTS, html=True)
        self._login = Login(server.accounts)
        self._secret = _owner(server.accounts, self._login)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if path == "/":
            await HTMLResponse(self._home(), headers=_STYLED)(scope, receive, send)
        elif path == DASHBOARD_LOGIN:
            await self._sign_in(Request(scope))(scope, receive, send)
        elif path.startswith(f"/{REPORTS}/"):
            try:
                await self._reports({**scope, "path": path.removeprefix(f"/{REPORTS}")}, receive, send)
            except HTTPException:  # not made yet: the first page says how far it is
                await RedirectResponse("/", 303)(scope, receive, send)
        else:
            await self._server(scope, receive, send)

    def _home(self) -> str:
        def link(line: DemoReport) -> str:
            return f"/{REPORTS}/{line.name}" if report_page(line, self.folder).is_file() else ""

        chat = (
            "Talk with a language model",
            f"/{CHAT}/",
            "A live chat with a small model on this machine, then its ratings.",
        )
        live = (
            ("Take part in a running study", f"/{LIVE}/", "The pages as a rater sees them."),
            (
                "Watch it fill",
                DASHBOARD_LOGIN,
                "The experimenter's dashboard; simulated raters arrive while you look. You are under 'person' once you take part.",
            ),
            *((chat,) if self.has_chat else ()),
        )
        return home_page(link, self.maker.failed, n_done=self.maker.n_done, live=live)

    def _sign_in(self, request: Request) -> Response:
        response = RedirectResponse(f"/dashboard/studies/{LIVE}/?source=simulated", 303)
        set_cookie(request, response, DASHBOARD_COOKIE, self._secret, path="/dashboard", is_embedded=False)
        return response


def _owner(accounts: Accounts, login: Login) -> str:
    """Makes the demo's only account and returns the secret of a browser signed in to it."""
    token = first_owner_token(accounts)
    secret, _ = login.join(token, VISITOR, token, now_ms())
    return secret
