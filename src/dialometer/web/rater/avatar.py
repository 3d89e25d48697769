"""A page to talk to an avatar: its replies with confidence, and the curve that its threshold was chosen by.

Conversations are kept in memory only, and old ones make room for new ones.
"""

from __future__ import annotations

import math
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from dialometer.errors import FlowError
from dialometer.flow.chat import checked_message
from dialometer.model.dialogue import Turn
from dialometer.report.numbers import write_percent
from dialometer.report.theme import DARK, LIGHT, drawing_rules
from dialometer.retrieval.avatar import Avatar, AvatarReply
from dialometer.retrieval.threshold import trade_off_inline
from dialometer.web.server.media import MediaFiles, shown_recording
from dialometer.web.server.requests import Unreadable, last_value, read_form, read_json
from dialometer.web.server.security import (
    RateLimits,
    check_csrf,
    client_address,
    cookie,
    csrf_for,
    is_local,
    set_cookie,
)
from dialometer.web.server.standalone import is_script, refuse_plainly, standalone_app
from dialometer.web.server.static_files import STATIC, Assets

MAX_TALKS = 1000
MAX_EXCHANGES = 100
MAX_MESSAGE_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the visitor said and what the avatar replied."""

    text: str
    spoken: AvatarReply


@dataclass
class Talk:
    """One visitor's conversation. ``threshold`` is the visitor's own choice, None for the avatar's."""

    exchanges: list[Exchange] = field(default_factory=list)
    threshold: float | None = None
    lock: Lock = field(default_factory=Lock)


class Talks:
    """All conversations by the secret in the visitor's cookie. One begins with its first message."""

    def __init__(self, avatar: Avatar) -> None:
        self.avatar = avatar
        self._talks: OrderedDict[str, Talk] = OrderedDict()
        self._lock = Lock()

    def look(self, secret: str) -> Talk:
        """The conversation so far; empty where there is none, or where it was dropped to make room."""
        with self._lock:
            return self._talks.get(secret) or Talk()

    def open(self, secret: str) -> Talk:
        """The visitor's conversation, created if needed; the one unused for longest makes room."""
        with self._lock:
            talk = self._talks.setdefault(secret, Talk())
            self._talks.move_to_end(secret)
            while len(self._talks) > MAX_TALKS:
                self._talks.popitem(last=False)
            return talk

    def forget(self, secret: str) -> None:
        """Ends a conversation."""
        with self._lock:
            self._talks.pop(secret, None)

    def say(self, secret: str, text: str) -> Exchange:
        """One message and its reply; messages of one visitor are answered one after the other."""
        message = checked_message(text, MAX_MESSAGE_LENGTH)
        talk = self.open(secret)
        with talk.lock:
            if len(talk.exchanges) >= MAX_EXCHANGES:
                raise FlowError("this conversation is long enough", remedy="start over")
            history = [turn for exchange in talk.exchanges for turn in _turns(exchange)]
            spoken = self.avatar.reply([*history, Turn("You", message, "user")], threshold=talk.threshold)
            exchange = Exchange(message, spoken)
            talk.exchanges.append(exchange)
        return exchange


def _turns(exchange: Exchange) -> tuple[Turn, Turn]:
    return Turn("You", exchange.text, "user"), Turn("Avatar", exchange.spoken.text, "agent")


COOKIE = "dialometer_avatar"
N_SUGGESTED = 4
MESSAGES_PER_MINUTE = 60
KEPT_S = 24 * 3600


def create_avatar_app(avatar: Avatar, *, title: str = "") -> ASGIApp:
    """The application of one avatar; its conversations go with it."""
    pages = _Pages(avatar, title or avatar.fitted.kb.name or "Avatar")
    return standalone_app(pages.routes(), pages.refuse)


