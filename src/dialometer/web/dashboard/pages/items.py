"""All items of a study against their quota, and one item with everything that was said about it."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.model.item import ChatItem
from dialometer.model.session import Source
from dialometer.web.dashboard.dashboard import Desk, Visit, page
from dialometer.web.dashboard.numbers import count_items
from dialometer.web.dashboard.pages.studies import numbers_of
from dialometer.web.dashboard.records import disagreement, item_record
from dialometer.web.dashboard.running_studies import NoStudy, Running
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
def items(desk: Desk, visit: Visit) -> Response:
    """A table of items: how often judged, how often wanted, how much raters disagree."""
    running = desk.of(visit)
    source = numbers_of(desk, running, visit.at_ms).source
    grid = desk.kept(running, "items", lambda: _grid(running, visit.root, source))
    view = grid.view(visit.query)
    if visit.query.get("format") == "csv":
        return view.csv()
    return desk.show_study("items.html", visit, grid=view, tab="items")


def _grid(running: Running, root: str, source: Source) -> Grid:
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
def item(desk: Desk, visit: Visit) -> Response:
    """One item: the dialogue, the answers side by side, and how far they lie apart."""
    running = desk.of(visit)
    found = running.study.items_by_id.get(visit.params["item"])
    if found is None:
        raise NoStudy("there is no such item", remedy="go back to the list of items")
    record = desk.kept(running, ("item", found.id), lambda: item_record(running, found))
    if visit.query.get("format") == "csv":
        return record.grid.view(visit.query).csv()
    chats = running.store.chats_on(found.id) if isinstance(found, ChatItem) else []
    view = record.grid.view(visit.query)
    return desk.show_study("item.html", visit, item=found, record=record, grid=view, chats=chats, tab="items")
