"""What a model is trained on: groups of dialogues, each with the loss of its outputs. One group is one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from dialometer.learned.all_pairs import Loss, pairwise_loss
from dialometer.learned.encoder import moved
from dialometer.learned.tokens import Tokens

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Dialogues of one step, by their place in the lesson, and the loss of their outputs in that order."""

    rows: Ints
    loss: Loss


class Lesson(Protocol):
    """Dialogues and, for each epoch, groups of them; every epoch has equally many."""

    @property
    def tokens(self) -> Sequence[Tokens]: ...

    def groups(self, rng: np.random.Generator) -> list[Group]:
        """The steps of one epoch."""


@dataclass(frozen=True)
class AllPairs:
    """Every pair of differently rated dialogues of a group; equal ratings make no pair.

    The paper samples pairs of single dialogues. A group of 64 random dialogues costs as much as 32 such pairs and compares
    up to 2,016. ``group_size`` 0 makes the whole training set one group: the exact gradient over all pairs.
    """

    tokens: Sequence[Tokens]
    ratings: Floats
    group_size: int = 64

    def groups(self, rng: np.random.Generator) -> list[Group]:
        def group(rows: Ints) -> Group:
            ratings = self.ratings[rows]
            return Group(rows, lambda outputs: pairwise_loss(outputs[:, 0], ratings))

        return [group(rows) for rows in shuffled(len(self.tokens), self.group_size, rng)]


@dataclass(frozen=True)
class Pairs:
    """Pairs that are given one by one, the better dialogue first, as (better, worse) rows.

    ``together`` consecutive pairs stay in one group: the two fakes of a dialogue share its output.
    """

    tokens: Sequence[Tokens]
    pairs: Ints
    group_size: int = 64
    together: int = 1

    def groups(self, rng: np.random.Generator) -> list[Group]:
        blocks = self.pairs.reshape(-1, self.together, 2)
        n_blocks = max(1, self.group_size // (self.together + 1)) if self.group_size else 0

        def group(chosen: Ints) -> Group:
            rows, places = np.unique(blocks[chosen].reshape(-1, 2), return_inverse=True)
            places = places.reshape(-1, 2)

            def loss(outputs: Tensor) -> Tensor:
                better, worse = (moved(places[:, side], outputs.device) for side in (0, 1))
                return functional.softplus(outputs[worse, 0] - outputs[better, 0]).mean()

            return Group(rows, loss)

        return [group(chosen) for chosen in shuffled(len(blocks), n_blocks, rng)]


@dataclass(frozen=True)
class Regression:
    """The rating itself, in standard deviations from the mean, with squared error: the paper's second baseline."""

    tokens: Sequence[Tokens]
    ratings: Floats
    group_size: int = 64

    def groups(self, rng: np.random.Generator) -> list[Group]:
        wanted = (self.ratings - self.ratings.mean()) / max(float(self.ratings.std()), 1e-12)

        def group(rows: Ints) -> Group:
            target = wanted[rows].astype(np.float32)
            return Group(rows, lambda outputs: functional.mse_loss(outputs[:, 0], moved(target, outputs.device)))

        return [group(rows) for rows in shuffled(len(self.tokens), self.group_size, rng)]


@dataclass(frozen=True)
class Classes:
    """The rating as one of a few classes: the paper's first baseline. The model needs one output per level."""

    tokens: Sequence[Tokens]
    ratings: Floats
    levels: tuple[float, ...]
    group_size: int = 64

    def groups(self, rng: np.random.Generator) -> list[Group]:
        number = np.searchsorted(np.array(self.levels), self.ratings)

        def group(rows: Ints) -> Group:
            target = number[rows]
            return Group(rows, lambda outputs: functional.cross_entropy(outputs, moved(target, outputs.device)))

        return [group(rows) for rows in shuffled(len(self.tokens), self.group_size, rng)]


class Interleaved:
    """Several lessons in one epoch, their steps mixed: ratings and expert pairs in the paper's fourth row."""

    def __init__(self, *lessons: Lesson) -> None:
        self.lessons = lessons
        self.tokens = [one for lesson in lessons for one in lesson.tokens]

    def groups(self, rng: np.random.Generator) -> list[Group]:
        """All groups of all lessons in random order."""
        found, start = [], 0
        for lesson in self.lessons:
            found += [Group(group.rows + start, group.loss) for group in lesson.groups(rng)]
            start += len(lesson.tokens)
        return [found[place] for place in rng.permutation(len(found))]


def shuffled(n: int, size: int, rng: np.random.Generator) -> list[Ints]:
    """The numbers below ``n`` in random groups of almost equal size, at most ``size`` each (0: one group)."""
    order = rng.permutation(n)
    return list(np.array_split(order, -(-n // size) if size else 1))
