"""Requests to a language model: replies are cached, so that an interrupted run asks nothing twice; every request is logged."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from dialometer.agents.calling import EMPTY
from dialometer.agents.chat_model import ChatModel
from dialometer.errors import AgentError, DialometerError
from dialometer.model.dialogue import Turn

CACHE_FILE, LOG_FILE = "replies.jsonl", "requests.jsonl"
DECIDE_THE_REPLY = {"base_url", "model", "temperature", "max_tokens", "api_key_env", "extra"}
"""Options of a model that, with the prompt, make a reply another one."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's reply; ``is_cached`` says that nothing was sent for it."""

    text: str
    n_tokens_in: int | None
    n_tokens_out: int | None
    is_cached: bool


@dataclass
class Usage:
    """What a run has used so far. Tokens that a server does not report are counted as unknown, not as none."""

    n_requests: int = 0
    n_cached: int = 0
    n_unusable: int = 0
    n_tokens_in: int = 0
    n_tokens_out: int = 0
    n_untold: int = 0

    def cost(self, price_in: float, price_out: float) -> float:
        """In the currency of the prices, which are per million tokens."""
        return (self.n_tokens_in * price_in + self.n_tokens_out * price_out) / 1e6


class ReplyCache:
    """Replies by what was asked, in a file that only grows; a line cut off by a crash is skipped."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._writing = Lock()
        self._known: dict[str, dict[str, Any]] = {}
        if file.exists():
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    entry = json.loads(line)
                    self._known[entry["key"]] = entry
                except (ValueError, KeyError, TypeError, RecursionError):
                    continue

    def get(self, key: str) -> dict[str, Any] | None:
        """What was answered to this, or None."""
        return self._known.get(key)

    def keep(self, key: str, entry: dict[str, Any]) -> None:
        """Keep a reply; it is on disk when this returns."""
        with self._writing:
            self._known[key] = {"key": key, **entry}
            append(self._file, self._known[key])


def append(file: Path, entry: dict[str, Any]) -> None:
    """One line of JSON at the end of a file."""
    try:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(entry, ensure_ascii=False) + "\n")
    except OSError as error:
        raise DialometerError(f"cannot be written: {error.strerror}", where=str(file)) from error


@dataclass
class ModelClient:
    """One model behind an endpoint. ``folder`` keeps the replies and the log; ``seed`` sets raters of one model apart."""

    model: ChatModel
    folder: Path
    spent: Usage = field(default_factory=Usage)
    price_in: float = 0.0
    price_out: float = 0.0
    budget: float | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._replies = ReplyCache(self.folder / CACHE_FILE)
        self._counting = Lock()

    def ask(
        self,
        system: str,
        talk: Sequence[Turn],
        *,
        seed: int,
        about: dict[str, Any],
        schema: Mapping[str, Any] | None = None,
    ) -> ModelReply:
        """The model's next turn. ``about`` says in the log whose screen it was; ``schema`` is the form of JSON it is held to."""
        model = self.model if schema is None else self.model.held_to(schema)
        key = self._key(model, system, talk, seed)
        known = self._replies.get(key)
        began = time.monotonic()
        if known is None:
            self._check_budget()
            known = self._send(model, system, talk, seed)
            self._replies.keep(key, known)
            is_cached = False
        else:
            is_cached = True
        reply = ModelReply(known["text"], known["n_tokens_in"], known["n_tokens_out"], is_cached)
        self._log(reply, about, time.monotonic() - began)
        return reply

    def _check_budget(self) -> None:
        cost = self.spent.cost(self.price_in, self.price_out)
        if self.budget is not None and cost >= self.budget:
            raise AgentError(
                f"the budget of this run is spent: {cost:,.4f} of {self.budget:g}",
                remedy="run the command again: it continues, and what was answered is not asked again",
            )

    def _send(self, model: ChatModel, system: str, talk: Sequence[Turn], seed: int) -> dict[str, Any]:
        agent = model.model_copy(update={"system_prompt": system})
        try:
            reply = agent.reply(talk, seed=seed)
        except AgentError as error:
            if error.message != EMPTY:
                raise
            return {"text": "", "n_tokens_in": None, "n_tokens_out": None}
        usage = reply.details.get("usage") or {}
        return {
            "text": reply.text,
            "n_tokens_in": usage.get("prompt_tokens"),
            "n_tokens_out": usage.get("completion_tokens"),
        }

    def note(self, name: str, text: str) -> None:
        """Keep a text of the run beside the replies, for when it is resumed."""
        if self.noted(name) != text:
            self._replies.keep(f"note {name}", {"text": text})

    def noted(self, name: str) -> str | None:
        """A text that was kept, or None."""
        kept = self._replies.get(f"note {name}")
        return None if kept is None else str(kept["text"])

    @staticmethod
    def _key(model: ChatModel, system: str, talk: Sequence[Turn], seed: int) -> str:
        settings = model.model_dump(include=DECIDE_THE_REPLY)
        asked = [settings, system, [(turn.role, turn.text) for turn in talk], seed]
        return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def count_unusable(self) -> None:
        """Count an answer that could not be used."""
        with self._counting:
            self.spent.n_unusable += 1

    def _log(self, reply: ModelReply, about: dict[str, Any], duration_s: float) -> None:
        spent = self.spent
        with self._counting:
            spent.n_cached += reply.is_cached
            if not reply.is_cached:
                spent.n_requests += 1
                spent.n_tokens_in += reply.n_tokens_in or 0
                spent.n_tokens_out += reply.n_tokens_out or 0
                spent.n_untold += reply.n_tokens_in is None or reply.n_tokens_out is None
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "model": self.model.model,
            **about,
            "is_cached": reply.is_cached,
            "tokens_in": reply.n_tokens_in,
            "tokens_out": reply.n_tokens_out,
            "duration_s": round(duration_s, 3),
        }
        with self._counting:
            append(self.folder / LOG_FILE, entry)
