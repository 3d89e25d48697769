"""Sessions note in which language their rater reads the study."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is empty for sessions from before, which all had the language of their study."""
    op.add_column("sessions", Column("language", Text, nullable=False, server_default=""))
