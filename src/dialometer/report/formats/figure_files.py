"""Every figure as a drawing to scale (SVG) and as pixels (PNG), for papers and slides."""

from __future__ import annotations

from pathlib import Path

from dialometer.report.drawing import DrawingError
from dialometer.report.render import FORMATS, Rendering


@FORMATS.register("figures")
def write(rendering: Rendering) -> list[Path]:
    """``figures/<name>.svg`` and ``.png``; a figure that cannot be drawn is named in the page instead."""
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
        written += [path, pixels]
    return written
