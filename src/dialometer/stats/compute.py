"""A statistic with a name, computed from a table of judgments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from dialometer.errors import DialometerError, UnknownName
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.statistic import Statistic, StatisticResult
from dialometer.registry import did_you_mean

DERIVED = {
    "target": "what was judged: the item with its system and turn, where it has them",
    "category": "the answer as a name: the choice, or else the number",
}
"""Columns that a statistic can ask for beside those of the long table."""


def compute(statistic: Statistic, judgments: pl.DataFrame, settings: Mapping[str, Any]) -> StatisticResult:
    """The statistic of these judgments. Rows in which one of its columns is empty are left out."""
    for name in settings:
        if name not in statistic.settings:
            remedy = did_you_mean(name, list(statistic.settings))
            raise UnknownName(f"the statistic '{statistic.name}' has no setting '{name}'", remedy=remedy)
    table = with_derived(judgments)
    for name in statistic.columns:
        if name not in table.columns:
            where = f"statistic '{statistic.name}'"
            raise UnknownName(
                f"the judgments have no column '{name}'", where=where, remedy=did_you_mean(name, table.columns)
            )
    rows = table.select(statistic.columns).drop_nulls()
    if not len(rows):
        return unknown(statistic.title, f"no judgment has {' and '.join(statistic.columns)}; collect some")
    try:
        result = statistic.function(*(rows[name].to_numpy() for name in statistic.columns), **settings)
    except DialometerError:
        raise
    except Exception as error:
        message = f"the statistic '{statistic.name}' failed: {type(error).__name__}: {error}"
        raise DialometerError(message, where=statistic.function.__module__, remedy="repair it") from error
    estimates = result.values() if isinstance(result, Mapping) else [result]
    if not all(isinstance(estimate, Estimate) for estimate in estimates):
        raise DialometerError(
            f"the statistic '{statistic.name}' gave a {type(result).__name__}",
            where=statistic.function.__module__,
            remedy="return an Estimate, or a mapping of names to Estimates",
        )
    checked: StatisticResult = result
    return checked


def with_derived(judgments: pl.DataFrame) -> pl.DataFrame:
    """The table with the columns of ``DERIVED``, as far as it has what they are made of."""
    known = judgments.columns
    parts = [pl.col(name).cast(pl.String).replace("", None) for name in ("item", "system", "turn") if name in known]
    answers = [pl.col(name).cast(pl.String) for name in ("choice", "value") if name in known]
    derived = []
    if parts and "target" not in known:
        derived.append(pl.concat_str(parts, separator=" · ", ignore_nulls=True).alias("target"))
    if answers and "category" not in known:
        derived.append(pl.coalesce(answers).alias("category"))
    return judgments.with_columns(derived)
