"""Wizards: which raters wait for a person's reply, and the console where people reply in place of an agent.

The queue is kept in memory, so a study with a wizard is served by one process.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dialometer.agents import Reply
from dialometer.agents.wizard import Wizard
from dialometer.errors import FlowError
from dialometer.flow.chat import MAX_MESSAGE_LENGTH, Chats
from dialometer.model.item import ChatItem
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.storage.conversations import ChatTurn
from dialometer.web.rater.service import Service
from dialometer.web.server.failures import RequestError
from dialometer.web.server.requests import Unreadable, read_json
from dialometer.web.server.security import WIZARD_COOKIE, check_csrf, cookie, csrf_for, is_same_secret, set_cookie

N_WIZARDS = 50
CLEARED_AFTER_S = 30 * 60.0
"""A conversation that was not opened for this long is no longer shown."""


@dataclass
class OpenChat:
    """A conversation in the queue."""

    id: str
    session: Session
    item: ChatItem
    holder: str = ""
    seen_at: float = 0.0
    has_reply: asyncio.Event = field(default_factory=asyncio.Event)


class WizardQueue:
    """The conversations that people answer, and the people who do."""

    def __init__(self, chats: Chats) -> None:
        self.chats = chats
        self._open: dict[str, OpenChat] = {}
        self._wizards: dict[str, str] = {}

    # wizards

    def sign_in(self) -> str:
        """A new wizard; returns the secret for the cookie."""
        secret = secrets.token_urlsafe(24)
        while len(self._wizards) >= N_WIZARDS:
            self._wizards.pop(next(iter(self._wizards)))
        self._wizards[secret] = f"Wizard {len(self._wizards) + 1}"
        return secret

    def name_of(self, secret: str) -> str:
        """The wizard's name; empty for an unknown secret."""
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
        """Whether a wizard replied in time."""
        try:
            await asyncio.wait_for(chat.has_reply.wait(), at_most_s)
        except TimeoutError:
            return False
        return True

    def open(self, session: Session, item: ChatItem) -> OpenChat:
        """Adds a conversation, or marks one that is there already as seen."""
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
        """Whether the rater has moved on to the next screen."""
        session = self.chats.store.sessions.get(chat.session.id)
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
            turns = self.chats.store.conversations.turns(chat.session.id, chat.item.id)
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


MAX_NAME_LENGTH = 40
KEPT_S = 24 * 3600


class NoWizard(RequestError):
    """A request to the console without its key."""

    status = 403
    page = "blocked"


def has_wizard(study: Study) -> bool:
    """Whether some system of the study is answered by a person."""
    return any(system.agent is not None and system.agent.type == "wizard" for system in study.spec.systems)


