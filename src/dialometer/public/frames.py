"""Tables between this package and pandas, without any package beside pandas itself."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import polars as pl

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Table

PandasFrame = Any
"""A pandas DataFrame; pandas need not be there."""


class DataTable(pl.DataFrame):
    """A polars table whose ``to_pandas`` needs pandas only; polars itself asks for pyarrow, too."""

    def to_pandas(self, *args: Any, **kwargs: Any) -> PandasFrame:
        """The table as a pandas DataFrame. Arguments go to polars' own method, which needs pyarrow."""
        return super().to_pandas(*args, **kwargs) if args or kwargs else to_pandas(self)


def to_pandas(table: pl.DataFrame | Table | Sequence[Estimate]) -> PandasFrame:
    """Any table of this package as a pandas DataFrame: judgments, a table of a report, or a list of estimates."""
    try:
        pandas = import_module("pandas")
    except ModuleNotFoundError as error:
        raise DialometerError("this needs pandas, which is not installed", remedy="pip install pandas") from error
    frame = table if isinstance(table, pl.DataFrame) else to_frame(table)
    return pandas.DataFrame({name: _values(frame[name]) for name in frame.columns})


def to_frame(table: Any) -> pl.DataFrame:
    """A polars table from a pandas one, a table of a report, estimates, or anything that polars reads.

    An estimate in a report's cell becomes columns of its own: the value, and ``_low`` and ``_high`` for its interval.
    """
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, Table):
        return _report_table(table)
    if isinstance(table, Sequence) and table and all(isinstance(entry, Estimate) for entry in table):
        return DataTable([_estimate(entry) for entry in table])
    if type(table).__module__.partition(".")[0] == "pandas":
        return DataTable([_series(str(name), table[name]) for name in table.columns])
    return DataTable(table)


def _values(series: pl.Series) -> Any:
    """As pandas has them: numbers with gaps are floats with NaN."""
    if series.null_count() and series.dtype.is_numeric():
        return series.cast(pl.Float64).to_numpy()
    is_number = series.dtype.is_numeric() or series.dtype == pl.Boolean
    return series.to_numpy() if is_number and not series.null_count() else series.to_list()


def _series(name: str, column: Any) -> pl.Series:
    """A column of pandas; what is missing there (NaN, NaT, NA) is missing here."""
    missing = column.isna().tolist()
    if str(column.dtype).startswith("datetime"):
        values = [None if gone else moment.to_pydatetime() for moment, gone in zip(column, missing, strict=True)]
    else:
        values = [None if gone else value for value, gone in zip(column.tolist(), missing, strict=True)]
    try:
        return pl.Series(name, values)
    except (TypeError, pl.exceptions.PolarsError):  # numbers and texts in one column
        return pl.Series(name, [None if value is None else str(value) for value in values])


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "label": estimate.label,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "p_value": estimate.p_value,
        "n": estimate.n,
        "method": estimate.method,
    }


def _report_table(table: Table) -> pl.DataFrame:
    columns: dict[str, list[Any]] = {}
    for place, column in enumerate(table.columns):
        cells: list[Cell] = [row[place] for row in table.rows]
        if any(isinstance(cell, Estimate) for cell in cells):
            parts = [cell if isinstance(cell, Estimate) else None for cell in cells]
            columns[column.name] = [None if part is None else part.value for part in parts]
            columns[f"{column.name}_low"] = [None if part is None else part.low for part in parts]
            columns[f"{column.name}_high"] = [None if part is None else part.high for part in parts]
        else:
            columns[column.name] = list(cells)
    return DataTable([pl.Series(name, values, strict=False) for name, values in columns.items()])
