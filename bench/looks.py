"""Looking early: how often is a difference claimed at any look where there is none, and what do looks cost and save?

Whole simulated studies, analysed by the declared test at every tenth of their raters. The same p-values are then read in four
ways: as if each look were the only one, with looks at any time, and with five planned looks (alpha spending). A study
ends at the first look that claims anything. ``python -m bench.looks --only likert --studies 1000`` prints figures; the
table in docs/explanation/looking-early.md holds them all.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.calibrate.cells import EFFECT, study_of
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.planning.power import primary_tests
from dialometer.analysis.planning.simulated_study import Assumptions, planted, simulated_data
from dialometer.analysis.shared.looks import LATER
from dialometer.errors import DialometerError
from dialometer.model.study import Study
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.effects.multiplicity import adjust, at_look
from dialometer.stats.sequential.anytime import AnytimeLook
from dialometer.stats.sequential.look import SequentialLook
from dialometer.stats.sequential.planned import PlannedLook

N_RATERS = {"acute": 100, "likert": 100, "strategies": 140}
N_ITEMS = {"strategies": 40}
WAYS = ("each look alone", "anytime", "obrien_fleming", "pocock")
ALPHA = 0.05
Row = list[tuple[int, list[float]]]


def study(design: str) -> Study:
    """The template; of the Likert template two systems are compared, as in most studies."""
    made = study_of(design, N_ITEMS.get(design))
    if design != "likert":
        return made
    analysis = made.spec.analysis
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


def measured(design: str, n_studies: int, seed: int, *, has_effect: bool) -> dict[str, object]:
    """Claims and raters of each way of looking, over many studies."""
    planned, plan = N_RATERS[design], study(design)
    rows = []
    for number in range(n_studies):
        own = int(np.random.SeedSequence([seed, number, int(has_effect)]).generate_state(1)[0])
        truth, habits, shifts = planted(plan, EFFECT[design] if has_effect else 0.0, own, Assumptions())
        data = simulated_data(plan, truth, habits, n_raters=round(1.15 * planned), seed=own, shifts=shifts)
        rows.append(looks_of(data, planned))
    out: dict[str, object] = {"design": design, "effect": EFFECT[design] if has_effect else 0.0, "studies": n_studies}
    fixed = [bool(p and np.any(adjust(p, "holm") <= ALPHA)) for p in (row[-1][1] for row in rows)]
    out["fixed"] = {"claims": _share(sum(fixed), n_studies), "raters": planned}
    for way in WAYS:
        ended = [first_claim(row, way, planned) for row in rows]
        out[way] = {
            "claims": _share(sum(n > 0 for n in ended), n_studies),
            "raters": float(np.mean([n or planned for n in ended])),
        }
    return out


def _share(k: int, n: int) -> list[float]:
    share = proportion(k, n)
    return [round(number, 4) for number in (share.value, share.low, share.high)]


def main(arguments: Sequence[str] = ()) -> None:
    """Runs the designs and prints each result as a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.looks", description=__doc__)
    parser.add_argument("--only", default="", help="one of " + ", ".join(N_RATERS))
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file to which the lines are added")
    given = parser.parse_args(list(arguments))
    for design in [given.only] if given.only else N_RATERS:
        for has_effect in (False, True):
            began = time.process_time()
            line = measured(design, given.studies, given.seed, has_effect=has_effect)
            text = json.dumps({**line, "cpu_s": round(time.process_time() - began, 1)})
            print(text, flush=True)
            if given.out:
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
