"""What the Gaussian process looks at in a dialogue: behaviour, meaning, and the words of each side.

All of it is computed from the dialogue alone, without any rating, so it can be computed once for training and test dialogues.
Personas and other metadata are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.data.rated import clean_dialogue, without_begging
from dialometer.learned.gaussian.behaviour import SeedVectors, behaviour, meaning, pooled, seed_sentences
from dialometer.model.dialogue import Dialogue
from dialometer.neural.fast_encoding import packaged_vectors
from dialometer.neural.work import QUIET, Work

Float32s = NDArray[np.float32]


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
    pooled: Floats
    """Means of the turns' vectors, see :func:`dialometer.learned.gaussian.behaviour.pooled`."""
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
            self.pooled[chosen],
            tuple(self.user_text[n] for n in chosen),
            tuple(self.agent_text[n] for n in chosen),
        )


def describe(dialogues: Sequence[Dialogue], work: Work = QUIET, *, has_meaning: bool = True) -> FeatureTable:
    """The features of dialogues; sentence vectors come from the packaged encoder, which meaning alone needs."""
    cleaned = [without_begging(clean_dialogue(dialogue)) for dialogue in dialogues]
    nothing = np.zeros((len(cleaned), 0))
    meant, names, means = _meaning(cleaned, work) if has_meaning else (nothing, (), nothing)
    return FeatureTable(
        *_table([behaviour(dialogue) for dialogue in cleaned]),
        meant,
        names,
        means,
        tuple("\n".join(turn.text for turn in dialogue.said_by("user")) for dialogue in cleaned),
        tuple("\n".join(turn.text for turn in dialogue.said_by("agent")) for dialogue in cleaned),
    )


def _meaning(cleaned: Sequence[Dialogue], work: Work) -> tuple[Floats, tuple[str, ...], Floats]:
    """What the sentence vectors say: features, their names, and the turns' mean vectors."""
    user_seeds, agent_seeds = seed_sentences()
    texts = list(
        dict.fromkeys([*user_seeds, *agent_seeds, *(turn.text for dialogue in cleaned for turn in dialogue.turns)])
    )
    place = {text: number for number, text in enumerate(texts)}
    vectors = np.asarray(packaged_vectors(texts, work), dtype=np.float64)
    seeds = SeedVectors(
        vectors[[place[text] for text in user_seeds]],
        vectors[[place[text] for text in agent_seeds]],
    )
    meant, means = [], []
    for dialogue in cleaned:
        own = vectors[np.array([place[turn.text] for turn in dialogue.turns], dtype=np.int64)]
        meant.append(meaning(dialogue, own, seeds))
        means.append(pooled(dialogue, own))
    return *_table(meant), np.array(means).reshape(len(cleaned), -1)


def _table(rows: Sequence[dict[str, float]]) -> tuple[Floats, tuple[str, ...]]:
    names = tuple(rows[0]) if rows else ()
    return np.array([[row[name] for name in names] for row in rows], dtype=np.float64).reshape(len(rows), -1), names
