"""Accounts: roles in single studies, and a second factor."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Text, false

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns and tables; nothing that is there changes."""
    op.add_column("accounts", Column("totp_secret", Text))
    op.add_column("accounts", Column("totp_step", BigInteger))
    op.add_column("sign_ins", Column("needs_code", Boolean, nullable=False, server_default=false()))
    op.add_column("account_links", Column("study", Text))
    op.create_table(
        "study_roles",
        Column("account_id", BigInteger, ForeignKey("accounts.id", name="fk_study_roles_account_id"), nullable=False),
        Column("study", Text, nullable=False),
        Column("role", Text, nullable=False),
        sa.PrimaryKeyConstraint("account_id", "study", name="pk_study_roles"),
    )
    op.create_table(
        "recovery_codes",
        Column(
            "account_id", BigInteger, ForeignKey("accounts.id", name="fk_recovery_codes_account_id"), nullable=False
        ),
        Column("code_hash", Text, nullable=False),
        sa.PrimaryKeyConstraint("account_id", "code_hash", name="pk_recovery_codes"),
    )
