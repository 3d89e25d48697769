"""Wizards and the conversations they answer, so that every process and host of a study knows the same ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sqlalchemy import Row, delete, func, insert, select, update

from dialometer.errors import FlowError
from dialometer.storage.database import StorePart
from dialometer.storage.rows import token_hash
from dialometer.storage.schema import wizard_chats, wizards

MAX_WIZARDS = 50


@dataclass(frozen=True, slots=True)
class WizardChat:
    """A conversation that a wizard answers; ``holder`` is the wizard who has taken it, or empty."""

    id: str
    session_id: str
    item_id: str
    step: int
    holder: str
    opened_at_ms: int
    seen_at_ms: int


class Wizards(StorePart):
    """Who answers, and which conversations wait."""

    def sign_in(self, secret: str, at_ms: int) -> str:
        """A new wizard with the next free name; of too many, those who came first are forgotten."""
        with self.database.assigning() as connection:
            kept = select(wizards.c.secret_hash).order_by(wizards.c.at_ms.desc()).limit(MAX_WIZARDS - 1)
            connection.execute(delete(wizards).where(wizards.c.secret_hash.not_in(kept.scalar_subquery())))
            names = set(connection.scalars(select(wizards.c.name)))
            name = next(f"Wizard {n}" for n in range(1, MAX_WIZARDS + 2) if f"Wizard {n}" not in names)
            connection.execute(insert(wizards), {"secret_hash": token_hash(secret), "name": name, "at_ms": at_ms})
        return name

    def name_of(self, secret: str) -> str:
        """The wizard's name; empty for an unknown secret."""
        query = select(wizards.c.name).where(wizards.c.secret_hash == token_hash(secret))
        with self.database.reading() as connection:
            return connection.scalar(query) or ""

    def rename(self, secret: str, name: str) -> None:
        """Let a wizard choose a name. It is stored with every reply, so two of them cannot share one."""
        own = wizards.c.secret_hash == token_hash(secret)
        with self.database.assigning() as connection:
            if connection.scalar(select(func.count()).where(wizards.c.name == name, ~own)):
                raise FlowError("another wizard has this name", remedy="choose another one")
            old = connection.scalar(select(wizards.c.name).where(own))
            connection.execute(update(wizards).where(own).values(name=name))
            connection.execute(update(wizard_chats).where(wizard_chats.c.holder == old).values(holder=name))

    def open(self, session_id: str, item_id: str, step: int, at_ms: int) -> str:
        """Add a conversation, or note that its rater was seen; gives its id."""
        key = hashlib.sha256(f"{session_id}\n{item_id}".encode()).hexdigest()[:16]
        with self.database.assigning() as connection:
            seen = update(wizard_chats).where(wizard_chats.c.id == key).values(seen_at_ms=at_ms, step=step)
            if not connection.execute(seen).rowcount:
                row = {"id": key, "session_id": session_id, "item_id": item_id, "step": step, "holder": ""}
                connection.execute(insert(wizard_chats), {**row, "opened_at_ms": at_ms, "seen_at_ms": at_ms})
        return key

    def chat(self, key: str) -> WizardChat | None:
        """A conversation by its id."""
        with self.database.reading() as connection:
            row = connection.execute(select(wizard_chats).where(wizard_chats.c.id == key)).one_or_none()
        return None if row is None else _chat(row)

    def chats(self, seen_since_ms: int) -> list[WizardChat]:
        """Conversations whose rater was seen lately, the longest open first."""
        query = (
            select(wizard_chats)
            .where(wizard_chats.c.seen_at_ms >= seen_since_ms)
            .order_by(wizard_chats.c.opened_at_ms, wizard_chats.c.id)
        )
        with self.database.reading() as connection:
            return [_chat(row) for row in connection.execute(query)]

    def take(self, key: str, wizard: str) -> str:
        """Give a conversation to a wizard unless another has it; the name of who has it now."""
        is_free = wizard_chats.c.holder.in_(("", wizard))
        with self.database.assigning() as connection:
            connection.execute(update(wizard_chats).where(wizard_chats.c.id == key, is_free).values(holder=wizard))
            return connection.scalar(select(wizard_chats.c.holder).where(wizard_chats.c.id == key)) or ""

    def release(self, key: str, wizard: str) -> None:
        """A wizard leaves a conversation to the others."""
        own = (wizard_chats.c.id == key, wizard_chats.c.holder == wizard)
        with self.database.writing() as connection:
            connection.execute(update(wizard_chats).where(*own).values(holder=""))


def _chat(row: Row[tuple[object, ...]]) -> WizardChat:
    return WizardChat(**row._mapping)
