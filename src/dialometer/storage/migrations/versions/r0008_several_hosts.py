"""What several hosts of one study share: wizards, their conversations, and counts of arrivals and logins."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables; nothing that is there changes."""
    op.create_table(
        "wizards",
        Column("secret_hash", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("secret_hash", name="pk_wizards"),
    )
    op.create_table(
        "wizard_chats",
        Column("id", Text, nullable=False),
        Column("session_id", Text, ForeignKey("sessions.id", name="fk_wizard_chats_session_id"), nullable=False),
        Column("item_id", Text, nullable=False),
        Column("step", Integer, nullable=False),
        Column("holder", Text, nullable=False),
        Column("opened_at_ms", BigInteger, nullable=False),
        Column("seen_at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_wizard_chats"),
    )
    op.create_index("ix_wizard_chats_seen_at_ms", "wizard_chats", ["seen_at_ms"])
    op.create_table(
        "request_counts",
        Column("key", Text, nullable=False),
        Column("window", BigInteger, nullable=False),
        Column("n", Integer, nullable=False),
        sa.PrimaryKeyConstraint("key", "window", name="pk_request_counts"),
    )
