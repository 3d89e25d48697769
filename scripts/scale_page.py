"""The measured tables and charts of docs/scale.md, from what ``make load`` measured: ``python scripts/scale_page.py FILE …``.

Each FILE is JSON that ``bench.server --humans`` or ``bench.storage --growth`` wrote. The figures are kept in
docs/assets/scale.json, so that the page can be written again without measuring; text between the two marks of the page is
replaced, and the charts are drawn anew.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
KEPT = DOCS / "assets" / "scale.json"
PAGE = DOCS / "scale.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
CHARTS = {
    "arrival": ("Processor time of an arrival", "ms", {"arrival_ms": "arrival"}),
    "dashboard": ("Processor time of dashboard pages", "s", {"items_s": "items", "raters_s": "raters"}),
    "report": ("Processor time of report and import", "s", {"report_s": "report", "import_s": "import"}),
    "memory": ("Memory of report and import", "MB", {"report_mb": "report", "import_mb": "import"}),
}
COLOURS = ("#2a6f97", "#bc4b51")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 560, 280, 64, 40, 90, 44


def main() -> None:
    """Add new figures to those that are kept, then write page and charts."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for name in sys.argv[1:]:
        kept |= json.loads(Path(name).read_text(encoding="utf-8"))
    if sys.argv[1:]:
        kept["measured"] = f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.system()}"
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    for name, (title, unit, series) in CHARTS.items():
        target = DOCS / "assets" / f"scale-{name}.svg"
        target.write_text(chart(kept.get("growth", []), title, unit, series), encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + measured(kept) + END + rest.split(END)[1], encoding="utf-8")


def measured(kept: dict[str, Any]) -> str:
    """The tables in Markdown."""
    lines = [f"Measured {kept.get('measured', '')}.", ""]
    if kept.get("humans"):
        lines += [
            "| raters | processes | requests | failed | requests per CPU-second | submission p50 / p95 / p99 | "
            "page p50 / p95 / p99 |",
            "|---:|---:|---:|---:|---:|---:|---:|",
        ]
        for row in kept["humans"]:
            waits = (
                " / ".join(f"{row[f'{what}_p{p}_ms']:.0f}" for p in (50, 95, 99)) + " ms"
                for what in ("submission", "page")
            )
            lines.append(
                f"| {row['raters']:,} | {row['workers']} | {row['requests']:,} | {row['failed']} | "
                f"{row['requests_per_cpu_s']:,.0f} | {' | '.join(waits)} |"
            )
        lines.append("")
    if kept.get("growth"):
        lines += [
            "| judgments | arrival | items page (first look) | raters page | report | import | database |",
            "|---:|---:|---:|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {row['judgments']:,} | {row['arrival_ms']:.1f} ms | {row['items_s']:.2f} s ({row['items_first_s']:.1f} s) | "
            f"{row['raters_s']:.2f} s | {row['report_s']:.1f} s, {row['report_mb']:,.0f} MB | "
            f"{row['import_s']:.1f} s, {row['import_mb']:,.0f} MB | {row['database_mb']:,.0f} MB |"
            for row in kept["growth"]
        ]
        lines.append("")
    if kept.get("postgres"):
        lines += ["| judgments on PostgreSQL | arrival, the database's own time included |", "|---:|---:|"]
        lines += [f"| {row['judgments']:,} | {row['arrival_ms']:.0f} ms |" for row in kept["postgres"]]
        lines.append("")
    return "\n".join(lines)


def round_step(most: float) -> float:
    """A quarter of the axis, as a round number: four of them hold the largest value."""
    size = 10 ** math.floor(math.log10(most / 4))
    return next(factor * size for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 8, 10) if 4 * factor * size >= most * 1.02)


def chart(rows: list[dict[str, float]], title: str, unit: str, series: dict[str, str]) -> str:
    """Costs against the number of judgments, both from zero, so that a straight line is linear growth."""
    most_x = max((row["judgments"] for row in rows), default=1)
    step_y = round_step(max((row[name] for row in rows for name in series), default=1) or 1)
    most_y = 4 * step_y
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + wide * x / most_x, TOP + high * (1 - y / most_y)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="13"><title>{title} by size of the study</title>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="15" fill="#222">{title} ({unit})</text>',
    ]
    for step in range(5):
        y = step_y * step
        _, down = at(0, y)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{down:.1f}" y2="{down:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{down + 4:.1f}" text-anchor="end" fill="#444">{y:,g}</text>')
    for x in (0.0, most_x / 2, most_x):
        across, _ = at(x, 0)
        parts.append(f'<text x="{across:.1f}" y="{HEIGHT - 22}" text-anchor="middle" fill="#444">{x:,.0f}</text>')
    parts.append(f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 5}" text-anchor="middle" fill="#444">judgments</text>')
    labelled: list[float] = []
    for colour, (name, label) in zip(COLOURS, series.items(), strict=False):
        points = [at(row["judgments"], row[name]) for row in rows]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        if points:
            down = points[-1][1] + 4
            down = down - 14 if any(abs(down - other) < 12 for other in labelled) else down
            labelled.append(down)
            parts.append(f'<text x="{points[-1][0] + 8:.1f}" y="{down:.1f}" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    main()
