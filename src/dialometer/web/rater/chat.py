"""Live conversations: a message is stored, an agent or a person answers, the answer is stored and shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dialometer.agents.wizard import Wizard
from dialometer.errors import AgentError, FlowError
from dialometer.flow.chat import checked_message
from dialometer.model.item import ChatItem
from dialometer.model.session import Session
from dialometer.storage.conversations import ChatTurn, TurnConflict
from dialometer.web.rater.live_text import NDJSON, LiveReply, LiveText, streamed
from dialometer.web.rater.service import Service
from dialometer.web.rater.turn_drawing import reply_html, reply_renderer
from dialometer.web.rater.wizard import WizardQueue
from dialometer.web.server.logs import log
from dialometer.web.server.requests import Unreadable, last_value, read_form, read_json
from dialometer.web.server.security import SESSION_COOKIE, check_csrf, cookie

N_AGENTS = 256
"""How many agents may compute at once; more of them queue without blocking other requests."""


@dataclass(frozen=True, slots=True)
class ChatOutcome:
    """What a message led to: a reply, or why there is none yet."""

    n_said: int
    may_continue: bool
    may_say: bool
    reply: str | None = None
    error: str = ""
    may_retry: bool = False
    is_pending: bool = False
    html: str = ""
    """The reply as pages show it, where it is Markdown."""

    @property
    def status(self) -> int:
        """The HTTP status that fits."""
        if self.reply is not None:
            return 200
        return 202 if self.is_pending else 502

    def as_json(self) -> dict[str, object]:
        """For pages and programs."""
        state: dict[str, object] = {
            "n_said": self.n_said,
            "may_continue": self.may_continue,
            "may_say": self.may_say,
        }
        if self.reply is not None:
            return {"reply": self.reply, **({"html": self.html} if self.html else {}), **state}
        return {"error": self.error, "may_retry": self.may_retry, "is_pending": self.is_pending, **state}


@dataclass
class _Talk:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    n_inside: int = 0


class TalkLocks:
    """Conversations that something is being done in; two tabs cannot both write."""

    def __init__(self) -> None:
        self._talking: dict[tuple[str, str], _Talk] = {}

    @asynccontextmanager
    async def one_at_a_time(self, key: tuple[str, str], *, waits: bool = False) -> AsyncIterator[None]:
        """Only one caller at a time per session and item; another waits for it or is refused."""
        talk = self._talking.setdefault(key, _Talk())
        if talk.n_inside and not waits:
            raise FlowError("the response to your last message is still being written", remedy="wait for it")
        talk.n_inside += 1
        try:
            async with talk.lock:
                yield
        finally:
            talk.n_inside -= 1
            if not talk.n_inside:
                self._talking.pop(key, None)


class ChatRoom:
    """The conversations of a study, one message at a time in each of them."""

    def __init__(self, service: Service, queue: WizardQueue) -> None:
        self.service = service
        self.queue = queue
        self._thinking = CapacityLimiter(N_AGENTS)
        self._talks = TalkLocks()

    async def say(
        self,
        session: Session,
        text: str,
        *,
        n_said: int | None = None,
        at_ms: int | None = None,
        live: LiveText | None = None,
    ) -> ChatOutcome:
        """Stores a message of the rater and gets the reply.

        ``n_said`` is how many messages the client knew of; it makes a message that is sent twice harmless. ``live`` gets the
        reply word by word.
        """
        item = await self.service.in_thread(lambda: self._item(session))
        if session.source == "person":
            self.service.messages.take(session.id)
        async with self._talks.one_at_a_time((session.id, item.id)):
            turns = await self._turns(session, item)
            known = _own(turns)
            if n_said is not None and n_said == len(known) - 1 and known[-1].text == checked_message(text):
                return await self._reply_to(session, item, turns, live=live)
            if n_said is not None and n_said != len(known):
                raise FlowError("this conversation continued elsewhere", remedy="reload the page")
            at = self.service.flow.clock() if at_ms is None or session.source != "simulated" else at_ms
            await self.service.in_thread(lambda: self.service.chats.hear(session, item.id, text, at))
            stamp = at if session.source == "simulated" else None
            return await self._reply_to(session, item, await self._turns(session, item), stamp, live=live)

    async def retry(self, session: Session, *, live: LiveText | None = None) -> ChatOutcome:
        """Asks again after a failure, or waits on for a person who has not answered yet."""
        item = await self.service.in_thread(lambda: self._item(session))
        async with self._talks.one_at_a_time((session.id, item.id), waits=True):
            turns = await self._turns(session, item)
            if not turns:
                raise FlowError("there is nothing to answer", remedy="write a message first")
            return await self._reply_to(session, item, turns, live=live)

    def live_text(self) -> LiveText:
        """For the next reply, at the study's pace."""
        return LiveText(self.service.study.spec.live)

    async def _reply_to(
        self,
        session: Session,
        item: ChatItem,
        turns: Sequence[ChatTurn],
        at_ms: int | None = None,
        *,
        live: LiveText | None = None,
    ) -> ChatOutcome:
        outcome = await self._outcome_of(session, item, turns, at_ms, live=live)
        return await self.service.in_thread(lambda: self._with_html(session, outcome))

    def _with_html(self, session: Session, outcome: ChatOutcome) -> ChatOutcome:
        """With the reply as pages show it, where the condition has Markdown."""
        html = reply_html(self.service.flow, session, self.service.settings.root_path, outcome.reply)
        return replace(outcome, html=html) if html else outcome

    async def _outcome_of(
        self,
        session: Session,
        item: ChatItem,
        turns: Sequence[ChatTurn],
        at_ms: int | None = None,
        *,
        live: LiveText | None = None,
    ) -> ChatOutcome:
        if turns[-1].role == "agent":
            return self._outcome(item, turns, turns[-1].text)
        if isinstance(self.service.chats.agent(item.system), Wizard):
            return await self._wait_for_wizard(session, item)
        pace = self.service.study.spec.live
        is_paced = pace.is_levelled and session.source == "person"
        on_text = live.add if live is not None and pace.streaming else None
        alone = self.live_text()  # measures the time where the reply is shown as a whole
        try:
            reply = await to_thread.run_sync(
                lambda: self.service.chats.answer(session, item.id, at_ms, on_text, is_paced=is_paced),
                limiter=self._thinking,
            )
        except AgentError as error:
            self.service.metrics.add("dialometer_replies_total", label="by", value="failed")
            log("agent_failed", rater=session.ordinal, system=item.system, reason=error.message)
            return self._outcome(item, turns, None, error="The response did not come.", may_retry=True)
        except TurnConflict:
            # Another process was asked at the same time and has stored its reply; that one counts.
            turns = await self._turns(session, item)
            if turns[-1].role != "agent":
                raise
            return self._outcome(item, turns, turns[-1].text)
        self.service.metrics.add("dialometer_replies_total", label="by", value="agent")
        if is_paced and on_text is None:
            await alone.level(reply.text)
        return self._outcome(item, turns, reply.text)

    async def _wait_for_wizard(self, session: Session, item: ChatItem) -> ChatOutcome:
        chat = await self.service.in_thread(lambda: self.queue.open(session, item))
        turns = await self._turns(session, item)
        n = len(turns)
        has_reply = lambda: len(self.service.store.conversations.turns(session.id, item.id)) > n  # noqa: E731
        if turns[-1].role == "user" and await self.queue.wait(chat, self.service.settings.pending_s, has_reply):
            turns = await self._turns(session, item)
        if turns[-1].role == "user":
            why = "The response has not come yet."
            return self._outcome(item, turns, None, error=why, may_retry=True, is_pending=True)
        self.service.metrics.add("dialometer_replies_total", label="by", value="wizard")
        return self._outcome(item, turns, turns[-1].text)

    def notice(self, session: Session, item_id: str) -> None:
        """A rater has opened a conversation; where wizards answer it, it appears on their console."""
        item = self.service.study.items_by_id[item_id]
        if isinstance(item, ChatItem) and isinstance(self.service.chats.agent(item.system), Wizard):
            self.queue.open(session, item)

    def _item(self, session: Session) -> ChatItem:
        """The conversation at the session's step; raises where there is none."""
        screen = self.service.flow.screen(session)
        item = self.service.study.items_by_id.get(screen.item.id) if screen.item else None
        if screen.kind != "chat" or not isinstance(item, ChatItem):
            raise FlowError("there is no conversation at this point", remedy="reload the page")
        return item

    async def _turns(self, session: Session, item: ChatItem) -> list[ChatTurn]:
        return await self.service.in_thread(lambda: self.service.store.conversations.turns(session.id, item.id))

    @staticmethod
    def _outcome(
        item: ChatItem,
        turns: Sequence[ChatTurn],
        reply: str | None,
        *,
        error: str = "",
        may_retry: bool = False,
        is_pending: bool = False,
    ) -> ChatOutcome:
        n_said = len(_own(turns))
        return ChatOutcome(
            n_said, n_said >= item.min_turns, n_said < item.max_turns, reply, error, may_retry, is_pending
        )


