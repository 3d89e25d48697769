"""What the best recipe looks at in a dialogue: behaviour, meaning, and the words of each side.

All of it is computed from the dialogue alone, without any rating, so it can be computed once for training and test dialogues.
Personas and other metadata are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.behaviour import behaviour
from dialometer.learned.cleaning import clean_dialogue, without_begging
from dialometer.learned.frozen import text_vectors
from dialometer.learned.meaning import SeedVectors, meaning, pooled, seed_sentences
from dialometer.model.dialogue import Dialogue
from dialometer.retrieval.work import QUIET, Work

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureTable:
    """Features of dialogues, one row for each."""

    behaviour: Floats
    behaviour_names: tuple[str, ...]
    meaning: Floats
    meaning_names: tuple[str, ...]
    pooled: Floats
    """Means of the turns' vectors, see :func:`dialometer.learned.meaning.pooled`."""
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
    cleaned = [without_begging(clean_dialogue(one)) for one in dialogues]
    nothing = np.zeros((len(cleaned), 0))
    meant, names, means = _meaning(cleaned, work) if has_meaning else (nothing, (), nothing)
    return FeatureTable(
        *_table([behaviour(one) for one in cleaned]),
        meant,
        names,
        means,
        tuple("\n".join(turn.text for turn in one.said_by("user")) for one in cleaned),
        tuple("\n".join(turn.text for turn in one.said_by("agent")) for one in cleaned),
    )


def _meaning(cleaned: Sequence[Dialogue], work: Work) -> tuple[Floats, tuple[str, ...], Floats]:
    """What the sentence vectors say: features, their names, and the turns' mean vectors."""
    user_seeds, agent_seeds = seed_sentences()
    texts = list(dict.fromkeys([*user_seeds, *agent_seeds, *(turn.text for one in cleaned for turn in one.turns)]))
    place = {text: number for number, text in enumerate(texts)}
    vectors = np.asarray(text_vectors(texts, work), dtype=np.float64)
    seeds = SeedVectors(
        vectors[[place[text] for text in user_seeds]],
        vectors[[place[text] for text in agent_seeds]],
    )
    meant, means = [], []
    for one in cleaned:
        own = vectors[np.array([place[turn.text] for turn in one.turns], dtype=np.int64)]
        meant.append(meaning(one, own, seeds))
        means.append(pooled(one, own))
    return *_table(meant), np.array(means).reshape(len(cleaned), -1)


def _table(rows: Sequence[dict[str, float]]) -> tuple[Floats, tuple[str, ...]]:
    names = tuple(rows[0]) if rows else ()
    return np.array([[row[name] for name in names] for row in rows], dtype=np.float64).reshape(len(rows), -1), names
