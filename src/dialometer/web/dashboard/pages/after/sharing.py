"""A frozen copy of the report behind a link: made on purpose, without raw data, read without an account, and revocable."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.live_report import LiveReport
from dialometer.web.dashboard.login import DeadLink
from dialometer.web.dashboard.translating import translated

MAX_NOTE = 200


@page("/studies/{study}/share", role="editor", of_running=True)
def links(dashboard: Dashboard, request: PageRequest) -> Response:
    """All links of the study, and what a new one would contain."""
    return _page(dashboard, request)


@page("/studies/{study}/share", role="editor", method="POST", of_running=True)
def share(dashboard: Dashboard, request: PageRequest) -> Response:
    """A new link to a copy of the newest results; it is shown once, since only its hash is stored."""
    running = request.running
    newest = dashboard.reports.latest(running, request.account.name).newest
    if newest is None or not newest.shared:
        return dashboard.redirect(
            f"/studies/{running.name}/share", request, translated("The report is not ready yet; try again in a moment.")
        )
    token = secrets.token_urlsafe(32)
    about = contents(newest) | {"note": request.form.get("note", "").strip()[:MAX_NOTE]}
    dashboard.shared.add(token, running.name, newest.shared, about, request.account.name, request.at_ms)
    dashboard.note(request, "made a link to the report", f"{about['n_judgments']} judgments")
    return _page(dashboard, request, f"{request.origin}{dashboard.root}/dashboard/report/{token}")


@page("/studies/{study}/share/{number:number}/revoke", role="editor", method="POST", of_running=True)
def revoke(dashboard: Dashboard, request: PageRequest) -> Response:
    """Ends a link and erases its copy."""
    number = int(request.params["number"])
    dashboard.shared.revoke(request.study, number, request.account.name, request.at_ms)
    dashboard.note(request, "revoked a link to the report", f"link {number}")
    return dashboard.redirect(f"/studies/{request.study}/share", request, translated("The link no longer works."))


def contents(live: LiveReport) -> dict[str, Any]:
    """What a copy contains, for the list of links."""
    facts = live.report.provenance
    return {
        "as_of_ms": live.at_ms,
        "n_judgments": int(facts.get("n_judgments", 0)),
        "n_raters": int(facts.get("n_raters", 0)),
        "sources": str(facts.get("sources", "")),
        "is_finished": live.report.is_finished,
    }


def _page(dashboard: Dashboard, request: PageRequest, link: str = "") -> Response:
    running = request.running
    status = dashboard.reports.latest(running, request.account.name)
    ready = status.newest if status.newest is not None and status.newest.shared else None
    content: dict[str, Any] = {"status": status, "about": contents(ready) if ready else None, "link": link}
    content["links"] = dashboard.shared.of_study(running.name)
    return dashboard.show_study("share.html", request, tab="results", **content)


HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-robots-tag": "noindex, nofollow, noarchive",
    "referrer-policy": "no-referrer",
    "cache-control": "private, no-store",
}
"""The page has its styles inside and no scripts; nobody else's page shows it, and no search engine keeps it."""


def shared_routes(dashboard: Dashboard) -> list[Route]:
    """The address of shared copies, which needs no account."""

    async def read(request: Request) -> Response:
        content = await run_in_threadpool(dashboard.shared.page, request.path_params["token"][:100])
        if content is None:
            raise DeadLink("this link does not work, or no longer works", remedy="ask for a new one")
        return HTMLResponse(content, headers=HEADERS)

    return [Route("/dashboard/report/{token}", read, methods=["GET"])]
