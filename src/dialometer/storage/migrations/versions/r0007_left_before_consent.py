"""Raters who left before consenting leave nothing; the log of the dashboard has the dashboard's name."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Column, Integer, Text, column, func, insert, select, table

from dialometer.storage.erasing import DAY_MS, ERASED_UNTIL_0007, erase_left_before_consent
from dialometer.storage.schema import drop_guard_statements, guard_statements

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_COLUMNS = ("id", "made_by", "what", "detail", "at_ms")
_BIG_ID = BigInteger().with_variant(Integer, "sqlite")


def upgrade() -> None:
    """Replace the guards, erase what raters left who never consented, and rename the log."""
    connection = op.get_bind()
    dialect = connection.dialect.name
    for statement in (*drop_guard_statements(dialect), *guard_statements(dialect, revision=revision)):
        op.execute(statement)
    erase_left_before_consent(connection, int(time.time() * 1000) - DAY_MS, ERASED_UNTIL_0007)
    _rename_log()


def _rename_log() -> None:
    """A new table takes the rows over: SQLite cannot rename the old one's key."""
    op.create_table(
        "dashboard_log",
        Column("id", _BIG_ID, nullable=False),
        *(Column(name, Text, nullable=False) for name in ("made_by", "what", "detail")),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_dashboard_log"),
    )
    connection = op.get_bind()
    old, new = (table(name, *(column(part) for part in _COLUMNS)) for name in ("desk_log", "dashboard_log"))
    connection.execute(insert(new).from_select(_COLUMNS, select(old).order_by(old.c.id)))
    newest = connection.scalar(select(func.max(new.c.id)))
    if connection.dialect.name == "postgresql" and newest:
        connection.execute(select(func.setval(func.pg_get_serial_sequence("dashboard_log", "id"), newest)))
    op.drop_table("desk_log")
