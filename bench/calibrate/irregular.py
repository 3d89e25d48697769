"""python -m bench.calibrate.irregular: false claims where data are not as planned, without any true difference.

Real studies lose raters halfway, have items that one rater saw, raters who judged once, a system that is seldom shown, a few
raters who did most of the work. Each such fault is made in simulated studies of several designs, whose primary tests are counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl

from bench.calibrate.cells import MANY, WORST, study_of
from bench.calibrate.table import ALPHA, Rate
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.planning.power import primary_tests
from dialometer.analysis.planning.simulated_study import planted, resized, simulated_data
from dialometer.errors import DialometerError
from dialometer.model.study import Study

SEED = 20261202
N_CRITERIA = 12

Fault = Callable[[StudyData, np.random.Generator], StudyData]


def _where(data: StudyData, kept: pl.Expr) -> StudyData:
    return replace(data, judgments=data.judgments.filter(kept))


def dropouts(data: StudyData, rng: np.random.Generator) -> StudyData:
    """Half of the raters leave after any of their screens."""
    last = int(data.judgments["position"].to_numpy().max())
    raters = sorted(set(data.judgments["rater"]))
    until = {name: int(rng.integers(0, last + 1)) if rng.random() < 0.5 else last for name in raters}
    return _where(data, pl.col("position") <= pl.col("rater").replace_strict(until, return_dtype=pl.Int64))


def single_raters(data: StudyData, rng: np.random.Generator) -> StudyData:
    """Half of the items were seen by one rater only."""
    chosen = {}
    for name, raters in sorted(data.judgments.group_by("item").agg(pl.col("rater").unique().sort()).iter_rows()):
        chosen[name] = str(rng.choice(raters)) if rng.random() < 0.5 else ""
    only = pl.col("item").replace_strict(chosen, return_dtype=pl.String)
    return _where(data, (only == "") | (only == pl.col("rater")))


def single_items(data: StudyData, rng: np.random.Generator) -> StudyData:
    """Half of the raters judged one item only."""
    chosen = {}
    for name, items in sorted(data.judgments.group_by("rater").agg(pl.col("item").unique().sort()).iter_rows()):
        chosen[name] = str(rng.choice(items)) if rng.random() < 0.5 else ""
    only = pl.col("rater").replace_strict(chosen, return_dtype=pl.String)
    return _where(data, (only == "") | (only == pl.col("item")))


def busy_raters(data: StudyData, rng: np.random.Generator) -> StudyData:
    """One rater in five did everything, the others a tenth of it."""
    busy = [name for name in sorted(set(data.judgments["rater"])) if rng.random() < 0.2]
    screens = data.judgments.select("rater", "item").unique(maintain_order=True)
    kept = screens.filter(pl.col("rater").is_in(busy) | pl.Series(rng.random(len(screens)) < 0.1))
    return replace(data, judgments=data.judgments.join(kept, on=["rater", "item"], how="semi"))


def rare_system(data: StudyData, rng: np.random.Generator) -> StudyData:
    """One system was shown a fifth as often as the others."""
    if not data.judgments["system"].n_unique() > 1:
        return data
    rare = sorted(set(data.judgments["system"]))[0]
    return _where(data, (pl.col("system") != rare) | pl.Series(rng.random(len(data.judgments)) < 0.2))


def two_systems(data: StudyData, _: np.random.Generator) -> StudyData:
    """One of the systems was never shown."""
    absent = sorted(set(data.judgments["system"]))[0]
    return _where(data, pl.col("system") != absent)


def as_planned(data: StudyData, _: np.random.Generator) -> StudyData:
    """Nothing is missing; the design itself is what is tried."""
    return data


def many_criteria(study: Study) -> Study:
    """The primary comparison on twelve criteria at once."""
    analysis = study.spec.analysis
    primary = next(comparison for comparison in analysis.comparisons if comparison.name == analysis.primary)
    first = next(criterion for criterion in study.spec.criteria if criterion.name == primary.criteria[0])
    criteria = [first.model_copy(update={"name": f"c{number}", "label": f"C{number}"}) for number in range(N_CRITERIA)]
    comparison = primary.model_copy(update={"criteria": [criterion.name for criterion in criteria]})
    changed = analysis.model_copy(update={"comparisons": [comparison], "subgroups": []})
    return replace(study, spec=study.spec.model_copy(update={"criteria": criteria, "analysis": changed, "quality": []}))


ALL = ("likert", "ratings-crossed", "ratings-nested", "acute", "best-worst", "chat", "rubric")
RATED = ("likert", "ratings-crossed", "ratings-nested")
FAULTS: tuple[tuple[str, Fault, tuple[str, ...]], ...] = (
    ("half of the raters leave early", dropouts, ALL),
    (
        "half of the items seen by one rater",
        single_raters,
        ("likert", "ratings-crossed", "acute", "best-worst", "rubric"),
    ),
    ("half of the raters judge one item", single_items, ALL),
    ("one rater in five does most", busy_raters, ALL),
    ("a system seldom shown", rare_system, (*RATED, "chat", "rubric")),
    ("two systems", two_systems, RATED),
)
SIZES: tuple[tuple[str, int, int | None, tuple[str, ...]], ...] = (
    ("3 raters", 3, None, ALL),
    ("4 items", 0, 4, ("likert", "ratings-crossed", "acute", "best-worst", "rubric")),
)


def false_tests(study: Study, n_raters: int, fault: Fault, n_studies: int, seed: int) -> tuple[Rate, int]:
    """Studies with a significant test among those that have one, and how many have none."""
    hits = n = 0
    for number in range(n_studies):
        own = int(np.random.SeedSequence([seed, number, n_raters]).generate_state(1)[0])
        truth, habits, shifts = planted(study, 0.0, own, WORST)
        data = simulated_data(study, truth, habits, n_raters=n_raters, seed=own, shifts=shifts)
        try:
            tests = primary_tests(fault(data, np.random.default_rng([own, 5])), Options.declared(study))
        except DialometerError:
            continue
        p = [float(test.details.get("p_adjusted", test.p_value)) for test in tests.values()]
        n += any(not np.isnan(value) for value in p)
        hits += any(value <= ALPHA for value in p)
    return Rate(hits, n), n_studies - n


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.calibrate.irregular", description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--only", default="", help="faults and designs whose names hold this")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    rows: list[tuple[str, str, int, int | None, Fault]]
    rows = [(name, design, 0, None, fault) for name, fault, designs in FAULTS for design in designs]
    rows += [(name, design, n, items, as_planned) for name, n, items, designs in SIZES for design in designs]
    rows += [(f"{N_CRITERIA} criteria", design, 0, None, as_planned) for design in RATED]
    print(
        "| fault | design | raters | any test significant | 95% confidence interval | without a test |\n|---|---|---|---|---|---|"
    )
    for name, design, n_raters, n_items, fault in rows:
        if arguments.only not in f"{name} {design}":
            continue
        study = study_of(design)
        study = many_criteria(study) if "criteria" in name else study if n_items is None else resized(study, n_items)
        raters = n_raters or MANY.get(design, 30)
        rate, none = false_tests(study, raters, fault, arguments.studies, arguments.seed)
        ends = "{:.1%} to {:.1%}".format(*rate.interval) if rate.n else ""
        print(f"| {name} | {design} | {raters} | {rate} | {ends} | {none or ''} |", flush=True)
        if rate.n and rate.interval[0] > ALPHA:
            print(f"above {ALPHA:.0%}: {name}, {design}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
