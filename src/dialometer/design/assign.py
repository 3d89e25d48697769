"""Assignment: which cell, items and orders a rater gets. Pure functions of the study, its seed and a snapshot of its state.

The caller holds the database lock while :func:`draw_session` runs, so concurrent arrivals see each other. All chance
comes from generators keyed by (seed, purpose, number): with the recorded :class:`Draw`, :func:`build_plan` gives the same
plan for ever.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum

import numpy as np

from dialometer.design.adaptive import draw_items, draw_systems, draws_items, floor_of, sets_of
from dialometer.design.adjudication import Disputes
from dialometer.errors import AssignmentError
from dialometer.model.design import Block
from dialometer.model.item import ArenaItem, Item, PairItem, ResponsesItem
from dialometer.model.session import Draw, DrawnSystems, Plan, Snapshot, Task
from dialometer.model.study import Study
from dialometer.quality.gold import Gold, placed_gold

# Williams squares: orders in which every condition follows every other equally often.
#
# E. J. Williams, Experimental designs balanced for the estimation of residual effects of treatments, Australian Journal of
# Scientific Research A 2 (1949).


def williams(n: int) -> list[tuple[int, ...]]:
    """The rows of a Williams design for ``n`` conditions: ``n`` rows if ``n`` is even, ``2 n`` if it is odd.

    Over all rows each condition stands equally often at each place, and each ordered pair of neighbours occurs equally
    often (once for even ``n``, twice for odd), so first-order carry-over cancels.
    """
    if n < 1:
        raise ValueError("a Williams design needs at least one condition")
    first = [0]
    low, high = 1, n - 1
    while len(first) < n:
        first.append(low)
        low += 1
        if len(first) < n:
            first.append(high)
            high -= 1
    rows = [tuple((x + shift) % n for x in first) for shift in range(n)]
    if n % 2 and n > 1:
        rows += [tuple(reversed(row)) for row in rows]
    return rows


class _Stream(IntEnum):
    """Purposes of randomness; a new one is added at the end so that old plans stay as they were."""

    CELLS = 1
    BLOCKS = 2
    ITEMS = 3
    ITEM_ORDER = 4
    GOLD = 5
    SYSTEMS = 6
    CRITERIA = 7
    SHOWN = 8
    PAIRS = 9
    PAIR_ROUNDS = 10


def _rng(study: Study, stream: _Stream, *numbers: int) -> np.random.Generator:
    return np.random.default_rng([study.spec.seed, int(stream), *numbers])


def draw_session(study: Study, snapshot: Snapshot) -> Draw:
    """Cell, block order and items for an arriving rater; raises :class:`AssignmentError` when no place is left."""
    if not snapshot.is_open:
        raise AssignmentError("this study is not open at the moment", remedy="come back later")
    if snapshot.quota is not None and sum(snapshot.cell_counts.values()) >= snapshot.quota:
        raise AssignmentError("this study has all the raters it needs")
    cell = _draw_cell(study, snapshot)
    blocks = _draw_block_order(study, cell, snapshot.cell_counts.get(cell, 0))
    items: dict[str, tuple[str, ...]] = {}
    pairs: dict[str, DrawnSystems] = {}
    for name in blocks:
        block = next(block for block in study.blocks if block.name == name)
        items[name] = _draw_items(study, block, cell, snapshot, pairs)
    if not any(items.values()):
        raise AssignmentError("every item of this study has all the judgments it needs")
    pairs |= _draw_pairs(study, items, snapshot)
    return Draw(snapshot.ordinal, cell, blocks, items, pairs, _chances(study, items, snapshot))


def _chances(study: Study, items: Mapping[str, tuple[str, ...]], snapshot: Snapshot) -> dict[str, float]:
    """With which probability each item was drawn for people, where it was not certain."""
    if snapshot.source == "model":
        return {}
    chances = {item: study.chances_for_people[item] for ids in items.values() for item in ids}
    return {item: chance for item, chance in chances.items() if chance < 1}


def draw_adjudication(
    study: Study, snapshot: Snapshot, disputes: Disputes, n_done: Mapping[tuple[int, str], int]
) -> Draw:
    """Disagreements that nobody settles yet, in file order and of one condition: that of which most are waiting.

    An item is under way where more slots are taken than adjudicators have finished (``n_done``). The study itself need not be
    open: raters may have finished long ago.
    """
    waiting: dict[int, list[str]] = {}
    for cell, item_id in disputes:
        if snapshot.cell_item_counts.get((cell, item_id), 0) <= n_done.get((cell, item_id), 0):
            waiting.setdefault(cell, []).append(item_id)
    if study.spec.adjudication is None or not waiting:
        raise AssignmentError(
            "no disagreement is waiting to be settled", remedy="come back when raters have judged more"
        )
    cell = max(waiting, key=lambda index: (len(waiting[index]), -index))
    chosen = sorted(waiting[cell], key=study.item_numbers.__getitem__)[: study.spec.adjudication.items_per_session]
    blocks = {
        block.name: tuple(item.id for item in study.block_items(block) if item.id in chosen) for block in study.blocks
    }
    items = {name: ids for name, ids in blocks.items() if ids}
    return Draw(snapshot.ordinal, cell, tuple(items), items, disputes={i: disputes[cell, i] for i in chosen})


def draw_more(study: Study, draw: Draw, snapshot: Snapshot) -> Draw:
    """The draw with one more batch of items, for raters who may go on as long as they like; unchanged when none is left."""
    items, pairs = dict(draw.items), dict[str, DrawnSystems]()
    for block in study.blocks:
        given = draw.items.get(block.name, ())
        seen = replace(snapshot, ordinal=draw.ordinal, seen_items=snapshot.seen_items | set(given))
        items[block.name] = given + _draw_items(study, block, draw.cell, seen, pairs, n_given=len(given))
    pairs |= _draw_pairs(study, items, snapshot)
    chances = _chances(study, items, snapshot)
    return replace(draw, items=items, pairs={**pairs, **draw.pairs}, chances={**chances, **draw.chances})


def _draw_pairs(study: Study, items: Mapping[str, tuple[str, ...]], snapshot: Snapshot) -> dict[str, DrawnSystems]:
    """Which systems the rater gets in each item that leaves a choice: two in an arena, or some of an item's responses."""
    pairs: dict[str, DrawnSystems] = {}
    is_adaptive = floor_of(study) is not None and snapshot.source != "model"  # judges rate everything
    for item_id in (item_id for ids in items.values() for item_id in ids):
        item = study.items_by_id[item_id]
        if isinstance(item, ArenaItem) or (is_adaptive and len(sets_of(study, item)) > 1):
            round_ = snapshot.item_counts.get(item.id, 0) // len(sets_of(study, item))
            number = study.item_numbers[item.id]
            rounds = _rng(study, _Stream.PAIR_ROUNDS, number, round_)
            rng = _rng(study, _Stream.PAIRS, snapshot.ordinal, number)
            pairs[item.id] = draw_systems(study, item, snapshot, rng=rng, rounds=rounds)
    return pairs


