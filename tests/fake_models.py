"""A scripted server for tests that speaks as providers of language models do: OpenAI's, Anthropic's and Ollama's forms.

What it says next is a list of :class:`Said`; the last one stays. It can be slow, refuse, break off or never end.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from loopback import Handler, serving_http

USAGE = (9, 3)
"""Tokens read and written, in every answer."""


@dataclass
class Said:
    """One answer. ``breaks_after`` closes the connection after so many pieces; ``is_endless`` repeats them for ever."""

    pieces: Sequence[str] = ("I am ", "well.")
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    first_pause_s: float = 0.0
    breaks_after: int | None = None
    may_break: threading.Event | None = None
    """What it waits for before it breaks off, so that whoever reads it may take all the time of the world."""
    is_endless: bool = False
    finish: str = "stop"
    role: str = "assistant"
    error: str = ""
    ignores_stream: bool = False
    is_unfinished: bool = False
    """The stream ends in order, but the provider never says that the response is complete."""


class FakeModels:
    """The server: ``requests`` are what it was asked, as (path, body, headers)."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[Said | Callable[[dict[str, Any]], Said]] = [Said()]
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []

    def options(self, agent: str) -> dict[str, Any]:
        """Options of an agent of that name with this server behind it."""
        base = {"base_url": self.url if agent == "ollama" else f"{self.url}/v1", "model": "m"}
        return base | {"max_tokens": 100} if agent == "anthropic" else base

    def next(self, body: dict[str, Any]) -> Said:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Said) else answer(body)


@contextlib.contextmanager
def fake_models() -> Iterator[FakeModels]:
    """Serves until the end of the test."""
    with serving_http(_Answering) as server:
        server.models = models = FakeModels(f"http://127.0.0.1:{server.server_port}")
        yield models


class _Answering(Handler):
    def reply(self) -> None:
        models: FakeModels = self.server.models
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        models.requests.append((self.path, body, {name.lower(): value for name, value in self.headers.items()}))
        form = _FORMS[self.path]
        said = models.next(body)
        if said.status != 200:
            content = {"error": {"message": said.error or "try later", "type": "some_error"}}
            self.answer(said.status, json.dumps(content).encode(), said.headers)
        elif body.get("stream") and not said.ignores_stream:
            self._stream(form, said, body)
        else:
            time.sleep(said.first_pause_s)
            content = form.whole(said, body)
            self.answer(200, json.dumps(content).encode(), {"content-type": "application/json", **said.headers})

    def _stream(self, form: type[_OpenAI], said: Said, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", form.content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        time.sleep(said.first_pause_s)
        with contextlib.suppress(ConnectionError):
            for text in form.begin(said, body):
                self._chunk(text)
            n = 0
            while True:
                for piece in said.pieces:
                    if n == said.breaks_after:
                        if said.may_break is not None:
                            said.may_break.wait(120)
                        self.close_connection = True
                        self.connection.close()
                        return
                    self._chunk(form.piece(piece, body))
                    time.sleep(said.pause_s)
                    n += 1
                if not said.is_endless:
                    break
            if said.error:
                self._chunk(form.error(said.error))
            elif not said.is_unfinished:
                for text in form.end(said, body):
                    self._chunk(text)
            self._chunk("")

    def _chunk(self, text: str) -> None:
        content = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()


def _event(content: Any, name: str = "") -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(content)}\n\n"


class _OpenAI:
    content_type = "text/event-stream"

    @staticmethod
    def whole(said: Said, body: dict[str, Any]) -> Any:
        message = {"role": said.role, "content": "".join(said.pieces)}
        usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}
        choice = {"index": 0, "finish_reason": said.finish, "message": message}
        return {"object": "chat.completion", "model": f"{body['model']}-1", "choices": [choice], "usage": usage}

    @staticmethod
    def _chunk(body: dict[str, Any], delta: Any, finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({"object": "chat.completion.chunk", "model": f"{body['model']}-1", "choices": [choice]})

    @classmethod
    def begin(cls, said: Said, body: dict[str, Any]) -> list[str]:
        return [": a comment\n\n", cls._chunk(body, {"role": said.role, "content": ""})]

    @classmethod
    def piece(cls, text: str, body: dict[str, Any]) -> str:
        return cls._chunk(body, {"content": text})

    @classmethod
    def end(cls, said: Said, body: dict[str, Any]) -> list[str]:
        usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1]}
        wants_usage = (body.get("stream_options") or {}).get("include_usage")
        last = [_event({"model": f"{body['model']}-1", "choices": [], "usage": usage})] if wants_usage else []
        return [cls._chunk(body, {}, said.finish), *last, "data: [DONE]\n\n"]

    @staticmethod
    def error(message: str) -> str:
        return _event({"error": {"message": message}})


