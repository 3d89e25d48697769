"""Which systems a rater is given on an item, where that is drawn, and how likely every draw was.

Three kinds of items leave a choice: the two systems that meet in an arena, the responses that are shown where a rater sees only
some of an item's (``systems_per_item``), and, where every item shows systems of its own, which items a rater gets. Balanced
draws give every set of systems the same chance. Adaptive draws follow the answers so far
(:mod:`dialometer.stats.sequential.adaptive`), and their probability is stored with the session: the analysis needs it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dialometer.model.item import ArenaItem, Item
from dialometer.model.scale import Floats, Scale, Value
from dialometer.model.session import DrawnSystems, PairVotes, Snapshot
from dialometer.model.study import Criterion, Study
from dialometer.stats.sequential.adaptive import draw_weight, openness_of_ratings, openness_of_votes, set_chances

Systems = tuple[str, ...]
DIGITS = 9
"""To how many digits probabilities are stored."""


def floor_of(study: Study) -> float | None:
    """The share of even draws of a study that assigns adaptively; None where assignment is balanced."""
    spec = study.spec
    if spec.items.kind == "arena":
        return spec.arena.floor if spec.arena.pairs == "uncertain" else None
    return spec.design.assignment.floor if spec.design.assignment.rule == "adaptive" else None


def deciding_criterion(study: Study) -> Criterion | None:
    """The criterion whose answers say which comparisons are open: the primary comparison's first, else the first that fits."""
    spec = study.spec
    is_paired = spec.items.kind in ("arena", "transcript_pair")
    fitting = {}
    for criterion in spec.criteria:
        scale = spec.scales.get(criterion.scale)
        if scale is not None and (scale.choice_form == "one" if is_paired else scale.is_numeric):
            fitting[criterion.name] = criterion
    primary = study.primary_comparison
    of_primary = [fitting[name] for name in primary.criteria if name in fitting] if primary else []
    return next(iter([*of_primary, *fitting.values()]), None)


# How open comparisons are


def compared_pairs(study: Study) -> tuple[tuple[str, str], ...]:
    """Every two systems between which raters are to decide, in file order: those of the primary comparison, else all that
    ordinary items show."""
    primary = study.primary_comparison
    levels = primary.levels if primary is not None and primary.between == "systems" else []
    shown = {system for item in study.rated_items if item.id not in study.gold_ids for system in item.systems}
    names = [system.name for system in study.spec.systems if system.name in shown]
    return tuple(combinations([name for name in names if not levels or name in levels], 2))


def open_by_votes(study: Study, votes: Mapping[tuple[str, str], PairVotes]) -> dict[tuple[str, str], float]:
    """How open every comparison is, from the votes between every two systems."""
    names = _names(study)
    won, tied = np.zeros((2, len(names), len(names)))
    for (first, second), counted in votes.items():
        if first in names and second in names:
            a, b = names[first], names[second]
            won[a, b], won[b, a], tied[a, b], tied[b, a] = (
                counted.first,
                counted.second,
                counted.neither,
                counted.neither,
            )
    return _by_name(study, names, openness_of_votes(won, tied, _named(study, names)))


def open_by_ratings(
    study: Study, scale: Scale, counted: Iterable[tuple[str, Value, int]]
) -> dict[tuple[str, str], float]:
    """The same from how often every system got every value."""
    names = _names(study)
    sums = np.zeros((3, len(names)))
    for system, value, n in counted:
        number = scale.number(value)
        if system not in names or number is None or (scale.unit == "log" and number <= 0):
            continue
        y = math.log(number) if scale.unit == "log" else number
        sums[:, names[system]] += n, n * y, n * y * y
    n_given, total, squares = sums
    return _by_name(study, names, openness_of_ratings(n_given, total, squares, _named(study, names)))


def _names(study: Study) -> dict[str, int]:
    names = dict.fromkeys(name for pair in compared_pairs(study) for name in pair)
    return {name: number for number, name in enumerate(names)}


def _named(study: Study, names: Mapping[str, int]) -> NDArray[np.bool_] | None:
    """The comparisons that the primary hypothesis names; None where it names none."""
    primary = study.primary_comparison
    pairs = [(a, b) for a, b in (primary.expected_pairs if primary else ()) if a in names and b in names]
    if not pairs:
        return None
    is_compared = np.zeros((len(names), len(names)), dtype=np.bool_)
    for a, b in pairs:
        is_compared[names[a], names[b]] = is_compared[names[b], names[a]] = True
    return is_compared


