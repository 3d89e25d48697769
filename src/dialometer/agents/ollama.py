"""An agent behind Ollama, which runs language models on one's own machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from dialometer.agents import AGENTS
from dialometer.agents.calling import is_address, parse_json, pick
from dialometer.agents.chat_model import ChatModel, ModelEvent, error_text, whole_numbers
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn


@AGENTS.register("ollama")
class Ollama(ChatModel):
    """A model that ``ollama`` serves. ``options`` are its settings of a model, such as ``num_ctx`` or ``top_p``."""

    base_url: Annotated[str, AfterValidator(is_address)] = Field(
        default="http://127.0.0.1:11434", description="Where it listens."
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Further settings of the model.")

    @property
    def endpoint(self) -> str:
        return f"{self.base_url.rstrip('/')}/api/chat"

    def request(self, history: Sequence[Turn], seed: int, *, is_streamed: bool) -> dict[str, Any]:
        messages = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        messages += [{"role": "user" if turn.role == "user" else "assistant", "content": turn.text} for turn in history]
        settings = {"seed": seed, "temperature": self.temperature, "num_predict": self.max_tokens, **self.options}
        options = {name: value for name, value in settings.items() if value is not None}
        return {"model": self.model, "messages": messages, "options": options, "stream": is_streamed}

    def with_schema(self, schema: Mapping[str, Any]) -> Self:
        return self.model_copy(update={"extra": {**self.extra, "format": dict(schema)}})

    def read_whole(self, content: Any) -> ModelEvent:
        if message := error_text(content):
            return ModelEvent(error=message)
        if pick(content, "message") is None:
            raise AgentError("the model's answer has no message", remedy="check base_url and model")
        is_done = pick(content, "done") is True
        counts = {
            "prompt_tokens": pick(content, "prompt_eval_count"),
            "completion_tokens": pick(content, "eval_count"),
        }
        return ModelEvent(
            text=str(pick(content, "message.content") or ""),
            role=str(pick(content, "message.role") or ""),
            model=str(pick(content, "model") or ""),
            finish_reason=str(pick(content, "done_reason") or "stop") if is_done else "",
            usage=whole_numbers(counts),
            is_end=is_done,
        )

    def read_events(self, lines: Iterator[str]) -> Iterator[ModelEvent]:
        for line in lines:
            if line.strip():
                yield self.read_whole(parse_json(line))

    def key_headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}
