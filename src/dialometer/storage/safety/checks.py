"""Whether a database is whole: the file, the references, the numbers, and no answer twice. Nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, Table, and_, func, not_, select, text
from sqlalchemy.orm import aliased

from dialometer.storage.database import Database
from dialometer.storage.safety.acknowledged import LogComparison
from dialometer.storage.schema import answers, judgments, metadata, sessions, withdrawals
from dialometer.storage.store import Store

N_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what was found, and whether it is in order."""

    name: str
    state: Literal["ok", "problem", "skipped"]
    text: str


def check_database(store: Store) -> list[Check]:
    """All checks that need the database alone."""
    database = store.database
    problems = store.check()
    with database.reading() as connection:
        orphans = [] if database.is_sqlite else _orphans(connection)
        return [
            problems_or(
                "integrity", problems, "the file is whole" if database.is_sqlite else "the server checks its own pages"
            ),
            problems_or("orphaned rows", orphans, "every row belongs to something"),
            problems_or("duplicate answers", _doubled(connection), "no question has two answers"),
            _numbers_of_sessions(connection),
            *(_numbers_of_rows(connection, database, table) for table in (judgments, answers)),
        ]


def problems_or(name: str, problems: list[str], otherwise: str) -> Check:
    """A check that found these problems, or none."""
    more = f" and {len(problems) - N_SHOWN:,} more" if len(problems) > N_SHOWN else ""
    return Check(name, "problem", "; ".join(problems[:N_SHOWN]) + more) if problems else Check(name, "ok", otherwise)


def _orphans(connection: Connection) -> list[str]:
    """Rows that name what is not there; SQLite finds them itself, in :meth:`Store.check`."""
    problems = []
    for table in metadata.sorted_tables:
        for key in table.foreign_keys:
            parent = aliased(key.column.table)
            missing = (
                select(func.count())
                .select_from(table)
                .where(
                    key.parent.is_not(None),
                    ~select(text("1")).select_from(parent).where(parent.c[key.column.name] == key.parent).exists(),
                )
            )
            n = connection.scalar(missing) or 0
            if n:
                problems.append(f"{n:,} rows of {table.name} refer to a missing row of {key.column.table.name}")
    return problems


def _doubled(connection: Connection) -> list[str]:
    """Questions with two first answers. An index forbids them, so they can only come from outside."""
    keys = (
        (judgments, ("session_id", "item_id", "criterion", "system", "turn"), not_(judgments.c.is_practice)),
        (answers, ("session_id", "part", "question"), text("1 = 1")),
    )
    problems = []
    for table, names, counts in keys:
        columns = [table.c[name] for name in names]
        query = select(func.count()).where(and_(table.c.replaces.is_(None), counts)).group_by(*columns)
        twice = query.having(func.count() > 1).subquery()
        n = connection.scalar(select(func.count()).select_from(twice)) or 0
        if n:
            problems.append(f"{n:,} questions have two {table.name}")
    return problems


def _numbers_of_sessions(connection: Connection) -> Check:
    """Sessions are numbered without gaps, and none is ever removed."""
    n, last = connection.execute(select(func.count(), func.max(sessions.c.ordinal))).one()
    is_whole = n == (last or 0)
    message = (
        f"{n:,} sessions, numbered without a gap" if is_whole else f"{last - n:,} of {last:,} sessions are missing"
    )
    return Check("sessions", "ok" if is_whole else "problem", message)


def _numbers_of_rows(connection: Connection, database: Database, table: Table) -> Check:
    """Rows that were stored and are gone, beside those that were erased for raters who withdrew or did not consent.

    SQLite numbers the rows of these tables without gaps, and remembers the last number. PostgreSQL's numbers have gaps where
    a transaction was undone, so they prove nothing.
    """
    n = connection.scalar(select(func.count()).select_from(table)) or 0
    counted = f"{n:,} {table.name}"
    if not database.is_sqlite:
        return Check(table.name, "ok", counted)
    query = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
    n_rows = connection.scalar(query, {"name": table.name}) or 0
    column = withdrawals.c.n_judgments if table is judgments else withdrawals.c.n_answers
    erased = connection.scalar(select(func.sum(column))) or 0
    # Raters who declined or left before they consented had answered screening questions at most, and nobody counted them.
    unconsented = select(func.count()).where(sessions.c.rater_id.is_(None), sessions.c.state != "withdrawn")
    has_unconsented = table is answers and bool(connection.scalar(unconsented))
    n_missing = n_rows - n - erased
    if n_missing < 0 or (n_missing > 0 and not has_unconsented):
        return Check(table.name, "problem", f"{n_rows:,} were stored, {erased:,} erased on request, {n:,} are left")
    gone = f", {n_rows - n:,} erased for raters who withdrew or did not consent" if n_rows > n else ""
    return Check(table.name, "ok", f"{counted}{gone}")


def check_acknowledged(comparison: LogComparison) -> Check:
    """What a server reported as stored, beside what is stored."""
    name = "acknowledged"
    if not comparison.n_logged:
        return Check(name, "skipped", "no server has left a log of acknowledged screens here")
    if comparison.lost:
        n = len(comparison.lost)
        return Check(name, "problem", f"{n:,} of {comparison.n_logged:,} acknowledged screens are not in the database")
    erased = (
        f", {comparison.n_erased:,} erased for raters who withdrew or did not consent" if comparison.n_erased else ""
    )
    unread = f"; {comparison.n_unreadable:,} lines of the log cannot be read" if comparison.n_unreadable else ""
    return Check(name, "ok", f"{comparison.n_stored:,} acknowledged screens are stored{erased}{unread}")
