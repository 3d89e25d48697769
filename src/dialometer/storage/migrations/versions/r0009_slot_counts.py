"""Taken slots are counted by the database as they change, so that arrivals stay quick in studies of any size."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Column, Integer, Text

from dialometer.storage.counting.slot_counts import count_at_once

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_BIG_ID = BigInteger().with_variant(Integer, "sqlite")


def upgrade() -> None:
    """Add the tables, count the slots that are there, and let triggers count from now on."""
    op.create_table(
        "slot_counts",
        Column("source", Text, nullable=False),
        Column("cell", Integer, nullable=False),
        Column("item_id", Text, nullable=False),
        Column("n", Integer, nullable=False),
        sa.PrimaryKeyConstraint("source", "cell", "item_id", name="pk_slot_counts"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "slot_changes",
        Column("id", _BIG_ID, nullable=False),
        Column("source", Text, nullable=False),
        Column("cell", Integer, nullable=False),
        Column("item_id", Text, nullable=False),
        Column("n", Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_slot_changes"),
    )
    count_at_once(op.get_bind())
