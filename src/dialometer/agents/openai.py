"""An agent behind an endpoint that speaks OpenAI's chat completions, as many servers for language models do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import httpx
from pydantic import AfterValidator, Field

from dialometer.agents import AGENTS
from dialometer.agents.access import AgentAccess, variable_remedy
from dialometer.agents.calling import Caller, as_reply, is_address, pick
from dialometer.agents.interface import Reply
from dialometer.errors import AgentError
from dialometer.model.dialogue import Turn


@AGENTS.register("openai")
class OpenAI(Caller):
    """A chat model. Its key is read from the environment variable ``api_key_env``; a server of one's own needs none."""

    base_url: Annotated[str, AfterValidator(is_address)] = Field(description="Address up to /v1.")
    model: str = Field(min_length=1)
    system_prompt: str = Field(default="", description="Instructions for the model before the conversation.")
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    api_key_env: str = Field(default="OPENAI_API_KEY", description="Name of the environment variable with the key.")
    extra: dict[str, Any] = Field(default_factory=dict, description="Further fields of every request.")

    @property
    def address(self) -> tuple[str, str]:
        return "base_url", self.base_url

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        messages = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        messages += [{"role": "user" if turn.role == "user" else "assistant", "content": turn.text} for turn in history]
        body: dict[str, Any] = {"model": self.model, "messages": messages, "seed": seed, **self.extra}
        for name in ("temperature", "max_tokens"):
            if getattr(self, name) is not None:
                body[name] = getattr(self, name)
        content, details = self.ask(f"{self.base_url.rstrip('/')}/chat/completions", body)
        choice = pick(content, "choices.0")
        if choice is None:
            raise AgentError("the model's answer has no choices", remedy="check base_url and model")
        reason = pick(choice, "finish_reason")
        if reason == "content_filter":
            raise AgentError("the model's provider held the response back", remedy="change the prompt or the model")
        usage = pick(content, "usage")
        details |= {"model": pick(content, "model"), "finish_reason": reason}
        if isinstance(usage, dict):
            details["usage"] = {key: value for key, value in usage.items() if isinstance(value, int)}
        return as_reply(pick(choice, "message.content"), details)

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
        is_allowed = self._access.may_read(self.api_key_env, host)
        if not is_allowed and self._names_its_key:
            self._access.variable(self.api_key_env, host)  # raises
        key = os.environ.get(self.api_key_env, "") if is_allowed else ""
        return {"Authorization": f"Bearer {key}"} if key else {}
