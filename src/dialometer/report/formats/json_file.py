"""The whole report as JSON: every estimate in full, and it reads back."""

from __future__ import annotations

from pathlib import Path

from dialometer.report.coding import report_to_json
from dialometer.report.render import FORMATS, Rendering


@FORMATS.register("json")
def write(rendering: Rendering) -> list[Path]:
    """``report.json``; see :func:`dialometer.report.read_report`."""
    path = rendering.folder / "report.json"
    path.write_text(report_to_json(rendering.report), encoding="utf-8", newline="\n")
    return [path]
