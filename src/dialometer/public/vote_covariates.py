"""What differs between the two sides of each vote, from the columns of a table: numbers that are there, or style counted in texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from dialometer.errors import DialometerError, UnknownName
from dialometer.readers.chats import AGENTS, Chat
from dialometer.readers.paired_chats import SIDES, Side, prompt_column, said_column, side_messages
from dialometer.readers.problems import Problems
from dialometer.readers.reader import DialogueDraft
from dialometer.registry import did_you_mean
from dialometer.stats.observations import Floats
from dialometer.stats.ranking.style import relative_differences, style_counts


def covariate_columns(table: pl.DataFrame, names: Sequence[str]) -> Floats:
    """Votes by covariates: a column of differences, or two columns ``NAME_a`` and ``NAME_b`` whose relative difference is taken."""
    columns = []
    for name in names:
        both = [f"{name}_{side}" for side in SIDES]
        if name in table.columns:
            columns.append(_numbers(table, name))
        elif set(both) <= set(table.columns):
            first, second = (_numbers(table, column)[:, None] for column in both)
            columns.append(relative_differences(first, second)[:, 0])
        else:
            remedy = did_you_mean(name, table.columns) or f"the table has {', '.join(table.columns)}"
            raise UnknownName(
                f"the votes have neither a column '{name}' nor '{both[0]}' and '{both[1]}'", remedy=remedy
            )
    return np.stack(columns, axis=1)


def _numbers(table: pl.DataFrame, column: str) -> Floats:
    try:
        values = table[column].cast(pl.Float64).to_numpy()
    except pl.exceptions.PolarsError as error:
        raise DialometerError(f"the covariate '{column}' is not a number", remedy="give numbers") from error
    missing = np.flatnonzero(~np.isfinite(values))
    if len(missing):
        raise DialometerError(
            f"{len(missing)} votes have no number in '{column}'",
            where=f"the first is vote {missing[0] + 1}",
            remedy="fill the gaps, or drop these votes",
        )
    return np.asarray(values, dtype=np.float64)


def style_columns(table: pl.DataFrame) -> Floats:
    """Votes by features of style: how the two sides differ in what their systems wrote."""
    names = set(table.columns)
    responses = [said_column(names, side) for side in SIDES]
    if not all(responses):
        raise DialometerError(
            "the votes have no texts to count style in",
            remedy="name covariates, or give columns such as response_a and response_b",
        )
    columns = [column for column in (*responses, prompt_column(names)) if column]
    rows = table.select(columns).to_dicts()
    first, second = (
        np.array([style_counts(_written(row, side)) for row in rows], dtype=np.float64).reshape(len(rows), -1)
        for side in SIDES
    )
    return relative_differences(first, second)


def _written(row: Mapping[str, Any], side: Side) -> Iterator[str]:
    """What the system of one side wrote."""
    chat = Chat(DialogueDraft("", []), Problems("votes"))
    for turn in chat.read(side_messages(row, side) or [], said_column(row, side)).turns:
        if str(turn.speaker).casefold() in AGENTS:
            yield str(turn.text)
