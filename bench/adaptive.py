"""Adaptive assignment: does it claim what is not there, do its intervals hold, and how many raters does it save?

Whole simulated studies of 3, 5 and 8 systems, analysed by their confirmatory test: ratings (every screen shows two of the systems)
and votes (every item is a pair of transcripts), with balanced and with adaptive assignment. Without a difference, false claims
and coverage are counted, at the end and with looks at any time, where claims are about these items (``fixed``) and where items are
a sample that differs much. With a difference, the comparison of the best two systems is what has to be decided. Its variance
falls with one over the number of raters (items are fixed), so the ratio of the variances is the share of raters that is saved.

``python -m bench.adaptive --studies 400 [--only ratings-8] [--write]`` continues where it was stopped; two runs may share the work by
``--only``. ``--write`` puts the table into docs/benchmarks/adaptive.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
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
TRUTHS = ("equal", "equal, items a sample", "leaders", "steps")
DESIGNS = ("balanced", "adaptive")
N_LOOKED = 150
"""Studies that are also analysed at ten looks, which takes as long as ten studies."""
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
def study_of(kind: str, n_systems: int, rule: str, items_are: str) -> Study:
    """A study of one question without quality rules, made from a template."""
    template = load_study(template_folder("likert" if kind == "ratings" else "acute"))
    spec, names = template.spec, [f"s{k}" for k in range(n_systems)]
    first = next(item for item in template.rated_items if item.id not in template.gold_ids)
    asked = next(c for c in spec.criteria if c.name in ("helpfulness", "engagingness"))
    items: list[ResponsesItem | PairItem] = []
    if isinstance(first, ResponsesItem):
        items = [
            replace(first, id=f"i{k}", responses=dict.fromkeys(names, "text"), metadata={}) for k in range(N_ITEMS)
        ]
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
            "items": items_are,
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
    if truth == "leaders":
        return [1.0, 0.8] + [0.2] * (n - 2)
    return [0.2 * (n - 1 - k) if truth == "steps" else 0.0 for k in range(n)]


def outcome(cell: Cell, number: int, seed: int) -> dict[str, float]:
    """One simulated study: what it claims, and what it says of the best two systems."""
    is_sample = cell.truth.endswith("sample")
    plan = study_of(cell.kind, cell.n_systems, cell.design, "sample" if is_sample else "fixed")
    own = int(np.random.SeedSequence([seed, number, SIZES.index(cell.n_systems)]).generate_state(1)[0])
    by_system = {f"s{k}": mean for k, mean in enumerate(means(cell.truth, cell.n_systems))}
    criterion = plan.spec.criteria[0].name
    truth = Truth({criterion: by_system}, item_sd=Assumptions().item_sd if is_sample else 0.0, seed=own)
    data = simulated_data(plan, truth, replace(Assumptions(), careless=0.0).habits(), n_raters=N_RATERS, seed=own)
    options = replace(Options.declared(plan), n_resamples=100)
    tests = {pair_of(label): test for label, test in primary_tests(data, options).items()}
    p_values = {pair: float(test.details["p_adjusted"]) for pair, test in tests.items()}
    row = {"any": float(min(p_values.values()) <= ALPHA)}
    if cell.truth.startswith("equal"):
        row["covers"] = float(np.mean([test.low <= 0 <= test.high for test in tests.values()]))
        if cell.design == "adaptive" and number < N_LOOKED:
            looked = tests_at_looks(data, options, primary_tests)
            row["any_look"] = float(any(test.details["p_adjusted"] <= ALPHA for test in looked.values()))
        return row
    ahead = {pair: (test.value > 0) == (pair[0] == BEST) for pair, test in tests.items() if BEST in pair}
    row["best"] = float(all(is_ahead and p_values[pair] <= ALPHA for pair, is_ahead in ahead.items()))
    pair, top = next((pair, test) for pair, test in tests.items() if {BEST, SECOND} == set(pair))
    return row | {
        "value": top.value if pair[0] == BEST else -top.value,
        "variance": float(top.details["standard_error"]) ** 2,
        "reach": (top.high - top.low) / 2,
    }


def pair_of(label: str) -> tuple[str, str]:
    """The two systems of a test by its label, in the order of their difference."""
    first, second = re.findall(r"\bs\d\b", label)
    return first, second


def cells() -> Iterator[Cell]:
    """All kinds of studies; items as a sample are tried once for ratings and once for votes."""
    for n in SIZES:
        for kind in KINDS:
            for truth in TRUTHS:
                if n == SIZES[1] or not truth.endswith("sample"):
                    yield from (Cell(kind, n, truth, design) for design in DESIGNS)


Rows = dict[str, list[dict[str, float]]]


def mean(rows: Rows, kind: str, n: int, truth: str, design: str, key: str) -> float:
    """The mean of a number over the studies of a cell."""
    return float(np.mean([row[key] for row in rows[Cell(kind, n, truth, design).name]]))


def saved(rows: Rows, kind: str, n: int, truth: str) -> float:
    """The share of raters that the adaptive study saves against a balanced one of the same variance."""
    balanced, adaptive = (mean(rows, kind, n, truth, design, "variance") for design in DESIGNS)
    return 1 - adaptive / balanced


def held(rows: Rows, kind: str, n: int, truth: str) -> float:
    """How often the adaptive interval of the best two holds what balanced studies estimate on average."""
    wanted = mean(rows, kind, n, truth, "balanced", "value")
    own = rows[Cell(kind, n, truth, "adaptive").name]
    return float(np.mean([abs(row["value"] - wanted) <= row["reach"] for row in own]))


def tables(rows: Rows) -> str:
    """The rows as tables of the documentation."""
    lines = [
        "| asked | systems | items | false claims, balanced | adaptive | adaptive, ten looks | coverage, balanced | adaptive |",
        "|---|---|---|---|---|---|---|---|",
    ]
    counts: dict[bool, list[int]] = {True: [0], False: [0]}
    for kind, n, truth in itertools.product(KINDS, SIZES, TRUTHS):
        own = {design: rows.get(Cell(kind, n, truth, design).name, []) for design in DESIGNS}
        if not truth.startswith("equal") or not all(own.values()):
            continue
        shown = [
            _share([row[key] for row in own[design] if key in row])
            for design, key in (("balanced", "any"), ("adaptive", "any"), ("adaptive", "any_look"))
        ]
        covers = [f"{100 * mean(rows, kind, n, truth, d, 'covers'):.1f} %" for d in DESIGNS]
        items = "a sample" if truth.endswith("sample") else "fixed"
        lines.append(f"| {kind} | {n} | {items} | {' | '.join([*shown, *covers])} |")
        counts[True] += [len(made) for made in own.values()]
    n_studies = min(counts[True][1:], default=0)
    lines += ["", f"At least {n_studies:,} studies in each cell, the first {N_LOOKED} of them with looks.", ""]
    lines += [
        "| asked | systems | truth | best found, balanced | adaptive | coverage of the best two | raters saved |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, n, truth in itertools.product(KINDS, SIZES, TRUTHS):
        own = {design: rows.get(Cell(kind, n, truth, design).name, []) for design in DESIGNS}
        if truth.startswith("equal") or not all(own.values()):
            continue
        found = [f"{100 * mean(rows, kind, n, truth, d, 'best'):.0f} %" for d in DESIGNS]
        numbers = [*found, f"{100 * held(rows, kind, n, truth):.1f} %", f"{100 * saved(rows, kind, n, truth):.0f} %"]
        lines.append(f"| {kind} | {n} | {truth} | {' | '.join(numbers)} |")
        counts[False] += [len(made) for made in own.values()]
    return "\n".join([*lines, "", f"At least {min(counts[False][1:], default=0):,} studies in each cell."])


def _share(claims: Sequence[float]) -> str:
    if not claims:
        return ""
    share = proportion(sum(claims), len(claims))
    return f"{100 * share.value:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f})"


def main(arguments: Sequence[str] = ()) -> None:
    """Adds studies to a file until there are enough of each cell, and prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.adaptive", description=__doc__)
    parser.add_argument("--studies", type=int, default=400, help="without a difference; a third as many with one")
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
                n = given.studies if cell.truth.startswith("equal") else given.studies // 3
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
