"""Visits of screens note which long responses the rater opened."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; nothing was cut before, so nothing was opened."""
    op.add_column("visits", Column("opened", Text, nullable=False, server_default=""))
