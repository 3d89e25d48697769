"""Adaptive assignment: does it claim what is not there, do its intervals hold, and how many raters does it save?

Whole simulated studies of 3, 5 and 8 systems, analysed by their confirmatory test: ratings (every screen shows two of the systems)
and votes (every item is a pair of transcripts), with balanced and with adaptive assignment. Without a difference, false claims
and coverage are counted, at the end and with looks at any time. With one, the comparison of the best two systems is what has to
be decided: its variance v falls with the number of raters n as a / n + b, since items are a sample too, and balanced studies of
n and 2 n raters give a and b. From these follows how many raters a balanced study would need for the variance of the adaptive one.

``python -m bench.adaptive --studies 400 [--only ratings-8] [--write]`` continues where it was stopped; two runs may share the work by
``--only``. ``--write`` puts the table into docs/benchmarks/adaptive.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.planning.power import primary_tests
from dialometer.analysis.planning.simulated_study import Assumptions, simulated_data
from dialometer.analysis.shared.looks import tests_at_looks
from dialometer.design.load import load_study
from dialometer.design.templates import template_folder
from dialometer.model.analysis_plan import Comparison
from dialometer.model.design import Assignment
from dialometer.model.item import PairItem, ResponsesItem, Transcript
from dialometer.model.study import Study, System
from dialometer.simulate.truth import Truth
from dialometer.stats.clustered.proportion import proportion

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "adaptive.md"
MARKS = "<!-- adaptive: written by python -m bench.adaptive --write -->", "<!-- end of adaptive -->"
SIZES = (3, 5, 8)
KINDS = ("ratings", "votes")
TRUTHS = ("equal", "leaders", "steps")
DESIGNS = ("balanced", "adaptive", "balanced twice")
N_RATERS, N_ITEMS, PER_RATER = 100, 60, 10
BEST, SECOND = "s0", "s1"
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of study: what is asked, of how many systems, how good they are, and how raters are assigned."""

    kind: str
    n_systems: int
    truth: str
    design: str

    @property
    def name(self) -> str:
        """Its name in the file of rows and for ``--only``."""
        return f"{self.kind}-{self.n_systems}-{self.truth}-{self.design}"


@lru_cache
def study_of(kind: str, n_systems: int, rule: str) -> Study:
    """A study of one question without quality rules, made from a template."""
    template = load_study(template_folder("likert" if kind == "ratings" else "acute"))
    spec, names = template.spec, [f"s{k}" for k in range(n_systems)]
    first = next(item for item in template.rated_items if item.id not in template.gold_ids)
    asked = next(c for c in spec.criteria if c.name in ("helpfulness", "engagingness"))
    items: list[ResponsesItem | PairItem] = []
    if isinstance(first, ResponsesItem):
        items = [replace(first, id=f"i{k}", responses=dict.fromkeys(names, "text"), metadata={}) for k in range(N_ITEMS)]
    elif isinstance(first, PairItem):
        for a, b in combinations(names, 2):
            sides = {"a": Transcript(a, first.a.turns), "b": Transcript(b, first.b.turns)}
            items += [replace(first, id=f"{a}{b}-{k}", metadata={}, **sides) for k in range(N_ITEMS)]
    design = spec.design.model_copy(
        update={
            "items_per_rater": PER_RATER,
            "judgments_per_item": None,
            "systems_per_item": 2 if kind == "ratings" else None,
            "n_practice_items": 0,
            "assignment": Assignment(rule="adaptive" if rule == "adaptive" else "balanced"),
        }
    )
    analysis = spec.analysis.model_copy(
        update={
            "primary": "best",
            "comparisons": [Comparison(name="best", between="systems", criteria=[asked.name])],
            "subgroups": [],
            "looks": "anytime",
        }
    )
    changes = {
        "systems": [System(name=name) for name in names],
        "criteria": [asked],
        "quality": [],
        "design": design,
        "analysis": analysis,
    }
    return Study(spec=spec.model_copy(update=changes), items=tuple(items), texts=template.texts)


def means(truth: str, n: int) -> list[float]:
    """How good the systems are: all alike, two ahead of the others and near each other, or in equal steps."""
    if truth == "equal":
        return [0.0] * n
    if truth == "leaders":
        return [0.8, 0.6] + [0.0] * (n - 2)
    return np.linspace(0.2 * (n - 1), 0.0, n).tolist()


def outcome(cell: Cell, number: int, seed: int) -> dict[str, float]:
    """One simulated study: what it claims, and what it says of the best two systems."""
    plan = study_of(cell.kind, cell.n_systems, cell.design)
    own = int(np.random.SeedSequence([seed, number, SIZES.index(cell.n_systems)]).generate_state(1)[0])
    by_system = {f"s{k}": mean for k, mean in enumerate(means(cell.truth, cell.n_systems))}
    truth = Truth({plan.spec.criteria[0].name: by_system}, item_sd=Assumptions().item_sd, seed=own)
    n_raters = 2 * N_RATERS if cell.design == "balanced twice" else N_RATERS
    data = simulated_data(plan, truth, replace(Assumptions(), careless=0.0).habits(), n_raters=n_raters, seed=own)
    options = replace(Options.declared(plan), n_resamples=100)
    tests = primary_tests(data, options)
    p_values = {label: float(test.details["p_adjusted"]) for label, test in tests.items()}
    best_first = {label: test for label, test in tests.items() if BEST in label.split(" ")}
    top = next(test for label, test in best_first.items() if SECOND in label.split(" "))
    sign = 1.0 if label_of(tests, top).startswith(BEST) else -1.0
    row = {
        "any": float(min(p_values.values()) <= ALPHA),
        "best": float(
            all(
                p_values[label] <= ALPHA and (test.value > 0) == label.startswith(BEST)
                for label, test in best_first.items()
            )
        ),
        "value": sign * top.value,
        "variance": float(top.details["standard_error"]) ** 2,
        "reach": max(top.high - top.value, top.value - top.low),
    }
    if cell.truth == "equal":
        row["covers"] = float(np.mean([test.low <= 0 <= test.high for test in tests.values()]))
        looked = tests_at_looks(data, options, primary_tests) if cell.design == "adaptive" else {}
        row["any_look"] = float(any(test.details["p_adjusted"] <= ALPHA for test in looked.values()))
    return row