class _Anthropic(_OpenAI):
    """Named events, blocks of content, and a word that it thinks, which is none of the response."""

    _REASONS: ClassVar[dict[str, str]] = {"stop": "end_turn", "tool_calls": "tool_use", "content_filter": "refusal"}

    @classmethod
    def whole(cls, said: Said, body: dict[str, Any]) -> Any:
        blocks = [{"type": "thinking", "thinking": "Hm."}, *({"type": "text", "text": piece} for piece in said.pieces)]
        usage = {"input_tokens": USAGE[0], "output_tokens": USAGE[1], "service_tier": "standard"}
        reason = cls._REASONS.get(said.finish, said.finish)
        answer = {"type": "message", "role": said.role, "model": f"{body['model']}-1", "content": blocks}
        return {**answer, "stop_reason": reason, "usage": usage}

    @classmethod
    def begin(cls, said: Said, body: dict[str, Any]) -> list[str]:
        usage = {"input_tokens": USAGE[0], "output_tokens": 1}
        message = {"role": said.role, "model": f"{body['model']}-1", "content": [], "usage": usage}
        thinks = {"type": "thinking_delta", "thinking": "Hm."}
        return [
            _event({"type": "message_start", "message": message}, "message_start"),
            _event({"type": "ping"}, "ping"),
            _event({"type": "content_block_delta", "index": 0, "delta": thinks}, "content_block_delta"),
        ]

    @classmethod
    def piece(cls, text: str, body: dict[str, Any]) -> str:
        delta = {"type": "text_delta", "text": text}
        return _event({"type": "content_block_delta", "index": 1, "delta": delta}, "content_block_delta")

    @classmethod
    def end(cls, said: Said, body: dict[str, Any]) -> list[str]:
        told = {
            "delta": {"stop_reason": cls._REASONS.get(said.finish, said.finish)},
            "usage": {"output_tokens": USAGE[1]},
        }
        return [
            _event({"type": "message_delta", **told}, "message_delta"),
            _event({"type": "message_stop"}, "message_stop"),
        ]

    @staticmethod
    def error(message: str) -> str:
        return _event({"type": "error", "error": {"type": "overloaded_error", "message": message}}, "error")


class _Ollama(_OpenAI):
    content_type = "application/x-ndjson"

    @classmethod
    def _line(cls, body: dict[str, Any], text: str, role: str = "assistant", **more: Any) -> Any:
        return {"model": f"{body['model']}-1", "message": {"role": role, "content": text}, "done": False, **more}

    @classmethod
    def _last(cls, said: Said) -> dict[str, Any]:
        return {"done": True, "done_reason": said.finish, "prompt_eval_count": USAGE[0], "eval_count": USAGE[1]}

    @classmethod
    def whole(cls, said: Said, body: dict[str, Any]) -> Any:
        return cls._line(body, "".join(said.pieces), said.role, **cls._last(said))

    @classmethod
    def begin(cls, said: Said, body: dict[str, Any]) -> list[str]:
        return [json.dumps(cls._line(body, "", said.role)) + "\n"]

    @classmethod
    def piece(cls, text: str, body: dict[str, Any]) -> str:
        return json.dumps(cls._line(body, text)) + "\n"

    @classmethod
    def end(cls, said: Said, body: dict[str, Any]) -> list[str]:
        return [json.dumps(cls._line(body, "", **cls._last(said))) + "\n"]

    @staticmethod
    def error(message: str) -> str:
        return json.dumps({"error": message}) + "\n"


_FORMS: dict[str, type[_OpenAI]] = {
    "/v1/chat/completions": _OpenAI,
    "/v1/messages": _Anthropic,
    "/api/chat": _Ollama,
}
