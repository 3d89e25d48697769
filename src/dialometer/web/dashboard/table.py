"""Tables that sort, filter and export to CSV. Their state is in the address, so a page that renews itself keeps it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.responses import Response

from dialometer.formula_cells import escaped_text
from dialometer.web.server.requests import small_number

Kind = Literal["text", "count", "number", "time", "marks", "money"]
N_PER_PAGE = 100


@dataclass(frozen=True)
class GridColumn:
    """A column: its key in rows and CSV, its heading, and how its values are shown. Facets can be chosen from."""

    name: str
    label: str
    kind: Kind = "text"
    is_facet: bool = False
    digits: int = 1
    """Decimals of a number, the same in every row."""


Row = Mapping[str, Any]
"""Values by column; ``href`` makes the first column a link."""


@dataclass(frozen=True)
class Grid:
    """A whole table, before sorting and filtering."""

    name: str
    columns: Sequence[GridColumn]
    rows: Sequence[Row]
    start: str = ""
    """The column that sorts the rows at first; a leading minus reverses the order."""

    def view(self, query: QueryParams) -> GridView:
        """The table sorted and filtered as the address says."""
        chosen = {c.name: query.get(f"only_{c.name}", "") for c in self.columns if c.is_facet}
        wanted = query.get("q", "").strip()
        rows = [row for row in self.rows if self._fits(row, wanted, chosen)]
        names = [column.name for column in self.columns]
        given = query.get("sort", self.start)
        order = given if given.lstrip("-") in names else self.start
        if order:
            rows = _sorted(rows, order.lstrip("-"), is_falling=order.startswith("-"))
        page_text = query.get("page", "1")
        n_pages = max(1, -(-len(rows) // N_PER_PAGE))
        page = min(n_pages, max(1, small_number(page_text) or 1))
        return GridView(self, rows, wanted, chosen, order, page, n_pages)

    @staticmethod
    def _fits(row: Row, wanted: str, chosen: Mapping[str, str]) -> bool:
        if any(value and str(row.get(name, "")) != value for name, value in chosen.items()):
            return False
        return not wanted or any(wanted.lower() in text.lower() for text in _texts(row))

    def options(self, name: str) -> list[str]:
        """The values of a facet that occur."""
        return sorted({str(row.get(name, "")) for row in self.rows} - {""})


@dataclass(frozen=True)
class GridView:
    """A table, sorted and filtered, one page at a time."""

    grid: Grid
    rows: Sequence[Row]
    wanted: str
    chosen: Mapping[str, str]
    order: str
    page: int
    n_pages: int

    @property
    def shown(self) -> Sequence[Row]:
        """The rows of this page."""
        return self.rows[(self.page - 1) * N_PER_PAGE : self.page * N_PER_PAGE]

    def link(self, **changes: str | int) -> str:
        """The address of the same table with something changed."""
        state: dict[str, str | int] = {"q": self.wanted, "sort": self.order, "page": self.page}
        state |= {f"only_{name}": value for name, value in self.chosen.items()}
        state |= changes
        return "?" + urlencode({key: value for key, value in state.items() if value not in ("", 1)})

    def sort_link(self, name: str) -> str:
        """The address that sorts by a column, in reverse if it is sorted by it already."""
        return self.link(sort=f"-{name}" if self.order == name else name, page=1)

    def direction(self, name: str) -> str:
        """How a column is sorted, in the words of aria-sort."""
        if self.order.lstrip("-") != name:
            return "none"
        return "descending" if self.order.startswith("-") else "ascending"

    def csv(self) -> Response:
        """All matching rows as CSV, not only those of this page."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        writer.writerow([column.name for column in self.grid.columns])
        for row in self.rows:
            writer.writerow([_plain(row.get(column.name), column.kind) for column in self.grid.columns])
        headers = {"content-disposition": f'attachment; filename="{self.grid.name}.csv"'}
        return Response("\ufeff" + out.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _texts(row: Row) -> list[str]:
    return [
        text
        for name, value in row.items()
        if name != "href"
        for text in (map(str, value) if isinstance(value, list | tuple) else (str(value),))
    ]


def _sorted(rows: Sequence[Row], name: str, *, is_falling: bool) -> list[Row]:
    """Rows in order; unknown values come last either way."""
    known = [row for row in rows if row.get(name) is not None]
    key: Callable[[Row], Any] = lambda row: _comparable(row[name])  # noqa: E731
    return [*sorted(known, key=key, reverse=is_falling), *(row for row in rows if row.get(name) is None)]


def _comparable(value: Any) -> tuple[int, Any]:
    if isinstance(value, list | tuple):
        return (1, ", ".join(map(str, value)).lower())
    return (0, value) if isinstance(value, int | float) else (1, str(value).lower())


def _plain(value: Any, kind: Kind) -> str:
    """A value for a spreadsheet: times in UTC, and no formulas."""
    if value is None:
        return ""
    if kind == "time":
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if value else ""
    if isinstance(value, bool | int | float):
        return str(value)
    return escaped_text("; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
