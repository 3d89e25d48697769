"""Live conversations inside a session: every turn is stored before the other side hears it."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Sequence

from dialometer.agents import Agent, Reply
from dialometer.agents.access import AgentAccess
from dialometer.agents.calling import MAX_REPLY_LENGTH
from dialometer.agents.interface import timed
from dialometer.agents.wizard import Wizard, different_texts
from dialometer.errors import AgentError, FlowError, UnknownName
from dialometer.flow.agents import build_agent
from dialometer.flow.spending import Spending
from dialometer.model.dialogue import Turn, clean_text
from dialometer.model.item import ChatItem
from dialometer.model.session import Session
from dialometer.model.study import Study, System
from dialometer.storage.conversations import ChatTurn, TurnConflict
from dialometer.storage.store import Store

MAX_MESSAGE_LENGTH = 4000
MIN_NAME_LENGTH = 3
"""Shorter names of systems are too often words."""
MAX_FAILED_TRIES = 5
"""So many failures of an agent are kept with the response that came at last."""
ENDLESS = f"the response has more than {MAX_REPLY_LENGTH:,} characters"


def checked_message(text: str, most: int = MAX_MESSAGE_LENGTH) -> str:
    """A rater's message as it is stored; raises :class:`FlowError` where there is none or too much of it."""
    try:
        message = clean_text(text)
    except ValueError as error:
        raise FlowError("the message holds characters that cannot be shown", remedy="remove them") from error
    if not message or len(message) > most:
        raise FlowError(
            f"a message has 1 to {most} characters",
            remedy="shorten it" if message else "write something",
        )
    return message


def store_message(store: Store, turns: Iterable[ChatTurn]) -> None:
    """Stores a rater's message; raises :class:`FlowError` where another tab, on another process, was quicker."""
    try:
        store.conversations.add_turns(turns)
    except TurnConflict as error:
        raise FlowError("this conversation continued elsewhere", remedy="reload the page") from error


