"""Simulated judgments as arrays, dressed as study data: power analysis, tests and benchmarks go without a database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dialometer.analysis.base.data import ANSWER_COLUMNS, FINDING_COLUMNS, SESSION_COLUMNS, StudyData
from dialometer.model.study import Study
from dialometer.storage.table import COLUMNS, FACTOR_PREFIX, rater_name, session_name


def data_from_arrays(
    study: Study, columns: Mapping[str, NDArray[Any]], *, minutes_by_rater: NDArray[np.float64] | None = None
) -> StudyData:
    """Study data from the columns of ``simulate.quick.quick_judgments``; every rater counts as finished.

    ``minutes_by_rater`` gives the lengths of sessions in the order of the raters' numbers; without it they are unknown.
    """
    numbers = np.asarray(columns["rater"])
    cells = np.asarray(columns["cell"])
    raters = np.unique(numbers)
    names = np.array([rater_name(int(number)) for number in range(int(raters.max()) + 1)])
    visits = np.array([session_name(int(number)) for number in range(int(raters.max()) + 1)])
    cell_of = np.zeros(int(raters.max()) + 1, dtype=np.int64)
    cell_of[numbers] = cells
    frame = pl.DataFrame(
        {name: pl.Series(name, given, strict=False) for name, given in _given(columns, names, visits).items()}
    )
    constant = {"source": "simulated", "state": "completed", "is_excluded": False, "is_practice": False}
    blank = [name for name in COLUMNS if name not in frame.columns and name not in constant]
    frame = frame.with_columns(
        *(pl.lit(value).alias(name) for name, value in constant.items()),
        *(pl.lit(None, dtype=COLUMNS[name][0]).alias(name) for name in blank),
    ).select(*(pl.col(name).cast(kind, strict=False) for name, (kind, _) in COLUMNS.items()), "_cell")
    frame = frame.with_columns(_factor_columns(study, pl.col("_cell"))).drop("_cell")
    durations = None if minutes_by_rater is None else 60 * np.asarray(minutes_by_rater, dtype=np.float64)
    sessions = pl.DataFrame(
        {
            "rater": names[raters],
            "session": visits[raters],
            "source": np.full(len(raters), "simulated"),
            "state": np.full(len(raters), "completed"),
            "is_excluded": np.zeros(len(raters), dtype=bool),
            "cell": cell_of[raters],
            "started_at_ms": np.zeros(len(raters), dtype=np.int64),
            "duration_s": durations if durations is not None else [None] * len(raters),
        },
        schema=SESSION_COLUMNS,
        strict=False,
    )
    sessions = sessions.with_columns(_factor_columns(study, pl.col("cell")))
    return StudyData(
        study,
        frame,
        sessions,
        pl.DataFrame(schema=ANSWER_COLUMNS),
        pl.DataFrame(schema=FINDING_COLUMNS),
        ("simulated",),
        {},
    )


def _given(columns: Mapping[str, NDArray[Any]], names: NDArray[Any], sessions: NDArray[Any]) -> dict[str, Any]:
    """Columns under their names in the long table; empty choices are missing."""
    texts = {key: pl.Series(columns[key], dtype=pl.String, strict=False) for key in ("choice", "worst")}
    return {
        "rater": pl.Series(names)[np.asarray(columns["rater"])],
        "session": pl.Series(sessions)[np.asarray(columns["rater"])],
        **{key: columns[key] for key in ("block", "item", "system", "criterion", "scale", "position", "side", "order")},
        "value": pl.Series(columns["value"], dtype=pl.Float64).fill_nan(None),
        **{key: text.replace("", None) for key, text in texts.items()},
        "_cell": np.asarray(columns["cell"]),
    }


def _factor_columns(study: Study, cell: pl.Expr) -> list[pl.Expr]:
    return [
        cell.replace_strict(
            {number: condition[factor.name] for number, condition in enumerate(study.cells)}, return_dtype=pl.String
        ).alias(FACTOR_PREFIX + factor.name)
        for factor in study.spec.design.factors
    ]
