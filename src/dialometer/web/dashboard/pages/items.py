"""All items of a study against their quota, and one item with everything that was said about it."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.model.item import ChatItem
from dialometer.model.session import Source
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.numbers import count_items
from dialometer.web.dashboard.pages.studies import numbers_of
from dialometer.web.dashboard.records import disagreement, item_record
from dialometer.web.dashboard.running_studies import NoStudy, RunningStudy
from dialometer.web.dashboard.table import Grid, GridColumn

_COLUMNS = (
    GridColumn("item", "Item"),
    GridColumn("block", "Block", is_facet=True),
    GridColumn("systems", "Systems", "marks"),
    GridColumn("done", "Raters", "count"),
    GridColumn("reserved", "Under way", "count"),
    GridColumn("wanted", "Wanted", "count"),
    GridColumn("missing", "Missing", "count"),
    GridColumn("disagreement", "Disagreement", "number"),
)


@page("/studies/{study}/items", role="viewer", of_running=True)
def items(dashboard: Dashboard, request: PageRequest) -> Response:
    """A table of items: how often judged, how often wanted, how much raters disagree."""
    running = request.running
    source = numbers_of(dashboard, running, request.at_ms).source
    grid = dashboard.cached(running, "items", lambda: _grid(running, request.root, source))
    view = grid.view(request.query)
    if request.query.get("format") == "csv":
        return view.csv()
    return dashboard.show_study("items.html", request, grid=view, tab="items")


def _grid(running: RunningStudy, root: str, source: Source) -> Grid:
    spread = disagreement(running, source)
    rows = [
        {
            "item": one.id,
            "href": f"{root}/desk/studies/{running.name}/items/{one.id}",
            "block": one.block,
            "systems": list(running.study.items_by_id[one.id].systems),
            "done": one.done,
            "reserved": one.reserved,
            "wanted": one.wanted,
            "missing": None if one.wanted is None else max(0, one.wanted - one.done),
            "disagreement": spread.get(one.id),
        }
        for one in count_items(running.study, running.store, source)
    ]
    return Grid(f"{running.name}-items", _COLUMNS, rows)


@page("/studies/{study}/items/{item:path}", role="viewer", of_running=True)
def item(dashboard: Dashboard, request: PageRequest) -> Response:
    """One item: the dialogue, the answers side by side, and how far they lie apart."""
    running = request.running
    found = running.study.items_by_id.get(request.params["item"])
    if found is None:
        raise NoStudy("there is no such item", remedy="go back to the list of items")
    source = numbers_of(dashboard, running, request.at_ms).source
    record = dashboard.cached(running, ("item", found.id), lambda: item_record(running, found, source))
    if request.query.get("format") == "csv":
        return record.grid.view(request.query).csv()
    chats = running.store.conversations.n_turns_on(found.id) if isinstance(found, ChatItem) else {}
    view = record.grid.view(request.query)
    return dashboard.show_study(
        "item.html", request, item=found, source=source, record=record, grid=view, chats=chats, tab="items"
    )
