"""Every table as CSV for other software: full precision, an estimate as several columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from dialometer.formula_cells import escaped_text
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Table
from dialometer.report.render import FORMATS, Rendering

_FIELDS = ("low", "high", "n", "method")


@FORMATS.register("csv")
def write(rendering: Rendering) -> list[Path]:
    """``tables/<name>.csv``. Nothing between two commas means "not enough data"; an empty text is ``""``."""
    folder = rendering.folder / "tables"
    written = []
    for table, name in rendering.tables():
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.csv"
        path.write_text(csv_text(table), encoding="utf-8", newline="\n")
        written.append(path)
    return written


def csv_text(table: Table) -> str:
    """The table as CSV. Shares stay shares (0 to 1); an estimate ``x`` gives x, x_low, x_high, x_n, x_method and so on."""
    cells = [[row[i] for row in table.rows] for i in range(len(table.columns))]
    fields = [_fields(column, own) for column, own in zip(table.columns, cells, strict=True)]
    header = [
        name
        for column, own in zip(table.columns, fields, strict=True)
        for name in (column.name, *(f"{column.name}_{field}" for field in own))
    ]
    lines = [",".join(map(csv_cell, header))]
    for row in table.rows:
        values = [
            value
            for column, cell, own in zip(table.columns, row, fields, strict=True)
            for value in (_value(column, cell), *(_field(cell, field) for field in own))
        ]
        lines.append(",".join(map(csv_cell, values)))
    return "\n".join(lines) + "\n"


def _fields(column: Column, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Which columns beside the value an estimate column needs; p-values and notes only where there are any."""
    estimates = [cell for cell in cells if isinstance(cell, Estimate)]
    if column.kind not in ("estimate", "percent_estimate") and not estimates:
        return ()
    extra = ("p_value",) if any(not math.isnan(e.p_value) for e in estimates) and column.kind != "p_value" else ()
    return (*_FIELDS, *extra, *(("note",) if any(e.notes for e in estimates) else ()))


def _value(column: Column, cell: Cell) -> Cell:
    if isinstance(cell, Estimate):
        return cell.p_value if column.kind == "p_value" else cell.value
    return cell


def _field(cell: Cell, field: str) -> Cell:
    if not isinstance(cell, Estimate):
        return None
    if field == "note":
        return "; ".join(cell.notes) or None
    value: Cell = getattr(cell, field)
    return value


def csv_cell(value: Cell) -> str:
    """One value between two commas. A spreadsheet shows a text as it is and does not run it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = escaped_text(value)
        quoted = text.replace('"', '""')
        return f'"{quoted}"' if not text or any(c in text for c in ',"\r\n') else text
    return repr(float(value)) if isinstance(value, float) else str(value)
