"""An agent behind an endpoint that speaks OpenAI's chat completions, as many servers for language models do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from dialometer.agents import AGENTS
from dialometer.agents.calling import is_address, pick
from dialometer.agents.chat_model import ChatModel, ModelEvent, error_text, sse_events, whole_numbers
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn


@AGENTS.register("openai")
class OpenAI(ChatModel):
    """A chat model. Its key is read from the environment variable ``api_key_env``; your own server needs none."""

    base_url: Annotated[str, AfterValidator(is_address)] = Field(description="Address up to /v1.")
    api_key_env: str = Field(default="OPENAI_API_KEY", description="Name of the environment variable with the key.")

    @property
    def endpoint(self) -> str:
        return f"{self.base_url.rstrip('/')}/chat/completions"

    def request(self, history: Sequence[Turn], seed: int, *, is_streamed: bool) -> dict[str, Any]:
        messages = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        messages += [{"role": "user" if turn.role == "user" else "assistant", "content": turn.text} for turn in history]
        body: dict[str, Any] = {"model": self.model, "messages": messages, "seed": seed}
        body |= {"temperature": self.temperature, "max_tokens": self.max_tokens}
        if self._conversation_id:
            body["user"] = self._conversation_id
        if is_streamed:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def with_schema(self, schema: Mapping[str, Any]) -> Self:
        form = {"name": "answers", "schema": dict(schema), "strict": True}
        return self.model_copy(
            update={"extra": {**self.extra, "response_format": {"type": "json_schema", "json_schema": form}}}
        )

    def read_whole(self, content: Any) -> ModelEvent:
        if (message := error_text(content)) and not pick(content, "choices"):
            return ModelEvent(error=message)
        choice = pick(content, "choices.0")
        if choice is None:
            raise AgentError("the model's answer has no choices", remedy="check base_url and model")
        return self._piece(content, "message", is_end=True)

    def read_events(self, lines: Iterator[str]) -> Iterator[ModelEvent]:
        is_finished = False
        for name, content in sse_events(lines):
            if content is None:  # [DONE]
                yield ModelEvent(is_end=True)
            elif name == "whole":
                yield self.read_whole(content)
            elif message := error_text(content):
                yield ModelEvent(error=message)
            else:
                piece = self._piece(content, "delta", is_end=False)
                is_finished = is_finished or bool(piece.finish_reason)
                yield piece
        if is_finished:  # some servers end without [DONE]
            yield ModelEvent(is_end=True)

    @staticmethod
    def _piece(content: Any, part: str, *, is_end: bool) -> ModelEvent:
        text = pick(content, f"choices.0.{part}.content")
        return ModelEvent(
            text=text if isinstance(text, str) else "",
            role=str(pick(content, f"choices.0.{part}.role") or ""),
            model=str(pick(content, "model") or ""),
            finish_reason=str(pick(content, "choices.0.finish_reason") or ""),
            usage=whole_numbers(pick(content, "usage")),
            refusal=" ".join(str(pick(content, f"choices.0.{part}.refusal") or "").split())[:300],
            is_end=is_end,
        )

    def key_headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}
