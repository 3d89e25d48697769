"""What a training needs beside the model: rated dialogues, and two sets of development pairs that share no dialogue.

The paper has 200 pairs that experts judged. Where there are none, pairs of held-out dialogues whose ratings lie far apart
take their place. The risk, which no later step removes: such pairs carry the raters' own noise and habits. What all raters
have in common (long chats rated well, a bot that begs for stars) counts as truth, ratings are then valued by how well they
agree with other raters and not with experts, and a rating can look noisy because it is honest. The ablation's controls
(nothing dropped, as many dropped at random) show whether valuing helped at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import NotEnoughData
from dialometer.learned.cmade.tokens import Tokens
from dialometer.learned.cmade.training import StopPairs
from dialometer.learned.data.pairs import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    SUBSTITUTE_GAP,
    DialoguePair,
    deal_pairs,
    numbered_gap_pairs,
)
from dialometer.learned.data.rated import RatedDialogue
from dialometer.learned.data.splits import DataSplit, groups_of, rows_of
from dialometer.model.dialogue import Dialogue

if TYPE_CHECKING:
    from dialometer.learned.cmade.encoder import DialogueEncoder


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SMALLER_GAPS = (2.0, 1.0)
"""What is taken to train by where a small study has hardly any pairs that far apart."""


@dataclass(frozen=True)
class PairSet:
    """Development dialogues and pairs of them, as rows (better, worse)."""

    dialogues: tuple[Dialogue, ...]
    pairs: Ints
    groups: tuple[str, ...]
    """The user or block of neighbours of each dialogue."""


@dataclass(frozen=True)
class TrainingData:
    """Ratings to learn from, pairs to value them by, and pairs to stop and calibrate by."""

    train: tuple[RatedDialogue, ...]
    development: PairSet
    stopping: PairSet
    calibration_pairs: Ints
    """Pairs of stopping dialogues that probabilities are fitted to: the experts', or all with different ratings."""
    gap: float | None
    """Points between the ratings of the pairs that stand in for the experts'; None where experts judged them."""
    test: PairSet | None = None
    """Expert pairs that nothing is chosen or fitted by."""

    @property
    def is_expert(self) -> bool:
        """Whether experts judged the pairs; otherwise they are the substitute, with its risk."""
        return self.gap is None

    @property
    def ratings(self) -> Floats:
        """Of the training dialogues."""
        return np.array([row.rating for row in self.train], dtype=np.float64)

    def fingerprint(self) -> str:
        """Of all texts, ratings and pairs: a checkpoint of other data is refused."""
        digest = hashlib.sha256()
        for row in self.train:
            digest.update(json.dumps([row.id, row.rating, [turn.text for turn in row.dialogue.turns]]).encode())
        for part in (self.development, self.stopping):
            digest.update(json.dumps([[row.id for row in part.dialogues], part.pairs.tolist()]).encode())
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Materials:
    """The same data as one encoder reads them."""

    dialogues: tuple[Dialogue, ...]
    tokens: list[Tokens]
    ratings: Floats
    development: StopPairs
    stopping: StopPairs
    stopping_dialogues: tuple[Dialogue, ...]

    @classmethod
    def of(cls, data: TrainingData, encoder: DialogueEncoder) -> Materials:
        """Cuts everything into tokens, once."""
        dialogues = tuple(row.dialogue for row in data.train)
        sets = [StopPairs(encoder.tokens(part.dialogues), part.pairs) for part in (data.development, data.stopping)]
        return cls(dialogues, encoder.tokens(dialogues), data.ratings, sets[0], sets[1], data.stopping.dialogues)


def from_split(rated: Sequence[RatedDialogue], split: DataSplit, pairs: Sequence[DialoguePair] = ()) -> TrainingData:
    """Data of one split. Expert pairs inside the development or the stopping part replace the pairs of ratings there."""
    development, stopping = rows_of(rated, split.development), rows_of(rated, split.stopping)
    by_experts = [_expert_set(part, pairs) for part in (development, stopping)]
    train = tuple(rows_of(rated, split.train))
    if _are_enough(by_experts):
        return checked(TrainingData(train, by_experts[0], by_experts[1], by_experts[1].pairs, None))
    for gap in (SUBSTITUTE_GAP, *SMALLER_GAPS):
        sets = [_gap_set(part, gap) for part in (development, stopping)]
        if _are_enough(sets):
            break
    return checked(TrainingData(train, sets[0], sets[1], _gap_set(stopping, 0.0).pairs, gap))


FEWEST_TO_TEST = 40
"""Expert pairs below which none are kept apart for a test: the training needs them."""
TEST_SHARE = 203 / 403
"""Share of the expert pairs that only test, as in the paper (200 pairs of development, 203 of test)."""


