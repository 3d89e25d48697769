"""Simulated conversations that their users rated: how good each was is known, and which ratings were given without care.

For trying the learned evaluator where no ratings are at hand, and for seeing what it finds: a chat partner makes faults (says
the same again, answers something else, does not understand, says nothing of its own), users differ in patience and in how much
they say about it, honest users rate what they had, lenient or strict, and careless users rate without looking back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import yaml

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Dialogue, Role, Turn

BOTS = {"Ada": 0.10, "Bix": 0.22, "Cleo": 0.36, "Dot": 0.52}
"""The chat partners and the share of their replies that are faulty, on average."""
FAULTS = ("repeated", "off_topic", "not_understood", "hollow")
CARELESS_RATINGS = (0.2, 0.05, 0.1, 0.15, 0.5)
"""Chances of 1 to 5 from users who do not look back: many fives, some ones, little between."""
_DIALOGUES_PER_USER = 3
_FEWEST, _MOST = 4, 9  # replies in a conversation


@dataclass(frozen=True, slots=True)
class UserHabits:
    """How users differ; ratings are on the scale from 1 to 5."""

    careless_share: float = 0.15
    """Share of users whose ratings have nothing to do with the conversation."""
    leniency_sd: float = 0.7
    """Spread of how high users rate, in points."""
    noise_sd: float = 0.9
    """What a user's rating of one conversation adds by chance, in points."""
    best: float = 5.0
    """What an average user gives to a conversation without faults, in points."""
    worst: float = 0.6
    """The same for one of faults only; ratings end at 1."""


@dataclass(frozen=True, slots=True)
class _User:
    name: str
    leniency: float
    frankness: float
    """How often a fault or a good reply is remarked upon."""
    patience: float
    """How many faults in a row it takes to leave."""
    is_careless: bool


@dataclass
class _Talk:
    """A conversation in the making."""

    bot: str
    turns: list[Turn] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """The fault of each reply; empty for a fitting one."""

    def say(self, role: Role, text: str) -> None:
        self.turns.append(Turn("You" if role == "user" else self.bot, text, role))


def simulate_conversations(n_dialogues: int, seed: int, habits: UserHabits | None = None) -> list[Dialogue]:
    """Rated conversations: ``rating``, ``user`` and ``system`` in the metadata as in real files, and under ``truth`` what only
    a simulation knows: ``quality`` (the expected rating of an average user) and ``is_careless``.
    """
    habits = habits or UserHabits()
    if n_dialogues < 1 or not 0 <= habits.careless_share <= 1:
        raise DialometerError("a simulation needs dialogues, and shares from 0 to 1", remedy="check the numbers")
    users = -(-n_dialogues // _DIALOGUES_PER_USER)
    dialogues: list[Dialogue] = []
    for number in range(users):
        rng = np.random.default_rng([seed, number])
        user = _draw_user(number, rng, habits)
        for _ in range(min(_DIALOGUES_PER_USER, n_dialogues - len(dialogues))):
            dialogues.append(_rated(len(dialogues) + 1, user, _talk(user, rng), habits, rng))
    return dialogues


def _draw_user(number: int, rng: np.random.Generator, habits: UserHabits) -> _User:
    return _User(
        f"user-{number + 1:03d}",
        float(rng.normal(0, habits.leniency_sd)),
        float(rng.beta(1.0, 3.0)),
        float(1 + rng.gamma(3.0, 0.8)),
        bool(rng.random() < habits.careless_share),
    )


def _talk(user: _User, rng: np.random.Generator) -> _Talk:
    bot = list(BOTS)[int(rng.integers(len(BOTS)))]
    texts = _texts()
    topics = list(texts["exchanges"])
    topic = topics[int(rng.integers(len(topics)))]
    exchanges = texts["exchanges"][topic]
    fault_rate = float(np.clip(BOTS[bot] + rng.normal(0, 0.16), 0.0, 0.95))
    talk = _Talk(bot)
    talk.say("user", _one(texts["greetings"], rng))
    talk.say("agent", _one(texts["greeted"], rng))
    order = rng.permutation(len(exchanges))
    n_wanted = int(rng.integers(_FEWEST, min(_MOST, len(exchanges)) + 1))
    n_in_a_row, remark = 0, ""
    for number in order[:n_wanted]:
        exchange = exchanges[int(number)]
        talk.say("user", f"{remark} {exchange['said']}".strip())
        fault = FAULTS[int(rng.integers(len(FAULTS)))] if rng.random() < fault_rate else ""
        talk.say("agent", _reply(talk, topic, fault, exchange["fitting"], rng))
        talk.faults.append(fault)
        n_in_a_row = n_in_a_row + 1 if fault else 0
        is_remarked = rng.random() < user.frankness
        remark = _one(texts["complaints"][fault] if fault else texts["praise"], rng) if is_remarked else ""
        if n_in_a_row > user.patience:
            break
    if rng.random() < 0.7:
        share = _fault_share(talk.faults)
        mood = "content" if share < 0.25 else "annoyed" if share > 0.55 else "neutral"
        talk.say("user", _one(texts["goodbyes"][mood if rng.random() < user.frankness else "neutral"], rng))
    return talk


def _reply(talk: _Talk, topic: str, fault: str, fitting: Sequence[str], rng: np.random.Generator) -> str:
    texts = _texts()
    if fault == "repeated":
        earlier = [turn.text for turn in talk.turns if turn.role == "agent"]
        return _one(earlier, rng)
    if fault == "off_topic":
        other_topics = [name for name in texts["exchanges"] if name != topic]
        exchanges = texts["exchanges"][other_topics[int(rng.integers(len(other_topics)))]]
        return _one(exchanges[int(rng.integers(len(exchanges)))]["fitting"], rng)
    if fault == "not_understood":
        return _one(texts["not_understood"], rng)
    return _one(texts["hollow"] if fault else fitting, rng)


def _fault_share(faults: list[str]) -> float:
    """Share of faulty replies; later ones weigh more, since people judge by the end."""
    weights = np.linspace(1.0, 2.0, len(faults))
    return float(weights @ np.array([bool(fault) for fault in faults]) / weights.sum())


def _rated(number: int, user: _User, talk: _Talk, habits: UserHabits, rng: np.random.Generator) -> Dialogue:
    quality = habits.best + (habits.worst - habits.best) * _fault_share(talk.faults)
    felt = quality + user.leniency + rng.normal(0, habits.noise_sd)
    drawn = int(rng.choice(5, p=CARELESS_RATINGS)) + 1
    rating = drawn if user.is_careless else int(np.clip(round(felt), 1, 5))
    truth = {"quality": round(max(1.0, quality), 3), "is_careless": user.is_careless}
    metadata = {"rating": rating, "user": user.name, "system": talk.bot, "truth": truth}
    return Dialogue(f"talk-{number:04d}", tuple(talk.turns), metadata)


def _one(texts: Sequence[str], rng: np.random.Generator) -> str:
    return texts[int(rng.integers(len(texts)))]


@cache
def _texts() -> dict[str, Any]:
    text = files("dialometer.simulate").joinpath("conversation_texts.yaml").read_text(encoding="utf-8")
    texts: dict[str, Any] = yaml.safe_load(text)
    return texts
