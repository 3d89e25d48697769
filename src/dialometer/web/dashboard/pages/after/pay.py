"""The pay list: who is owed what, by platform. The platform's own names of raters are shown only to those who may pay."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.flow.pay_list import pay_list, totals
from dialometer.storage.table import rater_name
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.table import Grid, GridColumn

_COLUMNS = (
    GridColumn("rater", "Rater"),
    GridColumn("platform", "Platform", is_facet=True),
    GridColumn("advice", "What to do", is_facet=True),
    GridColumn("why", "Why", is_facet=True),
    GridColumn("owed", "Owed", "money"),
    GridColumn("minutes", "Minutes", "number"),
    GridColumn("by_time", "By time", "money"),
)
_NAMES = (GridColumn("participant", "Participant"), GridColumn("submission", "Submission"))
"""What the platform calls a rater, and the submission."""
WORDS = {"approve": "approve", "return": "return", "look": "look closer", "nothing": "nothing"}


@page("/studies/{study}/pay", role="viewer", of_running=True)
def pay(dashboard: Dashboard, request: PageRequest) -> Response:
    """The list as a table and as CSV; editors see the platform's names too."""
    running = request.running
    rows = dashboard.cached(running, "pay", lambda: pay_list(running.study, running.store))
    may_pay = request.may("editor")
    shown = [
        {
            "rater": rater_name(row.ordinal),
            "href": f"{request.root}/dashboard/studies/{running.name}/raters/{row.ordinal}",
            "platform": row.platform,
            "advice": WORDS[row.advice],
            "why": row.why,
            "owed": row.owed_cents / 100,
            "minutes": None if row.minutes is None else round(row.minutes, 1),
            "by_time": None if row.by_time_cents is None else row.by_time_cents / 100,
            **({"participant": row.participant, "submission": row.submission} if may_pay else {}),
        }
        for row in rows
    ]
    grid = Grid(f"{running.name}-pay", (*_COLUMNS, *(_NAMES if may_pay else ())), shown)
    if request.query.get("format") == "csv":
        dashboard.note(request, "downloaded the pay list", "with the platform's names" if may_pay else "")
    sums = totals(running.study, rows)
    return dashboard.show_table("pay.html", request, grid, tab="pay", totals=sums, may_pay=may_pay)
