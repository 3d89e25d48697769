"""Arenas on the web: a message is stored for both sides, both systems answer at once, every reply is stored, then shown.

A page's script reads the replies as they come, one JSON object per line; a plain form gets the page again when both are there.
Asking a system is a task of its own: a page that is closed meanwhile loses nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from dialometer.errors import AgentError, FlowError
from dialometer.flow.arena import ArenaState
from dialometer.flow.chat import checked_message
from dialometer.model.live import Live
from dialometer.model.session import Session
from dialometer.storage.conversations import PLACES, TurnConflict
from dialometer.web.rater.chat import N_AGENTS, TalkLocks, read_message
from dialometer.web.rater.live_text import HEADERS, NDJSON, PAUSE_S
from dialometer.web.rater.service import Service
from dialometer.web.rater.turn_drawing import reply_html
from dialometer.web.server.logs import log
from dialometer.web.server.requests import Unreadable

NO_REPLY = "The response did not come."
Event = dict[str, Any]


def state_json(state: ArenaState) -> Event:
    """How both conversations stand, for pages and programs."""
    return {
        "n_said": list(state.n_said),
        "waiting": list(state.waiting),
        "may_continue": state.may_continue,
        "may_say": state.may_say,
    }


class ArenaRoom:
    """The arenas of a study. Each side of each arena is asked once at a time."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._thinking = CapacityLimiter(N_AGENTS)
        self._talks = TalkLocks()
        self._asked: dict[tuple[str, str, int], asyncio.Task[None]] = {}

    async def say(
        self,
        session: Session,
        text: str,
        *,
        place: int | None = None,
        n_said: int | None = None,
        at_ms: int | None = None,
    ) -> AsyncIterator[Event]:
        """Stores a message of the rater; the replies come as events, and at the end how the conversations stand.

        ``n_said`` is how many messages (to that side) the client knew of; it makes a message that is sent twice harmless.
        """
        item_id = await self.service.in_thread(lambda: self._item(session))
        if session.source == "person":
            self.service.messages.take(session.id)
        places = _places(place)
        stamp = at_ms if session.source == "simulated" else None
        async with self._talks.one_at_a_time((session.id, item_id), waits=True):
            if any((session.id, item_id, p) in self._asked for p in places):
                raise FlowError("the response to your last message is still being written", remedy="wait for it")
            await self.service.in_thread(lambda: self._hear(session, item_id, text, place, n_said, stamp))
            return await self._replies(session, item_id, places, stamp)

    def _hear(
        self, session: Session, item_id: str, text: str, place: int | None, n_said: int | None, stamp: int | None
    ) -> None:
        """Stores a message, unless it is the last one sent again."""
        arenas, places = self.service.arenas, _places(place)
        if n_said is not None and places:
            known = min(arenas.state(session, item_id).n_said[p - 1] for p in places)
            if n_said == known - 1 and self._was_said(session, item_id, places, text):
                return
            if n_said != known:
                raise FlowError("this conversation continued elsewhere", remedy="reload the page")
        at = self.service.flow.clock() if stamp is None else stamp
        arenas.hear(session, item_id, text, at, place)

    async def retry(self, session: Session, places: Sequence[int] = ()) -> AsyncIterator[Event]:
        """Asks the systems again whose replies did not come; waits for those that are still being written.

        ``places`` are the sides that the client has no reply of; one that came meanwhile is told again.
        """
        item_id = await self.service.in_thread(lambda: self._item(session))
        state = await self.service.in_thread(lambda: self.service.arenas.state(session, item_id))
        wanted = places or state.waiting
        for place in wanted:
            task = self._asked.get((session.id, item_id, place))
            if task is not None:
                with suppress(Exception):
                    await asyncio.shield(task)
        async with self._talks.one_at_a_time((session.id, item_id), waits=True):
            free = [place for place in wanted if (session.id, item_id, place) not in self._asked]
            return await self._replies(session, item_id, free, None)

    async def _replies(
        self, session: Session, item_id: str, places: Sequence[int], at_ms: int | None
    ) -> AsyncIterator[Event]:
        """Asks the sides that wait, all at once; the others tell their last reply. Tasks go on when nobody listens any more."""
        arenas = self.service.arenas
        state = await self.service.in_thread(lambda: arenas.state(session, item_id))
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        tell = lambda event: loop.call_soon_threadsafe(events.put_nowait, event)  # noqa: E731
        tasks = [self._ask(session, item_id, place, at_ms, tell) for place in places if place in state.waiting]
        for place in places:
            if place not in state.waiting and state.n_said[place - 1]:
                events.put_nowait(await self.service.in_thread(partial(self._stored, session, item_id, place)))

        async def collected() -> AsyncIterator[Event]:
            pace = self.service.study.spec.live if session.source == "person" else Live()
            async for event in paced(events, len(tasks), pace):
                yield event
            now = await self.service.in_thread(lambda: arenas.state(session, item_id))
            yield state_json(now)

        return collected()

    def _ask(
        self, session: Session, item_id: str, place: int, at_ms: int | None, tell: Callable[[Event | None], object]
    ) -> asyncio.Task[None]:
        key = (session.id, item_id, place)

        async def run() -> None:
            try:
                await to_thread.run_sync(
                    lambda: self._answer(session, item_id, place, at_ms, tell), limiter=self._thinking
                )
            except Exception:
                tell({"place": place, "error": NO_REPLY, "may_retry": True})
                raise
            finally:
                self._asked.pop(key, None)
                tell(None)

        task = asyncio.get_running_loop().create_task(run())
        self._asked[key] = task
        task.add_done_callback(lambda done: done.exception() if not done.cancelled() else None)
        return task

    def _answer(
        self, session: Session, item_id: str, place: int, at_ms: int | None, tell: Callable[[Event], object]
    ) -> None:
        arenas, metrics, pace = self.service.arenas, self.service.metrics, self.service.study.spec.live
        is_paced = pace.is_levelled and session.source == "person"

        def on_text(text: str) -> None:
            tell({"place": place, "text": text})

        try:
            arenas.answer(session, item_id, place, at_ms, on_text if pace.streaming else None, is_paced=is_paced)
        except AgentError as error:
            metrics.add("dialometer_replies_total", label="by", value="failed")
            system = arenas.systems(session, item_id)[place - 1]
            log("agent_failed", rater=session.ordinal, system=system, reason=error.message)
            tell({"place": place, "error": NO_REPLY, "may_retry": True})
            return
        except (TurnConflict, FlowError):
            # Another process was asked at the same time and has stored its reply; that one counts.
            if place in arenas.state(session, item_id).waiting:
                raise
        metrics.add("dialometer_replies_total", label="by", value="agent")
        tell(self._stored(session, item_id, place))

    def _stored(self, session: Session, item_id: str, place: int) -> Event:
        """The last reply of a side, as pages show it."""
        reply = self.service.arenas.conversations(session, item_id)[place - 1][-1].text
        html = reply_html(self.service.flow, session, self.service.settings.root_path, reply)
        return {"place": place, "reply": reply, **({"html": html} if html else {})}

    def _was_said(self, session: Session, item_id: str, places: Sequence[int], text: str) -> bool:
        sides = self.service.arenas.conversations(session, item_id)
        last = [next((t.text for t in reversed(sides[p - 1]) if t.role == "user"), "") for p in places]
        return set(last) == {checked_message(text)}

    def _item(self, session: Session) -> str:
        """The arena at the session's step; raises where there is none."""
        screen = self.service.flow.screen(session)
        if screen.kind != "chat" or screen.item is None or screen.item.kind != "arena":
            raise FlowError("there is no conversation at this point", remedy="reload the page")
        return screen.item.id


