"""An agent behind an address of its own: the conversation goes out as JSON, the reply comes back as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dialometer.agents import AGENTS
from dialometer.agents.calling import (
    Caller,
    WrongOption,
    as_reply,
    is_address,
    keys_of,
    last_message,
    pick,
    shown_address,
)
from dialometer.agents.interface import Reply
from dialometer.model.dialogue import Turn


@AGENTS.register("http")
class Http(Caller):
    """Posts ``{"messages": [{"role", "text"}, …], "text": the last message, "seed": …}`` and reads ``reply_field``.

    A system that remembers conversations knows them by ``conversation_id``.
    """

    url: Annotated[str, AfterValidator(is_address)] = Field(description="Where messages are posted to.")
    reply_field: str = Field(default="reply", min_length=1, description="Where the response is, such as output.0.text.")
    extra: dict[str, Any] = Field(default_factory=dict, description="Further fields of every request.")

    @property
    def address(self) -> tuple[str, str]:
        return "url", self.url

    def reply(self, history: Sequence[Turn], *, seed: int = 0) -> Reply:
        messages = [{"role": "user" if turn.role == "user" else "agent", "text": turn.text} for turn in history]
        body = {**self.extra, "messages": messages, "text": last_message(history), "seed": seed}
        if self._conversation_id:
            body["conversation_id"] = self._conversation_id
        content, details = self.ask(self.url, body)
        text = pick(content, self.reply_field)
        if not isinstance(text, str):
            raise WrongOption(
                "reply_field",
                f"the agent's answer holds no text at reply_field '{self.reply_field}'; "
                f"it has {', '.join(keys_of(content)) or 'no keys'}",
                where=shown_address(self.url),
                remedy="set reply_field to where the response is, such as output.0.text",
            )
        return as_reply(text, details)
