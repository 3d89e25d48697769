"""Every figure as a drawing to scale (SVG), as pixels (PNG) and as the numbers it draws (CSV), for papers and slides."""

from __future__ import annotations

import json
from pathlib import Path

from dialometer.model.report import Figure
from dialometer.report.drawing import DrawingError
from dialometer.report.formats.csv_tables import csv_cell
from dialometer.report.render import FORMATS, Rendering


@FORMATS.register("figures")
def write(rendering: Rendering) -> list[Path]:
    """``figures/<name>.svg``, ``.png`` and ``.csv``; a figure that cannot be drawn is named in the page instead."""
    folder = rendering.folder / "figures"
    written: list[Path] = []
    for figure, name in rendering.figures():
        try:
            svg = rendering.drawings.svg(figure)
        except DrawingError:
            continue
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.svg"
        path.write_text(svg, encoding="utf-8", newline="\n")
        pixels = path.with_suffix(".png")
        pixels.write_bytes(rendering.drawings.png(figure))
        data = path.with_suffix(".csv")
        data.write_text(data_csv(figure), encoding="utf-8", newline="\n")
        written += [path, pixels, data]
    return written


def data_csv(figure: Figure) -> str:
    """What a figure draws, one row for each mark; lines that only help to read it are left out."""
    rows = [row for row in figure.spec.get("data", {}).get("values", ()) if row]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([row.get(name) for name in columns] for row in rows)]
    return "".join(",".join(csv_cell(_plain(value)) for value in line) + "\n" for line in lines)


def _plain(value: object) -> str | int | float | bool | None:
    """A value for one cell; what has parts of its own is written as JSON."""
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
