"""Conversations with an avatar, kept in memory as long as people talk: nothing is stored, and old ones make room for new."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from dialometer.errors import FlowError
from dialometer.model.dialogue import Turn, clean_text
from dialometer.retrieval.avatar import Avatar, Spoken

MAX_TALKS = 1000
MAX_EXCHANGES = 100
MAX_MESSAGE_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the visitor said and what the avatar replied."""

    text: str
    spoken: Spoken


@dataclass
class Talk:
    """One visitor's conversation. ``threshold`` is the visitor's own choice, None for the avatar's."""

    exchanges: list[Exchange] = field(default_factory=list)
    threshold: float | None = None
    lock: Lock = field(default_factory=Lock)


class Talks:
    """All conversations by the secret in the visitor's cookie. One begins with its first message, not with a look at the page."""

    def __init__(self, avatar: Avatar) -> None:
        self.avatar = avatar
        self._talks: OrderedDict[str, Talk] = OrderedDict()
        self._lock = Lock()

    def look(self, secret: str) -> Talk:
        """The conversation so far; an empty one where nothing was said, or so much elsewhere that it had to go."""
        with self._lock:
            return self._talks.get(secret) or Talk()

    def open(self, secret: str) -> Talk:
        """The conversation to go on with; the one unused for longest makes room."""
        with self._lock:
            talk = self._talks.setdefault(secret, Talk())
            self._talks.move_to_end(secret)
            while len(self._talks) > MAX_TALKS:
                self._talks.popitem(last=False)
            return talk

    def forget(self, secret: str) -> None:
        """Ends a conversation."""
        with self._lock:
            self._talks.pop(secret, None)

    def say(self, secret: str, text: str) -> Exchange:
        """One message and its reply; messages of one visitor are answered one after the other."""
        try:
            message = clean_text(text)
        except ValueError as error:
            raise FlowError("the message holds characters that cannot be shown", remedy="remove them") from error
        if not message or len(message) > MAX_MESSAGE_LENGTH:
            remedy = "shorten it" if message else "write something"
            raise FlowError(f"a message has 1 to {MAX_MESSAGE_LENGTH} characters", remedy=remedy)
        talk = self.open(secret)
        with talk.lock:
            if len(talk.exchanges) >= MAX_EXCHANGES:
                raise FlowError("this conversation is long enough", remedy="start over")
            history = [turn for one in talk.exchanges for turn in _turns(one)]
            spoken = self.avatar.reply([*history, Turn("You", message, "user")], threshold=talk.threshold)
            exchange = Exchange(message, spoken)
            talk.exchanges.append(exchange)
        return exchange


def _turns(exchange: Exchange) -> tuple[Turn, Turn]:
    return Turn("You", exchange.text, "user"), Turn("Avatar", exchange.spoken.text, "agent")
