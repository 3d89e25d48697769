"""What the Gaussian process looks at in a dialogue: behaviour, meaning, and the words of each side.

All of it is computed from the dialogue alone, without any rating, so it can be computed once for training and test dialogues.
Personas and other metadata are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.data.rated import clean_dialogue, without_begging
from dialometer.learned.gaussian.behaviour import SeedVectors, behaviour, meaning, seed_sentences
from dialometer.model.dialogue import Dialogue
from dialometer.neural.fast_encoding import packaged_vectors
from dialometer.neural.word_vectors import WordVectors, fit_word_vectors
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

    @classmethod
    def joined(cls, tables: Sequence[FeatureTable]) -> FeatureTable:
        """The features of several sets of dialogues, one below the other."""
        return cls(
            np.vstack([table.behaviour for table in tables]),
            tables[0].behaviour_names,
            np.vstack([table.meaning for table in tables]),
            tables[0].meaning_names,
            tuple(text for table in tables for text in table.user_text),
            tuple(text for table in tables for text in table.agent_text),
        )


def describe(
    dialogues: Sequence[Dialogue],
    work: Work = QUIET,
    *,
    has_meaning: bool = True,
    word_vectors: WordVectors | None = None,
) -> FeatureTable:
    """The features of dialogues; sentence vectors, which meaning alone needs, come from the packaged encoder or from words."""
    cleaned = [_cleaned(dialogue) for dialogue in dialogues]
    encode = word_vectors or partial(packaged_vectors, work=work)
    encoded = _Encoded(cleaned, encode) if has_meaning else None
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


def describe_many(
    dialogues: Sequence[Dialogue], work: Work = QUIET, *, has_meaning: bool, word_vectors: WordVectors | None
) -> FeatureTable:
    """The features of many dialogues, portion by portion: vectors of a million sentences would take gigabytes."""
    return FeatureTable.joined(
        [
            describe(part, has_meaning=has_meaning, word_vectors=word_vectors)
            for _, part in work.portions("Describing dialogues", dialogues, _PART)
        ]
    )


def learn_word_vectors(dialogues: Sequence[Dialogue], work: Work = QUIET) -> WordVectors:
    """Vectors of words for dialogues like these, by which meaning can be described without the encoder."""
    texts = _distinct([_cleaned(dialogue) for dialogue in dialogues])
    return fit_word_vectors(texts, packaged_vectors(texts, work))


def _distinct(cleaned: Sequence[Dialogue]) -> list[str]:
    """Each text once, after the sentences that turns are compared with."""
    user_seeds, agent_seeds = seed_sentences()
    texts = (turn.text for dialogue in cleaned for turn in dialogue.turns)
    return list(dict.fromkeys([*user_seeds, *agent_seeds, *texts]))


def _cleaned(dialogue: Dialogue) -> Dialogue:
    return without_begging(clean_dialogue(dialogue))


class _Encoded:
    """The vectors of the turns of some dialogues, each distinct text encoded once."""

    def __init__(self, cleaned: Sequence[Dialogue], encode: Callable[[Sequence[str]], Float32s]) -> None:
        user_seeds, agent_seeds = seed_sentences()
        distinct = _distinct(cleaned)
        self.place = {text: number for number, text in enumerate(distinct)}
        self.vectors = encode(distinct)
        self.seeds = SeedVectors(self._of(user_seeds), self._of(agent_seeds))

    def _of(self, texts: Iterable[str]) -> Floats:
        return self.vectors[np.array([self.place[text] for text in texts], dtype=np.int64)].astype(np.float64)

    def meaning(self, dialogue: Dialogue) -> dict[str, float]:
        return meaning(dialogue, self._of(turn.text for turn in dialogue.turns), self.seeds)


def _table(rows: Sequence[dict[str, float]]) -> tuple[Floats, tuple[str, ...]]:
    names = tuple(rows[0]) if rows else ()
    return np.array([[row[name] for name in names] for row in rows], dtype=np.float64).reshape(len(rows), -1), names