class _Pages:
    def __init__(self, avatar: Avatar, title: str) -> None:
        self.avatar = avatar
        self.title = title
        self.talks = Talks(avatar)
        kb = avatar.fitted.kb
        self._recordings = {answer.id: answer.recording for answer in kb.answers}
        self.media = MediaFiles(kb.folder, [name for recording in kb.recordings for name in recording.files])
        self.messages = RateLimits(MESSAGES_PER_MINUTE)
        env = Environment(loader=PackageLoader("dialometer.web"), autoescape=True, undefined=StrictUndefined)
        env.filters["percent"] = lambda share: "–" if math.isnan(share) else write_percent(share)
        self._template = env.get_template("avatar.html")
        calibration = avatar.calibration
        self._drawings = trade_off_inline(calibration) if calibration and calibration.curve else ("", "")

    def routes(self) -> list[BaseRoute]:
        """All routes."""
        return [
            Route("/", self.page, methods=["GET"]),
            Route("/say", self.say, methods=["POST"]),
            Route("/threshold", self.threshold, methods=["POST"]),
            Route("/again", self.again, methods=["POST"]),
            Route("/chart.css", _chart_style, methods=["GET"]),
            Mount("/static", Assets(directory=STATIC)),
            self.media.route(),
        ]

    async def page(self, request: Request) -> Response:
        """The conversation so far."""
        secret = cookie(request, COOKIE) or secrets.token_urlsafe(24)
        response = HTMLResponse(self._render(secret, self.talks.look(secret)))
        set_cookie(request, response, COOKIE, secret, path="/", is_embedded=False, max_age_s=KEPT_S)
        return response

    async def say(self, request: Request) -> Response:
        """One message, by the page's script or as a plain form."""
        secret, content = await self._read(request)
        text = content.get("text")
        if not isinstance(text, str):
            raise Unreadable("a message has a text", remedy='send {"text": …}')
        address = client_address(request.scope)
        if not is_local(address):
            self.messages.take(address)
        exchange = await run_in_threadpool(self.talks.say, secret, text)
        content = {**_as_json(exchange), "recording": self._playing(exchange.spoken)}
        return JSONResponse(content) if is_script(request) else self._back()

    async def threshold(self, request: Request) -> Response:
        """The visitor's own threshold for what is said from now on."""
        secret, content = await self._read(request)
        try:
            wanted = float(str(content.get("threshold", "")))
        except ValueError:
            wanted = math.nan
        if not 0 <= wanted <= 1:
            raise Unreadable("a threshold lies between 0 and 1")
        self.talks.open(secret).threshold = wanted
        return JSONResponse({"threshold": wanted}) if is_script(request) else self._back()

    async def again(self, request: Request) -> Response:
        """Forgets the conversation and begins a new one."""
        secret, _ = await self._read(request)
        self.talks.forget(secret)
        return JSONResponse({}) if is_script(request) else self._back()

    async def refuse(self, request: Request, error: Exception) -> Response:
        """What went wrong; a person whose message was refused sees the page again."""
        if isinstance(error, FlowError) and not is_script(request):
            return self._back()
        return await refuse_plainly(request, error)

    async def _read(self, request: Request) -> tuple[str, dict[str, Any]]:
        secret = cookie(request, COOKIE)
        content: dict[str, Any]
        if is_script(request):
            content = await read_json(request)
            mark = request.headers.get("x-csrf-token", "")
        else:
            form = await read_form(request)
            content, mark = {name: last_value(form, name) for name in ("text", "threshold")}, last_value(form, "csrf")
        check_csrf(request, secret, mark)
        return secret, content

    def _playing(self, spoken: AvatarReply) -> dict[str, object] | None:
        """What plays a reply; a declined question has no recording."""
        return shown_recording(self._recordings.get(spoken.answer), "")

    def _back(self) -> Response:
        return RedirectResponse("/", 303)

    def _render(self, secret: str, talk: Talk) -> str:
        calibration = self.avatar.calibration
        kb = self.avatar.fitted.kb
        step = max(1, len(kb.questions) // N_SUGGESTED)
        return self._template.render(
            title=self.title,
            csrf=csrf_for(secret),
            exchanges=talk.exchanges,
            playing=self._playing,
            has_recordings=bool(kb.recordings),
            suggested=kb.questions[step // 2 :: step][:N_SUGGESTED],
            n_answers=len(kb.answers),
            label=self.avatar.fitted.options.label,
            calibration=calibration,
            rows=calibration.curve[::4] if calibration else (),
            threshold=self.avatar.threshold if talk.threshold is None else talk.threshold,
            wide=Markup(self._drawings[0]),  # nosec B704  # a drawing of ours
            narrow=Markup(self._drawings[1]),  # nosec B704
            max_length=MAX_MESSAGE_LENGTH,
        )


def _as_json(exchange: Exchange) -> dict[str, Any]:
    spoken = exchange.spoken
    return {
        "reply": spoken.text,
        "answer": spoken.answer or None,
        "confidence": spoken.confidence,
        "has_declined": spoken.has_declined,
        "best": [{"text": text, "score": round(score, 3)} for text, score in spoken.best],
    }


async def _chart_style(_request: Request) -> Response:
    return Response(_chart_css(), media_type="text/css", headers={"cache-control": "no-cache"})


@cache
def _chart_css() -> str:
    """Colours of the drawing, for light and dark screens, from the theme that all charts share."""
    light, dark = ("".join(f"--{name}:{colour};" for name, colour in theme.items()) for theme in (LIGHT, DARK))
    return f":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{drawing_rules()}\n"
