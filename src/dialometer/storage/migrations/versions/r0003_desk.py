"""The experimenter's side: accounts, their sign-ins and links, what they did, and each look at the results."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, Text

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_BIG_ID = BigInteger().with_variant(Integer, "sqlite")


def upgrade() -> None:
    """Add the tables; nothing that is there changes."""
    op.create_table(
        "accounts",
        Column("id", _BIG_ID, nullable=False),
        Column("name", Text, nullable=False),
        Column("role", Text, nullable=False),
        Column("password_hash", Text, nullable=False),
        Column("is_active", Boolean, nullable=False),
        Column("created_at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.UniqueConstraint("name", name="uq_accounts_name"),
    )
    op.create_table(
        "sign_ins",
        Column("token_hash", Text, nullable=False),
        Column("account_id", BigInteger, ForeignKey("accounts.id", name="fk_sign_ins_account_id"), nullable=False),
        Column("began_at_ms", BigInteger, nullable=False),
        Column("seen_at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name="pk_sign_ins"),
    )
    op.create_index("ix_sign_ins_account_id", "sign_ins", ["account_id"])
    op.create_table(
        "account_links",
        Column("token_hash", Text, nullable=False),
        Column("role", Text, nullable=False),
        Column("account_id", BigInteger, ForeignKey("accounts.id", name="fk_account_links_account_id")),
        Column("made_by", Text, nullable=False),
        Column("expires_at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name="pk_account_links"),
    )
    op.create_table(
        "sign_in_failures",
        Column("name", Text, nullable=False),
        Column("n_failures", Integer, nullable=False),
        Column("last_at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_sign_in_failures"),
    )
    op.create_table(
        "desk_log",
        Column("id", _BIG_ID, nullable=False),
        Column("made_by", Text, nullable=False),
        Column("what", Text, nullable=False),
        Column("detail", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_desk_log"),
    )
    op.create_table(
        "looks",
        Column("id", _BIG_ID, nullable=False),
        Column("made_by", Text, nullable=False),
        Column("n_judgments", BigInteger, nullable=False),
        Column("n_raters", Integer, nullable=False),
        Column("seen", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_looks"),
    )