def label_of(tests: dict[str, object], test: object) -> str:
    """The label of a test."""
    return next(label for label, one in tests.items() if one is test)


def cells() -> Iterator[Cell]:
    """All kinds of studies; without a difference twice the raters tell nothing."""
    for n in SIZES:
        for kind in KINDS:
            for truth in TRUTHS:
                for design in DESIGNS[: 2 if truth == "equal" else 3]:
                    yield Cell(kind, n, truth, design)


Rows = dict[str, list[dict[str, float]]]


def mean(rows: Rows, kind: str, n: int, truth: str, design: str, key: str) -> float:
    """The mean of a number over the studies of a cell."""
    return float(np.mean([row[key] for row in rows[Cell(kind, n, truth, design).name]]))


def saved(rows: Rows, kind: str, n: int, truth: str) -> float:
    """The share of raters that the adaptive study saves against a balanced one of the same variance."""
    once, adaptive, twice = (mean(rows, kind, n, truth, design, "variance") for design in DESIGNS)
    fixed = 2 * twice - once  # v(n) = a / n + b
    return 1 - (adaptive - fixed) / (once - fixed) if adaptive > fixed else math.nan


def held(rows: Rows, kind: str, n: int, truth: str) -> float:
    """How often the adaptive interval of the best two holds what balanced studies estimate on average."""
    wanted = np.mean([mean(rows, kind, n, truth, design, "value") for design in ("balanced", "balanced twice")])
    own = rows[Cell(kind, n, truth, "adaptive").name]
    return float(np.mean([abs(row["value"] - wanted) <= row["reach"] for row in own]))


def tables(rows: Rows) -> str:
    """The rows as tables of the documentation."""
    lines = [
        "| asked | systems | false claims, balanced | adaptive | adaptive, ten looks at any time | coverage, balanced | adaptive |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for n in SIZES:
            own = {d: rows[Cell(kind, n, "equal", d).name] for d in DESIGNS[:2]}
            if not all(own.values()):
                continue
            shown = []
            for design, key in (("balanced", "any"), ("adaptive", "any"), ("adaptive", "any_look")):
                share = proportion(sum(row[key] for row in own[design]), len(own[design]))
                shown.append(f"{100 * share.value:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f})")
            covers = [f"{100 * mean(rows, kind, n, 'equal', d, 'covers'):.1f} %" for d in DESIGNS[:2]]
            lines.append(f"| {kind} | {n} | {' | '.join([*shown, *covers])} |")
    n_equal = min((len(rows[c.name]) for c in cells() if c.truth == "equal" and rows[c.name]), default=0)
    lines += ["", f"At least {n_equal:,} studies in each cell.", ""]
    lines += [
        "| asked | systems | truth | best found, balanced | adaptive | coverage of the best two | raters saved |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for n in SIZES:
            for truth in TRUTHS[1:]:
                if not all(rows[Cell(kind, n, truth, design).name] for design in DESIGNS):
                    continue
                found = [f"{100 * mean(rows, kind, n, truth, d, 'best'):.0f} %" for d in DESIGNS[:2]]
                share = saved(rows, kind, n, truth)
                words = "more than any number" if math.isnan(share) else f"{100 * share:.0f} %"
                lines.append(
                    f"| {kind} | {n} | {truth} | {' | '.join(found)} | {100 * held(rows, kind, n, truth):.1f} % | {words} |"
                )
    n_effect = min((len(rows[c.name]) for c in cells() if c.truth != "equal" and rows[c.name]), default=0)
    return "\n".join([*lines, "", f"At least {n_effect:,} studies in each cell."])


def main(arguments: Sequence[str] = ()) -> None:
    """Adds studies to a file until there are enough of each cell, and prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.adaptive", description=__doc__)
    parser.add_argument("--studies", type=int, default=400, help="without a difference; a quarter as many with one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cells whose name begins so, such as ratings-8")
    parser.add_argument("--rows", type=Path, default=Path("adaptive.jsonl"), help="where studies are kept")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    given = parser.parse_args(list(arguments))
    rows: Rows = {cell.name: [] for cell in cells()}
    for path in sorted(given.rows.parent.glob(f"{given.rows.stem}*{given.rows.suffix}")):
        for line in path.read_text(encoding="utf-8").splitlines():
            kept = json.loads(line)
            rows[kept["cell"]].append(kept["row"])
    wanted = [cell for cell in cells() if cell.name.startswith(given.only)]
    with given.rows.open("a", encoding="utf-8") as file:
        for number in range(given.studies):
            for cell in wanted:
                n = given.studies if cell.truth == "equal" else given.studies // 4
                if len(rows[cell.name]) <= number < n:
                    rows[cell.name].append(outcome(cell, number, given.seed))
                    file.write(json.dumps({"cell": cell.name, "row": rows[cell.name][-1]}) + "\n")
                    file.flush()
    made = tables(rows)
    print(made)
    if given.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
        PAGE.write_text(f"{before}{MARKS[0]}\n{made}\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
