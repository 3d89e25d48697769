"""Arenas inside a session: a rater talks with two systems side by side and knows them only as A and B.

Both conversations are stored in full, each under its position on the screen. A message is stored for both sides in one
transaction before any system hears it; each reply is stored before the rater sees it. Where a system fails, the message stays:
it can be asked again, and the rater may also write on without its reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dialometer.errors import FlowError
from dialometer.flow.chat import Chats, checked_message, shown_reply, store_message
from dialometer.flow.engine import Flow
from dialometer.flow.screens import Screen, with_conversations
from dialometer.model.dialogue import Turn
from dialometer.model.item import ArenaItem
from dialometer.model.session import Session
from dialometer.storage.conversations import PLACES, ChatTurn, number_of, place_of


@dataclass(frozen=True, slots=True)
class ArenaState:
    """How both conversations stand. ``n_said`` counts the messages on each side, ``waiting`` names sides without a reply."""

    n_said: tuple[int, ...]
    waiting: tuple[int, ...]
    min_turns: int
    max_turns: int

    @property
    def may_continue(self) -> bool:
        """Whether the rater has talked enough to vote."""
        return min(self.n_said) >= self.min_turns

    @property
    def may_say(self) -> bool:
        """Whether one more message fits."""
        return min(self.n_said) < self.max_turns


class Arenas:
    """The arenas of one study."""

    def __init__(self, flow: Flow, chats: Chats) -> None:
        self.flow = flow
        self.chats = chats
        self.store = flow.store

    @property
    def has_own_messages(self) -> bool:
        """Whether raters write to each system on its own."""
        return self.flow.study.spec.arena.messages == "own"

    def systems(self, session: Session, item_id: str) -> tuple[str, ...]:
        """The two systems of a session's arena, in the order of their position on the screen."""
        task = next((task for task in self.flow.path(session).plan.tasks if task.item_id == item_id), None)
        if task is None or not isinstance(self.flow.study.items_by_id[item_id], ArenaItem):
            raise FlowError("this conversation is not part of your session", remedy="reload the page")
        return task.systems

    def item(self, item_id: str) -> ArenaItem:
        """The arena item of that id."""
        item = self.flow.study.items_by_id.get(item_id)
        if not isinstance(item, ArenaItem):
            raise FlowError(f"'{item_id}' is not an arena of this study", remedy="reload the page")
        return item

    def state(self, session: Session, item_id: str) -> ArenaState:
        """How both conversations stand."""
        item, sides = self.item(item_id), self._sides(session, item_id)
        n_said = tuple(sum(turn.role == "user" for turn in side) for side in sides)
        waiting = tuple(place for place, side in zip(PLACES, sides, strict=True) if side and side[-1].role == "user")
        return ArenaState(n_said, waiting, item.min_turns, item.max_turns)

    def conversations(self, session: Session, item_id: str) -> tuple[tuple[Turn, ...], ...]:
        """What was said on each side so far, the opening included."""
        return tuple(self._history(session, item_id, side) for side in self._sides(session, item_id))

    def _history(self, session: Session, item_id: str, side: Sequence[ChatTurn]) -> tuple[Turn, ...]:
        item = self.flow.shown_study(session).items_by_id[item_id]
        opening = item.opening if isinstance(item, ArenaItem) else ""
        said = tuple(Turn("User" if t.role == "user" else "Agent", t.text, t.role) for t in side)
        return (Turn("Agent", opening, "agent"), *said) if opening else said

    def shown(self, session: Session, screen: Screen) -> Screen:
        """A screen of the arena with both conversations in it; any other screen as it is."""
        if screen.item is None or screen.item.kind != "arena":
            return screen
        return with_conversations(screen, self.conversations(session, screen.item.id))

    def revealed(self, session: Session) -> tuple[tuple[str, ...], ...]:
        """For the last page, the systems of every arena in the order of their places, where the study tells them."""
        if self.flow.study.spec.arena.reveal != "end" or session.state != "completed":
            return ()
        labels = {system.name: system.label or system.name for system in self.flow.study.spec.systems}
        tasks = self.flow.path(session).plan.tasks
        return tuple(
            tuple(labels[name] for name in task.systems)
            for task in tasks
            if isinstance(self.flow.study.items_by_id[task.item_id], ArenaItem)
        )

    def hear(self, session: Session, item_id: str, text: str, at_ms: int, place: int | None = None) -> None:
        """Stores a message of the rater, to both systems or to the one at ``place``."""
        systems = self.systems(session, item_id)
        if session.state != "active":
            raise FlowError("this conversation is not part of your session", remedy="reload the page")
        if (place is not None) != self.has_own_messages or place not in (None, *PLACES):
            wanted = "to one of the two systems, 1 or 2" if self.has_own_messages else "to both systems at once"
            raise FlowError(f"in this study a message goes {wanted}", remedy="reload the page")
        message = checked_message(text)
        places = PLACES if place is None else (place,)
        n_said = self.state(session, item_id).n_said
        if max(n_said[p - 1] for p in places) >= self.item(item_id).max_turns:
            raise FlowError("this conversation has reached its length", remedy="continue to the questions")
        turns = (
            ChatTurn(
                session.id,
                item_id,
                number_of(n_said[p - 1], p, "user"),
                "user",
                message,
                at_ms,
                {"place": p, "system": systems[p - 1]},
            )
            for p in places
        )
        store_message(self.store, turns)

    def answer(
        self,
        session: Session,
        item_id: str,
        place: int,
        at_ms: int | None = None,
        on_text: Callable[[str], None] | None = None,
        *,
        is_paced: bool = False,
    ) -> str:
        """The reply of the system at a place, as it was stored. ``on_text`` and ``is_paced`` as in :meth:`Chats.answer`."""
        side = self._sides(session, item_id)[place - 1]
        if not side or side[-1].role != "user":
            raise FlowError("there is nothing to answer", remedy="write a message first")
        system = self.systems(session, item_id)[place - 1]
        history = self._history(session, item_id, side)
        # Each side has an id of its own, so that a system with memory does not mix up the two conversations.
        conversation = f"{item_id}\n{place}"
        reply = self.chats.ask(system, history, session, conversation, on_text, is_paced=is_paced)
        text = shown_reply(reply)
        meta = {"place": place, "system": system, "seed": session.ordinal, **dict(reply.details)}
        at = self.flow.clock() if at_ms is None else at_ms
        turn = ChatTurn(session.id, item_id, side[-1].n + 1, "agent", text, at, meta)
        self.store.conversations.add_turns([turn])
        return text

    def exchange(self, session: Session, item_id: str, text: str, at_ms: int) -> None:
        """One message to both systems and their replies, for raters inside this process."""
        for place in PLACES if self.has_own_messages else (None,):
            self.hear(session, item_id, text, at_ms, place)
        self.catch_up(session, item_id, at_ms)

    def catch_up(self, session: Session, item_id: str, at_ms: int) -> None:
        """Asks every system whose reply is missing."""
        for place in self.state(session, item_id).waiting:
            self.answer(session, item_id, place, at_ms)

    def roles_so_far(self, session: Session, item_id: str) -> tuple[str, ...]:
        """Who spoke so far on the side where less was said; it ends with the rater where any reply is missing."""
        sides = [tuple(turn.role for turn in side) for side in self.conversations(session, item_id)]
        shorter = min(sides, key=lambda roles: roles.count("user"))
        is_waiting = bool(self.state(session, item_id).waiting)
        return (*shorter, "user") if is_waiting and shorter[-1:] != ("user",) else shorter

    def _sides(self, session: Session, item_id: str) -> tuple[list[ChatTurn], ...]:
        turns = self.store.conversations.turns(session.id, item_id)
        return tuple([turn for turn in turns if place_of(turn) == place] for place in PLACES)
