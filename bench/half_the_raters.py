"""Does a judge really replace half of the raters? The two studies of the tutorial, over many seeds.

    python -m bench.half_the_raters [--seeds 20] [--item-sd 1] [--noise 0.25]

Each seed simulates both studies of docs/tutorial/half-the-raters.md with the template's own analysis: 16 raters of a quarter of
the questions with the judge, and 32 raters of half of them without it. Printed are the widths of the 95 % confidence intervals
of the difference between the two systems.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "dialometer", *words], check=True, capture_output=True)


def width(folder: Path, seed: int, raters: int, item_sd: float) -> float:
    """The width of the interval that decides the study."""
    for name in ("study.db", "simulation.json"):
        (folder / name).unlink(missing_ok=True)
    run("simulate", str(folder), "--raters", str(raters), "--seed", str(seed), "--item-sd", str(item_sd))
    run("report", str(folder), "--resamples", "200", "--out", str(folder / "report"))
    summary = json.dumps(
        json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))["summary"], ensure_ascii=False
    )
    found = re.search(r"95% confidence interval ([−\d.]+) to ([−\d.]+)", summary)
    assert found, summary
    low, high = (float(number.replace("−", "-")) for number in found.groups())
    return high - low


def main() -> None:
    """Both studies for every seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--item-sd", type=float, default=1.0)
    parser.add_argument("--noise", type=float, default=0.25)
    given = parser.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory() as place:
        both, alone = Path(place) / "both", Path(place) / "alone"
        for folder in (both, alone):
            run("new", "judged", str(folder))
        text = (both / "study.yaml").read_text(encoding="utf-8")
        (both / "study.yaml").write_text(text.replace("noise_sd: 0.25", f"noise_sd: {given.noise:g}"), encoding="utf-8")
        lines = [line for line in text.splitlines() if "use: [reader]" not in line and "simulated:" not in line]
        (alone / "study.yaml").write_text(
            "\n".join(lines).replace("share: 0.25", "share: 0.5") + "\n", encoding="utf-8"
        )
        for seed in range(1, given.seeds + 1):
            pairs.append((width(both, seed, 16, given.item_sd), width(alone, seed, 32, given.item_sd)))
            print(
                f"seed {seed}: 16 raters and the judge {pairs[-1][0]:.2f}, 32 raters alone {pairs[-1][1]:.2f}",
                flush=True,
            )
    medians = [statistics.median(side) for side in zip(*pairs, strict=True)]
    n_narrower = sum(first < second for first, second in pairs)
    print(
        f"median width: {medians[0]:.2f} and {medians[1]:.2f}; narrower with the judge in {n_narrower} of {len(pairs)}"
    )


if __name__ == "__main__":
    main()
