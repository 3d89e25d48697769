"""Withdrawal codes that no session id gives away, a secret for signed links, and a quick count of recent arrivals.

Until 0004 a code followed from the session's id. Raters have noted such codes, so they stay valid for the sessions that
are here now; new sessions get codes that only their rater's own token yields.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Column, ForeignKey, Text

from dialometer.storage.access.codes import LETTERS, N_LETTERS, code_hash

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables and index, then note the codes that raters have."""
    op.create_table(
        "withdrawal_codes",
        Column("code_hash", Text, nullable=False),
        Column("session_id", Text, ForeignKey("sessions.id", name="fk_withdrawal_codes_session_id"), nullable=False),
        sa.PrimaryKeyConstraint("code_hash", name="pk_withdrawal_codes"),
    )
    op.create_index("ix_withdrawal_codes_session_id", "withdrawal_codes", ["session_id"])
    op.create_table(
        "secrets",
        Column("name", Text, nullable=False),
        Column("value", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
    )
    op.create_index("ix_sessions_started", "sessions", ["source", "started_at_ms"])
    connection = op.get_bind()
    ids = connection.scalars(sa.text("SELECT id FROM sessions")).all()
    rows = [{"code": code_hash(earlier_code(session_id)), "session": session_id} for session_id in ids]
    if rows:
        connection.execute(
            sa.text("INSERT INTO withdrawal_codes (code_hash, session_id) VALUES (:code, :session)"), rows
        )


def earlier_code(session_id: str) -> str:
    """The code of a session as versions up to 0004 made it."""
    digest = hashlib.sha256(b"dialometer withdrawal\x00" + session_id.encode()).digest()
    number = int.from_bytes(digest[:10], "big")
    return "".join(LETTERS[number >> 5 * place & 31] for place in reversed(range(N_LETTERS)))
