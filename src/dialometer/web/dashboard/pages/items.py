"""All items of a study with their quota, and one item with all its answers."""

from __future__ import annotations

from starlette.responses import Response

from dialometer.flow.language import SOURCE, Language
from dialometer.model.design import Presentation
from dialometer.model.dialogue import Turn
from dialometer.model.item import ArenaItem, ChatItem
from dialometer.web.dashboard.dashboard import Dashboard, PageRequest, page
from dialometer.web.dashboard.numbers import StudyNumbers
from dialometer.web.dashboard.pages.studies import numbers_of
from dialometer.web.dashboard.records import disagreement, item_record
from dialometer.web.dashboard.running_studies import NoStudy, RunningStudy
from dialometer.web.dashboard.table import Grid, GridColumn
from dialometer.web.dashboard.translating import current_language
from dialometer.web.rater.layout import Bubble, Piece
from dialometer.web.rater.turn_drawing import TurnDrawing
from dialometer.web.server.media import study_media

_COLUMNS = (
    GridColumn("item", "Item"),
    GridColumn("block", "Block", is_facet=True),
    GridColumn("systems", "Systems", "marks"),
    GridColumn("done", "Raters", "count"),
    GridColumn("reserved", "Under way", "count"),
    GridColumn("wanted", "Wanted", "count"),
    GridColumn("missing", "Missing", "count"),
    GridColumn("disagreement", "Disagreement", "number", digits=2),
)


@page("/studies/{study}/items", role="viewer", of_running=True)
def items(dashboard: Dashboard, request: PageRequest) -> Response:
    """A table of items: how often judged, how often wanted, how much raters disagree."""
    running = request.running
    numbers = numbers_of(dashboard, running, request.at_ms, request.group)
    table = dashboard.cached(running, ("items", numbers.group), lambda: _grid(running, request.root, numbers))
    return dashboard.show_table("items.html", request, table, tab="items")


def _grid(running: RunningStudy, root: str, numbers: StudyNumbers) -> Grid:
    spread = disagreement(running, numbers.sources)
    rows = [
        {
            "item": counts.id,
            "href": f"{root}/dashboard/studies/{running.name}/items/{counts.id}",
            "block": counts.block,
            "systems": list(running.study.items_by_id[counts.id].systems),
            "done": counts.done,
            "reserved": counts.reserved,
            "wanted": counts.wanted,
            "missing": None if counts.wanted is None else max(0, counts.wanted - counts.done),
            "disagreement": spread.get(counts.id),
        }
        for counts in numbers.items
    ]
    return Grid(f"{running.name}-items", _COLUMNS, rows)


@page("/studies/{study}/items/{item:path}", role="viewer", of_running=True)
def show_item(dashboard: Dashboard, request: PageRequest) -> Response:
    """One item: the dialogue, the answers side by side, and how far they lie apart."""
    running = request.running
    item = running.study.items_by_id.get(request.params["item"])
    if item is None:
        raise NoStudy("there is no such item", remedy="go back to the list of items")
    numbers = numbers_of(dashboard, running, request.at_ms, request.group)
    record = dashboard.cached(
        running,
        ("item", item.id, numbers.group, current_language()),
        lambda: item_record(running, item, numbers.sources),
    )
    chats = running.store.conversations.n_turns_on(item.id) if isinstance(item, ChatItem | ArenaItem) else {}
    content = {"item": item, "record": record, "chats": chats, "tab": "items", **_drawing(running, request)}
    return dashboard.show_table("item.html", request, record.grid, **content)


@page("/studies/{study}/media/{file}", role="viewer", of_running=True)
def media(_dashboard: Dashboard, request: PageRequest) -> Response:
    """Images, sounds and videos of the items."""
    return study_media(request.running.study).response(request.params["file"])


def _drawing(running: RunningStudy, request: PageRequest) -> dict[str, object]:
    """What the raters' templates need to draw turns here: everything shown, nothing cut."""
    language = Language(SOURCE)
    return {
        "t": language.text,
        "tn": language.count,
        "lang": language,
        "drawn": TurnDrawing(running.study, f"{request.root}/dashboard/studies/{running.name}"),
        "display": Presentation(text="markdown" if running.study.shows_markdown else "plain"),
        "bubble_of": _bubble,
    }


def _bubble(turn: Turn) -> Bubble:
    return Bubble(turn.speaker, "start", turn, (Piece(turn.text),))
