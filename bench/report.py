"""A whole report on a million judgments beside itself on a hundred thousand: ``python -m bench.report``.

Each size runs in a process of its own, so that its peak of memory is its own. Judgments are simulated as arrays and handed
to the analysis as study data; what is timed is ``analyse`` alone. The floor is linear growth: ten times the data may take
at most ten times as long, and no size may need more than 2 GB. Both a complete design (few things rated by many raters) and
a sparse one (many items, a few by each rater) are measured, because they take different roads.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from dialometer.analysis.base.choose import analyse
from dialometer.analysis.base.data import data_from_arrays
from dialometer.design.load import load_study
from dialometer.design.templates import copy_template
from dialometer.simulate.judgment_arrays import simulate_judgments
from dialometer.simulate.rater import Habits
from dialometer.simulate.truth import draw_truth

SIZES = (100_000, 1_000_000)
MOST_BYTES = 2_000_000_000
SEED = 5
DESIGNS = {
    "complete": "anchoring: 150 things rated on 2 criteria by every rater, 4 conditions",
    "sparse": "likert: 20 of 2,000 items by each rater, 3 systems, 3 criteria",
}


def study_of(design: str, folder: Path) -> Any:
    """The study; the sparse one has its items multiplied."""
    copy_template("anchoring" if design == "complete" else "likert", folder)
    if design == "sparse":
        path = folder / "items.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        plain = [row for row in rows if row["id"].startswith("t")]
        rest = [row for row in rows if not row["id"].startswith("t")]
        many = [{**row, "id": f"{row['id']}x{copy}"} for copy in range(100) for row in plain]
        path.write_text("".join(json.dumps(row) + "\n" for row in [*rest, *many]), encoding="utf-8")
        study = folder / "study.yaml"
        text = study.read_text(encoding="utf-8").replace("items_per_rater: 10", "items_per_rater: 20")
        study.write_text(text, encoding="utf-8")
    return load_study(folder)


def measure(design: str, n_judgments: int) -> dict[str, Any]:
    """Seconds and bytes of one report; called in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        study = study_of(design, Path(folder) / "study")
        per_rater = 300 if design == "complete" else 22 * 9
        n_raters = n_judgments // per_rater
        columns = simulate_judgments(study, draw_truth(study, SEED), Habits(), n_raters=n_raters, seed=SEED)
        minutes = np.random.default_rng(SEED).gamma(20, 3, len(np.unique(columns["rater"])))
        data = data_from_arrays(study, columns, minutes_by_rater=minutes)
        del columns
        before = time.perf_counter()
        report = analyse(study, data)
        seconds = time.perf_counter() - before
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "n_judgments": len(data.judgments),
        "n_raters": n_raters,
        "seconds": seconds,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        "answer": report.summary.answer,
        "problems": [f"{section.name}: {section.problem}" for section in report.sections if section.problem],
    }


def in_own_process(design: str, n_judgments: int) -> dict[str, Any]:
    """The same in a process that does nothing else, linear algebra on one thread as in the command."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "bench.report", design, str(n_judgments)],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(sizes: tuple[int, ...] = SIZES) -> list[dict[str, Any]]:
    """One line per design: the larger size beside the smaller."""
    lines = []
    for design, about in DESIGNS.items():
        small, large = (in_own_process(design, size) for size in sizes)
        growth = (large["seconds"] / small["seconds"]) / (large["n_judgments"] / small["n_judgments"])
        lines.append({"design": design, "about": about, "small": small, "large": large, "growth": growth})
    return lines


def main() -> int:
    """Print the table; 1 where time grows faster than the data or memory passes the limit."""
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
        return 0
    is_behind = False
    print(
        f"{'design':10} {'judgments':>10} {'raters':>7} {'seconds':>9} {'peak MB':>8}  growth (1 is linear, less is better)"
    )
    for line in rows():
        for size in ("small", "large"):
            one = line[size]
            growth = f"{line['growth']:.2f}" if size == "large" else ""
            print(
                f"{line['design']:10} {one['n_judgments']:>10,} {one['n_raters']:>7,} {one['seconds']:>8.1f}s "
                f"{one['peak_bytes'] / 1e6:>8.0f}  {growth}"
            )
        is_behind |= line["growth"] > 1 or line["large"]["peak_bytes"] > MOST_BYTES
    return int(is_behind)


if __name__ == "__main__":
    sys.exit(main())
