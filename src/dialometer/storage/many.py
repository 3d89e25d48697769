"""Writing many rows with one statement, without paying for each of them twice.

SQLAlchemy looks at every value of every row before the driver does. Our columns hold only numbers, texts and truth values,
which both drivers take as they are, so here the statement is compiled once and the rows go straight to the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Insert, Table, Update, insert

Values = dict[str, Any]
"""The columns of one row, by name."""


def insert_many(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """Insert rows that all have the same columns."""
    execute_many(connection, _insert(table), rows)


def execute_many(connection: Connection, statement: Insert | Update, rows: Sequence[Values]) -> None:
    """Run one statement, kept at module level by the caller, for every row; none, if there is no row."""
    if not rows:
        return
    text, order = _compiled(statement, connection.dialect, tuple(rows[0]))
    if not order:
        connection.exec_driver_sql(text, list(rows))
    elif len(order) == 1:
        connection.exec_driver_sql(text, [(row[order[0]],) for row in rows])
    else:
        connection.exec_driver_sql(text, list(map(itemgetter(*order), rows)))


@lru_cache
def _insert(table: Table) -> Insert:
    return insert(table)


@lru_cache(maxsize=256)
def _compiled(statement: Insert | Update, dialect: Dialect, columns: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The statement as the driver reads it, and the order of its values where it takes them by place."""
    keys = list(columns) if isinstance(statement, Insert) else None
    compiled = statement.compile(dialect=dialect, column_keys=keys, for_executemany=True)
    return compiled.string, tuple(compiled.positiontup or ()) if compiled.positional else ()
