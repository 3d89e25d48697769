"""Responses word by word: an agent's thread adds text, the response to the page sends it on, at the study's pace.

A line of JSON for each piece, ``{"text": …}`` (with ``html`` where Markdown is shown), and at the end one for the outcome, as a
request without streaming gets it. The reply is stored whether or not the page is still there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from dialometer.model.live import Live
from dialometer.web.server.logs import log

NDJSON = "application/x-ndjson"
PAUSE_S = 0.08
"""Words that come within this time are sent together: a page cannot show them faster anyway."""
HEADERS = {"x-accel-buffering": "no", "cache-control": "no-store, no-transform"}
"""Proxies must pass pieces on as they come."""


class ReplyOutcome(Protocol):
    """What a message led to."""

    @property
    def reply(self) -> str | None:
        """What the agent said, or None."""

    def as_json(self) -> dict[str, object]:
        """For the page."""


OutcomeT = TypeVar("OutcomeT", bound=ReplyOutcome)


class LiveText:
    """What an agent has said so far. Made inside the event loop; :meth:`add` may be called from any thread."""

    def __init__(self, pace: Live | None = None) -> None:
        self.pace = pace or Live()
        self.began = time.monotonic()
        self.text = ""
        self._loop = asyncio.get_running_loop()
        self._has_more = asyncio.Event()
        self._is_told = False

    def add(self, text: str) -> None:
        """More text."""
        self.text += text
        if not self._is_told:
            self._is_told = True
            self._loop.call_soon_threadsafe(self._has_more.set)

    async def more(self) -> None:
        """Waits for more text."""
        await self._has_more.wait()
        self._is_told = False
        self._has_more.clear()

    def n_due(self) -> float:
        """How many characters may be shown by now."""
        return self.pace.n_due(time.monotonic() - self.began)

    async def level(self, text: str) -> None:
        """Waits until a whole response would have appeared at the study's pace."""
        await asyncio.sleep(max(0.0, self.pace.duration_s(len(text)) - (time.monotonic() - self.began)))


class LiveReply(Generic[OutcomeT]):
    """A reply that is being made, in a task of its own, which a page that is closed does not end."""

    _running: ClassVar[set[asyncio.Task[Any]]] = set()
    """Python keeps no task alive by itself."""

    def __init__(self, work: Coroutine[object, object, OutcomeT], live: LiveText) -> None:
        self.live = live
        self.task: asyncio.Task[OutcomeT] = asyncio.ensure_future(work)
        self._running.add(self.task)
        self.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[OutcomeT]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that nobody warns of it

    async def begun(self) -> None:
        """Waits for the first words or the end; an error without any words is raised as it is."""
        first = asyncio.ensure_future(self.live.more())
        await asyncio.wait((first, self.task), return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        if self.task.done() and not self.live.text:
            self.task.result()

    async def pieces(self) -> AsyncIterator[str]:
        """The text as it may be shown; ends when there is an outcome and all of it was shown."""
        n_shown = 0
        while True:
            is_over = self.task.done()
            failed = is_over and (self.task.cancelled() or self.task.exception() or self.task.result().reply is None)
            text = self.live.text
            until = int(min(len(text), self.live.n_due()))
            if until > n_shown:
                yield text[n_shown:until]
                n_shown = until
            if failed or (is_over and n_shown == len(text)):
                return
            if n_shown == len(text):
                more = asyncio.ensure_future(self.live.more())
                await asyncio.wait((more, self.task), return_when=asyncio.FIRST_COMPLETED)
                more.cancel()
            if not self.task.done() or n_shown < len(self.live.text):
                await asyncio.sleep(PAUSE_S)


def streamed(
    reply: LiveReply[OutcomeT], failed: dict[str, object], render: Callable[[str], str] | None = None
) -> Response:
    """The response for a page that reads it as it comes. ``failed`` is the outcome of an error in the middle.

    Where the page shows Markdown, ``render`` makes HTML of every paragraph, list or block of code as soon as it is whole:
    ``{"html": …, "text": …}`` has those, and the text after them in place of what was there.
    """

    async def lines() -> AsyncIterator[str]:
        text, n_drawn = "", 0
        async for piece in reply.pieces():
            event = {"text": piece}
            if render is not None:
                text += piece
                end = end_of_blocks(text, n_drawn)
                if end > n_drawn:
                    html = await run_in_threadpool(render, text[n_drawn:end])
                    event = {"html": str(html), "text": text[end:]}
                    n_drawn = end
            yield json.dumps(event, ensure_ascii=False) + "\n"
        try:
            outcome = (await reply.task).as_json()
        except Exception as error:
            log("chat_failed", reason=type(error).__name__)
            outcome = failed
        yield json.dumps(outcome, ensure_ascii=False) + "\n"

    return StreamingResponse(lines(), media_type=NDJSON, headers=HEADERS)


def end_of_blocks(text: str, start: int) -> int:
    """Up to where the Markdown after ``start`` consists of whole blocks: the last empty line that is not inside code."""
    end, fence = start, ""
    place = start
    for line in text[start:].splitlines(keepends=True):
        place += len(line)
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        elif not line.strip() and not fence and line.endswith("\n"):
            end = place
    return end