def prepare(
    rated: Sequence[RatedDialogue],
    pairs: Sequence[DialoguePair] = (),
    *,
    share: float = 0.1,
    test_share: float = TEST_SHARE,
    seed: int = 0,
) -> TrainingData:
    """Data to train on everything there is.

    Expert pairs are dealt to development, stopping and test so that no dialogue is in two of them; their dialogues are not
    trained on, because a development dialogue that is its own nearest neighbour would value its own rating. Without expert
    pairs a ``share`` of the dialogues is held out for each set, whole users (or blocks of neighbours) at a time.
    """
    if not pairs:
        return from_split(rated, _without_test(rated, share, seed))
    split = expert_split(rated, pairs, test_share=test_share if len(pairs) >= FEWEST_TO_TEST else 0.0, seed=seed)
    data = from_split(rated, split, pairs)
    test = _expert_set(rows_of(rated, split.test), pairs)
    return replace(data, test=test if len(test.pairs) else None)


def expert_split(
    rated: Sequence[RatedDialogue],
    pairs: Sequence[DialoguePair],
    *,
    name: str = "experts",
    test_share: float = TEST_SHARE,
    seed: int = 0,
) -> DataSplit:
    """The fixed split of the paper: training without any dialogue of a pair, and all pairs in development, stopping or test."""
    wanted = ((1 - test_share) / 2, (1 - test_share) / 2, test_share)
    parts = deal_pairs(pairs, wanted, np.random.default_rng([seed, 200]))
    needed = [part for part, part_share in zip(parts, wanted, strict=True) if part_share > 0]
    if len(pairs) < FEWEST_PAIRS * len(needed):
        raise NotEnoughData(
            f"{len(pairs)} expert pairs are too few, at least {FEWEST_PAIRS * len(needed)} are needed",
            remedy="give more expert pairs, or none: then ratings that lie apart take their place",
        )
    if min(map(len, needed)) < FEWEST_PAIRS:
        sizes = ", ".join(str(len(part)) for part in needed)
        raise NotEnoughData(
            f"{len(pairs)} expert pairs cannot be divided into parts without a common dialogue (they would hold {sizes})",
            remedy="draw pairs that share fewer dialogues ('dialometer learn pairs'), or give more of them",
        )
    ids = [{name for pair in part for name in (pair.first, pair.second)} for part in parts]
    named = set().union(*ids)
    held = [tuple(row.id for row in rated if row.id in part) for part in ids]
    return DataSplit(name, tuple(row.id for row in rated if row.id not in named), *held)


def _are_enough(sets: Sequence[PairSet]) -> bool:
    return all(len(part.pairs) >= FEWEST_PAIRS for part in sets)


def checked(data: TrainingData) -> TrainingData:
    """Refuses what would only fail after the training has begun."""
    for part, purpose in ((data.development, "value ratings"), (data.stopping, "stop and calibrate")):
        if len(part.pairs) < FEWEST_PAIRS:
            raise NotEnoughData(
                f"{len(part.pairs)} development pairs are too few to {purpose} by, at least {FEWEST_PAIRS} are needed",
                remedy="give expert pairs, or more dialogues with different ratings",
            )
    if len(set(data.ratings)) < 2:
        raise NotEnoughData("all ratings to train on are equal", remedy="give dialogues with different ratings")
    return data


def _without_test(rated: Sequence[RatedDialogue], share: float, seed: int) -> DataSplit:
    groups = groups_of(rated)
    if len(set(groups)) < 4:
        raise NotEnoughData(
            f"{len(set(groups))} groups of dialogues (users, or blocks of neighbours) are too few to hold any out",
            remedy="give expert pairs, or dialogues of more users",
        )
    order = np.random.default_rng(seed).permutation(sorted(set(groups)))
    sizes = {group: groups.count(group) for group in order}
    part_of: dict[str, int] = {}
    filled = [0, 0]
    for group in order:
        part = next((n for n in (0, 1) if filled[n] < share * len(rated)), 2)
        part_of[group] = part
        if part < 2:
            filled[part] += sizes[group]
    parts = [tuple(row.id for row, g in zip(rated, groups, strict=True) if part_of[g] == part) for part in (2, 0, 1)]
    return DataSplit("all", parts[0], parts[1], parts[2], ())


def _expert_set(rated: Sequence[RatedDialogue], pairs: Sequence[DialoguePair]) -> PairSet:
    place = {row.id: number for number, row in enumerate(rated)}
    inside = [pair for pair in pairs if pair.first in place and pair.second in place]
    used = sorted({place[name] for pair in inside for name in (pair.first, pair.second)})
    new = {rated[old].id: number for number, old in enumerate(used)}
    numbered = np.array([(new[pair.better], new[pair.worse]) for pair in inside], dtype=np.int64).reshape(-1, 2)
    groups = groups_of(rated)
    return PairSet(tuple(rated[old].dialogue for old in used), numbered, tuple(groups[old] for old in used))


def _gap_set(rated: Sequence[RatedDialogue], gap: float) -> PairSet:
    numbered = numbered_gap_pairs(rated, gap, max_pairs=MOST_PAIRS)
    pairs = np.column_stack([numbered.better, numbered.worse]).astype(np.int64)
    return PairSet(tuple(row.dialogue for row in rated), pairs, tuple(groups_of(rated)))
