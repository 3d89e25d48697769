"""The audit log for owners: who did what, on the dashboard and on the command line, in which study and when."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from starlette.responses import Response

from dialometer.errors import DialometerError
from dialometer.storage.access.audit_log import AuditLog, LoggedAction
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


def entries(dashboard: Dashboard) -> list[LoggedAction]:
    """The newest entries: the dashboard's own, and those that commands have added to the databases of open studies."""
    found = dashboard.audit.newest(N_SHOWN)
    for name in dashboard.studies.folders.names():
        with suppress(DialometerError):  # a draft has no database, and one study that fails does not hide the log
            database = dashboard.studies.running(name).store.database
            if database.where != dashboard.audit.database.where:
                found += [replace(entry, study=name) for entry in AuditLog(database).newest(N_SHOWN)]
    return sorted(found, key=lambda entry: entry.at_ms, reverse=True)[:N_SHOWN]


@page("/audit", role="owner")
def audit(dashboard: Dashboard, request: PageRequest) -> Response:
    """The log as a table."""
    rows = [
        {"at": entry.at_ms, "by": entry.made_by, "what": entry.what, "detail": entry.detail, "study": entry.study}
        for entry in entries(dashboard)
    ]
    view = Grid("audit-log", _COLUMNS, rows, start="-at").view(request.query)
    if request.query.get("format") == "csv":
        dashboard.note(request, "downloaded the audit log")
        return view.csv()
    return dashboard.show("audit.html", request, grid=view, tab="accounts", n_shown=N_SHOWN)
