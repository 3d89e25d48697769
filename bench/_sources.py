"""Rated dialogues of several kinds, all from public data: what evaluators are carried over between, and large sets.

ConvAI2 and CRSArena-Dial were rated by the people who talked. Simulated conversations are those of ``dialometer learn
simulate``. Self-dialogues (one person wrote both sides, so they flow) get faults in the turns of one side, and a made-up user
rates them by the share of faults, with a habit of their own and noise: real texts in any number, whose truth is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from dialometer.learned.data.rated import RatedDialogue, clean, read_rated
from dialometer.model.dialogue import Dialogue, Role, Turn
from dialometer.readers import read_dialogues
from dialometer.simulate.rated_conversations import simulate_conversations

DATA = Path(os.environ.get("DIALOMETER_DATA", "data"))
FELT = {"satisfied": 5.0, "neutral": 3.0, "frustrated": 1.0}
DULL = ("I don't know.", "Yes.", "Okay.", "That is nice.", "I agree.")
N_TURNS = 14
FEWEST_TURNS = 12
_USERS_DIALOGUES = 4
_BEST, _WORST, _HABIT, _NOISE = 4.8, 1.2, 0.5, 0.7  # points


def convai2() -> list[RatedDialogue]:
    """Chats with bots, each rated by its user; four days."""
    return read_rated(DATA / "convai2")


def recommenders() -> list[RatedDialogue]:
    """Chats with movie recommenders, rated by how their users felt in the end."""
    chats = read_dialogues(DATA / "crs_arena" / "crs_arena_dial_open.json.gz")
    rated = [
        RatedDialogue(chat, FELT[chat.metadata["sentiment"]], chat.id.rpartition("_")[2], "crs_arena", None)
        for chat in chats
        if chat.metadata["sentiment"] in FELT
    ]
    return list(clean(rated).rated)


def simulated(n: int, seed: int) -> list[RatedDialogue]:
    """Simulated conversations with the ratings of their simulated users."""
    talks = simulate_conversations(n, seed)
    rated = (
        RatedDialogue(t, float(t.metadata["rating"]), t.metadata["user"], "simulated", t.metadata["system"])
        for t in talks
    )
    return list(clean(rated).rated)


@cache
def self_dialogues() -> list[list[str]]:
    """The turns of the self-dialogues that are long enough."""
    dialogues = read_dialogues(DATA / "self_dialogue" / "dialogues.jsonl.gz")
    return [[turn.text for turn in one.turns] for one in dialogues if len(one.turns) >= FEWEST_TURNS]


def planted(n: int, seed: int, first: int = 0, stop: int | None = None) -> list[RatedDialogue]:
    """Self-dialogues of the given range with faults in some agent turns, each text used as often as ``n`` needs, faults drawn anew."""
    return list(each_planted(n, seed, first, stop))


def each_planted(n: int, seed: int, first: int = 0, stop: int | None = None) -> Iterator[RatedDialogue]:
    """The same, one after the other."""
    rng = np.random.default_rng(seed)
    talks = self_dialogues()[first:stop]
    texts = [text for talk in talks[:6000] for text in talk]
    for number in range(n):
        if number % _USERS_DIALOGUES == 0:
            habit = rng.normal() * _HABIT
        said = talks[number % len(talks)][:N_TURNS]
        share = rng.random()
        turns = with_faults(said, share, texts, rng)
        felt = _BEST + (_WORST - _BEST) * share + habit + rng.normal() * _NOISE
        rating = float(np.clip(np.round(felt), 1, 5))
        name = f"self-{seed}-{number}"
        yield RatedDialogue(dialogue(name, turns), rating, f"u{number // _USERS_DIALOGUES}", "planted", None)


def with_faults(said: Sequence[str], share: float, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Each agent turn is faulty with this chance: of another dialogue, said before, or dull."""
    turns = list(said)
    for place in range(1, len(turns), 2):
        if rng.random() >= share:
            continue
        kind = int(rng.integers(3))
        if kind == 0:
            turns[place] = texts[int(rng.integers(len(texts)))]
        elif kind == 1 and place > 1:
            turns[place] = turns[place - 2]
        else:
            turns[place] = DULL[int(rng.integers(len(DULL)))]
    return turns


def dialogue(name: str, said: Sequence[str]) -> Dialogue:
    """Texts as a dialogue that the user begins."""
    roles: tuple[Role, Role] = ("user", "agent")
    turns = [Turn(speaker=roles[n % 2], text=text, role=roles[n % 2]) for n, text in enumerate(said)]
    return Dialogue(id=name, turns=tuple(turns))