def _places(place: int | None) -> tuple[int, ...]:
    """The sides that a message goes to."""
    return tuple(p for p in PLACES if place in (None, p))


@dataclass
class _Writing:
    """One side's reply on its way to the page: what came, how much of it was shown, and how it ended."""

    text: str = ""
    n_shown: int = 0
    end: Event | None = None


async def paced(events: asyncio.Queue[Event | None], n_sides: int, pace: Live) -> AsyncIterator[Event]:
    """Replies of several sides as they may be shown: pieces that come close together as one, at the study's pace, which is the
    same for both, so that speed does not give a system away. A failure is shown at once."""
    began, n_running = time.monotonic(), n_sides
    sides: dict[int, _Writing] = {}
    while n_running or not events.empty() or any(side.end is not None for side in sides.values()):
        is_waiting = any(side.end is not None or side.n_shown < len(side.text) for side in sides.values())
        try:
            event = await asyncio.wait_for(events.get(), PAUSE_S if is_waiting else None)
        except TimeoutError:
            event = {}
        if event is None:
            n_running -= 1
        elif event:
            side = sides.setdefault(event["place"], _Writing())
            side.text += event.get("text", "")
            side.end = event if "text" not in event else None
        if not events.empty():
            continue
        due = pace.n_due(time.monotonic() - began)
        for place, side in sides.items():
            has_failed = side.end is not None and "error" in side.end
            until = int(min(len(side.text), due))
            if until > side.n_shown and not has_failed:
                yield {"place": place, "text": side.text[side.n_shown : until]}
                side.n_shown = until
            length = len(side.text or (side.end or {}).get("reply", ""))
            if side.end is not None and (has_failed or length <= due):
                yield side.end
                side.end = None


