"""Comments, shared reports, accounts at a provider of OpenID Connect, and an audit log that nobody can change."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text

from dialometer.storage.schema import log_guard_statements

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_BIG_ID = BigInteger().with_variant(Integer, "sqlite")


def upgrade() -> None:
    """Add tables, and to the log the study and its guards; nothing that is there changes."""
    op.add_column("dashboard_log", Column("study", Text, nullable=False, server_default=""))
    for statement in log_guard_statements(op.get_bind().dialect.name):
        op.execute(statement)
    op.create_table(
        "comments",
        Column("id", _BIG_ID, nullable=False),
        Column("study", Text, nullable=False),
        Column("part", Text, nullable=False),
        Column("reply_to", BigInteger, ForeignKey("comments.id", name="fk_comments_reply_to")),
        Column("text", Text, nullable=False),
        Column("made_by", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        Column("resolved_by", Text),
        Column("resolved_at_ms", BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_comments"),
    )
    op.create_index("ix_comments_study", "comments", ["study"])
    op.create_table(
        "shared_reports",
        Column("id", _BIG_ID, nullable=False),
        *(Column(name, Text, nullable=False) for name in ("token_hash", "study", "about", "page", "made_by")),
        Column("at_ms", BigInteger, nullable=False),
        Column("revoked_by", Text),
        Column("revoked_at_ms", BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_shared_reports"),
        sa.UniqueConstraint("token_hash", name="uq_shared_reports_token_hash"),
    )
    op.create_index("ix_shared_reports_study", "shared_reports", ["study"])
    op.create_table(
        "identities",
        Column("issuer", Text, nullable=False),
        Column("subject", Text, nullable=False),
        Column("account_id", BigInteger, ForeignKey("accounts.id", name="fk_identities_account_id"), nullable=False),
        sa.PrimaryKeyConstraint("issuer", "subject", name="pk_identities"),
    )
    op.create_table(
        "provider_requests",
        *(
            Column(name, Text, nullable=False)
            for name in ("state_hash", "browser_hash", "nonce", "verifier", "next_page")
        ),
        Column("account_id", BigInteger, ForeignKey("accounts.id", name="fk_provider_requests_account_id")),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("state_hash", name="pk_provider_requests"),
    )
