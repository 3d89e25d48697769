"""Live conversations inside a session: every turn is stored before the other side hears it."""

from __future__ import annotations

import time
from collections.abc import Callable

from dialometer.agents import Agent, Reply
from dialometer.agents.access import AgentAccess
from dialometer.errors import AgentError, FlowError, UnknownName
from dialometer.flow.agents import build_agent
from dialometer.model.dialogue import Turn, clean_text
from dialometer.model.item import ChatItem
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.storage.conversations import ChatTurn
from dialometer.storage.store import Store

MAX_MESSAGE_LENGTH = 4000


class Chats:
    """The conversations of one study with the agents that its systems declare."""

    def __init__(
        self,
        study: Study,
        store: Store,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        access: AgentAccess | None = None,
    ) -> None:
        self.access = access
        self.study = study
        self.store = store
        self.clock = clock
        self._agents: dict[str, Agent] = {}

    def agent(self, system: str) -> Agent:
        """The agent behind a system; built once, when first spoken to."""
        if system not in self._agents:
            declared = next((s.agent for s in self.study.spec.systems if s.name == system), None)
            if declared is None:
                raise UnknownName(f"the system '{system}' has no agent", remedy="declare one in study.yaml")
            self._agents[system] = build_agent(declared.type, declared.options, self.study.folder, self.access)
        return self._agents[system]

    def history(self, session: Session, item_id: str) -> list[Turn]:
        """What was said so far, the agent's opening included."""
        item = self._item(item_id)
        opening = [Turn("Agent", item.opening, "agent")] if item.opening else []
        spoken = [
            Turn("User" if turn.role == "user" else "Agent", turn.text, turn.role)
            for turn in self.store.conversations.turns(session.id, item_id)
        ]
        return opening + spoken

    def say(self, session: Session, item_id: str, text: str, at_ms: int) -> Reply:
        """Stores the rater's message, asks the agent and stores its reply.

        When the agent fails, the message stays; :meth:`answer` asks again.
        """
        self.hear(session, item_id, text, at_ms)
        return self.answer(session, item_id, at_ms)

    def hear(self, session: Session, item_id: str, text: str, at_ms: int) -> None:
        """Stores the rater's message alone, for whoever answers it (an agent or a person) to find."""
        message = self._check(session, item_id, text)
        turns = self.store.conversations.turns(session.id, item_id)
        if turns and turns[-1].role == "user":
            raise FlowError("the agent has not answered yet", remedy="wait for the response")
        n = turns[-1].n + 1 if turns else 0
        self.store.conversations.add_turn(ChatTurn(session.id, item_id, n, "user", message, at_ms))

    def answer(self, session: Session, item_id: str, at_ms: int | None = None) -> Reply:
        """The agent's reply to what was said so far, stamped when it came if no time is given."""
        turns = self.store.conversations.turns(session.id, item_id)
        if not turns or turns[-1].role != "user":
            raise FlowError("there is nothing to answer", remedy="write a message first")
        reply = self.agent(self._item(item_id).system).reply(self.history(session, item_id), seed=session.ordinal)
        return self.tell(session, item_id, turns[-1].n + 1, reply, self.clock() if at_ms is None else at_ms)

    def tell(self, session: Session, item_id: str, n: int, reply: Reply, at_ms: int) -> Reply:
        """Stores turn ``n``, the reply of whoever answers, before the rater sees it; gives it back as it was stored."""
        try:
            text = clean_text(reply.text)
        except ValueError as error:
            raise AgentError(f"the response cannot be shown: {error}", remedy="fix the agent") from error
        if not text:
            raise AgentError("the response is empty", remedy="fix the agent")
        self.store.conversations.add_turn(ChatTurn(session.id, item_id, n, "agent", text, at_ms, dict(reply.details)))
        return Reply(text, reply.details)

    def _item(self, item_id: str) -> ChatItem:
        item = self.study.items_by_id.get(item_id)
        if not isinstance(item, ChatItem):
            raise FlowError(f"'{item_id}' is no conversation of this study", remedy="reload the page")
        return item

    def _check(self, session: Session, item_id: str, text: str) -> str:
        item = self._item(item_id)
        is_given = any(item_id in ids for ids in session.draw.items.values()) or item in self.study.practice_items
        if session.state != "active" or not is_given:
            raise FlowError("this conversation is not part of your session", remedy="reload the page")
        try:
            message = clean_text(text)
        except ValueError as error:
            raise FlowError("the message holds characters that cannot be shown", remedy="remove them") from error
        if not message or len(message) > MAX_MESSAGE_LENGTH:
            raise FlowError(
                f"a message has 1 to {MAX_MESSAGE_LENGTH} characters",
                remedy="shorten it" if message else "write something",
            )
        n_said = sum(turn.role == "user" for turn in self.store.conversations.turns(session.id, item_id))
        if n_said >= item.max_turns:
            raise FlowError("this conversation has reached its length", remedy="continue to the questions")
        return message
