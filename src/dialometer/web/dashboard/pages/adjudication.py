"""What raters disagree about, how far it is settled, and the links of adjudicators."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.flow.adjudication import disputes_of, link_of
from dialometer.storage.access.secrets import SIGNING
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.running_studies import NoStudy, RunningStudy
from dialometer.web.dashboard.table import Grid, GridColumn

_COLUMNS = (
    GridColumn("item", "Item"),
    GridColumn("condition", "Condition", is_facet=True),
    GridColumn("criteria", "Raters disagree on", "marks"),
    GridColumn("state", "State", is_facet=True),
)
_MAX_NAME = 60


@page("/studies/{study}/adjudication", role="viewer", of_running=True)
def adjudication(dashboard: Dashboard, request: PageRequest) -> Response:
    """Every disagreement; editors also get links for adjudicators."""
    running = request.running
    if running.study.spec.adjudication is None:
        raise NoStudy("this study has no adjudication", remedy="declare it in study.yaml")
    table = dashboard.cached(running, "adjudication", lambda: _grid(running, request.root))
    counts = {state: sum(row["state"] == state for row in table.rows) for state in ("waiting", "under way", "settled")}
    name = request.query.get("adjudicator", "").strip()[:_MAX_NAME]
    link = ""
    if name and name.isprintable() and request.may("editor"):
        address = f"{request.origin}{dashboard.studies.address_of(running.name)}"
        link = link_of(running.store.secrets.get(SIGNING, request.at_ms), address, name)
    content = {"counts": counts, "adjudicator": name, "link": link, "tab": "adjudication"}
    return dashboard.show_table("adjudication.html", request, table, **content)


def _grid(running: RunningStudy, root: str) -> Grid:
    labels = [running.study.cell_label(cell) for cell in running.study.cells]
    rows = [
        {
            "item": dispute.item_id,
            "href": f"{root}/dashboard/studies/{running.name}/items/{dispute.item_id}",
            "condition": labels[dispute.cell],
            "criteria": list(dispute.criteria),
            "state": dispute.state,
        }
        for dispute in disputes_of(running.study, running.store)
    ]
    return Grid(f"{running.name}-adjudication", _COLUMNS, rows)
