"""The base: studies, raters, sessions, places, judgments, answers, and the guards that keep them append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Integer, Text, UniqueConstraint

from dialometer.storage.schema import guard_statements

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BigId = BigInteger().with_variant(Integer, "sqlite")


def upgrade() -> None:
    """Create every table of the first version."""
    _studies_and_people()
    _sessions()
    _judgments()
    _answers()
    _traces()
    _decisions()
    for statement in guard_statements(op.get_bind().dialect.name, revision="0001"):
        op.execute(statement)


def _id(table: str) -> tuple[Column[int], sa.PrimaryKeyConstraint]:
    return Column("id", BigId, nullable=False), sa.PrimaryKeyConstraint("id", name=f"pk_{table}")


def _session(table: str) -> Column[str]:
    return Column("session_id", Text, ForeignKey("sessions.id", name=f"fk_{table}_session_id"), nullable=False)


def _index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(name, table, columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _studies_and_people() -> None:
    op.create_table(
        "study_versions",
        *_id("study_versions"),
        Column("name", Text, nullable=False),
        Column("fingerprint", Text, nullable=False),
        Column("spec", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        UniqueConstraint("fingerprint", name="uq_study_versions_fingerprint"),
    )
    op.create_table(
        "people",
        Column("rater_id", Text, nullable=False),
        Column("platform", Text, nullable=False),
        Column("external_id", Text),
        Column("params", Text, nullable=False),
        sa.PrimaryKeyConstraint("rater_id", name="pk_people"),
        UniqueConstraint("platform", "external_id", name="uq_people_platform_external_id"),
    )
    op.create_table(
        "imports",
        *_id("imports"),
        Column("file_name", Text, nullable=False),
        Column("sha256", Text, nullable=False),
        Column("format", Text, nullable=False),
        Column("n_rows", BigInteger, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        UniqueConstraint("sha256", name="uq_imports_sha256"),
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        Column("id", Text, nullable=False),
        Column("token_hash", Text),
        Column("rater_id", Text, ForeignKey("people.rater_id", name="fk_sessions_rater_id")),
        Column("ordinal", Integer, nullable=False),
        Column(
            "study_version",
            BigInteger,
            ForeignKey("study_versions.id", name="fk_sessions_study_version"),
            nullable=False,
        ),
        Column("import_id", BigInteger, ForeignKey("imports.id", name="fk_sessions_import_id")),
        Column("state", Text, nullable=False),
        Column("step", Integer, nullable=False),
        Column("cell", Integer, nullable=False),
        Column("condition", Text, nullable=False),
        Column("draw", Text, nullable=False),
        Column("source", Text, nullable=False),
        Column("consent_version", Text, nullable=False),
        Column("started_at_ms", BigInteger, nullable=False),
        Column("last_seen_at_ms", BigInteger, nullable=False),
        Column("finished_at_ms", BigInteger),
        Column("is_excluded", Boolean, nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        UniqueConstraint("token_hash", name="uq_sessions_token_hash"),
        UniqueConstraint("ordinal", name="uq_sessions_ordinal"),
    )
    op.create_index("ix_sessions_rater_id", "sessions", ["rater_id"])
    op.create_index("ix_sessions_places", "sessions", ["state", "source", "is_excluded", "cell"])
    op.create_table(
        "slots",
        _session("slots"),
        Column("item_id", Text, nullable=False),
        Column("block", Text, nullable=False),
        Column("cell", Integer, nullable=False),
        Column("source", Text, nullable=False),
        Column("reserved_at_ms", BigInteger, nullable=False),
        Column("done_at_ms", BigInteger),
        Column("is_released", Boolean, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "item_id", name="pk_slots"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_slots_places", "slots", ["source", "is_released", "cell", "item_id"])


def _judgments() -> None:
    op.create_table(
        "judgments",
        *_id("judgments"),
        _session("judgments"),
        Column("item_id", Text, nullable=False),
        Column("criterion", Text, nullable=False),
        Column("system", Text, nullable=False),
        Column("turn", Integer, nullable=False),
        Column("value", Text, nullable=False),
        Column("scale", Text, nullable=False),
        Column("block", Text, nullable=False),
        Column("position", Integer, nullable=False),
        Column("side", Integer, nullable=False),
        Column("order", Text, nullable=False),
        Column("shown_at_ms", BigInteger, nullable=False),
        Column("answered_at_ms", BigInteger, nullable=False),
        Column("is_late", Boolean, nullable=False),
        Column("is_practice", Boolean, nullable=False),
        Column("replaces", BigInteger, ForeignKey("judgments.id", name="fk_judgments_replaces")),
        Column("corrected_by", Text, nullable=False),
        Column("reason", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_judgments_session_id", "judgments", ["session_id"])
    key = ["session_id", "item_id", "criterion", "system", "turn"]
    _index("uq_judgments_first", "judgments", key, "replaces IS NULL AND NOT is_practice", unique=True)
    _index("uq_judgments_replaces", "judgments", ["replaces"], "replaces IS NOT NULL", unique=True)


def _answers() -> None:
    op.create_table(
        "answers",
        *_id("answers"),
        _session("answers"),
        Column("part", Text, nullable=False),
        Column("question", Text, nullable=False),
        Column("value", Text, nullable=False),
        Column("shown_at_ms", BigInteger, nullable=False),
        Column("answered_at_ms", BigInteger, nullable=False),
        Column("replaces", BigInteger, ForeignKey("answers.id", name="fk_answers_replaces")),
        Column("corrected_by", Text, nullable=False),
        Column("reason", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_answers_session_id", "answers", ["session_id"])
    _index("uq_answers_first", "answers", ["session_id", "part", "question"], "replaces IS NULL", unique=True)
    _index("uq_answers_replaces", "answers", ["replaces"], "replaces IS NOT NULL", unique=True)


def _traces() -> None:
    op.create_table(
        "visits",
        *_id("visits"),
        _session("visits"),
        Column("screen", Text, nullable=False),
        Column("shown_at_ms", BigInteger, nullable=False),
        Column("submitted_at_ms", BigInteger, nullable=False),
        Column("first_input_at_ms", BigInteger),
        Column("focus_lost_n", Integer, nullable=False),
        Column("focus_lost_s", Float, nullable=False),
        Column("device", Text, nullable=False),
        Column("is_late", Boolean, nullable=False),
    )
    op.create_index("ix_visits_session_id", "visits", ["session_id"])
    op.create_table(
        "submissions",
        Column("token", Text, nullable=False),
        _session("submissions"),
        Column("screen", Text, nullable=False),
        Column("step_after", Integer, nullable=False),
        Column("state_after", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("token", name="pk_submissions"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "drafts",
        _session("drafts"),
        Column("screen", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "screen", name="pk_drafts"),
    )


def _decisions() -> None:
    op.create_table(
        "findings",
        *_id("findings"),
        _session("findings"),
        Column("rule", Text, nullable=False),
        Column("action", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("details", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
    )
    op.create_index("ix_findings_session_id", "findings", ["session_id"])
    op.create_table(
        "exclusions",
        *_id("exclusions"),
        _session("exclusions"),
        Column("is_excluded", Boolean, nullable=False),
        Column("made_by", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("at_ms", BigInteger, nullable=False),
    )
    op.create_index("ix_exclusions_session_id", "exclusions", ["session_id"])
    op.create_table(
        "withdrawals",
        _session("withdrawals"),
        Column("at_ms", BigInteger, nullable=False),
        Column("n_judgments", Integer, nullable=False),
        Column("n_answers", Integer, nullable=False),
        Column("n_visits", Integer, nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_withdrawals"),
    )