def shown_reply(reply: Reply) -> str:
    """A response as it is stored and shown; raises :class:`AgentError` for what cannot be shown."""
    if len(reply.text) > MAX_REPLY_LENGTH:
        raise AgentError(ENDLESS, remedy="limit the length of its responses")
    try:
        text = clean_text(reply.text)
    except ValueError as error:
        raise AgentError(f"the response cannot be shown: {error}", remedy="fix the agent") from error
    if not text:
        raise AgentError("the response is empty", remedy="fix the agent")
    return text


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
        self._failed: dict[tuple[str, str], list[dict[str, object]]] = {}
        self._suggested: dict[tuple[str, str], list[dict[str, object]]] = {}
        """What suggestions to a wizard have cost since the wizard's last response, by session and item."""
        self.spending = Spending(study.spec.live, store)
        self._names = {system.name: _names_of(system) for system in study.spec.systems}

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
        item = self._item(item_id, session)
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
        store_message(self.store, [ChatTurn(session.id, item_id, n, "user", message, at_ms)])

    def answer(
        self,
        session: Session,
        item_id: str,
        at_ms: int | None = None,
        on_text: Callable[[str], None] | None = None,
        *,
        is_paced: bool = False,
    ) -> Reply:
        """The agent's reply to what was said so far, stamped when it came if no time is given.

        With ``on_text`` the agent is asked to speak word by word, and every piece is handed over as it comes. When the agent
        fails in the middle, what came so far is kept with the reply to the next try. ``is_paced`` records the pace at which
        it is shown, and whether the agent was slower than that.
        """
        turns = self.store.conversations.turns(session.id, item_id)
        if not turns or turns[-1].role != "user":
            raise FlowError("there is nothing to answer", remedy="write a message first")
        system, history = self._item(item_id, session).system, self.history(session, item_id)
        reply = self.ask(system, history, session, item_id, on_text, is_paced=is_paced)
        return self.store_reply(session, item_id, turns[-1].n + 1, reply, self.clock() if at_ms is None else at_ms)

    def ask(
        self,
        system: str,
        history: Sequence[Turn],
        session: Session,
        conversation: str,
        on_text: Callable[[str], None] | None = None,
        *,
        is_paced: bool = False,
    ) -> Reply:
        """What a system says next in a conversation of a session, with the failed tries before it. Nothing is stored yet."""
        key = session.id, conversation
        model = str(getattr(self.agent(system), "model", ""))
        self.spending.check()
        pieces: list[str] = []
        try:
            reply = self._reply(system, history, session, conversation, pieces, on_text)
        except AgentError as error:
            error.where = f"system '{system}'" + (f", {error.where}" if error.where else "")
            tries = self._failed.setdefault(key, [])
            text = "".join(pieces)
            cost = self.spending.of_failure(model, history, text)
            tries.append({"reason": error.message, "text": text, **cost})
            del tries[:-MAX_FAILED_TRIES]
            raise
        failed = self._failed.pop(key, None)
        if failed:
            reply = Reply(reply.text, {**reply.details, "failed_tries": failed})
        reply = Reply(reply.text, {**reply.details, **self.spending.of_reply(model, history, reply)})
        named = self._named_in(reply.text)
        if named:
            reply = Reply(reply.text, {**reply.details, "names_systems": named})
        return Reply(reply.text, {**reply.details, "pace": self._pace(reply)}) if is_paced else reply

    def _named_in(self, text: str) -> list[str]:
        """Systems whose names, labels or models a response gives away; recorded, since raters should not know them."""
        return [name for name, pattern in self._names.items() if pattern.search(text)]

    def _pace(self, reply: Reply) -> dict[str, object]:
        """How fast the reply is shown. One that came too late for that could be told from the others."""
        live = self.study.spec.live
        first_s, whole_s = reply.details.get("first_token_s") or 0.0, reply.details.get("latency_s") or 0.0
        is_late = first_s > (live.first_word_s or 0.0) or whole_s > live.duration_s(len(reply.text))
        return {**live.model_dump(include={"first_word_s", "characters_per_s"}), "is_late": is_late}

    def _reply(
        self,
        system: str,
        history: Sequence[Turn],
        session: Session,
        conversation: str,
        pieces: list[str],
        on_text: Callable[[str], None] | None,
    ) -> Reply:
        agent = self.agent(system).in_conversation(conversation_id(session.id, conversation))
        if on_text is None:
            began = time.monotonic()
            reply = agent.reply(history, seed=session.ordinal)
            return Reply(reply.text, timed(reply.details, time.monotonic() - began))
        n_characters = 0
        for delta in agent.stream(history, seed=session.ordinal):
            if delta.reply is not None:
                return delta.reply
            pieces.append(delta.text)
            n_characters += len(delta.text)
            if n_characters > MAX_REPLY_LENGTH:
                raise AgentError(ENDLESS, remedy="limit the length of its responses")
            on_text(delta.text)
        raise AgentError("the agent's stream ended without a reply", remedy="fix the agent")

    def suggestions(self, session: Session, item: ChatItem) -> list[str]:
        """What the agents that suggest to a wizard would say now; nothing once the budget is spent, from which they are paid."""
        agent = self.agent(item.system)
        if not isinstance(agent, Wizard):
            return []
        try:
            self.spending.check()
        except AgentError:
            return []
        history = self.history(session, item.id)
        proposed = list(agent.proposals(history, seed=session.ordinal))
        costs = [self.spending.of_suggestion(model, history, reply) for model, reply in proposed]
        if paid := [cost for cost in costs if cost]:
            self._suggested.setdefault((session.id, item.id), []).extend(paid)
        return different_texts(reply for _, reply in proposed)

    def store_reply(self, session: Session, item_id: str, n: int, reply: Reply, at_ms: int) -> Reply:
        """Stores turn ``n``, the reply of whoever answers, before the rater sees it; gives it back as it was stored."""
        text, details = shown_reply(reply), dict(reply.details)
        suggested = self._suggested.pop((session.id, item_id), [])
        if suggested:
            details["suggestions"] = suggested
        self.store.conversations.add_turn(ChatTurn(session.id, item_id, n, "agent", text, at_ms, details))
        self.spending.suggestions_stored(suggested)
        return Reply(text, reply.details)

    def _item(self, item_id: str, session: Session) -> ChatItem:
        item = self.study.in_language(session.language).items_by_id.get(item_id)
        if not isinstance(item, ChatItem):
            raise FlowError(f"'{item_id}' is not a conversation of this study", remedy="reload the page")
        return item

    def _check(self, session: Session, item_id: str, text: str) -> str:
        item = self._item(item_id, session)
        practice = {one.id for one in self.study.practice_items}
        is_given = any(item_id in ids for ids in session.draw.items.values()) or item_id in practice
        if session.state != "active" or not is_given:
            raise FlowError("this conversation is not part of your session", remedy="reload the page")
        message = checked_message(text)
        n_said = sum(turn.role == "user" for turn in self.store.conversations.turns(session.id, item_id))
        if n_said >= item.max_turns:
            raise FlowError("this conversation has reached its length", remedy="continue to the questions")
        return message


def conversation_id(session_id: str, item_id: str) -> str:
    """What an agent knows a conversation by: always the same, but nothing that names the session to others."""
    return hashlib.sha256(f"{session_id}\n{item_id}".encode()).hexdigest()[:20]


def _names_of(system: System) -> re.Pattern[str]:
    model = str(system.agent.options.get("model", "")) if system.agent else ""
    names = (re.escape(name) for name in {system.name, system.label, model} if len(name) >= MIN_NAME_LENGTH)
    return re.compile(rf"(?<!\w)(?:{'|'.join(names) or '(?!)'})(?!\w)", re.IGNORECASE)
