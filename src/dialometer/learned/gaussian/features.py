"""What the Gaussian process looks at in a dialogue: behaviour, meaning, and the words of each side.

All of it is computed from the dialogue alone, without any rating, so it can be computed once for training and test dialogues.
Personas and other metadata are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.data.rated import clean_dialogue, without_begging
from dialometer.learned.gaussian.behaviour import SeedVectors, behaviour, meaning, seed_sentences
from dialometer.model.dialogue import Dialogue
from dialometer.neural.fast_encoding import packaged_vectors
from dialometer.neural.work import QUIET, Work

Float32s = NDArray[np.float32]
_PART = 1000


def frozen_features(dialogues: Sequence[Dialogue], work: Work = QUIET) -> Float32s:
    """For each dialogue the mean vector of the user's utterances, then that of the agent's; zeros for a side that is silent."""
    texts = list(dict.fromkeys(turn.text for dialogue in dialogues for turn in dialogue.turns))
    place = {text: number for number, text in enumerate(texts)}
    vectors = packaged_vectors(texts, work)
    out = np.zeros((len(dialogues), 2, vectors.shape[1]), dtype=np.float32)
    for row, dialogue in enumerate(dialogues):
        for side, is_agent in enumerate((False, True)):
            spoken = [place[turn.text] for turn in dialogue.turns if (turn.role == "agent") == is_agent]
            if spoken:
                out[row, side] = vectors[spoken].mean(axis=0)
    return out.reshape(len(dialogues), -1)


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureTable:
    """Features of dialogues, one row for each."""

    behaviour: Floats
    behaviour_names: tuple[str, ...]
    meaning: Floats
    meaning_names: tuple[str, ...]
    user_text: tuple[str, ...]
    agent_text: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.user_text)

    def rows(self, numbers: Sequence[int] | NDArray[np.int64]) -> FeatureTable:
        """The features of some of the dialogues."""
        chosen = np.asarray(numbers, dtype=np.int64)
        return FeatureTable(
            self.behaviour[chosen],
            self.behaviour_names,
            self.meaning[chosen],
            self.meaning_names,
            tuple(self.user_text[n] for n in chosen),
            tuple(self.agent_text[n] for n in chosen),
        )


def describe(dialogues: Sequence[Dialogue], work: Work = QUIET, *, has_meaning: bool = True) -> FeatureTable:
    """The features of dialogues; sentence vectors come from the packaged encoder, which meaning alone needs."""
    cleaned = [_cleaned(dialogue) for dialogue in dialogues]
    encoded = _Encoded(cleaned, work) if has_meaning else None
    counted, meant = [], []
    for _, part in work.portions("Describing dialogues", cleaned, _PART):
        counted += [behaviour(dialogue) for dialogue in part]
        meant += [encoded.meaning(dialogue) for dialogue in part] if encoded else []
    return FeatureTable(
        *_table(counted),
        *(_table(meant) if encoded else (np.zeros((len(cleaned), 0)), ())),
        tuple("\n".join(turn.text for turn in dialogue.said_by("user")) for dialogue in cleaned),
        tuple("\n".join(turn.text for turn in dialogue.said_by("agent")) for dialogue in cleaned),
    )


def _cleaned(dialogue: Dialogue) -> Dialogue:
    return without_begging(clean_dialogue(dialogue))


class _Encoded:
    """The vectors of the turns of some dialogues, each distinct text encoded once."""

    def __init__(self, cleaned: Sequence[Dialogue], work: Work) -> None:
        user_seeds, agent_seeds = seed_sentences()
        texts = (turn.text for dialogue in cleaned for turn in dialogue.turns)
        distinct = list(dict.fromkeys([*user_seeds, *agent_seeds, *texts]))
        self.place = {text: number for number, text in enumerate(distinct)}
        self.vectors = packaged_vectors(distinct, work)
        self.seeds = SeedVectors(self._of(user_seeds), self._of(agent_seeds))

    def _of(self, texts: Iterable[str]) -> Floats:
        return self.vectors[np.array([self.place[text] for text in texts], dtype=np.int64)].astype(np.float64)

    def meaning(self, dialogue: Dialogue) -> dict[str, float]:
        return meaning(dialogue, self._of(turn.text for turn in dialogue.turns), self.seeds)


def _table(rows: Sequence[dict[str, float]]) -> tuple[Floats, tuple[str, ...]]:
    names = tuple(rows[0]) if rows else ()
    return np.array([[row[name] for name in names] for row in rows], dtype=np.float64).reshape(len(rows), -1), names
