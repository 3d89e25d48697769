"""A prepared corpus: numbered tokens on disk, read through memory maps, so that its size is no matter.

A folder holds ``corpus.json`` (what it was made from, and how), ``tokenizer.json``, maybe ``topics.npz``, and for each split
flat arrays: all tokens, where each turn begins, the place of each turn in its piece of dialogue, its dialogue, the topic of
what was said before it, and the dialogues' ids. Every turn that has a turn before it is one example: the response to those.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dialometer.errors import DialometerError
from dialometer.generators.topics import TopicModel
from dialometer.generators.vocabulary import Vocabulary

SPLITS = ("train", "validation", "test")
CORPUS_FILE = "corpus.json"
TOKENIZER_FILE = "tokenizer.json"
TOPICS_FILE = "topics.npz"
ARRAYS: Mapping[str, Any] = {
    "tokens": np.uint16,
    "starts": np.uint64,
    "places": np.uint16,
    "dialogues": np.uint32,
    "topics": np.uint16,
}
FORM = 1
_PORTION = 1 << 20


@dataclass(frozen=True)
class CorpusSplit:
    """One part of a corpus. ``starts`` has one more entry than there are turns; every turn ends with the end mark."""

    name: str
    tokens: npt.NDArray[np.uint16]
    starts: npt.NDArray[np.uint64]
    places: npt.NDArray[np.uint16]
    dialogues: npt.NDArray[np.uint32]
    topics: npt.NDArray[np.uint16]
    ids_file: Path

    @cached_property
    def examples(self) -> npt.NDArray[np.int64]:
        """Numbers of the turns that answer a turn before them."""
        return np.flatnonzero(np.asarray(self.places) > 0)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each turn, end mark included."""
        starts = np.asarray(self.starts).astype(np.int64)
        return np.asarray(starts[1:] - starts[:-1])

    @cached_property
    def ids(self) -> list[str]:
        """Ids of the dialogues, by their number."""
        try:
            return [str(json.loads(line)) for line in self.ids_file.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError, RecursionError) as error:
            raise _damaged(self.ids_file, str(error)) from error

    def check(self, n_tokens: int) -> None:
        """Refuses arrays that do not fit together: a file that was cut off would train on other words than were said."""
        n_turns = len(self.places)
        starts = np.asarray(self.starts)
        is_whole = len(self.dialogues) == n_turns and len(self.topics) in (0, n_turns)
        is_whole &= len(starts) == n_turns + 1 if n_turns else len(starts) <= 1
        if not is_whole:
            raise _damaged(self.ids_file, "its parts are of different lengths")
        if len(starts) and (starts[0] != 0 or starts[-1] != len(self.tokens) or np.any(starts[1:] <= starts[:-1])):
            raise _damaged(self.ids_file, "turns do not follow one another")
        if np.any(np.asarray(self.places) > np.arange(n_turns)):
            raise _damaged(self.ids_file, "a turn has more turns before it than there are")
        portions = (self.tokens[start : start + _PORTION] for start in range(0, len(self.tokens), _PORTION))
        if any(int(portion.max()) >= n_tokens for portion in portions):
            raise _damaged(self.ids_file, "a token is not in the vocabulary")

    def frequencies(self, n_tokens: int) -> npt.NDArray[np.int64]:
        """How often each token of the vocabulary occurs, counted in portions."""
        counts = np.zeros(n_tokens, dtype=np.int64)
        for start in range(0, len(self.tokens), _PORTION):
            counts += np.bincount(self.tokens[start : start + _PORTION], minlength=n_tokens)
        return counts

    def turn(self, number: int) -> npt.NDArray[np.uint16]:
        """Tokens of one turn without its end mark."""
        return self.tokens[int(self.starts[number]) : int(self.starts[number + 1]) - 1]

    def context(self, number: int, n_turns: int) -> list[npt.NDArray[np.uint16]]:
        """The turns before an example, at most ``n_turns``, oldest first."""
        first = number - min(int(self.places[number]), n_turns)
        return [self.turn(k) for k in range(first, number)]


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus in its folder."""

    folder: Path
    about: Mapping[str, Any]
    vocabulary: Vocabulary
    topics: TopicModel | None

    def split(self, name: str) -> CorpusSplit:
        """One of train, validation and test."""
        if name not in SPLITS:
            raise DialometerError(f"there is no split '{name}'", remedy=f"use {', '.join(SPLITS)}")
        arrays = {kind: _mapped(self.folder / f"{name}.{kind}", dtype) for kind, dtype in ARRAYS.items()}
        split = CorpusSplit(name=name, ids_file=self.folder / f"{name}.ids", **arrays)
        split.check(len(self.vocabulary))
        return split

    @property
    def fingerprint(self) -> str:
        """Tells this preparation from every other."""
        return str(self.about["fingerprint"])


def is_corpus(folder: Path) -> bool:
    """Whether a folder holds a prepared corpus."""
    return (folder / CORPUS_FILE).is_file()


def load_corpus(folder: Path) -> Corpus:
    """The corpus that :func:`~dialometer.generators.preparing.prepare_corpus` wrote."""
    try:
        about = json.loads((folder / CORPUS_FILE).read_text(encoding="utf-8"))
        vocabulary = Vocabulary((folder / TOKENIZER_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        remedy = "name a folder that 'dialometer bots prepare' wrote"
        raise DialometerError("no prepared corpus", where=str(folder), remedy=remedy) from error
    if not isinstance(about, dict) or about.get("form") != FORM:
        raise DialometerError(
            "the corpus was prepared by another version", where=str(folder), remedy="prepare it again"
        )
    if vocabulary.fingerprint != about.get("vocabulary"):
        raise DialometerError(
            "the vocabulary was changed after the corpus was prepared", where=str(folder), remedy="prepare it again"
        )
    try:
        describe(about)
        str(about["fingerprint"])
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise _damaged(folder / CORPUS_FILE, "its counts are missing or no numbers") from error
    topics_file = folder / TOPICS_FILE
    return Corpus(folder, about, vocabulary, TopicModel.load(topics_file) if topics_file.is_file() else None)


def _mapped(path: Path, dtype: Any) -> Any:
    try:
        if not path.stat().st_size:
            return np.empty(0, dtype=dtype)
        return np.memmap(path, dtype=dtype, mode="r")
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, why: str) -> DialometerError:
    return DialometerError(f"the corpus is damaged: {why}", where=str(path), remedy="prepare it again")


def describe(about: Mapping[str, Any]) -> dict[str, dict[str, int | float]]:
    """Descriptive statistics of each split: what there is, and how long utterances are (end marks not counted)."""
    table: dict[str, dict[str, int | float]] = {}
    for name, counts in about["splits"].items():
        n_turns = counts["turns"]
        table[name] = {
            **counts,
            "words_per_turn": round(counts["words"] / n_turns, 3),
            "tokens_per_turn": round(counts["tokens"] / n_turns - 1, 3),
        }
    return table
