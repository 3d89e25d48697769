"""An agent behind an endpoint that speaks Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from dialometer.agents import AGENTS
from dialometer.agents.calling import is_address, pick
from dialometer.agents.chat_model import ChatModel, ModelEvent, error_text, sse_events, whole_numbers
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn

BEGINS = "(The conversation begins.)"
"""Said for the user where the agent speaks first, since these endpoints want the user's turn first."""
ANSWERS = "answers"
"""The tool by which a model is held to a schema."""


@AGENTS.register("anthropic")
class Anthropic(ChatModel):
    """A model with Anthropic's messages. These endpoints have no seed, so the same conversation may get another reply."""

    base_url: Annotated[str, AfterValidator(is_address)] = Field(
        default="https://api.anthropic.com/v1", description="Address up to /v1."
    )
    temperature: float | None = Field(
        default=None, ge=0, le=1, description="How freely the model chooses its words; 0 always takes the likeliest."
    )
    max_tokens: int = Field(ge=1, description="Longest response, in tokens; these endpoints require it.")
    api_key_env: str = Field(default="ANTHROPIC_API_KEY", description="Name of the environment variable with the key.")
    version: str = Field(default="2023-06-01", description="Version of the interface (anthropic-version).")

    @property
    def endpoint(self) -> str:
        return f"{self.base_url.rstrip('/')}/messages"

    def request(self, history: Sequence[Turn], seed: int, *, is_streamed: bool) -> dict[str, Any]:
        messages: list[dict[str, str]] = []
        for turn in history:
            role = "user" if turn.role == "user" else "assistant"
            if not messages and role == "assistant":
                messages.append({"role": "user", "content": BEGINS})
            if messages and messages[-1]["role"] == role:  # turns must alternate
                messages[-1] = {"role": role, "content": f"{messages[-1]['content']}\n\n{turn.text}"}
            else:
                messages.append({"role": role, "content": turn.text})
        body: dict[str, Any] = {"model": self.model, "max_tokens": self.max_tokens, "messages": messages}
        body |= {"system": self.system_prompt or None, "temperature": self.temperature}
        if self._conversation_id:
            body["metadata"] = {"user_id": self._conversation_id}
        return body | {"stream": True} if is_streamed else body

    def with_schema(self, schema: Mapping[str, Any]) -> Self:
        """By a tool that the model must use; what it gives the tool is its answer."""
        tool = {"name": ANSWERS, "description": "Gives the answers.", "input_schema": dict(schema)}
        must = {"tools": [tool], "tool_choice": {"type": "tool", "name": ANSWERS}}
        return self.model_copy(update={"extra": {**self.extra, **must}})

    def read_whole(self, content: Any) -> ModelEvent:
        if message := error_text(content):
            return ModelEvent(error=message)
        blocks = pick(content, "content")
        if not isinstance(blocks, list):
            raise AgentError("the model's answer has no content", remedy="check base_url and model")
        answers = [pick(block, "input") for block in blocks if pick(block, "name") == ANSWERS]
        texts = [str(pick(block, "text") or "") for block in blocks if pick(block, "type") == "text"]
        return ModelEvent(
            text=json.dumps(answers[0], ensure_ascii=False) if answers else "".join(texts),
            role=str(pick(content, "role") or ""),
            model=str(pick(content, "model") or ""),
            finish_reason=str(pick(content, "stop_reason") or ""),
            usage=_usage(pick(content, "usage")),
            is_end=True,
        )

    def read_events(self, lines: Iterator[str]) -> Iterator[ModelEvent]:
        for name, content in sse_events(lines):
            match "whole" if name == "whole" else pick(content, "type"):
                case "whole":
                    yield self.read_whole(content)
                case "error":
                    yield ModelEvent(error=error_text(content) or "an error")
                case "message_start":
                    message = pick(content, "message")
                    yield ModelEvent(
                        role=str(pick(message, "role") or ""),
                        model=str(pick(message, "model") or ""),
                        usage=_usage(pick(message, "usage")),
                    )
                case "content_block_delta":
                    yield ModelEvent(text=str(pick(content, "delta.text") or ""))
                case "message_delta":
                    reason = str(pick(content, "delta.stop_reason") or "")
                    yield ModelEvent(finish_reason=reason, usage=_usage(pick(content, "usage")))
                case "message_stop":
                    yield ModelEvent(is_end=True)

    def key_headers(self, key: str) -> dict[str, str]:
        version = {"anthropic-version": self.version}
        return version | {"x-api-key": key} if key else version


def _usage(usage: Any) -> dict[str, int]:
    """Tokens under the names that all models share."""
    counts = whole_numbers(usage)
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    return {names.get(name, name): n for name, n in counts.items()}
