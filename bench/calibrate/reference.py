"""What a cell is compared with: the true ICC of its design, and the power that ``dialometer power`` promises for it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from bench.calibrate.cells import POWER_STUDIES, Cell, cached_study
from bench.calibrate.table import ALPHA, Rate
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.planning.power import Setting, simulate_tests
from dialometer.analysis.planning.simulated_study import n_items_of, planted, resized, simulated_data
from dialometer.model.study import Study

MANY_ITEMS, MANY_RATERS = 500, 300
LEAST_PROMISED, MOST_PROMISED = 200, 2000


def _kept(file: Path, make: Any) -> Any:
    """What is on disk, or what is made and then stored."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(make()), encoding="utf-8")
        part.replace(file)
    return json.loads(file.read_text(encoding="utf-8"))


def promised_power(folder: Path, cell: Cell, seed: int, n_promised: int = 0) -> Rate:
    """Power as ``dialometer power`` finds it for the design of a cell, with other studies than the cell's own.

    From ``n_promised`` studies, else from twice as many as the cell has.
    """
    study = cached_study(cell.design, cell.n_items)
    n_found = cell.n_studies if cell.kind == "walked" else max(cell.n_studies, POWER_STUDIES.get(cell.design, 0))
    n = n_promised or min(MOST_PROMISED, max(LEAST_PROMISED, 2 * n_found))
    setting = Setting(cell.n_raters, n_items_of(study), cell.effect, ALPHA, seed + 1, cell.assumed)

    def make() -> list[int]:
        found = simulate_tests(study, setting, range(n))
        return [sum(any(p <= ALPHA for p in one.values()) for one in found), n]

    hits, n = _kept(_promises(folder, cell, str(n)), make)
    return Rate(hits, n)


def stored_promise(folder: Path, cell: Cell) -> Rate | None:
    """The promise that is on disk, the one from most studies where there are several."""
    place = _promises(folder, cell, "*")
    files = [json.loads(file.read_text(encoding="utf-8")) for file in place.parent.glob(place.name)]
    return Rate(*max(files, key=lambda counts: counts[1])) if files else None


def _promises(folder: Path, cell: Cell, n: str) -> Path:
    return folder / "reference" / f"power_{cell.name.replace(f'_{cell.kind}', '')}_{n}.json"


def prepare(folder: Path, cell: Cell, seed: int, *, has_icc: bool, n_promised: int = 0) -> None:
    """Makes both, so that they are on disk when the table asks for them; runs in a process of its own."""
    if cell.effect:
        promised_power(folder, cell, seed, n_promised)
    if has_icc:
        icc_truths(folder, cell, seed)


def icc_truths(folder: Path, cell: Cell, seed: int) -> dict[str, float]:
    """The ICC of one rater for each criterion, from one study so large that its sampling error does not count.

    ICC(2,1): variance of what was rated over all variance, from the mean squares of a complete table (Shrout & Fleiss 1979).
    Magnitudes are reported by their consistency, ICC(3,1), so that is their truth.
    """
    assumed = cell.assumed

    def make() -> dict[str, float]:
        study = resized(cached_study(cell.design, cell.n_items), MANY_ITEMS)
        design = study.spec.design.model_copy(update={"items_per_rater": "all", "systems_per_item": None})
        study = Study(study.spec.model_copy(update={"design": design}), study.items, study.texts)
        truth, habits, shifts = planted(study, cell.effect, seed, assumed)
        data = simulated_data(study, truth, habits, n_raters=MANY_RATERS, seed=seed, shifts=shifts)
        measures = numeric_measures(data)
        return {
            measure.label: _icc(measure.y, measure.target, measure.rater, is_consistency=measure.is_log)
            for measure in measures.criteria
        }

    truths: dict[str, float] = _kept(_icc_file(folder, cell), make)
    return truths


def stored_truths(folder: Path, cell: Cell) -> dict[str, float] | None:
    """The true ICCs that are on disk."""
    file = _icc_file(folder, cell)
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def _icc_file(folder: Path, cell: Cell) -> Path:
    a = cell.assumed
    return folder / "reference" / f"icc_{cell.design}_{cell.effect:g}_{a.item_sd:g}_{a.taste_sd:g}_{a.careless:g}.json"


def _icc(y: Any, target: Any, rater: Any, *, is_consistency: bool) -> float:
    targets, row = np.unique(target, return_inverse=True)
    raters, column = np.unique(rater, return_inverse=True)
    table = np.empty((len(targets), len(raters)))
    table[row, column] = y
    n, k = table.shape
    means, columns, grand = table.mean(1), table.mean(0), table.mean()
    rows_ms = k * float(((means - grand) ** 2).sum()) / (n - 1)
    columns_ms = n * float(((columns - grand) ** 2).sum()) / (k - 1)
    rest = table - means[:, None] - columns[None, :] + grand
    error_ms = float((rest**2).sum()) / ((n - 1) * (k - 1))
    between_raters = 0.0 if is_consistency else k * (columns_ms - error_ms) / n
    return (rows_ms - error_ms) / (rows_ms + (k - 1) * error_ms + between_raters)
