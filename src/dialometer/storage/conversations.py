"""What a rater is in the middle of: unsent forms and live conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from dialometer.errors import StorageError
from dialometer.model.dialogue import Role
from dialometer.storage.database import StorePart
from dialometer.storage.rows import mapping_from_json, to_json
from dialometer.storage.schema import chat_turns, drafts
from dialometer.storage.sessions import present_session

# Asked for every page of a rater, so the statement is made once.
_DRAFT = select(drafts.c.content).where(
    drafts.c.session_id == bindparam("of_session"), drafts.c.screen == bindparam("of_screen")
)


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One utterance of a live conversation; ``n`` counts from 0 within session and item."""

    session_id: str
    item_id: str
    n: int
    role: Role
    text: str
    at_ms: int
    meta: Mapping[str, Any] = field(default_factory=dict)


class TurnConflict(StorageError):
    """A turn of this number is stored already and says something else: the conversation continued in another process."""


PLACES = (1, 2)
"""The two sides of an arena, from left to right."""
_PER_ROUND = 2 * len(PLACES)


def number_of(round_: int, place: int, role: Role) -> int:
    """The number of a turn in an arena: each round has a message and a reply for each side, so sides never wait for a number."""
    return _PER_ROUND * round_ + 2 * (place - 1) + (role == "agent")


def place_of(turn: ChatTurn) -> int:
    """On which side of an arena a turn was said."""
    return PLACES[turn.n % _PER_ROUND // 2]


def number_on_side(turn: ChatTurn) -> int:
    """The place of an arena's turn in the conversation on its side, counted from 0; a reply that never came leaves a gap."""
    return 2 * (turn.n // _PER_ROUND) + turn.n % 2


def n_messages(turns: Iterable[ChatTurn]) -> int:
    """How many messages a rater wrote in an arena: the fewer of the two sides."""
    places = [place_of(turn) for turn in turns if turn.role == "user"]
    return min(places.count(place) for place in PLACES)


class Conversations(StorePart):
    """Drafts and chat turns."""

    def save_draft(self, session_id: str, screen: str, content: Mapping[str, Any], at_ms: int) -> None:
        """Keep an unsent form, in place of the one kept before; it goes when a screen of the session is recorded."""
        row = {"session_id": session_id, "screen": screen, "content": to_json(dict(content)), "at_ms": at_ms}
        with self.database.writing() as connection:
            present_session(connection, session_id)
            connection.execute(delete(drafts).where(drafts.c.session_id == session_id, drafts.c.screen == screen))
            connection.execute(insert(drafts), row)

    def draft(self, session_id: str, screen: str) -> Mapping[str, Any] | None:
        """The unsent form of a screen, or None."""
        with self.database.reading() as connection:
            content = connection.scalar(_DRAFT, {"of_session": session_id, "of_screen": screen})
        return None if content is None else mapping_from_json(content)

    def add_turn(self, turn: ChatTurn) -> bool:
        """Store a turn; False when it was there already. Another text under the same number is refused."""
        return self.add_turns([turn]) == 1

    def add_turns(self, turns: Iterable[ChatTurn]) -> int:
        """Store turns of one session, all or none; how many of them were new."""
        n_new = 0
        with self.database.writing() as connection:
            for turn in turns:
                present_session(connection, turn.session_id)
                n_new += _add_turn(connection, turn)
        return n_new

    def turns(self, session_id: str | None = None, item_id: str | None = None) -> list[ChatTurn]:
        """The turns of one conversation, of one session, or of all, in order."""
        key = (chat_turns.c.session_id, chat_turns.c.item_id, chat_turns.c.n)
        query = select(chat_turns).order_by(*key)
        if session_id is not None:
            query = query.where(chat_turns.c.session_id == session_id)
        if item_id is not None:
            query = query.where(chat_turns.c.item_id == item_id)
        with self.database.reading() as connection:
            return [
                ChatTurn(r.session_id, r.item_id, r.n, r.role, r.text, r.at_ms, mapping_from_json(r.meta))
                for r in connection.execute(query)
            ]

    def agent_costs(self) -> tuple[float, int]:
        """What all stored responses of agents have cost together, failed tries and suggestions to wizards included, and how
        many have a cost."""
        total, n_turns = 0.0, 0
        query = select(chat_turns.c.meta).where(chat_turns.c.role == "agent", chat_turns.c.meta.contains('"cost"'))
        with self.database.reading() as connection:
            for (text,) in connection.execute(query):
                meta = mapping_from_json(text)
                more = (*(meta.get("failed_tries") or ()), *(meta.get("suggestions") or ()))
                total += sum(part.get("cost") or 0.0 for part in (meta, *more))
                n_turns += 1
        return total, n_turns

    def n_turns_on(self, item_id: str) -> dict[str, int]:
        """Turns of each session that talked about one item."""
        counted = (
            select(chat_turns.c.session_id, func.count())
            .where(chat_turns.c.item_id == item_id)
            .group_by(chat_turns.c.session_id)
        )
        with self.database.reading() as connection:
            return dict(connection.execute(counted).all())


def _add_turn(connection: Connection, turn: ChatTurn) -> bool:
    query = select(chat_turns.c.role, chat_turns.c.text).where(
        chat_turns.c.session_id == turn.session_id,
        chat_turns.c.item_id == turn.item_id,
        chat_turns.c.n == turn.n,
    )
    stored = connection.execute(query).one_or_none()
    if stored is None:
        row = {name: getattr(turn, name) for name in ("session_id", "item_id", "n", "role", "text", "at_ms")}
        connection.execute(insert(chat_turns), {**row, "meta": to_json(dict(turn.meta))})
        return True
    if tuple(stored) != (turn.role, turn.text):
        raise TurnConflict(
            f"turn {turn.n} of item '{turn.item_id}' already says something else",
            remedy="read the conversation again and continue after its last turn",
        )
    return False
