"""Wizards: which raters wait for a person's reply, and the console where people reply in place of an agent."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

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
from dialometer.storage.wizards import WizardChat
from dialometer.web.rater.service import Service
from dialometer.web.rater.turn_drawing import TurnDrawing
from dialometer.web.server.failures import RequestError
from dialometer.web.server.requests import Unreadable, read_json
from dialometer.web.server.security import WIZARD_COOKIE, check_csrf, cookie, csrf_for, is_same_secret, set_cookie

CLEARED_AFTER_MS = 30 * 60_000
"""A conversation that was not opened for this long is no longer shown."""
LOOK_EVERY_S = 0.5
"""How often a waiting rater's request looks for a reply that came to another process or host."""


@dataclass(frozen=True, slots=True)
class OpenChat:
    """A conversation in the queue."""

    id: str
    session: Session
    item: ChatItem
    step: int
    holder: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the rater has moved on to the next screen."""
        return self.session.state != "active" or self.session.step != self.step


class WizardQueue:
    """The conversations that people answer, and the people who do. Both are in the store, so all processes know them."""

    def __init__(self, chats: Chats) -> None:
        self.chats = chats
        self.store = chats.store.wizards
        self._replies: dict[str, asyncio.Event] = {}

    async def wait(self, chat: OpenChat, at_most_s: float, has_reply: Callable[[], bool]) -> bool:
        """Whether a wizard replied in time: at once where the reply came to this process, else within half a second."""
        event = self._replies.setdefault(chat.id, asyncio.Event())
        event.clear()
        until = time.monotonic() + at_most_s
        try:
            while (left := until - time.monotonic()) > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), min(LOOK_EVERY_S, left))
                if await run_in_threadpool(has_reply):
                    return True
        finally:
            self._replies.pop(chat.id, None)
        return False

    def open(self, session: Session, item: ChatItem) -> OpenChat:
        """Adds a conversation, or marks one that is there already as seen."""
        key = self.store.open(session.id, item.id, session.step, self.chats.clock())
        return OpenChat(key, session, item, session.step)

    def chat(self, key: str) -> OpenChat:
        """A conversation by its id."""
        known = self.store.chat(key)
        if known is None:
            raise FlowError("this conversation is over", remedy="choose another one")
        return self._as_open(known)

    def chats_open(self) -> list[OpenChat]:
        """All conversations, the longest open first; those that ended are no longer shown after a while."""
        return [self._as_open(known) for known in self.store.chats(self.chats.clock() - CLEARED_AFTER_MS)]

    def _as_open(self, known: WizardChat) -> OpenChat:
        item = self.chats.study.items_by_id[known.item_id]
        assert isinstance(item, ChatItem)
        session = self.chats.store.sessions.get(known.session_id)
        return OpenChat(known.id, session, item, known.step, known.holder)

    def take(self, key: str, wizard: str) -> None:
        """A wizard takes a conversation for themselves."""
        self.chat(key)
        holder = self.store.take(key, wizard)
        if holder != wizard:
            raise FlowError(f"{holder} answers this conversation", remedy="choose another one")

    def reply(self, key: str, wizard: str, text: str, n: int) -> None:
        """Stores a wizard's answer to a conversation of which the wizard has seen ``n`` turns."""
        self.take(key, wizard)
        chat = self.chat(key)
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
        self.chats.store_reply(chat.session, chat.item.id, n, Reply(text, details), now_ms)

    def wake(self, key: str) -> None:
        """Lets a rater who waits in this process know at once."""
        if key in self._replies:
            self._replies[key].set()


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
            secret = secrets.token_urlsafe(24)
            await run_in_threadpool(self.queue.store.sign_in, secret, self.service.flow.clock())
            path = f"{self.root}/wizard"
            set_cookie(request, response, WIZARD_COOKIE, secret, path=path, is_embedded=False, max_age_s=KEPT_S)
            return response
        secret = cookie(request, WIZARD_COOKIE)
        if not await run_in_threadpool(self.queue.store.name_of, secret):
            page = self.service.pages().render_wizard(csrf="", root_path=self.root, is_locked=True)
            return HTMLResponse(page, 403)
        return HTMLResponse(self.service.pages().render_wizard(csrf=csrf_for(secret), root_path=self.root))

    async def rename(self, request: Request) -> Response:
        """The wizard's own name."""
        secret, _ = await self._wizard(request)
        name = (await read_json(request)).get("name")
        if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise Unreadable(f"a name has 1 to {MAX_NAME_LENGTH} characters")
        await run_in_threadpool(self.queue.store.rename, secret, name.strip())
        return JSONResponse({"wizard": name.strip()})

    async def chats(self, request: Request) -> Response:
        """All conversations with what was said in them."""
        _, wizard = await self._wizard(request)
        shown = await self.service.in_thread(lambda: [self._as_json(chat, wizard) for chat in self.queue.chats_open()])
        return JSONResponse({"now_ms": self.service.flow.clock(), "wizard": wizard, "chats": shown})

    async def take(self, request: Request) -> Response:
        """Takes a conversation."""
        _, wizard = await self._wizard(request)
        await run_in_threadpool(self.queue.take, request.path_params["chat"], wizard)
        return Response(status_code=204)

    async def release(self, request: Request) -> Response:
        """Leaves a conversation to others."""
        _, wizard = await self._wizard(request)
        await run_in_threadpool(self.queue.store.release, request.path_params["chat"], wizard)
        return Response(status_code=204)

    async def reply(self, request: Request) -> Response:
        """Answers the rater."""
        _, wizard = await self._wizard(request)
        content = await read_json(request)
        text, n = content.get("text"), content.get("n")
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_MESSAGE_LENGTH or not isinstance(n, int):
            raise Unreadable(f"a response has 1 to {MAX_MESSAGE_LENGTH} characters", remedy='send {"text": …, "n": …}')
        key = request.path_params["chat"]
        await run_in_threadpool(self.queue.reply, key, wizard, text, n)
        self.queue.wake(key)
        return Response(status_code=204)

    async def suggestions(self, request: Request) -> Response:
        """What the study's suggesting agents would say now."""
        await self._wizard(request)
        chat = await run_in_threadpool(self.queue.chat, request.path_params["chat"])
        suggested = await self.service.in_thread(lambda: self.service.chats.suggestions(chat.session, chat.item))
        return JSONResponse({"suggestions": suggested})

    async def _wizard(self, request: Request) -> tuple[str, str]:
        secret = cookie(request, WIZARD_COOKIE)
        name = await run_in_threadpool(self.queue.store.name_of, secret)
        if not name:
            raise NoWizard("the console is locked", remedy="open the link that the server printed")
        if request.method != "GET":
            check_csrf(request, secret, request.headers.get("x-csrf-token", ""))
        return secret, name

    def _as_json(self, chat: OpenChat, wizard: str) -> dict[str, object]:
        turns = self.service.store.conversations.turns(chat.session.id, chat.item.id)
        agent = self.service.chats.agent(chat.item.system)
        assert isinstance(agent, Wizard)
        is_waiting = bool(turns) and turns[-1].role == "user"
        opening: list[dict[str, object]] = [{"role": "agent", "text": chat.item.opening, "at_ms": None}]
        opening = opening if chat.item.opening else []
        later: list[dict[str, object]] = [{"role": turn.role, "text": turn.text, "at_ms": turn.at_ms} for turn in turns]
        if self.service.study.presentation(chat.session.condition).text == "markdown":
            drawing = TurnDrawing(self.service.study, self.service.settings.root_path)
            for turn in (*opening, *later):
                if turn["role"] == "agent":
                    turn["html"] = drawing.markdown(str(turn["text"]))
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
            "is_over": chat.is_over,
            "n_said": sum(turn.role == "user" for turn in turns),
            "min_turns": chat.item.min_turns,
            "max_turns": chat.item.max_turns,
        }
