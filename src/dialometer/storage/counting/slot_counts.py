"""How many slots are taken, kept up to date by the database itself, so that an arrival need not count them.

Every change of a slot or session leaves a row in ``slot_changes``, written by a trigger in the same transaction: whatever
program makes the change, and wherever it is killed, counts and slots stay together. Rows of changes never wait for each
other, which sums in place would on PostgreSQL. Arrivals, which come one at a time, add the changes to ``slot_counts`` once
there are many. Counts and changes together are always the truth.

An empty item stands for the session itself: how many sessions of a condition are under way or finished.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, literal, select, text, union_all

from dialometer.model.session import LIVE_STATES, Source
from dialometer.storage.database import StorePart
from dialometer.storage.schema import sessions, slot_changes, slot_counts, slots

MOST_CHANGES = 2_000
"""Changes from which on an arrival adds them to the counts."""
OF_SESSION = ""
_KEY = ("source", "cell", "item_id")


class SlotCounts(StorePart):
    """Checking and repairing the counts: ``dialometer verify`` looks at them, a server repairs them when it starts."""

    def wrong(self) -> dict[tuple[str, int, str], tuple[int, int]]:
        """By source, condition and item: the count that is kept, and what the slots themselves say, where they differ."""
        with self.database.reading() as connection:
            return wrong_counts(connection)

    def repair(self) -> bool:
        """Count everything again where a count is wrong; whether one was."""
        if not self.wrong():
            return False
        with self.database.assigning() as connection:
            rebuild(connection)
        return True


def kept_counts(connection: Connection, source: Source) -> dict[tuple[int, str], int]:
    """By condition and item, how many slots of a source are taken; with an empty item, how many sessions count."""
    counted, changed = (select(t.c.cell, t.c.item_id, t.c.n).where(t.c.source == source) for t in _TABLES)
    both = union_all(counted, changed).subquery()
    total = func.sum(both.c.n)
    query = select(both.c.cell, both.c.item_id, total).group_by(both.c.cell, both.c.item_id).having(total != 0)
    return {(cell, item): int(n) for cell, item, n in connection.execute(query)}


def add_changes(connection: Connection) -> None:
    """Add the changes to the counts, once there are many. Only in an assigning transaction, of which there is one at a time."""
    first, last = connection.execute(select(func.min(slot_changes.c.id), func.max(slot_changes.c.id))).one()
    if first is None or last - first < MOST_CHANGES:
        return
    into = "INSERT INTO slot_counts (source, cell, item_id, n)"
    total = "SELECT source, cell, item_id, SUM(n) FROM {table} WHERE true GROUP BY source, cell, item_id"
    merge = "ON CONFLICT (source, cell, item_id) DO UPDATE SET n = slot_counts.n + excluded.n"
    if connection.dialect.name == "sqlite":
        connection.execute(text(f"{into} {total.format(table='slot_changes')} {merge}"))
        connection.execute(delete(slot_changes))
    else:  # one statement, so that no change that comes meanwhile is deleted without being added
        gone = "WITH gone AS (DELETE FROM slot_changes RETURNING source, cell, item_id, n)"
        connection.execute(text(f"{gone} {into} {total.format(table='gone')} {merge}"))


def rebuild(connection: Connection) -> None:
    """Count the slots and sessions themselves, in place of everything kept."""
    connection.execute(delete(slot_changes))
    connection.execute(delete(slot_counts))
    for query in _true_counts():
        connection.execute(insert(slot_counts).from_select([*_KEY, "n"], query))


def wrong_counts(connection: Connection) -> dict[tuple[str, int, str], tuple[int, int]]:
    """What is kept beside what is true, where they differ."""
    true = {tuple(row[:3]): int(row[3]) for query in _true_counts() for row in connection.execute(query)}
    kept: dict[tuple[Any, ...], int] = {}
    for table in _TABLES:
        for *key, n in connection.execute(select(*(table.c[name] for name in _KEY), table.c.n)):
            kept[tuple(key)] = kept.get(tuple(key), 0) + n
    return {
        key: (kept.get(key, 0), true.get(key, 0))
        for key in sorted(kept.keys() | true.keys())
        if kept.get(key, 0) != true.get(key, 0)
    }


def _true_counts() -> list[Select[Any]]:
    of_slots = (slots.c.source, slots.c.cell, slots.c.item_id)
    live = (sessions.c.state.in_(LIVE_STATES), sessions.c.is_excluded.is_(False))
    return [
        select(*of_slots, func.count()).where(slots.c.is_released.is_(False)).group_by(*of_slots),
        select(sessions.c.source, sessions.c.cell, literal(OF_SESSION), func.count())
        .where(*live)
        .group_by(sessions.c.source, sessions.c.cell),
    ]


_TABLES = (slot_counts, slot_changes)


def counting_statements(dialect: str) -> list[str]:
    """The triggers that note every change."""
    states = ", ".join(f"'{state}'" for state in LIVE_STATES)
    old, new = (f"({row}.state IN ({states}) AND NOT {row}.is_excluded)" for row in ("OLD", "NEW"))
    slot, session = "NEW.source, NEW.cell, NEW.item_id", f"NEW.source, NEW.cell, '{OF_SESSION}'"
    changes = {
        ("slots", "INSERT"): ("NOT NEW.is_released", slot, "1"),
        ("slots", "UPDATE OF is_released"): (
            "OLD.is_released <> NEW.is_released",
            slot,
            "CASE WHEN NEW.is_released THEN -1 ELSE 1 END",
        ),
        ("slots", "DELETE"): ("NOT OLD.is_released", slot.replace("NEW", "OLD"), "-1"),
        ("sessions", "INSERT"): (new, session, "1"),
        ("sessions", "UPDATE OF state, is_excluded"): (
            f"{old} <> {new}",
            session,
            f"CASE WHEN {new} THEN 1 ELSE -1 END",
        ),
    }
    statements = []
    for (table, event), (condition, key, n) in changes.items():
        name = f"{table}_counted_{event.split()[0].lower()}"
        note = f"INSERT INTO slot_changes (source, cell, item_id, n) VALUES ({key}, {n});"  # nosec B608  # names of columns
        if dialect == "sqlite":
            statements.append(f"CREATE TRIGGER {name} AFTER {event} ON {table} WHEN {condition} BEGIN {note} END")
            continue
        statements += [
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {note} RETURN NULL; END $$",
            f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {name}()",
        ]
    return statements


def count_at_once(connection: Connection) -> None:
    """Put the triggers in place and count what is there, for a database that has no counts yet."""
    for statement in counting_statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    rebuild(connection)
