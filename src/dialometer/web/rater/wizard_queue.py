"""Which raters wait for a person's answer, and who answers whom. Kept in one process: there are never many."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from dialometer.agents import Reply
from dialometer.agents.wizard import Wizard
from dialometer.errors import FlowError
from dialometer.flow.chat import Chats
from dialometer.model.item import ChatItem
from dialometer.model.session import Session

N_WIZARDS = 50
CLEARED_AFTER_S = 30 * 60.0
"""A conversation that nobody looked at for so long is no longer shown."""


@dataclass
class OpenChat:
    """A conversation at the desk."""

    id: str
    session: Session
    item: ChatItem
    holder: str = ""
    seen_at: float = 0.0
    has_reply: asyncio.Event = field(default_factory=asyncio.Event)


class WizardDesk:
    """The conversations that people answer, and the people who do."""

    def __init__(self, chats: Chats) -> None:
        self.chats = chats
        self._open: dict[str, OpenChat] = {}
        self._wizards: dict[str, str] = {}

    # wizards

    def sign_in(self) -> str:
        """A new wizard; gives the secret by which the person is known from now on."""
        secret = secrets.token_urlsafe(24)
        while len(self._wizards) >= N_WIZARDS:
            self._wizards.pop(next(iter(self._wizards)))
        self._wizards[secret] = f"Wizard {len(self._wizards) + 1}"
        return secret

    def name_of(self, secret: str) -> str:
        """The wizard's name, empty for a stranger."""
        return self._wizards.get(secret, "")

    def rename(self, secret: str, name: str) -> str:
        """Lets a wizard choose a name; it is stored with every reply, so two of them cannot share one."""
        old = self._wizards[secret]
        if any(other == name for key, other in self._wizards.items() if key != secret):
            raise FlowError("another wizard has this name", remedy="choose another one")
        self._wizards[secret] = name
        for chat in self._open.values():
            if chat.holder == old:
                chat.holder = name
        return name

    # conversations

    async def wait(self, chat: OpenChat, at_most_s: float) -> bool:
        """Whether one of the wizards answered in time."""
        try:
            await asyncio.wait_for(chat.has_reply.wait(), at_most_s)
        except TimeoutError:
            return False
        return True

    def open(self, session: Session, item: ChatItem) -> OpenChat:
        """The conversation at the desk; one that is there already is seen again."""
        key = hashlib.sha256(f"{session.id}\n{item.id}".encode()).hexdigest()[:16]
        chat = self._open.setdefault(key, OpenChat(key, session, item))
        chat.session, chat.seen_at = session, time.monotonic()
        return chat

    def chat(self, key: str) -> OpenChat:
        """A conversation by its id."""
        if key not in self._open:
            raise FlowError("this conversation is over", remedy="choose another one")
        return self._open[key]

    def chats_open(self) -> list[OpenChat]:
        """All conversations, the longest open first; those that ended are cleared away after a while."""
        now = time.monotonic()
        for key in [key for key, chat in self._open.items() if now - chat.seen_at > CLEARED_AFTER_S]:
            del self._open[key]
        return list(self._open.values())

    def is_over(self, chat: OpenChat) -> bool:
        """Whether the rater has gone on to the next screen."""
        session = self.chats.store.session(chat.session.id)
        return session.state != "active" or session.step != chat.session.step

    def take(self, key: str, wizard: str) -> None:
        """A wizard takes a conversation for themselves."""
        chat = self.chat(key)
        if chat.holder not in ("", wizard):
            raise FlowError(f"{chat.holder} answers this conversation", remedy="choose another one")
        chat.holder = wizard

    def release(self, key: str, wizard: str) -> None:
        """A wizard leaves a conversation to the others."""
        chat = self.chat(key)
        if chat.holder == wizard:
            chat.holder = ""

    async def reply(self, key: str, wizard: str, text: str, n: int) -> None:
        """Stores a wizard's answer to a conversation of which the wizard has seen ``n`` turns, and lets the rater know."""
        self.take(key, wizard)
        chat = self.chat(key)

        def store() -> None:
            turns = self.chats.store.chat_turns(chat.session.id, chat.item.id)
            if len(turns) != n or not turns or turns[-1].role != "user":
                raise FlowError("this message was answered already", remedy="look at the conversation again")
            now_ms = self.chats.clock()
            agent = self.chats.agent(chat.item.system)
            canned = isinstance(agent, Wizard) and text.strip() in agent.canned
            details = {
                "wizard": wizard,
                "latency_s": round((now_ms - turns[-1].at_ms) / 1000, 3),
                "is_canned": canned,
            }
            self.chats.tell(chat.session, chat.item.id, n, Reply(text, details), now_ms)

        await run_in_threadpool(store)
        chat.has_reply.set()
