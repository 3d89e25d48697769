"""Simulated raters at a running server, over the JSON API as any other program."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import httpx

from dialometer.errors import AgentError, AnswersRejected, DialometerError, FlowError
from dialometer.model.marks import Passage
from dialometer.scales import SCALES
from dialometer.simulate.screen_view import FieldView, ScreenView, Visit

N_CONNECTIONS = 16
TIMEOUT_S = 60.0
N_TRIES = 5
_NO_FIELDS = ("consent", "more")
"""Screens that ask by two buttons; the simulated rater knows their names."""


class ServerRefused(DialometerError):
    """The server did not do what was asked; its own words are quoted."""


class ServerClient:
    """The study of a server by its address. Sending is safe to repeat, so failures that may pass are retried."""

    def __init__(self, url: str, api_key: str, *, n_connections: int = N_CONNECTIONS) -> None:
        limits = httpx.Limits(max_connections=n_connections, max_keepalive_connections=n_connections)
        self._client = httpx.Client(base_url=f"{url.rstrip('/')}/api/v1", timeout=TIMEOUT_S, limits=limits)
        self._pool = ThreadPoolExecutor(n_connections, thread_name_prefix="rater")
        self._key = api_key
        self._tokens: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    def arrive(self, external_id: str, at_ms: int, language: str = "") -> str | None:
        """The session's id, or None when the study has no place left."""
        body = {"platform": "simulated", "external_id": external_id, "source": "simulated", "at_ms": at_ms}
        body |= {"language": language} if language else {}
        response = self.call("POST", "/sessions", self._key, body)
        if response.status_code == 403:
            return None
        opened = expect(response, 201)
        self._tokens[opened["session_id"]] = opened["session_token"]
        return str(opened["session_id"])

    def screen(self, session: str) -> ScreenView:
        """The session's current screen."""
        return view_from(expect(self.call("GET", "/session/screen", self._tokens[session]), 200))

    def submit(self, visits: list[Visit]) -> tuple[int, int]:
        """Sends all screens at once and returns how many judgments and practice judgments were acknowledged.

        Those that draw further items go first and one by one, because what they draw depends on their order.
        """
        drawing = [visit for visit in visits if visit.screen.startswith("more/")]
        n_drawn = [self._submit(visit) for visit in drawing]
        rest = [visit for visit in visits if not visit.screen.startswith("more/")]
        n_stored = [*n_drawn, *self._pool.map(self._submit, rest)]
        n_practice = sum(
            n for visit, n in zip([*drawing, *rest], n_stored, strict=True) if visit.screen.startswith("practice/")
        )
        return sum(n_stored) - n_practice, n_practice

    def say(self, session: str, item_id: str, text: str, at_ms: int) -> str:
        """One message in a chat; the reply is stored before it is returned."""
        body = {"text": text, "at_ms": at_ms}
        response = self.call("POST", "/session/chat", self._tokens[session], body, may_repeat=False)
        if response.status_code in (202, 502):
            return self.wait_for_reply(session, item_id, at_ms)
        return str(expect(response, 200)["reply"])

    def wait_for_reply(self, session: str, item_id: str, at_ms: int) -> str:
        """Asks again for a reply that did not come."""
        for _ in range(N_TRIES):
            response = self.call("POST", "/session/chat/retry", self._tokens[session])
            if response.status_code not in (202, 502):
                return str(expect(response, 200)["reply"])
        raise AgentError(f"no reply in the conversation '{item_id}'", remedy="see the server's log")

    def _submit(self, visit: Visit) -> int:
        body = {
            "screen": visit.screen,
            "token": visit.token,
            "answers": visit.answers,
            "shown_at_ms": visit.shown_at_ms,
            "first_input_at_ms": visit.first_input_at_ms,
            "submitted_at_ms": visit.submitted_at_ms,
            "device": visit.device,
        }
        response = self.call("POST", "/session/submissions", self._tokens[visit.session], body)
        if response.status_code == 409:
            raise FlowError(
                "a simulated rater's session moved while it was answering", remedy="run one simulation at a time"
            )
        if response.status_code == 422 and "fields" in response.json():
            raise AnswersRejected(response.json()["fields"])
        return int(expect(response, 200)["n_judgments"])

    def call(
        self, method: str, path: str, token: str, body: dict[str, Any] | None = None, *, may_repeat: bool = True
    ) -> httpx.Response:
        """One request with a token; failures that may pass are retried, unless the request must not be repeated."""
        headers = {"Authorization": f"Bearer {token}"}
        for n in range(N_TRIES):
            is_last = n == N_TRIES - 1
            pause_s = 0.25 * 2**n
            try:
                response = self._client.request(method, path, json=body, headers=headers)
            except httpx.TransportError as error:
                if is_last or not may_repeat:
                    raise ServerRefused(
                        f"the server does not answer ({type(error).__name__})",
                        where=str(self._client.base_url),
                        remedy="check that it runs and that the address is right",
                    ) from error
            else:
                if response.status_code not in (429, 503) or is_last:
                    return response
                pause_s = max(pause_s, float(response.headers.get("retry-after", 0)))
            time.sleep(pause_s)
        raise AssertionError("the last try returns or raises")


def view_from(content: dict[str, Any]) -> ScreenView:
    """What a simulated rater sees of a screen of the API."""
    item = content["item"] or {}
    if item.get("kind") == "arena":
        raise ServerRefused(
            "simulated raters cannot tell the systems of an arena apart over a server, which keeps their names to itself",
            remedy="run 'dialometer simulate' on the study's folder, without a server",
        )
    fields = [] if content["kind"] in _NO_FIELDS else content["fields"]
    return ScreenView(
        kind=content["kind"],
        key=content["screen"],
        step=content["step"],
        n_steps=content["n_steps"],
        fields=tuple(_field(field, item.get("anchor_values") or {}) for field in fields),
        item_id=item.get("id", ""),
        language=str(content.get("language", "")),
        option_texts=tuple("\n".join(turn["text"] for turn in option["turns"]) for option in item.get("options", ())),
        has_standard=bool(item.get("standard")),
        min_turns=item.get("min_turns", 0),
        said=tuple(turn["role"] for turn in content.get("chat") or ()),
        seconds=content["estimated_s"],
        state=content["state"],
    )


def _field(field: dict[str, Any], anchors: dict[str, float]) -> FieldView:
    scale = SCALES.get(field["scale"]["type"]).model_validate(field["scale"])
    anchor = anchors.get(field["name"].split(".", 1)[0])
    passages = tuple(Passage(p["turn"], p["text"], is_markable=p["is_markable"]) for p in field.get("passages", ()))
    alternatives = tuple(field["alternatives"])
    return FieldView(field["name"], scale, field["target"], alternatives, field["is_required"], anchor, passages)


def expect(response: httpx.Response, status: int) -> dict[str, Any]:
    """The JSON of a response with the expected status; any other raises :class:`ServerRefused` in the server's words."""
    if response.status_code != status:
        try:
            reason = response.json().get("error", "")
        except ValueError:
            reason = ""
        remedy = "give the server's key with --api-key" if response.status_code == 401 else "see the server's log"
        raise ServerRefused(f"the server answered {response.status_code}: {reason or 'no reason given'}", remedy=remedy)
    content: dict[str, Any] = response.json()
    return content
