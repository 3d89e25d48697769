"""Raters who declined leave nothing, as their page says: the guards allow it, and what earlier versions kept goes."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Connection, select

from dialometer.storage.erasing import ERASED_UNTIL_0007, erase_sessions
from dialometer.storage.schema import drop_guard_statements, guard_statements, sessions

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_N_AT_ONCE = 500


def upgrade() -> None:
    """Replace the guards, then erase what raters left who declined."""
    connection = op.get_bind()
    dialect = connection.dialect.name
    for statement in (*drop_guard_statements(dialect), *guard_statements(dialect, revision=revision)):
        op.execute(statement)
    erase_declined(connection)


def erase_declined(connection: Connection) -> None:
    """Erase all sessions that were declined and still have a rater."""
    left = select(sessions.c.id).where(
        sessions.c.state == "declined", sessions.c.consent_version == "", sessions.c.rater_id.is_not(None)
    )
    ids = list(connection.scalars(left))
    for start in range(0, len(ids), _N_AT_ONCE):
        erase_sessions(connection, ids[start : start + _N_AT_ONCE], ERASED_UNTIL_0007)
