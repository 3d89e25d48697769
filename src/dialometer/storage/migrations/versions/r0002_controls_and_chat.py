"""Control of a running study (pause, close, quotas) and the turns of live conversations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the two tables; nothing that is there changes."""
    op.create_table(
        "controls",
        Column("id", BigInteger().with_variant(Integer, "sqlite"), nullable=False),
        Column("kind", Text, nullable=False),
        Column("cell", Integer),
        Column("value", Text, nullable=False),
        Column("made_by", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_controls"),
    )
    op.create_table(
        "chat_turns",
        Column("session_id", Text, ForeignKey("sessions.id", name="fk_chat_turns_session_id"), nullable=False),
        Column("item_id", Text, nullable=False),
        Column("n", Integer, nullable=False),
        Column("role", Text, nullable=False),
        Column("text", Text, nullable=False),
        Column("meta", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "item_id", "n", name="pk_chat_turns"),
    )
