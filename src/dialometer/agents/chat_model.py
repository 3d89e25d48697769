"""What agents that are language models behind an address have in common, whichever way their provider writes it.

A provider's own file says how a request looks and how its answers and events are read; here is what is done with them:
limits, times, what is recorded, and the whole reply at the end of a stream.
"""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import httpx
from pydantic import AfterValidator, Field

from dialometer.agents.access import AgentAccess, variable_remedy
from dialometer.agents.calling import Caller, as_reply, broken_off, check_length, is_address, parse_json, printable
from dialometer.agents.interface import Delta, Reply
from dialometer.agents.speakers import SpeakerLabels, labels_in, without_other_speakers
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn

HELD_BACK = ("content_filter", "refusal")
NOT_PARAMETERS = ("messages", "system", "stream", "stream_options", "user", "metadata")
"""What of a request is not how the model is set."""
MAX_NAME_LENGTH = 300
MAX_TOKENS = 10**9
"""More than any conversation has: a provider that counts more, or less than none, has told nothing."""
ASKS_FOR_A_TOOL = ("tool_calls", "tool_use", "function_call")


class Refusal(AgentError):
    """The model, or its provider for it, declined to answer."""


@dataclass(frozen=True, slots=True)
class ModelEvent:
    """What one event of a stream, or a whole answer, tells. ``is_end`` says that the provider calls it complete."""

    text: str = ""
    role: str = ""
    model: str = ""
    finish_reason: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    refusal: str = ""
    is_end: bool = False


class ChatModel(Caller):
    """A language model. Its key is read from the environment variable ``api_key_env``; your own server needs none."""

    base_url: Annotated[str, AfterValidator(is_address)] = Field(description="Where the provider or server is.")
    model: str = Field(min_length=1, description="Name of the model, as its provider calls it.")
    system_prompt: str = Field(default="", description="Instructions for the model before the conversation.")
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="How freely the model chooses its words; 0 always takes the likeliest."
    )
    max_tokens: int | None = Field(default=None, ge=1, description="Longest response, in tokens.")
    api_key_env: str = Field(default="", description="Name of the environment variable with the key.")
    timeout_s: float = Field(default=120.0, gt=0, le=600, description="Seconds for a response, further tries included.")
    streaming: bool = Field(default=True, description="Ask for responses word by word, where pages show them so.")
    speaker_labels: SpeakerLabels = Field(
        default="keep",
        description="What to do with a response that speaks for others too (lines such as 'User: …'): keep it, cut it there, "
        "or fail.",
    )
    extra: dict[str, Any] = Field(
        default_factory=dict, description="Further fields of every request; null takes a field out."
    )

    @property
    def address(self) -> tuple[str, str]:
        return "base_url", self.base_url

    @property
    @abstractmethod
    def endpoint(self) -> str:
        """Where requests are posted to."""

    @abstractmethod
    def request(self, history: Sequence[Turn], seed: int, *, is_streamed: bool) -> dict[str, Any]:
        """The body of a request, as the provider wants it."""

    @abstractmethod
    def read_whole(self, content: Any) -> ModelEvent:
        """What a whole answer tells."""

    @abstractmethod
    def read_events(self, lines: Iterator[str]) -> Iterator[ModelEvent]:
        """What the events of a stream tell."""

    @abstractmethod
    def key_headers(self, key: str) -> dict[str, str]:
        """The headers that carry the key."""

    def with_schema(self, schema: Mapping[str, Any]) -> Self:
        """The same model, which writes only JSON that fits a schema; raises where the provider knows no such thing."""
        raise AgentError("this provider cannot hold a model to a schema", remedy="use --no-json-schema")

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        body = self.body(history, seed, is_streamed=False)
        content, times = self.ask(self.endpoint, body)
        heard = _Heard(self.speaker_labels)
        heard.take(self.read_whole(content))
        times["first_token_s"] = times["latency_s"]
        return self._finished(heard, body, times)

    def stream(self, history: Sequence[Turn], *, seed: int = 0) -> Iterator[Delta]:
        if not self.streaming:
            yield from super().stream(history, seed=seed)
            return
        body = self.body(history, seed, is_streamed=True)
        times: dict[str, Any] = {}
        heard = _Heard(self.speaker_labels)
        first_token_s = None
        for piece in self.read_events(self.lines(self.endpoint, body, times)):
            text = heard.take(piece)
            if text:
                first_token_s = times["latency_s"] if first_token_s is None else first_token_s
                yield Delta(text)
            if heard.is_over:
                break
        else:
            raise broken_off("the stream ended before the response did", self.endpoint)
        times["first_token_s"] = first_token_s
        yield Delta(reply=self._finished(heard, body, times))

    def body(self, history: Sequence[Turn], seed: int, *, is_streamed: bool) -> dict[str, Any]:
        """The whole body of a request, with what the study adds to it or takes out."""
        body = {**self.request(history, seed, is_streamed=is_streamed), **self.extra}
        return {name: value for name, value in body.items() if value is not None}

    def _finished(self, heard: _Heard, body: Mapping[str, Any], times: Mapping[str, Any]) -> Reply:
        sent = {name: value for name, value in body.items() if name not in NOT_PARAMETERS}
        if self.system_prompt:
            sent["system_prompt_sha256"] = hashlib.sha256(self.system_prompt.encode()).hexdigest()
        details = {
            **times,
            "model": heard.model or self.model,
            "parameters": sent,
            "finish_reason": heard.finish_reason,
        }
        if heard.usage:
            details["usage"] = heard.usage
        if heard.finish_reason in ASKS_FOR_A_TOOL and not heard.text.strip():
            raise AgentError("the model asks for a tool instead of answering", remedy="leave tools out of its request")
        reply = as_reply(heard.text, details)
        if heard.n_removed:
            reply = Reply(reply.text, {**reply.details, "n_characters_removed": heard.n_removed})
        return without_other_speakers(reply, self.speaker_labels)

    def refusals(self, access: AgentAccess) -> Iterator[tuple[str, str, str]]:
        yield from super().refusals(access)
        host = httpx.URL(self.base_url).host
        if self._names_its_key and not access.may_read(self.api_key_env, host):
            message = f"agents may not read the variable {self.api_key_env}"
            yield "api_key_env", message, variable_remedy(self.api_key_env, host)

    @property
    def _names_its_key(self) -> bool:
        return bool(self.api_key_env) and "api_key_env" in self.model_fields_set

    def secret_headers(self, host: str) -> dict[str, str]:
        """The key, where there is one; asked for anew each time, so that it is never part of the study."""
        if not self.api_key_env:
            return self.key_headers("")
        is_allowed = self._access.may_read(self.api_key_env, host)
        if not is_allowed and self._names_its_key:
            self._access.variable(self.api_key_env, host)  # raises
        return self.key_headers(os.environ.get(self.api_key_env, "") if is_allowed else "")


