"""Looking early: how often is a difference claimed at any look where there is none, and what do looks cost and save?

Whole simulated studies, analysed by the declared test at every tenth of their raters. The same p-values are then read in four
ways: as if each look were the only one, with looks at any time, and with five planned looks (alpha spending). A study
ends at the first look that claims anything. ``python -m bench.looks --studies 400`` prints the table of
docs/explanation/looking-early.md; it continues where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from bench.calibrate.cells import EFFECT, study_of
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.planning.power import primary_tests
from dialometer.analysis.planning.simulated_study import Assumptions, planted, simulated_data
from dialometer.analysis.shared.looks import LATER
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.study import Study
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.effects.multiplicity import adjust, at_look
from dialometer.stats.sequential.anytime import AnytimeLook
from dialometer.stats.sequential.look import SequentialLook
from dialometer.stats.sequential.planned import PlannedLook

N_RATERS = {"acute": 100, "likert": 100, "strategies": 140, "likert, items fixed": 100}
N_ITEMS = {"strategies": 40}
WAYS = ("each look alone", "anytime", "obrien_fleming", "pocock")
ALPHA = 0.05
Row = list[tuple[int, list[float]]]


@lru_cache
def study(design: str) -> Study:
    """The template; of the Likert template two systems are compared, as in most studies, on items that are a sample or not."""
    name, _, rest = design.partition(", ")
    made = study_of(name, N_ITEMS.get(name))
    if name != "likert":
        return made
    analysis = made.spec.analysis.model_copy(update={"items": "fixed" if rest else "sample"})
    two = analysis.comparisons[0].model_copy(update={"levels": analysis.comparisons[0].levels[:2]})
    spec = made.spec.model_copy(
        update={"analysis": analysis.model_copy(update={"comparisons": [two, *analysis.comparisons[1:]]})}
    )
    return replace(made, spec=spec)


def looks_of(data: StudyData, n_planned: int) -> Row:
    """At each tenth of the raters the p-values of the declared tests, as if it were the only look."""
    raters = data.raters_by_finish()
    options = replace(Options.declared(data.study), correction="none", n_resamples=100)
    row: Row = []
    for n in range(n_planned // 10, n_planned + 1, n_planned // 10):
        try:
            tests = primary_tests(data.of_raters(raters[:n], LATER), options)
        except DialometerError:
            tests = {}
        row.append((n, [test.p_value for test in tests.values()]))
    return row


def first_claim(row: Row, way: str, n_planned: int) -> int:
    """The raters at the first look that claims a difference; 0 where none does."""
    reached: list[int] = []
    planned = tuple(n for n, _ in row[1::2])
    for n, p_values in row:
        look: SequentialLook | None = None
        if way == "anytime":
            look = AnytimeLook(n, n_planned, ALPHA)
        elif way in ("obrien_fleming", "pocock"):
            if n not in planned:
                continue
            reached.append(n)
            look = PlannedLook(tuple(reached), planned, "pocock" if way == "pocock" else "obrien_fleming")
        adjusted = adjust(p_values, at_look("holm", look) if look else "holm") if p_values else np.empty(0)
        if np.any(adjusted <= ALPHA):
            return n
    return 0


def looked(design: str, number: int, seed: int, *, has_effect: bool) -> Row:
    """One simulated study at all its looks."""
    plan, effect = study(design), 0.2 if "fixed" in design else EFFECT[design]
    own = int(np.random.SeedSequence([seed, number, int(has_effect)]).generate_state(1)[0])
    truth, habits, shifts = planted(plan, effect if has_effect else 0.0, own, Assumptions())
    n_raters = round(1.15 * N_RATERS[design])  # some are excluded
    return looks_of(simulated_data(plan, truth, habits, n_raters=n_raters, seed=own, shifts=shifts), N_RATERS[design])


def summary(rows: Sequence[Row], n_planned: int) -> dict[str, tuple[Estimate, float]]:
    """For the fixed design and each way of looking: the share of studies with a claim, and the mean number of raters."""
    fixed = [bool(p and np.any(adjust(p, "holm") <= ALPHA)) for p in (row[-1][1] for row in rows)]
    out = {"fixed": (proportion(sum(fixed), len(rows)), float(n_planned))}
    for way in WAYS:
        ended = [first_claim(row, way, n_planned) for row in rows]
        mean = float(np.mean([n or n_planned for n in ended]))
        out[way] = proportion(sum(n > 0 for n in ended), len(rows)), mean
    return out


def table(rows: dict[str, list[Row]]) -> str:
    """The rows as a table of the documentation."""
    names = {
        "fixed": "fixed number of raters",
        "each look alone": "ten looks, uncorrected",
        "anytime": "`looks: anytime`, ten looks",
    }
    names |= {way: f"five planned looks, `{way}`" for way in ("obrien_fleming", "pocock")}
    lines = ["| design | way of looking | false claims at any look | power | raters, mean |", "|---|---|---|---|---|"]
    for design, n_planned in N_RATERS.items():
        null, effect = rows[f"{design}-0"], rows[f"{design}-1"]
        if not null or not effect:
            continue
        nulls, effects = summary(null, n_planned), summary(effect, n_planned)
        for way, words in names.items():
            wrong, (power, raters) = nulls[way][0], effects[way]
            shown = f"{100 * wrong.value:.1f} % ({100 * wrong.low:.1f} to {100 * wrong.high:.1f})"
            lines.append(f"| {design} | {words} | {shown} | {100 * power.value:.0f} % | {raters:.0f} of {n_planned} |")
        lines.append(f"| | | {len(null):,} studies | {len(effect):,} studies | |")
    return "\n".join(lines)


def main(arguments: Sequence[str] = ()) -> None:
    """Adds studies to a file until there are enough of each design, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.looks", description=__doc__)
    parser.add_argument("--studies", type=int, default=400, help="without an effect; half as many with one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--rows", type=Path, default=Path("looks.jsonl"), help="where studies are kept, to continue later"
    )
    parser.add_argument("--only", default="", help="only this design, such as 'likert, items fixed'")
    given = parser.parse_args(list(arguments))
    rows: dict[str, list[Row]] = {f"{design}-{effect}": [] for design in N_RATERS for effect in (0, 1)}
    if given.rows.exists():
        for line in given.rows.read_text(encoding="utf-8").splitlines():
            kept = json.loads(line)
            rows[kept["cell"]].append(kept["row"])
    with given.rows.open("a", encoding="utf-8") as file:
        for number in range(given.studies):
            for cell, done in rows.items():
                design, effect = cell.rsplit("-", 1)
                is_wanted = given.only in ("", design) and (effect == "0" or number < given.studies // 2)
                if is_wanted and len(done) <= number:
                    done.append(looked(design, number, given.seed, has_effect=effect == "1"))
                    file.write(json.dumps({"cell": cell, "row": done[-1]}) + "\n")
                    file.flush()
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
