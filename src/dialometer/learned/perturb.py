"""Stage 1: fake dialogues whose flow is broken at one place (Liang et al. 2020, section 5.1).

Each dialogue gives two fakes: one with a user utterance replaced by a random one of the training corpus, one with a system
utterance replaced. The paper does not say whether the replacement may be the same text again or come from the same dialogue;
here it may be neither, since such a fake would be no worse than the real dialogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dialometer.errors import NotEnoughData
from dialometer.model.dialogue import Dialogue, Role

REPLACED: tuple[Role, ...] = ("user", "agent")
_N_TRIES = 200


def fake_dialogues(dialogues: Sequence[Dialogue], rng: np.random.Generator) -> list[Dialogue]:
    """Two fakes of each dialogue in turn: a user utterance replaced, then a system utterance."""
    said = {
        role: [
            (number, turn.text)
            for number, dialogue in enumerate(dialogues)
            for turn in dialogue.turns
            if turn.role == role
        ]
        for role in REPLACED
    }
    return [
        _with_replaced(dialogue, number, role, said[role], rng)
        for number, dialogue in enumerate(dialogues)
        for role in REPLACED
    ]


def real_fake_pairs(n_dialogues: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Numbers of the real and the fake dialogue of each pair, where the fakes follow all the real ones."""
    real = np.repeat(np.arange(n_dialogues), len(REPLACED))
    return np.column_stack([real, n_dialogues + np.arange(len(real))])


def _with_replaced(
    dialogue: Dialogue, number: int, role: Role, said: list[tuple[int, str]], rng: np.random.Generator
) -> Dialogue:
    places = [place for place, turn in enumerate(dialogue.turns) if turn.role == role]
    if not places:
        raise NotEnoughData(f"dialogue '{dialogue.id}' has no turn by the {role}", remedy="leave such dialogues out")
    place = int(rng.choice(places))
    old = dialogue.turns[place]
    for _ in range(_N_TRIES):
        source, text = said[int(rng.integers(len(said)))]
        if source != number and text != old.text:
            turns = (*dialogue.turns[:place], replace(old, text=text), *dialogue.turns[place + 1 :])
            return replace(dialogue, id=f"{dialogue.id}~{role}", turns=turns)
    raise NotEnoughData(
        f"no other text by the {role} was found to break dialogue '{dialogue.id}' with", remedy="give more dialogues"
    )
