"""Lets studies talk to trained bots: the agent ``generator`` learns here how a bot is loaded and made to speak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialometer.agents.generator import connect
from dialometer.model.dialogue import Turn

if TYPE_CHECKING:
    from dialometer.generators.bot import Bot


class _TalkingBot:
    """A bot in a conversation that may grow longer than its window: it reads the end of it."""

    def __init__(self, bot: Bot) -> None:
        self.bot = bot

    def say(self, history: Sequence[Turn], options: Mapping[str, Any], seed: int) -> tuple[str, Mapping[str, Any]]:
        from dialometer.generators.decoding import Decoding  # noqa: PLC0415 - torch only where a bot speaks

        decoding = Decoding(**options)
        # Each turn of a drawn conversation has its own seed, or a bot would say the same thing again and again.
        drawn = seed * 1000 + len(history)
        spoken = self.bot.respond([[turn.text for turn in history]], decoding, seeds=[drawn], is_cut=True)[0]
        checkpoint = self.bot.checkpoint
        details = {
            "model": checkpoint.name,
            "bot_sha256": checkpoint.sha256,
            "decoding": decoding.as_json(),
            "seed": drawn,
            "log_prob": round(spoken.log_prob, 4),
            "n_turns_read": spoken.n_turns_read,
        }
        return spoken.text, details


def _load(file: Path, device: str) -> _TalkingBot:
    from dialometer.generators.bot import Bot  # noqa: PLC0415

    return _TalkingBot(Bot.load(file, device))


def connect_bots() -> None:
    """To be called by whoever builds agents; loads nothing yet."""
    connect(_load)