async def whole(events: AsyncIterator[Event]) -> Event:
    """All replies at once, for programs: by side what was said or why nothing came, and how the conversations stand."""
    sides: dict[int, Event] = {}
    state: Event = {}
    async for event in events:
        if "place" not in event:
            state = event
        elif "text" not in event:
            sides[event["place"]] = {
                "place": str(event["place"]),
                "reply": event.get("reply"),
                "error": event.get("error"),
            }
    return {"replies": [sides[place] for place in sorted(sides)], **state}


class ArenaPages:
    """The routes for messages, sent by a page's script or as plain forms."""

    def __init__(self, service: Service, room: ArenaRoom) -> None:
        self.service = service
        self.room = room

    def routes(self) -> list[Route]:
        """All routes."""
        return [
            Route("/s/arena", self.say, methods=["POST"]),
            Route("/s/arena/retry", self.retry, methods=["POST"]),
        ]

    async def say(self, request: Request) -> Response:
        """One message of the rater."""
        session, content, is_script = await read_message(self.service, request)
        text, n_said, place = content.get("text"), content.get("n_said"), content.get("place")
        is_whole = all(number is None or type(number) is int for number in (n_said, place))
        if not isinstance(text, str) or not is_whole:
            raise Unreadable("a message has a text", remedy='send {"text": …}')
        if is_script:
            return _lines(await self.room.say(session, text, place=place, n_said=n_said))
        with suppress(FlowError):  # the page shows the result; a message that was refused does not appear
            await whole(await self.room.say(session, text, place=place))
        return self._back()

    async def retry(self, request: Request) -> Response:
        """Replies that did not come, asked for again."""
        session, content, is_script = await read_message(self.service, request)
        if is_script:
            places = content.get("places")
            wanted = [place for place in PLACES if place in places] if isinstance(places, list) else []
            return _lines(await self.room.retry(session, wanted))
        with suppress(FlowError):
            await whole(await self.room.retry(session))
        return self._back()

    def _back(self) -> Response:
        return RedirectResponse(f"{self.service.settings.root_path}/s", 303)


def _lines(events: AsyncIterator[Event]) -> Response:
    async def written() -> AsyncIterator[bytes]:
        async for event in events:
            yield json.dumps(event, ensure_ascii=False).encode() + b"\n"

    return StreamingResponse(written(), media_type=NDJSON, headers=HEADERS)
