"""Requests to a language model: replies are kept, so that an interrupted run asks nothing twice; every request is logged.

A reply is known by what was asked: model, settings, prompt and the number of the sample. The schema that holds a model to the form
of the answers is not part of it, since an endpoint may refuse the schema, and the same question is then asked without.
"""

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

from dialometer.agents.calling import printable
from dialometer.agents.chat_model import HELD_BACK, ChatModel, ModelEvent
from dialometer.agents.tries import RequestRefused
from dialometer.errors import AgentError, DialometerError
from dialometer.model.dialogue import Turn

CACHE_FILE, LOG_FILE = "replies.jsonl", "requests.jsonl"
DECIDE_THE_REPLY = {"base_url", "model", "temperature", "max_tokens", "extra"}
"""Options of a model that, with the prompt, make a reply another one."""
MAY_MEAN_THE_SCHEMA = (400, 404, 415, 422, 501)
"""Statuses with which endpoints refuse a schema."""
CUT_OFF = ("length", "max_tokens")
"""Why a reply ended that was not complete."""


class BudgetSpent(AgentError):
    """The run has cost what it may."""


class NotAnswered(AgentError):
    """Nothing is sent in this run, and the answer is not there yet."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's reply; ``is_cached`` says that nothing was sent for it, ``refusal`` why it holds no answer."""

    text: str
    n_tokens_in: int | None
    n_tokens_out: int | None
    is_cached: bool
    refusal: str = ""
    is_cut_off: bool = False
    at_ms: int = 0
    duration_s: float = 0.0


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
            content = file.read_text(encoding="utf-8", errors="replace")
            for line in content.splitlines():
                try:
                    entry = json.loads(line)
                    self._known[entry["key"]] = entry
                except (ValueError, KeyError, TypeError, RecursionError):
                    continue
            if content and not content.endswith("\n"):
                with file.open("a", encoding="utf-8") as opened:
                    opened.write("\n")  # what comes next must not be joined to the line that was cut off

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
    """One model behind an endpoint. ``folder`` keeps the replies and the log; ``seed`` sets samples of one model apart."""

    model: ChatModel
    folder: Path
    spent: Usage = field(default_factory=Usage)
    price_in: float = 0.0
    price_out: float = 0.0
    budget: float | None = None
    takes_schema: bool | None = None
    """Whether the endpoint is given a schema of the answers; None: it is tried."""
    schema_refused: str = ""
    """The endpoint's words where it refused the schema and was asked without."""
    is_offline: bool = False
    """Whether nothing is sent: what is not known yet is gathered in ``unsent``."""
    unsent: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Bodies of requests that were not sent, by the key of their answer."""

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
        is_fresh: bool = False,
    ) -> ModelReply:
        """The model's next turn. ``about`` says in the log whose screen it was; ``schema`` is the form of JSON it is held to.

        With ``is_fresh`` it is asked although an answer is known, which is replaced.
        """
        key = self._key(system, talk, seed)
        known = None if is_fresh else self._replies.get(key)
        is_cached = known is not None
        if known is None:
            model = self.model.model_copy(update={"system_prompt": system})
            if self.is_offline:
                held = model if schema is None or self.takes_schema is False else model.with_schema(schema)
                self.unsent[key] = held.body(talk, seed, is_streamed=False)
                raise NotAnswered("not answered yet")
            self._check_budget()
            known = self._send(model, talk, seed, schema)
            self._replies.keep(key, known)
        reply = _reply(known, is_cached=is_cached)
        self._log(reply, about)
        return reply

    def _check_budget(self) -> None:
        cost = self.spent.cost(self.price_in, self.price_out)
        if self.budget is not None and cost >= self.budget:
            raise BudgetSpent(
                f"the budget of this run is spent: {cost:,.4f} of {self.budget:g}",
                remedy="run the command again: it continues, and what was answered is not asked again",
            )

    def _send(
        self, model: ChatModel, talk: Sequence[Turn], seed: int, schema: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Asks with the schema where the endpoint takes it. One that refuses it is asked without from then on."""
        refused: RequestRefused | None = None
        if schema is not None and self.takes_schema is not False:
            try:
                return _call(model.with_schema(schema), talk, seed)
            except RequestRefused as error:
                if self.takes_schema or error.status not in MAY_MEAN_THE_SCHEMA:
                    raise
                refused = error
        entry = _call(model, talk, seed)
        if refused is not None:
            self.takes_schema, self.schema_refused = False, refused.message
        return entry

    def keep(self, key: str, content: Any) -> None:
        """Keep an answer that came another way, in the provider's form."""
        self._replies.keep(key, _entry(self.model.read_whole(content), 0.0))

    def note(self, name: str, text: str) -> None:
        """Keep a text of the run beside the replies, for when it is resumed."""
        if self.noted(name) != text:
            self._replies.keep(f"note {name}", {"text": text})

    def noted(self, name: str) -> str | None:
        """A text that was kept, or None."""
        kept = self._replies.get(f"note {name}")
        return None if kept is None else str(kept["text"])

    def _key(self, system: str, talk: Sequence[Turn], seed: int) -> str:
        settings = self.model.model_dump(include=DECIDE_THE_REPLY)
        parts = [settings, system, [(turn.role, turn.text) for turn in talk], seed]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def count_unusable(self) -> None:
        """Count an answer that could not be used."""
        with self._counting:
            self.spent.n_unusable += 1

    def _log(self, reply: ModelReply, about: dict[str, Any]) -> None:
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
            "duration_s": reply.duration_s,
        }
        with self._counting:
            append(self.folder / LOG_FILE, entry)


def _call(model: ChatModel, talk: Sequence[Turn], seed: int) -> dict[str, Any]:
    content, times = model.ask(model.endpoint, model.body(talk, seed, is_streamed=False))
    return _entry(model.read_whole(content), float(times["latency_s"]))


def _entry(event: ModelEvent, duration_s: float) -> dict[str, Any]:
    """A reply as it is kept. An empty one, or one that was held back, is a refusal with its reason."""
    if event.error:
        raise AgentError(f"the model's provider reports: {event.error}", remedy="see its documentation")
    text = printable(event.text).strip()
    refusal = event.refusal or ("the provider held the response back" if event.finish_reason in HELD_BACK else "")
    is_cut_off = event.finish_reason in CUT_OFF
    if not text and not refusal and not is_cut_off:
        refusal = "the response is empty"
    entry: dict[str, Any] = {
        "text": text,
        "n_tokens_in": event.usage.get("prompt_tokens"),
        "n_tokens_out": event.usage.get("completion_tokens"),
        "at_ms": int(time.time() * 1000),
        "duration_s": duration_s,
    }
    return entry | ({"refusal": refusal} if refusal else {}) | ({"is_cut_off": True} if is_cut_off else {})


def _reply(entry: Mapping[str, Any], *, is_cached: bool) -> ModelReply:
    return ModelReply(
        entry["text"],
        entry["n_tokens_in"],
        entry["n_tokens_out"],
        is_cached,
        entry.get("refusal", ""),
        entry.get("is_cut_off", False),
        entry.get("at_ms", 0),
        entry.get("duration_s", 0.0),
    )
