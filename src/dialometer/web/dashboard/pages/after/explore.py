"""Results of a part of the data, chosen after the fact and so exploratory, and the files of every figure."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.exploring import address_of, chosen, offered, report_options
from dialometer.web.dashboard.pages.after.results import figures_of, written
from dialometer.web.dashboard.translating import translated

KINDS = {"svg": "image/svg+xml", "png": "image/png", "csv": "text/csv; charset=utf-8"}


@page("/studies/{study}/explore", role="viewer", of_running=True)
def explore(dashboard: Dashboard, request: PageRequest) -> Response:
    """The same analysis of the chosen part; nothing of it is confirmatory, and the audit log says who looked."""
    running = request.running
    offers, choice = offered(running.study), chosen(request)
    only = report_options(offers, choice)
    if not only:
        return dashboard.redirect(f"/studies/{running.name}/results", request, translated("Choose what to explore."))
    options = (*dashboard.report_options(running, request.group), *only)
    status = dashboard.reports.latest(running, request.account.name, options)
    words = "; ".join(only[1::2])
    if status.has_begun:
        dashboard.note(request, "explored the results", words)
    content: dict[str, Any] = {"status": status, "tab": "results", "chosen": choice, "offered": offers}
    content |= {"words": words, "address": address_of(choice)}
    if status.newest is not None:
        content |= written(status.newest.report, ()) | {"figures": figures_of(status.newest)}
    return dashboard.show_study("explore.html", request, **content)


@page("/studies/{study}/figures/{file}", role="viewer", of_running=True)
def figure_file(dashboard: Dashboard, request: PageRequest) -> Response:
    """A figure as SVG, PNG or the numbers it draws, of the results or of what is explored."""
    running = request.running
    only = report_options(offered(running.study), chosen(request))
    options = (*dashboard.report_options(running, request.group), *only)
    newest = dashboard.reports.peek(running, options).newest
    name = request.params["file"]
    content = newest.figures.get(name) if newest is not None else None
    kind = KINDS.get(name.rpartition(".")[2])
    if content is None or kind is None:
        raise HTTPException(404)
    headers = {"content-disposition": f'inline; filename="{name}"', "content-security-policy": _DRAWING}
    return Response(content, media_type=kind, headers=headers)


_DRAWING = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""A drawing opened by itself does nothing but show."""
