"""Whole simulated studies as arrays, without sessions or a database: for power analysis, where thousands are needed.

The raters, the truth and the formulas are those of the walking simulation, and so is who judges which gold items; what is
left out is everything that does not touch the judgments (pages, questionnaires, drop-outs, practice, time).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dialometer.model.design import Block
from dialometer.model.item import ArenaItem, CandidateItem, ChatItem, DialogueItem, Item, PairItem, ResponsesItem
from dialometer.model.scale import Floats, Scale
from dialometer.model.study import Criterion, Study
from dialometer.model.values import TIE
from dialometer.quality.gold import Gold, placed_gold
from dialometer.simulate.rater import Habits, draw_rater, number_use
from dialometer.simulate.truth import Truth, candidate_quality

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class _Crew:
    """The raters of one simulated study as arrays."""

    bias: Floats
    log_modulus: Floats
    is_careless: NDArray[np.bool_]
    cell: NDArray[np.int64]
    taste: Mapping[str, Floats]
    """For each system how much better each rater finds it than others do."""
    shift: NDArray[np.int64]
    """Where raters begin in the circle of systems, if they see only some of an item's."""
    pools: dict[tuple[str, int], NDArray[np.int64]] = field(default_factory=dict)
    """By block and pool, the numbers of the items of every rater."""

    def items(
        self, study: Study, block: Block, place: int, n_wanted: int, n_items: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """The items of every rater in a pool, drawn when they are first asked for."""
        if (block.name, place) not in self.pools:
            self.pools[block.name, place] = _give_items(n_wanted, n_items, len(self.cell), rng)
        return self.pools[block.name, place]


class Assigner(Protocol):
    """Decides by the answers so far which systems each rater gets, and on which items."""

    n_at_once: int
    """Raters who are under way at the same time, and do not see each other's answers."""

    def draw(
        self, items: Sequence[Item], numbers: Sequence[int], rng: np.random.Generator
    ) -> tuple[Sequence[int], Sequence[Sequence[str]], Sequence[float]]:
        """For one rater the numbers of items (``numbers`` are those of a balanced study), the systems and the probabilities."""

    def observe(self, columns: Columns) -> None:
        """Takes in what some raters answered."""


@dataclass(frozen=True)
class _Given:
    """What raters get of one pool of items: raters × items, and × systems for what is shown."""

    items: tuple[Item, ...]
    number: NDArray[np.int64]
    is_shown: NDArray[np.bool_]
    probability: Floats | None = None

    def of(self, rows: NDArray[np.int64]) -> _Given:
        """Of some raters."""
        probability = None if self.probability is None else self.probability[rows]
        return _Given(self.items, self.number[rows], self.is_shown[rows], probability)


def simulate_judgments(
    study: Study,
    truth: Truth,
    habits: Habits,
    *,
    n_raters: int,
    seed: int,
    shifts: Mapping[int, float] | None = None,
    assigner: Assigner | None = None,
) -> Columns:
    """Judgments of a whole study: rater number, cell, block, item, system, criterion, value, choice, worst, side, position.

    ``shifts`` raises what raters of a cell perceive, in standard deviations of quality: an effect of the condition itself. With an
    ``assigner`` raters come a few at a time, and there is a column for the probability of what was drawn.
    """
    rng = np.random.default_rng([seed, 5])
    crew = _draw_crew(study, habits, n_raters, seed, rng)
    everyone = np.arange(n_raters)
    if assigner is None:
        parts = _judged_by(study, truth, habits, crew, everyone, shifts or {}, rng, None)
    else:
        parts = []
        for start in range(0, n_raters, assigner.n_at_once):
            few = everyone[start : start + assigner.n_at_once]
            columns = _judged_by(study, truth, habits, crew, few, shifts or {}, rng, assigner)
            assigner.observe(_together(columns))
            parts += columns
    return _together(parts)


def _together(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _judged_by(
    study: Study,
    truth: Truth,
    habits: Habits,
    crew: _Crew,
    raters: NDArray[np.int64],
    shifts: Mapping[int, float],
    rng: np.random.Generator,
    assigner: Assigner | None,
) -> list[Columns]:
    """What some raters judge, all blocks and criteria."""
    parts: list[Columns] = []
    for block in study.blocks:
        n_before = 0
        for place, (items, n_wanted) in enumerate(_pools(study, block)):
            number = crew.items(study, block, place, n_wanted, len(items), rng)
            shown = _Given(items, number, _shown(study, items, number, crew.shift))
            if assigner is not None:
                shown = _assigned(shown, raters, assigner if place == 0 else None, rng)
            for criterion in study.block_criteria(block):
                columns = _criterion_columns(study, truth, habits, crew, raters, block, criterion, shown, shifts, rng)
                parts += [{**part, "position": part["position"] + n_before} for part in columns]
            n_before += n_wanted
    return parts


def _assigned(given: _Given, raters: NDArray[np.int64], assigner: Assigner | None, rng: np.random.Generator) -> _Given:
    """The same with what the assigner draws for some raters; gold items are not drawn."""
    number, is_shown, probability = given.number.copy(), given.is_shown.copy(), np.ones(given.number.shape)
    for rater in raters:
        if assigner is None:
            break
        numbers, systems, chances = assigner.draw(given.items, number[rater].tolist(), rng)
        number[rater], probability[rater] = numbers, chances
        for place, (i, shown) in enumerate(zip(numbers, systems, strict=True)):
            is_shown[rater, place] = [name in shown for name in _systems(given.items[i])]
    return replace(given, number=number, is_shown=is_shown, probability=probability)


def _draw_crew(study: Study, habits: Habits, n_raters: int, seed: int, rng: np.random.Generator) -> _Crew:
    raters = [draw_rater(number, seed, habits) for number in range(1, n_raters + 1)]
    n_cells = len(study.cells)
    rounds = [rng.permutation(n_cells) for _ in range(-(-n_raters // n_cells))]
    return _Crew(
        bias=np.array([rater.bias for rater in raters]),
        log_modulus=np.log([rater.modulus for rater in raters]),
        is_careless=np.array([rater.is_careless for rater in raters]),
        cell=np.concatenate(rounds)[:n_raters].astype(np.int64),
        taste={
            name: np.array([rater.taste(name) for rater in raters])
            for name in ("", *(s.name for s in study.spec.systems))
        },
        shift=_shifts(study, n_raters, rng),
    )


def _shifts(study: Study, n_raters: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Permuted blocks, as the assignment draws them; without chance where all systems are shown."""
    n = len(study.spec.systems)
    if study.spec.design.systems_per_item is None:
        return np.zeros(n_raters, dtype=np.int64)
    return np.concatenate([rng.permutation(n) for _ in range(-(-n_raters // n))])[:n_raters].astype(np.int64)


def _pools(study: Study, block: Block) -> list[tuple[tuple[Item, ...], int]]:
    """Items that raters draw from and how many each gets: the ordinary ones, then those of each gold rule that hands some
    to every rater."""
    design, placed = study.spec.design, placed_gold(study)
    here = tuple(item for item in study.block_items(block) if item.id in study.chances_for_people)
    ordinary = tuple(item for item in here if item.id not in placed)
    n_wanted: Any = block.n_items if design.blocks else design.items_per_rater
    n = {"all": len(ordinary), "unlimited": 2 * design.batch_size}.get(n_wanted, n_wanted)
    pools = [(ordinary, min(len(ordinary), int(n)))]
    for rule in study.spec.quality:
        if isinstance(rule, Gold) and rule.per_rater:
            ids = set(rule.gold_ids(study))
            gold = tuple(item for item in here if item.id in ids)
            pools.append((gold, min(len(gold), rule.per_rater)))
    return [(items, n_given) for items, n_given in pools if items]


def _give_items(n: int, n_items: int, n_raters: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """For each rater the item numbers, the least judged first, as the assignment does; one row per rater."""
    counts = np.zeros(n_items, dtype=np.int64)
    rows = np.empty((n_raters, n), dtype=np.int64)
    for rater in range(n_raters):
        chosen = np.lexsort((rng.random(n_items), counts))[:n]
        counts[chosen] += 1
        rows[rater] = rng.permutation(chosen)
    return rows


def _criterion_columns(
    study: Study,
    truth: Truth,
    habits: Habits,
    crew: _Crew,
    raters: NDArray[np.int64],
    block: Block,
    criterion: Criterion,
    given: _Given,
    shifts: Mapping[int, float],
    rng: np.random.Generator,
) -> list[Columns]:
    parts = []
    items = given.items
    for cell, condition in enumerate(study.cells):
        cell_raters = raters[crew.cell[raters] == cell]
        if not len(cell_raters):
            continue
        shown = study.presentation(condition, block)
        scale = study.scale_for(criterion, shown)
        drawn = given.of(cell_raters)
        item, is_shown = drawn.number, drawn.is_shown  # raters × items, and × systems
        n_shown = is_shown.sum(axis=2)
        names, qualities = _compared(truth, items, item, criterion.name, cell_raters)
        n_systems = names.shape[2]
        calm = habits.text_anchor_calm if shown.anchor in ("text", "both") else 0.0
        perceived = qualities + rng.normal(0, habits.noise_sd * (1 - calm), (*item.shape, n_systems))
        if isinstance(items[0], ChatItem | ArenaItem):  # every conversation is another one
            perceived = perceived + rng.normal(0, truth.item_sd, perceived.shape)
        if habits.taste_sd:
            perceived = perceived + _tastes(crew, cell_raters, names)
        order = np.argsort(rng.random(perceived.shape) + ~is_shown, axis=2)  # order[r, i, place] = system
        side = np.argsort(order, axis=2) + 1
        if n_systems > 1:
            perceived = perceived + habits.position_bias * ((side == 1) & (n_shown[..., None] > 1))
        # A choice is one answer, ratings are one for each system; each is careless by itself.
        answers_shape = (*item.shape, 1) if scale.compares else perceived.shape
        is_random = crew.is_careless[cell_raters][:, None, None] & (rng.random(answers_shape) < habits.careless_rate)
        perceived = np.where(is_random, rng.normal(0, 1.5, perceived.shape), perceived)
        common = {
            "order": _joined(np.take_along_axis(names, order, axis=2), n_shown),
            "rater": np.broadcast_to(cell_raters[:, None] + 1, item.shape),
            "item": np.array([entry.id for entry in items])[item],
            "position": np.broadcast_to(np.arange(1, item.shape[1] + 1), item.shape),
            **({} if drawn.probability is None else {"probability": drawn.probability}),
        }
        anchor = study.shown_anchors(shown, [criterion]).get(criterion.name)
        fixed = {"cell": cell, "block": block.name, "criterion": criterion.name, "scale": scale.type}
        if scale.compares:
            parts.append(_compare(habits, scale, perceived, names, side, common, fixed))
        else:
            utility = perceived + crew.bias[cell_raters][:, None, None] + shifts.get(cell, 0.0)
            answers = scale.simulate(utility, number_use(habits, crew.log_modulus[cell_raters][:, None, None], anchor))
            if answers is not None:
                rated = _rated(scale, answers, names, side, common, fixed)
                parts.append({name: column[is_shown.ravel()] for name, column in rated.items()})
    return parts


def _compared(
    truth: Truth, items: Sequence[Item], numbers: NDArray[np.int64], criterion: str, raters: NDArray[np.int64]
) -> tuple[NDArray[Any], Floats]:
    """The systems of each rater's items, and how good they are there; raters × items × systems.

    In an arena all pairs come equally often; that uncertain pairs may come more often is not simulated here.
    """
    if isinstance(items[0], ArenaItem):
        pairs = [entry.pairs for entry in items if isinstance(entry, ArenaItem)]
        turn = numbers + raters[:, None]
        drawn = [
            [pairs[i][k % len(pairs[i])] for i, k in zip(row, ks, strict=True)]
            for row, ks in zip(numbers.tolist(), turn.tolist(), strict=True)
        ]
        names = np.array(drawn, dtype=object).reshape(*numbers.shape, 2)
        means = truth.systems.get(criterion, {})
        return names, np.vectorize(lambda name: means.get(name, 0.0), otypes=[np.float64])(names)
    used, place = np.unique(numbers, return_inverse=True)
    shown = [items[i] for i in used.tolist()]
    qualities = np.array([[_quality(truth, entry, criterion, s) for s in _systems(entry)] for entry in shown])
    names = np.array([_systems(entry) for entry in shown], dtype=object)
    return names[place.reshape(numbers.shape)], qualities[place.reshape(numbers.shape)]


def _tastes(crew: _Crew, raters: NDArray[np.int64], names: NDArray[Any]) -> Floats:
    """Each rater's liking for the system at each place; raters × items × systems."""
    tastes = np.zeros(names.shape)
    for system, by_rater in crew.taste.items():
        tastes += np.where(names == system, by_rater[raters][:, None, None], 0.0)
    return tastes


def _shown(
    study: Study, items: Sequence[Item], numbers: NDArray[np.int64], shift: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which systems each rater sees on each item, raters × items × systems."""
    n = 2 if isinstance(items[0], ArenaItem) else len(_systems(items[0]))
    if study.spec.design.systems_per_item is None:
        return np.ones((*numbers.shape, n), dtype=np.bool_)
    n_shown = np.array([study.n_systems_shown(item) for item in items])[numbers]
    first = np.array([study.item_numbers[item.id] for item in items])[numbers] + shift[:, None]
    return np.asarray((np.arange(n) - first[..., None]) % n < n_shown[..., None])


def _joined(names: NDArray[Any], n_shown: NDArray[np.int64]) -> NDArray[Any]:
    """Systems in the order shown, separated by |, as the long table has them."""
    text = names[..., 0]
    for place in range(1, names.shape[2]):
        text = np.where(n_shown > place, text + "|" + names[..., place], text)
    return np.asarray(text)


def _systems(item: Item) -> tuple[str, ...]:
    return (
        tuple(item.systems) if isinstance(item, ResponsesItem | PairItem | DialogueItem) else item.systems[:1] or ("",)
    )


def _quality(truth: Truth, item: Item, criterion: str, system: str) -> float:
    if isinstance(item, CandidateItem):
        return candidate_quality(truth, item, criterion)
    if isinstance(item, ChatItem):
        return truth.systems.get(criterion, {}).get(system, 0.0)
    return truth.quality(item.id, criterion, system)


def _rated(
    scale: Scale,
    answers: NDArray[Any],
    names: NDArray[Any],
    side: NDArray[Any],
    common: dict[str, Any],
    fixed: dict[str, Any],
) -> Columns:
    columns = {key: np.repeat(np.ravel(column), answers.shape[2]) for key, column in common.items()}
    values = answers.ravel()
    if values.dtype == object and not isinstance(values[:1].tolist()[0], str):  # answers of several parts have no order
        value = np.array([scale.number(answer) for answer in values.tolist()], dtype=np.float64)
        return _finish(columns, fixed, system=names.ravel(), value=value, side=side.ravel(), answer=values)
    distinct, place = np.unique(values, return_inverse=True)
    value = np.array([scale.number(answer) for answer in distinct.tolist()], dtype=np.float64)[place]
    choice = {"choice": values} if values.dtype == object else {}
    return _finish(columns, fixed, system=names.ravel(), value=value, side=side.ravel(), **choice)


def _compare(
    habits: Habits,
    scale: Scale,
    perceived: Floats,
    names: NDArray[Any],
    side: NDArray[Any],
    common: dict[str, Any],
    fixed: dict[str, Any],
) -> Columns:
    best, worst = perceived.argmax(axis=2), perceived.argmin(axis=2)
    pick = np.take_along_axis
    choice = pick(names, best[..., None], axis=2)[..., 0].astype(object)
    chosen_side = pick(side, best[..., None], axis=2)[..., 0]
    if TIE in scale.extra_options():
        is_tie = np.abs(perceived[..., 0] - perceived[..., -1]) < habits.tie_width
        choice, chosen_side = np.where(is_tie, TIE, choice), np.where(is_tie, 0, chosen_side)
    columns = {key: np.ravel(column) for key, column in common.items()}
    lowest = pick(names, worst[..., None], axis=2)[..., 0] if scale.choice_form == "ends" else np.full(best.shape, "")
    return _finish(
        columns,
        fixed,
        choice=choice.ravel(),
        worst=lowest.ravel().astype(object),
        side=chosen_side.ravel(),
    )


def _finish(columns: Columns, fixed: dict[str, Any], **arrays: Any) -> Columns:
    n = len(columns["rater"])
    blank: dict[str, Any] = {
        "system": np.full(n, "", dtype=object),
        "value": np.full(n, np.nan),
        "choice": np.full(n, "", dtype=object),
        "worst": np.full(n, "", dtype=object),
        "side": np.zeros(n, dtype=np.int64),
        "answer": np.full(n, None, dtype=object),  # only where neither number nor choice is the whole answer
    }
    constant = {
        key: np.full(n, value, dtype=object if isinstance(value, str) else np.int64) for key, value in fixed.items()
    }
    return {**columns, **constant, **blank, **arrays}