class _Heard:
    """A response as far as it has come."""

    def __init__(self, speaker_labels: SpeakerLabels) -> None:
        self.text = ""
        self.model = ""
        self.finish_reason: str | None = None
        self.usage: dict[str, int] = {}
        self.n_removed = 0
        self.is_over = False
        self._speaker_labels = speaker_labels

    def take(self, piece: ModelEvent) -> str:
        """Adds a piece and gives its text as it can be shown."""
        if piece.error:
            raise AgentError(f"the model's provider reports: {piece.error}", remedy="see its documentation")
        if piece.role not in ("", "assistant", "model"):
            raise AgentError(
                f"the model answered as '{piece.role[:MAX_NAME_LENGTH]}', not as itself", remedy="fix the server"
            )
        if piece.refusal:
            raise Refusal(f"the model declines to answer: {piece.refusal}", remedy="change the prompt or the model")
        if piece.finish_reason in HELD_BACK:
            raise Refusal("the model's provider held the response back", remedy="change the prompt or the model")
        self.model = piece.model[:MAX_NAME_LENGTH] or self.model
        self.finish_reason = piece.finish_reason[:MAX_NAME_LENGTH] or self.finish_reason
        self.usage.update(piece.usage)
        text = printable(piece.text)
        self.n_removed += len(piece.text) - len(text)
        text = text if self.text else text.lstrip()
        tail = len(self.text) - 80
        self.text += text
        check_length(self.text)
        has_other = self._speaker_labels != "keep" and "\n" in self.text and labels_in(self.text, max(0, tail))
        self.is_over = piece.is_end or bool(has_other)
        return text


def sse_events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Server-sent events as (name, JSON). An answer that is no stream, but JSON as a whole, is one event named "whole"."""
    name, data, plain = "", list[str](), list[str]()
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].lstrip(" "))
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif not line and data:
            yield name, _json_of(data)
            name, data = "", []
        elif line and not line.startswith((":", "id:", "retry:")):
            plain.append(line)
    if data:
        yield name, _json_of(data)
    elif plain:
        yield "whole", parse_json("\n".join(plain))


def _json_of(data: Sequence[str]) -> Any:
    text = "\n".join(data)
    return None if text == "[DONE]" else parse_json(text)


def whole_numbers(content: object) -> dict[str, int]:
    """The counts of a usage record."""
    if not isinstance(content, dict):
        return {}
    return {k[:100]: v for k, v in content.items() if type(v) is int and 0 <= v <= MAX_TOKENS}


def error_text(content: object) -> str:
    """The provider's own words in an event that reports an error; empty where it reports none."""
    error = content.get("error") if isinstance(content, dict) else None
    if isinstance(error, dict):
        error = error.get("message") or error.get("type") or "an error without a message"
    return " ".join(str(error).split())[:300] if error else ""
