"""Adaptive assignment in simulated studies: the rule of a running study, on the answers that simulated raters have given so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from dialometer.design.adaptive import (
    Systems,
    chances,
    deciding_criterion,
    draws_items,
    floor_of,
    open_by_ratings,
    open_by_votes,
    sets_of,
    sets_of_items,
)
from dialometer.model.item import Item
from dialometer.model.scale import Floats
from dialometer.model.session import PairVotes
from dialometer.model.study import Study
from dialometer.simulate.judgment_arrays import Columns

N_AT_ONCE = 4


class AdaptiveAssigner:
    """Draws systems, or items by their systems, for one rater after the other."""

    n_at_once = N_AT_ONCE

    def __init__(self, study: Study, floor: float) -> None:
        criterion = deciding_criterion(study)
        assert criterion is not None, "a check refuses adaptive studies without one"
        self.study, self.floor, self.criterion = study, floor, criterion
        self.openness: Mapping[tuple[str, str], float] = {}
        self._votes: Counter[tuple[str, str, str]] = Counter()
        self._ratings: Counter[tuple[str, float]] = Counter()
        self._sums: dict[tuple[Systems, ...], Floats] = {}
        self._given: Counter[str] = Counter()
        self._groups: dict[Systems, list[int]] = {}

    @classmethod
    def of(cls, study: Study) -> AdaptiveAssigner | None:
        """For studies that assign adaptively; None for others. Arenas are simulated with balanced pairs."""
        floor = floor_of(study)
        return None if floor is None or study.spec.items.kind == "arena" else cls(study, floor)

    def draw(
        self, items: Sequence[Item], given: Sequence[int], rng: np.random.Generator
    ) -> tuple[Sequence[int], Sequence[Systems], Sequence[float]]:
        """For one rater the numbers of items, the systems shown on each, and how likely these were."""
        if draws_items(self.study):
            return self._items(items, len(given), rng)
        drawn = [self._choose(sets_of(self.study, items[i]), rng) for i in given]
        return given, [systems for systems, _ in drawn], [chance for _, chance in drawn]

    def _items(
        self, items: Sequence[Item], n_wanted: int, rng: np.random.Generator
    ) -> tuple[Sequence[int], Sequence[Systems], Sequence[float]]:
        if not self._groups:
            place = {item.id: number for number, item in enumerate(items)}
            groups = sets_of_items(self.study, items)
            self._groups = {systems: [place[item.id] for item in own] for systems, own in groups.items()}
        left = {systems: list(own) for systems, own in self._groups.items()}
        numbers, shown, likely = [], [], []
        for _ in range(n_wanted):
            systems, chance = self._choose(tuple(left), rng)
            judged = [self._given[items[i].id] for i in left[systems]]
            fewest = [i for i, n in zip(left[systems], judged, strict=True) if n == min(judged)]
            number = fewest[int(rng.integers(len(fewest)))]
            self._given[items[number].id] += 1
            left[systems].remove(number)
            if not left[systems]:
                del left[systems]
            numbers.append(number)
            shown.append(systems)
            likely.append(chance)
        return numbers, shown, likely

    def _choose(self, sets: tuple[Systems, ...], rng: np.random.Generator) -> tuple[Systems, float]:
        if sets not in self._sums:
            self._sums[sets] = np.cumsum(chances(sets, self.openness, self.floor))
        sums = self._sums[sets]
        number = min(int(np.searchsorted(sums, rng.random(), side="right")), len(sets) - 1)
        return sets[number], float(sums[number] - (sums[number - 1] if number else 0.0))

    def observe(self, columns: Columns) -> None:
        """Takes in what some raters answered."""
        study, scale = self.study, self.study.spec.scales[self.criterion.scale]
        mine = columns["criterion"] == self.criterion.name
        if scale.compares:
            for order, choice in zip(columns["order"][mine].tolist(), columns["choice"][mine].tolist(), strict=True):
                first, second = sorted(order.split("|"))
                self._votes[first, second, choice] += 1
            pairs = {(first, second) for first, second, _ in self._votes}
            self.openness = open_by_votes(study, {pair: self._pair_votes(*pair) for pair in pairs})
        else:
            systems, values = columns["system"][mine].tolist(), columns["value"][mine].tolist()
            self._ratings.update(zip(systems, values, strict=True))
            self.openness = open_by_ratings(study, scale, ((s, value, n) for (s, value), n in self._ratings.items()))
        self._sums.clear()

    def _pair_votes(self, first: str, second: str) -> PairVotes:
        n = sum(count for (a, b, _), count in self._votes.items() if (a, b) == (first, second))
        won, lost = self._votes[first, second, first], self._votes[first, second, second]
        return PairVotes(won, lost, n - won - lost)