def _level_counts(study: Study, snapshot: Snapshot) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for cell, n in snapshot.cell_counts.items():
        for pair in study.cells[cell].items():
            counts[pair] = counts.get(pair, 0) + n
    return counts


def _open_cells(study: Study, snapshot: Snapshot) -> list[int]:
    levels = {
        (factor.name, level.name): level.quota
        for factor in study.spec.design.factors
        for level in factor.levels
        if level.quota is not None
    }
    counts = _level_counts(study, snapshot)
    is_full = {pair for pair, quota in levels.items() if counts.get(pair, 0) >= quota}
    cells = []
    for cell, condition in enumerate(study.cells):
        quota = snapshot.cell_quotas.get(cell)
        if cell in snapshot.closed_cells or (quota is not None and snapshot.cell_counts.get(cell, 0) >= quota):
            continue
        if not is_full & set(condition.items()):
            cells.append(cell)
    return cells


def _draw_cell(study: Study, snapshot: Snapshot) -> int:
    """Permuted blocks over live sessions: the emptiest open cell, ties in the random order of the current block.

    Without drop-outs this is the classical permuted-block sequence; places that drop-outs leave are filled first.
    """
    cells = _open_cells(study, snapshot)
    if not cells:
        raise AssignmentError("every condition of this study has all the raters it needs")
    counts = {cell: snapshot.cell_counts.get(cell, 0) for cell in cells}
    round_ = min(counts.values())
    order = _rng(study, _Stream.CELLS, round_).permutation(len(study.cells))
    rank = {int(cell): i for i, cell in enumerate(order)}
    return min((cell for cell in cells if counts[cell] == round_), key=rank.__getitem__)


