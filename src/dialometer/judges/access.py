"""How a model reaches a study: through the engine of this process, or a running server. Both show the API's screens."""

from __future__ import annotations

import time
from typing import Any, Protocol, Self

from dialometer.errors import AnswersRejected, AssignmentError, FlowError
from dialometer.flow.arena import Arenas
from dialometer.flow.chat import Chats
from dialometer.flow.engine import Flow, now_ms
from dialometer.flow.screen_json import screen_json
from dialometer.flow.submissions import Timing
from dialometer.model.session import Receipt
from dialometer.simulate.server_client import ServerClient, expect

PLATFORM = "model"
N_WAITS = 5
Shown = dict[str, Any]
"""A screen as the JSON API shows it; ``kind`` is ``done`` at the end."""


class JudgeAccess(Protocol):
    """What a model needs of a study. A session is known by its id."""

    def arrive(self, rater: str, language: str = "") -> str | None:
        """The session of this rater, the same one each time; None when the study has no place left."""

    def screen(self, session: str) -> Shown:
        """The session's current screen."""

    def submit(self, session: str, screen: str, answers: dict[str, Any], shown_at_ms: int, token: str) -> int:
        """Sends the answers; returns how many judgments were stored, practice ones not counted. Raises :class:`AnswersRejected`."""

    def say(self, session: str, item_id: str, text: str) -> None:
        """One message in a conversation; the reply is stored before this returns."""

    def wait_for_reply(self, session: str, item_id: str) -> None:
        """Ask again for a reply that did not come."""


class LocalAccess:
    """The engine of this process."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.chats = Chats(flow.study, flow.store)
        self.arenas = Arenas(flow, self.chats)
        self._is_arena = flow.study.spec.items.kind == "arena"

    def arrive(self, rater: str, language: str = "") -> str | None:
        """The session's id."""
        try:
            return self.flow.arrive(platform=PLATFORM, external_id=rater, source="model", language=language).session.id
        except AssignmentError:
            return None

    def screen(self, session: str) -> Shown:
        """The screen as the API would show it."""
        held = self.flow.store.sessions.get(session)
        if held.state == "stale":
            held = self.flow.store.sessions.revive(session, now_ms())
        screen = self.flow.screen(held)
        is_chat = screen.item is not None and screen.item.kind == "chat"
        chat = self.chats.history(held, screen.item.id) if is_chat and screen.item is not None else None
        return screen_json(self.flow, held, self.arenas.shown(held, screen), chat)

    def submit(self, session: str, screen: str, answers: dict[str, Any], shown_at_ms: int, token: str) -> int:
        """Stores the answers."""
        timing = Timing(shown_at_ms, now_ms(), shown_at_ms, device="program")
        prepared = self.flow.prepare(self.flow.store.sessions.get(session), screen, answers, timing, token)
        if isinstance(prepared, Receipt):
            return 0
        receipt = self.flow.store.submissions.record([prepared], timing.submitted_at_ms)[0]
        if receipt.outcome in ("outdated", "ended"):
            raise _moved()
        n_judgments = sum(not judgment.is_practice for judgment in prepared.judgments)
        return n_judgments if receipt.outcome == "stored" else 0

    def say(self, session: str, item_id: str, text: str) -> None:
        """The reply is stored before this returns."""
        held = self.flow.store.sessions.get(session)
        item_id = self.flow.study.own_id(item_id)
        if self._is_arena:
            self.arenas.exchange(held, item_id, text, now_ms())
        else:
            self.chats.say(held, item_id, text, now_ms())

    def wait_for_reply(self, session: str, item_id: str) -> None:
        """Asks the agent again."""
        held = self.flow.store.sessions.get(session)
        item_id = self.flow.study.own_id(item_id)
        if self._is_arena:
            self.arenas.catch_up(held, item_id, now_ms())
        else:
            self.chats.answer(held, item_id)


class ServerAccess:
    """A running server by its address and key."""

    def __init__(self, url: str, api_key: str) -> None:
        self._http = ServerClient(url, api_key)
        self._key = api_key
        self._tokens: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def arrive(self, rater: str, language: str = "") -> str | None:
        """The session's id; its token is kept here."""
        body = {"platform": PLATFORM, "external_id": rater, "source": "model", "language": language}
        response = self._http.call("POST", "/sessions", self._key, body)
        if response.status_code == 403:
            return None
        opened = expect(response, 201)
        self._tokens[opened["session_id"]] = opened["session_token"]
        return str(opened["session_id"])

    def screen(self, session: str) -> Shown:
        """The screen as the API shows it."""
        return expect(self._http.call("GET", "/session/screen", self._tokens[session]), 200)

    def submit(self, session: str, screen: str, answers: dict[str, Any], shown_at_ms: int, token: str) -> int:
        """Sends the answers; when this returns they are on disk."""
        body = {
            "screen": screen,
            "token": token,
            "answers": answers,
            "shown_at_ms": shown_at_ms,
            "first_input_at_ms": shown_at_ms,
            "device": "program",
        }
        response = self._http.call("POST", "/session/submissions", self._tokens[session], body)
        if response.status_code == 409:
            raise _moved()
        if response.status_code == 422 and "fields" in response.json():
            raise AnswersRejected(response.json()["fields"])
        n_stored = int(expect(response, 200)["n_judgments"])
        return 0 if screen.startswith("practice/") else n_stored

    def say(self, session: str, item_id: str, text: str) -> None:
        """Says it once; a reply that failed is asked for again."""
        response = self._http.call("POST", "/session/chat", self._tokens[session], {"text": text}, may_repeat=False)
        if response.status_code in (202, 502):
            self.wait_for_reply(session, item_id)
        else:
            expect(response, 200)

    def wait_for_reply(self, session: str, item_id: str) -> None:
        """Asks the server again, a few times."""
        for attempt in range(1, N_WAITS + 1):
            response = self._http.call("POST", "/session/chat/retry", self._tokens[session])
            if response.status_code not in (202, 502) or attempt == N_WAITS:
                expect(response, 200)
                return
            time.sleep(1)


def _moved() -> FlowError:
    return FlowError("the session moved while the model was answering", remedy="run one judge of a name at a time")
