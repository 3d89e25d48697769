"""One simulated study of a cell: what its primary tests and its answer say, as numbers that can be stored."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from bench.calibrate.cells import Cell, cached_study
from bench.calibrate.walked import walked
from dialometer.analysis.base.choose import families
from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Findings, Options
from dialometer.analysis.planning.power import primary_tests
from dialometer.analysis.planning.simulated_study import planted, simulated_data
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.item import CandidateItem, Item
from dialometer.model.report import Table
from dialometer.model.study import Study


def own_seed(cell: Cell, number: int, seed: int) -> int:
    """The seed of one study."""
    return int(np.random.SeedSequence([seed, number, cell.n_raters]).generate_state(1)[0])


def simulated(cell: Cell, number: int, seed: int) -> StudyData:
    """The data of the study with this number."""
    study = cached_study(cell.design, cell.n_items)
    own = own_seed(cell, number, seed)
    if study.spec.items.kind == "candidate" and not cell.effect:
        study = shuffled_ranks(study, own)
    truth, habits, shifts = planted(study, cell.effect, own, cell.assumed)
    return simulated_data(study, truth, habits, n_raters=cell.n_raters, seed=own, shifts=shifts)


def shuffled_ranks(study: Study, seed: int) -> Study:
    """The study with the retrievers exchanged within each question, so that none of them finds the right answers more often."""
    names = [system.name for system in study.spec.systems]
    new_names: dict[str, dict[str, str]] = {}
    rng = np.random.default_rng([seed, 11])
    items: list[Item] = []
    for item in study.items:
        if isinstance(item, CandidateItem):
            question = str(item.metadata.get("question", item.id))
            if question not in new_names:
                new_names[question] = dict(zip(names, rng.permutation(names).tolist(), strict=True))
            ranks = {new_names[question].get(name, name): rank for name, rank in item.ranks.items()}
            items.append(replace(item, ranks=ranks))
        else:
            items.append(item)
    return Study(spec=study.spec, items=tuple(items), texts=study.texts)


def record(cell: Cell, number: int, seed: int) -> dict[str, Any]:
    """One line of the cell's file."""
    data = walked(cell, own_seed(cell, number, seed)) if cell.kind == "walked" else simulated(cell, number, seed)
    options = Options.declared(data.study)
    line: dict[str, Any] = {"number": number, "n_raters": int(data.judgments["rater"].n_unique())}
    try:
        tests = primary_tests(data, options)
    except DialometerError as error:
        return {**line, "error": str(error)}
    line["tests"] = {label: _numbers(test) for label, test in tests.items()}
    if cell.kind != "tests":
        findings = families(data.study)[0].run(data, options)
        line["claims"] = [claim.what for claim in findings.claims if claim.is_general and claim.is_primary]
        line["other_claims"] = [claim.what for claim in findings.claims if not (claim.is_general and claim.is_primary)]
        line["icc"] = {label: _numbers(icc) for label, icc in _iccs(findings).items()}
    return line


def _numbers(estimate: Estimate) -> dict[str, float | None]:
    p = float(estimate.details.get("p_adjusted", estimate.p_value))
    given = {"p": p, "value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {name: None if math.isnan(number) else float(f"{number:.6g}") for name, number in given.items()}


def _iccs(findings: Findings) -> dict[str, Estimate]:
    """The intraclass correlations of one rater that the report shows, by criterion."""
    shown: dict[str, Estimate] = {}
    for section in findings.sections:
        for part in section.parts:
            names = [column.name for column in part.columns] if isinstance(part, Table) else []
            if "icc_single" in names and "criterion" in names:
                for row in part.rows:
                    icc = row[names.index("icc_single")]
                    if isinstance(icc, Estimate) and icc.has_interval:
                        shown.setdefault(str(row[names.index("criterion")]), icc)
    return shown
