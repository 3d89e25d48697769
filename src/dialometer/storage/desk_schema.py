"""The tables of the experimenter's side: who may come in, what they did, and every look at the results.

They stand beside the study's own tables so that one migration path serves both; a server of several studies keeps them in
a database of its own.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from dialometer.storage.schema import BigId, metadata

# Since 0003, as everything here. Names are compared in small letters; a password is kept as its argon2 hash only.
accounts = Table(
    "accounts",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    UniqueConstraint("name"),
)

# One row per browser that is signed in; of its secret only the hash is kept.
sign_ins = Table(
    "sign_ins",
    metadata,
    Column("token_hash", Text, primary_key=True),
    Column("account_id", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("began_at_ms", BigInteger, nullable=False),
    Column("seen_at_ms", BigInteger, nullable=False),
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
)

sign_in_failures = Table(
    "sign_in_failures",
    metadata,
    Column("name", Text, primary_key=True),
    Column("n_failures", Integer, nullable=False),
    Column("last_at_ms", BigInteger, nullable=False),
)

# What accounts did that no other log tells: accounts themselves, files, exports.
desk_log = Table(
    "desk_log",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("made_by", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
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