def _by_name(study: Study, names: Mapping[str, int], openness: Floats) -> dict[tuple[str, str], float]:
    return {(a, b): float(openness[names[a], names[b]]) for a, b in compared_pairs(study)}


# Sets of systems, and draws


def sets_of(study: Study, item: Item) -> tuple[Systems, ...]:
    """The sets of systems of which a rater gets one on an item; a single one where nothing is left to draw."""
    key = ("places of systems",)
    if key not in study.remembered:
        study.remembered[key] = {system.name: number for number, system in enumerate(study.spec.systems)}
    systems = (
        item.systems if isinstance(item, ArenaItem) else sorted(item.systems, key=study.remembered[key].__getitem__)
    )
    n_shown = 2 if isinstance(item, ArenaItem) else study.n_systems_shown(item)
    return tuple(combinations(systems, n_shown))


def sets_of_items(study: Study, items: Iterable[Item]) -> dict[Systems, list[Item]]:
    """Items by the systems that they show."""
    groups: dict[Systems, list[Item]] = {}
    for item in items:
        groups.setdefault(sets_of(study, item)[0], []).append(item)
    return groups


def draws_items(study: Study) -> bool:
    """Whether adaptive assignment decides which items a rater gets, since every item shows systems of its own."""
    is_fixed = study.spec.items.kind != "arena" and study.spec.design.systems_per_item is None
    return floor_of(study) is not None and is_fixed


def n_sets(study: Study, item: Item) -> int:
    """Among how many sets of systems the one of an item was drawn."""
    if not draws_items(study):
        return len(sets_of(study, item))
    key = ("n_sets",)
    if key not in study.remembered:
        ordinary = (one for one in study.rated_items if one.id not in study.gold_ids)
        study.remembered[key] = len(sets_of_items(study, ordinary))
    return max(int(study.remembered[key]), 1)


def weight_of(study: Study, item: Item, probability: float) -> float:
    """How much the answers on an item weigh whose systems were drawn with this probability."""
    return draw_weight(probability, n_sets(study, item))


def chances(sets: Sequence[Systems], openness: Mapping[tuple[str, str], float], floor: float) -> Floats:
    """The probability of each set. Without any answers all pairs are open; later, pairs that nobody compares are not."""
    names = {name: number for number, name in enumerate(dict.fromkeys(name for systems in sets for name in systems))}
    matrix = np.full((len(names), len(names)), 0.0 if openness else 1.0)
    np.fill_diagonal(matrix, 0.0)
    for (a, b), value in openness.items():
        if a in names and b in names:
            matrix[names[a], names[b]] = matrix[names[b], names[a]] = value
    return set_chances(matrix, [[names[name] for name in systems] for systems in sets], floor)


def draw_systems(
    study: Study, item: Item, snapshot: Snapshot, *, rng: np.random.Generator, rounds: np.random.Generator
) -> DrawnSystems:
    """The systems that a rater gets on an item.

    ``rng`` is this draw's own; ``rounds`` is the item's, the same for all draws of one round of balanced pairs: within an item
    all pairs come once, in random order, before any comes again.
    """
    sets, floor = sets_of(study, item), floor_of(study)
    if floor is None:
        place = snapshot.item_counts.get(item.id, 0) % len(sets)
        return DrawnSystems(sets[int(rounds.permutation(len(sets))[place])], round(1 / len(sets), DIGITS))
    likely = chances(sets, snapshot.openness, floor)
    number = int(rng.choice(len(sets), p=likely))
    return DrawnSystems(sets[number], round(float(likely[number]), DIGITS))


def draw_items(
    study: Study, pool: Sequence[Item], n_wanted: int, snapshot: Snapshot, rng: np.random.Generator
) -> dict[str, DrawnSystems]:
    """Items of a pool, the most wanted first: one set of systems after the other is drawn among those that still have items."""
    groups, floor = sets_of_items(study, pool), floor_of(study) or 1.0
    drawn: dict[str, DrawnSystems] = {}
    while groups and len(drawn) < n_wanted:
        sets = list(groups)
        likely = chances(sets, snapshot.openness, floor)
        number = int(rng.choice(len(sets), p=likely))
        item = groups[sets[number]].pop(0)
        drawn[item.id] = DrawnSystems(sets[number], round(float(likely[number]), DIGITS))
        if not groups[sets[number]]:
            del groups[sets[number]]
    return drawn
