"""The tables, once for SQLite and PostgreSQL. A change here goes with a new revision in ``migrations/versions``.

JSON is kept as text and times as whole milliseconds since 1970 (UTC), so that both databases hold the same characters
and the same numbers. The append-only tables are guarded by triggers.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

HEAD = "0012"
"""The revision this code reads and writes; a test holds it to the newest migration."""
VERSION_TABLE = "dialometer_version"
NO_TURN = -1
"""Stands for "no turn" in ``judgments.turn``: in a unique index two NULLs would count as different."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite counts rows up only in columns that are called INTEGER.
BigId = BigInteger().with_variant(Integer, "sqlite")


def _id() -> Column[int]:
    return Column("id", BigId, primary_key=True)


def _index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """An index over the rows that meet a condition; both databases have them, each under its own keyword."""
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))


def _session() -> Column[str]:
    return Column("session_id", Text, ForeignKey("sessions.id"), nullable=False)


study_versions = Table(
    "study_versions",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("spec", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    UniqueConstraint("fingerprint"),
)

# The only table with identifiers of a platform; everything else knows a rater by the pseudonym.
people = Table(
    "people",
    metadata,
    Column("rater_id", Text, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("external_id", Text),
    Column("params", Text, nullable=False),
    UniqueConstraint("platform", "external_id"),
)

imports = Table(
    "imports",
    metadata,
    _id(),
    Column("file_name", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("n_rows", BigInteger, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    UniqueConstraint("sha256"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("token_hash", Text),
    Column("rater_id", Text, ForeignKey("people.rater_id"), index=True),
    Column("ordinal", Integer, nullable=False),
    Column("study_version", BigInteger, ForeignKey("study_versions.id"), nullable=False),
    Column("import_id", BigInteger, ForeignKey("imports.id")),
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
    Column("is_excluded", Boolean, nullable=False, server_default=false()),
    Column("language", Text, nullable=False, server_default=""),
    UniqueConstraint("token_hash"),
    UniqueConstraint("ordinal"),
    Index("ix_sessions_places", "state", "source", "is_excluded", "cell"),
    Index("ix_sessions_started", "source", "started_at_ms"),
)

# One place per item of a session: reserved, done (it has a time), or released (it does not count, and others may have it).
slots = Table(
    "slots",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.id"), primary_key=True),
    Column("item_id", Text, primary_key=True),
    Column("block", Text, nullable=False),
    Column("cell", Integer, nullable=False),
    Column("source", Text, nullable=False),
    Column("reserved_at_ms", BigInteger, nullable=False),
    Column("done_at_ms", BigInteger),
    Column("is_released", Boolean, nullable=False),
    Index("ix_slots_places", "source", "is_released", "cell", "item_id"),
    sqlite_with_rowid=False,
)

# Since 0009. How many slots are taken, and what has changed since they were added up; triggers write the changes.
slot_counts = Table(
    "slot_counts",
    metadata,
    Column("source", Text, primary_key=True),
    Column("cell", Integer, primary_key=True, autoincrement=False),
    Column("item_id", Text, primary_key=True),
    Column("n", Integer, nullable=False),
    sqlite_with_rowid=False,
)
slot_changes = Table(
    "slot_changes",
    metadata,
    _id(),
    Column("source", Text, nullable=False),
    Column("cell", Integer, nullable=False),
    Column("item_id", Text, nullable=False),
    Column("n", Integer, nullable=False),
)

judgments = Table(
    "judgments",
    metadata,
    _id(),
    _session(),
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
    Column("replaces", BigInteger, ForeignKey("judgments.id")),
    Column("corrected_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("ix_judgments_session_id", "session_id"),
    _index(
        "uq_judgments_first",
        "session_id",
        "item_id",
        "criterion",
        "system",
        "turn",
        where="replaces IS NULL AND NOT is_practice",
        unique=True,
    ),
    _index("uq_judgments_replaces", "replaces", where="replaces IS NOT NULL", unique=True),
    sqlite_autoincrement=True,
)

answers = Table(
    "answers",
    metadata,
    _id(),
    _session(),
    Column("part", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("shown_at_ms", BigInteger, nullable=False),
    Column("answered_at_ms", BigInteger, nullable=False),
    Column("replaces", BigInteger, ForeignKey("answers.id")),
    Column("corrected_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("ix_answers_session_id", "session_id"),
    _index("uq_answers_first", "session_id", "part", "question", where="replaces IS NULL", unique=True),
    _index("uq_answers_replaces", "replaces", where="replaces IS NOT NULL", unique=True),
    sqlite_autoincrement=True,
)

visits = Table(
    "visits",
    metadata,
    _id(),
    _session(),
    Column("screen", Text, nullable=False),
    Column("shown_at_ms", BigInteger, nullable=False),
    Column("submitted_at_ms", BigInteger, nullable=False),
    Column("first_input_at_ms", BigInteger),
    Column("focus_lost_n", Integer, nullable=False),
    Column("focus_lost_s", Float, nullable=False),
    Column("device", Text, nullable=False),
    Column("is_late", Boolean, nullable=False),
    # Systems whose long response was opened, as JSON; empty where none was.
    Column("opened", Text, nullable=False, server_default=""),
    Index("ix_visits_session_id", "session_id"),
)

# What was answered to each submitted screen, so that the same screen sent twice is stored once.
submissions = Table(
    "submissions",
    metadata,
    Column("token", Text, primary_key=True),
    _session(),
    Column("screen", Text, nullable=False),
    Column("step_after", Integer, nullable=False),
    Column("state_after", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

findings = Table(
    "findings",
    metadata,
    _id(),
    _session(),
    Column("rule", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index("ix_findings_session_id", "session_id"),
)

exclusions = Table(
    "exclusions",
    metadata,
    _id(),
    _session(),
    Column("is_excluded", Boolean, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index("ix_exclusions_session_id", "session_id"),
)

drafts = Table(
    "drafts",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.id"), primary_key=True),
    Column("screen", Text, primary_key=True),
    Column("content", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)

# What is left of a withdrawn session. A row here lets the guards of the append-only tables delete.
withdrawals = Table(
    "withdrawals",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.id"), primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("n_judgments", Integer, nullable=False),
    Column("n_answers", Integer, nullable=False),
    Column("n_visits", Integer, nullable=False),
)

# Since 0005. Which session a rater's withdrawal code erases; of the code only the hash is kept. A row outlives its session's
# answers, so that a code that was used before is still known.
withdrawal_codes = Table(
    "withdrawal_codes",
    metadata,
    Column("code_hash", Text, primary_key=True),
    _session(),
    Index("ix_withdrawal_codes_session_id", "session_id"),
)

# Since 0005. What only this study's servers know, such as the secret that signs the links of raters.
secrets = Table(
    "secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)

# Since 0002. The log of decisions is also the state: the newest row of each kind (and cell) is in force.
controls = Table(
    "controls",
    metadata,
    _id(),
    Column("kind", Text, nullable=False),
    Column("cell", Integer),
    Column("value", Text, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)

# Since 0002.
chat_turns = Table(
    "chat_turns",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.id"), primary_key=True),
    Column("item_id", Text, primary_key=True),
    Column("n", Integer, primary_key=True),
    Column("role", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("meta", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)

# The dashboard's tables, since 0003: who may sign in, what they did, and every look at the results. A server of several
# studies keeps them in a database of its own.

# Names are compared in small letters; a password is kept as its argon2 hash only.
accounts = Table(
    "accounts",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("totp_secret", Text),
    Column("totp_step", BigInteger),
    UniqueConstraint("name"),
)

# What an account may do in one study, beside what its own role allows everywhere.
study_roles = Table(
    "study_roles",
    metadata,
    Column("account_id", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("study", Text, nullable=False),
    Column("role", Text, nullable=False),
    PrimaryKeyConstraint("account_id", "study"),
)

# Codes on paper that replace the phone once each; only their hashes.
recovery_codes = Table(
    "recovery_codes",
    metadata,
    Column("account_id", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("code_hash", Text, nullable=False),
    PrimaryKeyConstraint("account_id", "code_hash"),
)

# One row per browser that is signed in; of its secret only the hash is kept.
sign_ins = Table(
    "sign_ins",
    metadata,
    Column("token_hash", Text, primary_key=True),
    Column("account_id", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("began_at_ms", BigInteger, nullable=False),
    Column("seen_at_ms", BigInteger, nullable=False),
    Column("needs_code", Boolean, nullable=False, server_default=false()),
    Index("ix_sign_ins_account_id", "account_id"),
)

# A link that can be used once: to make an account (``account_id`` empty), or to give one a new password.
account_links = Table(
    "account_links",
    metadata,
    Column("token_hash", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("account_id", BigInteger, ForeignKey("accounts.id")),
    Column("made_by", Text, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("study", Text),
)

sign_in_failures = Table(
    "sign_in_failures",
    metadata,
    Column("name", Text, primary_key=True),
    Column("n_failures", Integer, nullable=False),
    Column("last_at_ms", BigInteger, nullable=False),
)

# The audit log: what accounts did, and in which study. Append-only since 0012.
dashboard_log = Table(
    "dashboard_log",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("made_by", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("study", Text, nullable=False, server_default=""),
)

# Since 0012. What co-authors say about a study or a part of it. A reply names the comment it belongs to.
comments = Table(
    "comments",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("study", Text, nullable=False),
    Column("part", Text, nullable=False),
    Column("reply_to", BigInteger, ForeignKey("comments.id")),
    Column("text", Text, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("resolved_by", Text),
    Column("resolved_at_ms", BigInteger),
    Index("ix_comments_study", "study"),
)

# Since 0012. Copies of reports that are read by a link, without an account. Of the link only the hash is kept; a link that is
# revoked loses its copy. Links to a study for review are here too, without a copy.
shared_reports = Table(
    "shared_reports",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("token_hash", Text, nullable=False),
    Column("study", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("page", Text, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("revoked_by", Text),
    Column("revoked_at_ms", BigInteger),
    UniqueConstraint("token_hash"),
    Index("ix_shared_reports_study", "study"),
)

# Since 0012. Who an account is at a provider of OpenID Connect.
identities = Table(
    "identities",
    metadata,
    Column("issuer", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("account_id", BigInteger, ForeignKey("accounts.id"), nullable=False),
    PrimaryKeyConstraint("issuer", "subject"),
)

# Since 0012. Sign-ins that were sent to the provider and have not come back yet. A row is used once.
provider_requests = Table(
    "provider_requests",
    metadata,
    Column("state_hash", Text, primary_key=True),
    Column("browser_hash", Text, nullable=False),
    Column("nonce", Text, nullable=False),
    Column("verifier", Text, nullable=False),
    Column("next_page", Text, nullable=False),
    Column("account_id", BigInteger, ForeignKey("accounts.id")),
    Column("at_ms", BigInteger, nullable=False),
)

# Since 0008. People who answer in place of an agent, and the conversations that wait for them.
wizards = Table(
    "wizards",
    metadata,
    Column("secret_hash", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)
wizard_chats = Table(
    "wizard_chats",
    metadata,
    Column("id", Text, primary_key=True),
    _session(),
    Column("item_id", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    Column("opened_at_ms", BigInteger, nullable=False),
    Column("seen_at_ms", BigInteger, nullable=False),
    Index("ix_wizard_chats_seen_at_ms", "seen_at_ms"),
)

# Since 0008. Arrivals and logins of each client (a hash) in a minute, counted for all hosts together.
request_counts = Table(
    "request_counts",
    metadata,
    Column("key", Text, nullable=False),
    Column("window", BigInteger, nullable=False),
    Column("n", Integer, nullable=False),
    PrimaryKeyConstraint("key", "window"),
)

# Each analysis that somebody looked at before the end: looking is part of a study's history, and so is what was seen.
looks = Table(
    "looks",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("made_by", Text, nullable=False),
    Column("n_judgments", BigInteger, nullable=False),
    Column("n_raters", Integer, nullable=False),
    Column("seen", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)


def guard_statements(dialect: str, *, revision: str = HEAD) -> list[str]:
    """Let the database itself refuse changes, so that no program, not even ours, can alter what was answered.

    Rows are erased only where their rater withdrew, declined without ever having agreed (since revision 0004), or left
    before agreeing and so judged nothing (since 0007).
    """
    statements = []
    for table in ("judgments", "answers"):
        rule = f"{table} is append-only"
        kept = "NOT EXISTS (SELECT 1 FROM withdrawals WHERE session_id = OLD.session_id)"
        if revision >= "0004":
            kept += (
                " AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = OLD.session_id"
                " AND state = 'declined' AND consent_version = '')"
            )
        if revision >= "0007" and table == "answers":
            kept += (
                " AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = OLD.session_id"
                " AND state = 'stale' AND consent_version = '' AND source = 'person'"
                " AND NOT EXISTS (SELECT 1 FROM judgments WHERE session_id = OLD.session_id))"
            )
        if dialect == "sqlite":
            statements += [
                f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{rule}: write a correction instead'); END",
                f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} WHEN {kept} "
                f"BEGIN SELECT RAISE(ABORT, '{rule}: only a rater who withdrew or declined is erased'); END",
            ]
            continue
        statements += [
            f"CREATE FUNCTION {table}_guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF TG_OP = 'DELETE' THEN IF {kept} THEN RAISE EXCEPTION '{rule}: only a rater who withdrew or declined is erased'; "
            f"END IF; RETURN OLD; END IF; RAISE EXCEPTION '{rule}: write a correction instead'; END $$",
            f"CREATE TRIGGER {table}_guard BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_guard()",
            f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_guard()",
        ]
    return statements


def log_guard_statements(dialect: str) -> list[str]:
    """Let the database refuse changes of the audit log (since revision 0012)."""
    refused = "dashboard_log is append-only"
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER dashboard_log_no_{action} BEFORE {action.upper()} ON dashboard_log "
            f"BEGIN SELECT RAISE(ABORT, '{refused}'); END"
            for action in ("update", "delete")
        ]
    return [
        "CREATE FUNCTION dashboard_log_guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"RAISE EXCEPTION '{refused}'; END $$",
        "CREATE TRIGGER dashboard_log_guard BEFORE UPDATE OR DELETE ON dashboard_log "
        "FOR EACH ROW EXECUTE FUNCTION dashboard_log_guard()",
        "CREATE TRIGGER dashboard_log_no_truncate BEFORE TRUNCATE ON dashboard_log "
        "FOR EACH STATEMENT EXECUTE FUNCTION dashboard_log_guard()",
    ]


def drop_guard_statements(dialect: str) -> list[str]:
    """Take the guards away, for a revision that replaces them."""
    if dialect == "sqlite":
        return [
            f"DROP TRIGGER {table}_no_{action}" for table in ("judgments", "answers") for action in ("update", "delete")
        ]
    return [
        statement
        for table in ("judgments", "answers")
        for statement in (
            f"DROP TRIGGER {table}_guard ON {table}",
            f"DROP TRIGGER {table}_no_truncate ON {table}",
            f"DROP FUNCTION {table}_guard()",
        )
    ]