def _draw_block_order(study: Study, cell: int, n_before: int) -> tuple[str, ...]:
    names = [block.name for block in study.blocks]
    how = study.spec.design.block_order
    if how == "fixed" or len(names) == 1:
        return tuple(names)
    if how == "random":
        return tuple(names[i] for i in _rng(study, _Stream.BLOCKS, cell, n_before).permutation(len(names)))
    rows = williams(len(names))
    round_, place = divmod(n_before, len(rows))
    row = rows[_rng(study, _Stream.BLOCKS, cell, round_).permutation(len(rows))[place]]
    return tuple(names[i] for i in row)


def _gold_rules(study: Study) -> list[Gold]:
    return [rule for rule in study.spec.quality if isinstance(rule, Gold)]


def _draw_items(
    study: Study, block: Block, cell: int, snapshot: Snapshot, pairs: dict[str, DrawnSystems], n_given: int = 0
) -> tuple[str, ...]:
    """The items of one block (or one more batch), in the order they will be shown; ``pairs`` gets the systems of items that were
    drawn by what is open."""
    design = study.spec.design
    placed = placed_gold(study)
    out = placed | snapshot.seen_items
    pool = [item for item in study.block_items(block) if item.id not in out]
    if snapshot.source != "model":  # judges rate everything
        pool = [item for item in pool if item.id in study.chances_for_people]
    is_per_condition = design.is_quota_per_condition
    counts = np.array(
        [_count(snapshot, cell, item, is_per_condition=is_per_condition) for item in pool], dtype=np.int64
    )
    if design.judgments_per_item is not None and pool:
        is_wanted = counts < design.judgments_per_item
        pool, counts = list(itertools.compress(pool, is_wanted)), counts[is_wanted]
    n_wanted = _n_wanted(study, block, len(pool))
    block_number = [b.name for b in study.blocks].index(block.name)
    rng = _rng(study, _Stream.ITEMS, snapshot.ordinal, block_number, n_given)
    # The least judged items first, ties by chance; then back into file order, so that a fixed order is the file's.
    order = np.lexsort((rng.random(len(pool)), counts))
    chosen = {pool[i].id for i in order[:n_wanted]}
    if draws_items(study) and snapshot.source != "model":
        drawn = draw_items(study, [pool[i] for i in order], n_wanted, snapshot, rng)
        pairs |= drawn
        chosen = set(drawn)
    ids = [item.id for item in pool if item.id in chosen]
    if design.item_order == "random":
        rng = _rng(study, _Stream.ITEM_ORDER, snapshot.ordinal, block_number, n_given)
        ids = [ids[i] for i in rng.permutation(len(ids))]
    return _with_gold(study, block, ids, snapshot, n_given) if ids else ()


def _count(snapshot: Snapshot, cell: int, item: Item, *, is_per_condition: bool) -> int:
    if is_per_condition:
        return snapshot.cell_item_counts.get((cell, item.id), 0)
    return snapshot.item_counts.get(item.id, 0)


def _n_wanted(study: Study, block: Block, n_available: int) -> int:
    design = study.spec.design
    if design.blocks:
        return n_available if block.n_items == "all" else block.n_items
    if design.items_per_rater == "unlimited":
        return design.batch_size
    return n_available if design.items_per_rater == "all" else design.items_per_rater


def _with_gold(study: Study, block: Block, ids: list[str], snapshot: Snapshot, n_given: int) -> tuple[str, ...]:
    """Puts the gold items that the rules hand out to each rater at their declared or random places."""
    in_block = {item.id for item in study.block_items(block)}
    for number, rule in enumerate(_gold_rules(study)):
        if not rule.per_rater:
            continue
        rng = _rng(study, _Stream.GOLD, snapshot.ordinal, number, n_given)
        fresh = [i for i in rule.gold_ids(study) if i in in_block and i not in snapshot.seen_items]
        chosen = [fresh[i] for i in rng.permutation(len(fresh))[: rule.per_rater]]
        for i, item_id in enumerate(chosen):
            if isinstance(rule.positions, list) and i < len(rule.positions):
                place = max(0, min(len(ids), rule.positions[i] - 1 - n_given))
            else:
                place = int(rng.integers(0, len(ids) + 1))
            ids.insert(place, item_id)
    return tuple(ids)


