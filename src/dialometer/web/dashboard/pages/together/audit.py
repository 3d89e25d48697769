"""The audit log for owners: who did what, in which study and when; filtered, and as CSV."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.table import Grid, GridColumn

N_SHOWN = 20_000
"""The newest entries; older ones stay in the database."""
_COLUMNS = (
    GridColumn("at", "When", "time"),
    GridColumn("by", "Who", is_facet=True),
    GridColumn("what", "What", is_facet=True),
    GridColumn("detail", "About it"),
    GridColumn("study", "Study", is_facet=True),
)


@page("/audit", role="owner")
def audit(dashboard: Dashboard, request: PageRequest) -> Response:
    """The log as a table."""
    rows = [
        {"at": entry.at_ms, "by": entry.made_by, "what": entry.what, "detail": entry.detail, "study": entry.study}
        for entry in dashboard.audit.newest(N_SHOWN)
    ]
    view = Grid("audit-log", _COLUMNS, rows, start="-at").view(request.query)
    if request.query.get("format") == "csv":
        dashboard.note(request, "downloaded the audit log")
        return view.csv()
    return dashboard.show("audit.html", request, grid=view, tab="accounts", n_shown=N_SHOWN)