class ChatPages:
    """The routes for messages, sent by a page's script or as plain forms."""

    def __init__(self, service: Service, room: ChatRoom) -> None:
        self.service = service
        self.room = room

    def routes(self) -> list[Route]:
        """All routes."""
        return [
            Route("/s/chat", self.say, methods=["POST"]),
            Route("/s/chat/retry", self.retry, methods=["POST"]),
        ]

    async def say(self, request: Request) -> Response:
        """One message of the rater."""
        session, content, is_script = await read_message(self.service, request)
        live = self._live(request)
        text, n_said = content.get("text"), content.get("n_said")
        if not isinstance(text, str) or not (n_said is None or isinstance(n_said, int)):
            raise Unreadable("a message has a text", remedy='send {"text": …}')
        if not is_script:
            return await self._plainly(self.room.say(session, text))
        if live is not None:
            return await self._streamed(session, self.room.say(session, text, n_said=n_said, live=live), live)
        return _answer(await self.room.say(session, text, n_said=n_said))

    async def retry(self, request: Request) -> Response:
        """The same message, asked again."""
        session, _, is_script = await read_message(self.service, request)
        if not is_script:
            return await self._plainly(self.room.retry(session))
        live = self._live(request)
        if live is not None:
            return await self._streamed(session, self.room.retry(session, live=live), live)
        return _answer(await self.room.retry(session))

    def _live(self, request: Request) -> LiveText | None:
        """For a page that can read a reply as it comes."""
        return self.room.live_text() if NDJSON in request.headers.get("accept", "") else None

    async def _streamed(
        self, session: Session, work: Coroutine[object, object, ChatOutcome], live: LiveText
    ) -> Response:
        failed = {"error": "The response did not come.", "may_retry": True, "is_pending": False}
        reply = LiveReply(work, live)
        await reply.begun()
        if reply.task.done() and not live.text:
            return _answer(reply.task.result())
        render = await self.service.in_thread(
            lambda: reply_renderer(self.service.flow, session, self.service.settings.root_path)
        )
        return streamed(reply, failed, render)

    async def _plainly(self, doing: Coroutine[object, object, ChatOutcome]) -> Response:
        """Without a script the page shows the result; a message that was refused does not appear."""
        with suppress(FlowError):
            await doing
        return RedirectResponse(f"{self.service.settings.root_path}/s", 303)


async def read_message(service: Service, request: Request) -> tuple[Session, Mapping[str, Any], bool]:
    """Whose message a request brings, what is in it, and whether a page's script sent it; a plain form may name a side."""
    token = cookie(request, SESSION_COOKIE)
    session = await service.find(token)
    is_script = "json" in request.headers.get("content-type", "")
    content: Mapping[str, Any]
    if is_script:
        content = await read_json(request)
        mark = request.headers.get("x-csrf-token", "") or str(content.get("csrf", ""))
    else:
        form = await read_form(request)
        place = last_value(form, "place")
        content = {"text": last_value(form, "text"), "place": int(place) if place in ("1", "2") else None}
        mark = last_value(form, "csrf")
    check_csrf(request, token, mark)
    return session, content, is_script


def _answer(outcome: ChatOutcome) -> JSONResponse:
    return JSONResponse(outcome.as_json(), outcome.status)


def _own(turns: Sequence[ChatTurn]) -> list[ChatTurn]:
    return [turn for turn in turns if turn.role == "user"]