class WizardPages:
    """The routes of the console."""

    def __init__(self, service: Service, queue: WizardQueue) -> None:
        self.service = service
        self.queue = queue
        self.root = service.settings.root_path

    def routes(self) -> list[Route]:
        """All routes; none where no system is answered by a person."""
        if not has_wizard(self.service.study):
            return []
        chat = "/wizard/chats/{chat}"
        return [
            Route("/wizard", self.console, methods=["GET"]),
            Route("/wizard/name", self.rename, methods=["POST"]),
            Route("/wizard/chats", self.chats, methods=["GET"]),
            Route(f"{chat}/take", self.take, methods=["POST"]),
            Route(f"{chat}/release", self.release, methods=["POST"]),
            Route(f"{chat}/reply", self.reply, methods=["POST"]),
            Route(f"{chat}/suggestions", self.suggestions, methods=["GET"]),
        ]

    async def console(self, request: Request) -> Response:
        """The page; a link with the key opens it and then keeps the key out of the address."""
        key = request.query_params.get("key", "")
        if key and is_same_secret(key, self.service.settings.wizard_key):
            response: Response = RedirectResponse(f"{self.root}/wizard", 303)
            secret = self.queue.sign_in()
            path = f"{self.root}/wizard"
            set_cookie(request, response, WIZARD_COOKIE, secret, path=path, is_embedded=False, max_age_s=KEPT_S)
            return response
        secret = cookie(request, WIZARD_COOKIE)
        if not self.queue.name_of(secret):
            page = self.service.pages.render_wizard(csrf="", root_path=self.root, is_locked=True)
            return HTMLResponse(page, 403)
        return HTMLResponse(self.service.pages.render_wizard(csrf=csrf_for(secret), root_path=self.root))

    async def rename(self, request: Request) -> Response:
        """The wizard's own name."""
        secret, _ = self._wizard(request)
        name = (await read_json(request)).get("name")
        if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise Unreadable(f"a name has 1 to {MAX_NAME_LENGTH} characters")
        return JSONResponse({"wizard": self.queue.rename(secret, name.strip())})

    async def chats(self, request: Request) -> Response:
        """All conversations with what was said in them."""
        _, wizard = self._wizard(request)
        shown = [await self._as_json(chat, wizard) for chat in self.queue.chats_open()]
        return JSONResponse({"now_ms": self.service.flow.clock(), "wizard": wizard, "chats": shown})

    async def take(self, request: Request) -> Response:
        """Takes a conversation."""
        _, wizard = self._wizard(request)
        self.queue.take(request.path_params["chat"], wizard)
        return Response(status_code=204)

    async def release(self, request: Request) -> Response:
        """Leaves a conversation to others."""
        _, wizard = self._wizard(request)
        self.queue.release(request.path_params["chat"], wizard)
        return Response(status_code=204)

    async def reply(self, request: Request) -> Response:
        """Answers the rater."""
        _, wizard = self._wizard(request)
        content = await read_json(request)
        text, n = content.get("text"), content.get("n")
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_MESSAGE_LENGTH or not isinstance(n, int):
            raise Unreadable(f"a reply has 1 to {MAX_MESSAGE_LENGTH} characters", remedy='send {"text": …, "n": …}')
        await self.queue.reply(request.path_params["chat"], wizard, text, n)
        return Response(status_code=204)

    async def suggestions(self, request: Request) -> Response:
        """What the study's suggesting agents would say now."""
        self._wizard(request)
        chat = self.queue.chat(request.path_params["chat"])
        agent = self.service.chats.agent(chat.item.system)
        assert isinstance(agent, Wizard)

        def ask() -> list[str]:
            history = self.service.chats.history(chat.session, chat.item.id)
            return agent.suggestions(history, seed=chat.session.ordinal)

        return JSONResponse({"suggestions": await self.service.in_thread(ask)})

    def _wizard(self, request: Request) -> tuple[str, str]:
        secret = cookie(request, WIZARD_COOKIE)
        name = self.queue.name_of(secret)
        if not name:
            raise NoWizard("the console is locked", remedy="open the link that the server printed")
        if request.method != "GET":
            check_csrf(request, secret, request.headers.get("x-csrf-token", ""))
        return secret, name

    async def _as_json(self, chat: OpenChat, wizard: str) -> dict[str, object]:
        def look() -> tuple[list[ChatTurn], bool]:
            turns = self.service.store.conversations.turns(chat.session.id, chat.item.id)
            return turns, self.queue.is_over(chat)

        turns, is_over = await self.service.in_thread(look)
        agent = self.service.chats.agent(chat.item.system)
        assert isinstance(agent, Wizard)
        is_waiting = bool(turns) and turns[-1].role == "user"
        opening = [{"role": "agent", "text": chat.item.opening, "at_ms": None}] if chat.item.opening else []
        later = [{"role": turn.role, "text": turn.text, "at_ms": turn.at_ms} for turn in turns]
        return {
            "id": chat.id,
            "number": chat.session.ordinal,
            "scenario": chat.item.scenario,
            "instructions": agent.instructions,
            "canned": agent.canned,
            "turns": opening + later,
            "n": len(turns),
            "waiting_since_ms": turns[-1].at_ms if is_waiting else None,
            "holder": chat.holder or None,
            "is_mine": chat.holder == wizard,
            "is_over": is_over,
            "n_said": sum(turn.role == "user" for turn in turns),
            "min_turns": chat.item.min_turns,
            "max_turns": chat.item.max_turns,
        }