def build_plan(study: Study, draw: Draw) -> Plan:
    """The whole plan of a session from its draw: every item with the order of its systems and criteria."""
    condition = study.cells[draw.cell]
    tasks: list[Task] = []
    n_practice = 0 if draw.disputes else study.spec.design.n_practice_items
    for item in study.practice_items[:n_practice]:
        block = next((b for b in study.blocks if b.name == item.block), study.blocks[0])
        systems = item.pairs[0] if isinstance(item, ArenaItem) else tuple(item.systems)
        tasks.append(_task(study, block, item, draw, 0, systems, is_practice=True))
    position = 0
    for name in draw.blocks:
        block = next(block for block in study.blocks if block.name == name)
        items = [study.items_by_id[item_id] for item_id in draw.items[name]]
        for item, systems in zip(items, _system_orders(study, draw, name, items), strict=True):
            position += 1
            tasks.append(_task(study, block, item, draw, position, systems))
    return Plan(condition, tuple(tasks))


def _task(
    study: Study,
    block: Block,
    item: Item,
    draw: Draw,
    position: int,
    systems: tuple[str, ...],
    *,
    is_practice: bool = False,
) -> Task:
    criteria = [criterion.name for criterion in study.block_criteria(block)]
    if study.spec.design.criterion_order == "random":
        order = _rng(study, _Stream.CRITERIA, draw.ordinal).permutation(len(study.spec.criteria))
        rank = {study.spec.criteria[i].name: place for place, i in enumerate(order)}
        criteria.sort(key=rank.__getitem__)
    disputes = draw.disputes.get(item.id, ())
    if disputes:
        criteria = [name for name in criteria if any(dispute.criterion == name for dispute in disputes)]
    return Task(block.name, item.id, position, systems, tuple(criteria), is_practice, disputes)


def _system_orders(study: Study, draw: Draw, block: str, items: Sequence[Item]) -> list[tuple[str, ...]]:
    """The order of systems on each item's screen. Counterbalanced: within a rater, each order of a Williams square equally often."""
    how = study.spec.design.system_order
    block_number = [b.name for b in study.blocks].index(block)
    pending: dict[int, list[tuple[int, ...]]] = {}
    orders = []
    for number, item in enumerate(items):
        systems = _systems_shown(study, draw, item)
        if how == "fixed" or not isinstance(item, ResponsesItem | PairItem | ArenaItem):
            orders.append(systems)
            continue
        rng = _rng(study, _Stream.SYSTEMS, draw.ordinal, block_number, number)
        n = len(systems)
        if how == "random":
            row: Sequence[int] = rng.permutation(n).tolist()
        else:
            if not pending.get(n):
                rows = williams(n)
                pending[n] = [rows[i] for i in rng.permutation(len(rows))]
            row = pending[n].pop()
        orders.append(tuple(systems[i] for i in row))
    return orders


def _systems_shown(study: Study, draw: Draw, item: Item) -> tuple[str, ...]:
    """The systems of which a rater sees something: all, those that were drawn, or those that a Latin square gives to this
    rater and item.

    Over consecutive raters each item shows each system equally often, and so does each rater over consecutive items.
    """
    systems, n_shown = tuple(item.systems), study.n_systems_shown(item)
    n = len(systems)
    if item.id in draw.pairs and len(draw.pairs[item.id].systems) < n:
        return draw.pairs[item.id].systems
    if n_shown == n or draw.disputes:
        return systems
    round_, place = divmod(draw.ordinal - 1, n)
    shift = int(_rng(study, _Stream.SHOWN, round_).permutation(n)[place])
    first = study.item_numbers[item.id] + shift
    return tuple(system for i, system in enumerate(systems) if is_shown(i, first, n, n_shown))


def is_shown(system: int, first: int, n: int, n_shown: int) -> bool:
    """Whether a system is among ``n_shown`` of ``n`` beginning with number ``first``, counted in a circle."""
    return (system - first) % n < n_shown


def balance(study: Study, cell_counts: Mapping[int, int]) -> int:
    """Largest minus smallest number of raters over the cells; 0 or 1 is perfect balance."""
    counts = [cell_counts.get(cell, 0) for cell in range(len(study.cells))]
    return max(counts) - min(counts)
