"""Balance, quotas and orders hold whatever happens; plans can be rebuilt from what was recorded."""

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialometer.design.assign import balance, build_plan, draw_more, draw_session, williams
from dialometer.design.load import load_study
from dialometer.design.templates import template_folder
from dialometer.errors import AssignmentError
from dialometer.model.item import ResponsesItem
from dialometer.model.session import Snapshot
from dialometer.model.study import Study

ANCHORING = load_study(template_folder("anchoring"))
STRATEGIES = load_study(template_folder("strategies"))
AVATAR = load_study(template_folder("avatar"))
LIKERT = load_study(template_folder("likert"))
ACUTE = load_study(template_folder("acute"))


def with_design(study: Study, **changes) -> Study:
    spec = study.spec.model_copy(update={"design": study.spec.design.model_copy(update=changes), "quality": []})
    return Study(spec=spec, items=study.items, texts=study.texts)


class Desk:
    """Keeps the counts that a store would give, so that the pure functions can be driven alone."""

    def __init__(self, study: Study, **fixed):
        self.study = study
        self.fixed = fixed
        self.n = 0
        self.draws = {}
        self.live = set()

    def snapshot(self) -> Snapshot:
        live = [self.draws[i] for i in self.live]
        items = Counter(i for d in live for ids in d.items.values() for i in ids)
        pairs = Counter((d.cell, i) for d in live for ids in d.items.values() for i in ids)
        return Snapshot(
            ordinal=self.n,
            cell_counts=Counter(d.cell for d in live),
            item_counts=items,
            cell_item_counts=pairs,
            **self.fixed,
        )

    def arrive(self):
        self.n += 1
        draw = draw_session(self.study, self.snapshot())
        self.draws[self.n] = draw
        self.live.add(self.n)
        return draw

    def cells(self):
        return Counter(self.draws[i].cell for i in self.live)


@pytest.mark.parametrize("n", range(1, 12))
def test_williams_squares_balance_places_and_neighbours(n):
    rows = williams(n)
    assert len(rows) == (n if n % 2 == 0 or n == 1 else 2 * n)
    for place in range(n):
        assert set(Counter(row[place] for row in rows).values()) == {len(rows) // n}
    neighbours = Counter(pair for row in rows for pair in itertools.pairwise(row))
    if n > 1:
        assert len(neighbours) == n * (n - 1)
        assert len(set(neighbours.values())) == 1


def test_77_raters_balance_within_one_block():
    desk = Desk(ANCHORING)
    for _ in range(77):
        desk.arrive()
        assert balance(ANCHORING, desk.cells()) <= 1
    assert sorted(desk.cells().values()) == [19, 19, 19, 20]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(0, 2**31))
def test_places_that_leavers_free_are_filled_first(moves, seed):
    """After any sequence of arrivals and leavings, arrivals alone bring the cells back to balance."""
    study = with_design(ANCHORING)
    study = Study(study.spec.model_copy(update={"seed": seed}), study.items, study.texts)
    desk = Desk(study)
    for move in moves:
        if move == 0 and desk.live:
            desk.live.remove(sorted(desk.live)[len(desk.live) // 2])
        else:
            desk.arrive()
    gap = balance(study, desk.cells()) * len(study.cells)
    for _ in range(gap + 4):
        desk.arrive()
    assert balance(study, desk.cells()) <= 1


@settings(max_examples=25, deadline=None)
@given(per_rater=st.integers(1, 20), quota=st.integers(1, 7), seed=st.integers(0, 2**31))
def test_every_item_gets_its_quota_of_distinct_raters_and_no_more(per_rater, quota, seed):
    study = with_design(LIKERT, items_per_rater=per_rater, judgments_per_item=quota)
    study = Study(study.spec.model_copy(update={"seed": seed}), study.items, study.texts)
    desk = Desk(study)
    with pytest.raises(AssignmentError, match="all the judgments it needs"):
        for _ in range(10_000):
            draw = desk.arrive()
            assert len(set(draw.items["main"])) == len(draw.items["main"])
            counts = desk.snapshot().item_counts
            assert max(counts.values()) - min(counts.get(i.id, 0) for i in study.rated_items) <= 1
    counts = desk.snapshot().item_counts
    assert {counts[item.id] for item in study.rated_items} == {quota}


@pytest.mark.parametrize("name", ["condition", "cell"])
def test_quota_per_condition(name):
    study = with_design(ANCHORING, items_per_rater=10, judgments_per_item=2, quota_per=name)
    desk = Desk(study)
    with pytest.raises(AssignmentError):
        for _ in range(1000):
            desk.arrive()
    assert set(desk.snapshot().cell_item_counts.values()) == {2}


def test_closed_and_full_cells_get_nobody():
    desk = Desk(ANCHORING, closed_cells=frozenset({1}), cell_quotas={2: 3})
    cells = Counter(desk.arrive().cell for _ in range(23))
    assert cells[1] == 0
    assert cells[2] == 3
    assert cells[0] == cells[3] == 10
    with pytest.raises(AssignmentError, match="every condition"):
        draw_session(ANCHORING, Snapshot(1, closed_cells=frozenset(range(4))))
    with pytest.raises(AssignmentError, match="not open"):
        draw_session(ANCHORING, Snapshot(1, is_open=False))
    with pytest.raises(AssignmentError, match="all the raters"):
        draw_session(ANCHORING, Snapshot(5, cell_counts={0: 2, 1: 2}, quota=4))


def test_block_orders_run_through_the_williams_square():
    desk = Desk(STRATEGIES)
    orders = Counter(desk.arrive().blocks for _ in range(20))
    assert set(orders.values()) == {2}
    assert len(orders) == 10
    names = [block.name for block in STRATEGIES.blocks]
    assert {tuple(names.index(name) for name in order) for order in orders} == set(williams(5))


def test_strategies_give_one_pair_of_each_strategy():
    draw = Desk(STRATEGIES).arrive()
    assert {name: len(ids) for name, ids in draw.items.items()} == dict.fromkeys(draw.blocks, 1)
    assert sorted(draw.blocks) == ["alignment", "empathy", "facing", "formality", "vocabulary"]


def test_plans_are_rebuilt_from_the_draw():
    desk = Desk(ANCHORING)
    draws = [desk.arrive() for _ in range(8)]
    plans = [build_plan(ANCHORING, draw) for draw in draws]
    again = load_study(template_folder("anchoring"))
    assert [build_plan(again, draw) for draw in draws] == plans
    assert len({plan.tasks for plan in plans}) == 8


def test_another_seed_is_another_plan():
    other = Study(ANCHORING.spec.model_copy(update={"seed": 99}), ANCHORING.items, ANCHORING.texts)
    assert build_plan(other, Desk(other).arrive()).tasks != build_plan(ANCHORING, Desk(ANCHORING).arrive()).tasks


def test_system_order_is_even_over_raters():
    desk = Desk(ANCHORING)
    first = Counter()
    for _ in range(40):
        plan = build_plan(ANCHORING, desk.arrive())
        first.update(task.systems[0] for task in plan.tasks if not task.is_practice)
    assert sum(first.values()) == 2000
    for n in first.values():  # three systems, expected 667, sd 21
        assert abs(n - 2000 / 3) < 5 * 21


def test_counterbalanced_sides_are_even_within_each_rater():
    study = with_design(ACUTE, system_order="counterbalanced", items_per_rater=8)
    desk = Desk(study)
    for _ in range(5):
        plan = build_plan(study, desk.arrive())
        swapped = [
            task.systems != study.items_by_id[task.item_id].systems for task in plan.tasks if not task.is_practice
        ]
        assert sum(swapped) == 4


def test_counterbalanced_orders_of_three_systems():
    study = with_design(ANCHORING, system_order="counterbalanced")
    plan = build_plan(study, Desk(study).arrive())
    orders = Counter(task.systems for task in plan.tasks if not task.is_practice)
    assert len(orders) == 6
    assert max(orders.values()) - min(orders.values()) <= 1


def test_fixed_orders_follow_the_file():
    study = with_design(ANCHORING, item_order="fixed", system_order="fixed")
    plan = build_plan(study, Desk(study).arrive())
    tasks = [task for task in plan.tasks if not task.is_practice]
    assert [task.item_id for task in tasks] == [item.id for item in study.rated_items]
    assert all(task.systems == study.items_by_id[task.item_id].systems for task in tasks)


def test_unlimited_raters_get_batch_after_batch_until_nothing_is_left():
    study = with_design(AVATAR)
    desk = Desk(study)
    draw = desk.arrive()
    assert len(draw.items["main"]) == study.spec.design.batch_size
    seen = draw.items["main"]
    while True:
        more = draw_more(study, draw, desk.snapshot())
        if more == draw:
            break
        assert more.items["main"][: len(seen)] == seen
        draw, seen = more, more.items["main"]
        desk.draws[1] = draw
    assert sorted(seen) == sorted(item.id for item in study.rated_items)
    assert [t.item_id for t in build_plan(study, draw).tasks if not t.is_practice] == list(seen)


def test_handed_out_gold_reaches_every_rater_and_is_not_counted_as_ordinary():
    desk = Desk(LIKERT)
    gold = {item.id for item in LIKERT.items if item.metadata.get("gold")}
    for _ in range(10):
        items = desk.arrive().items["main"]
        assert len(set(items) & gold) == 2
        assert len(set(items) - gold) == 10


def test_gold_stands_at_declared_positions():
    rules = [
        rule.model_copy(update={"positions": [3 + 3 * i]}) if rule.rule == "gold" else rule
        for i, rule in enumerate(LIKERT.spec.quality)
    ]
    study = Study(LIKERT.spec.model_copy(update={"quality": rules}), LIKERT.items, LIKERT.texts)
    expected = [rule.positions[0] for rule in rules if rule.rule == "gold"]
    gold = [rule.gold_ids(study)[0] for rule in rules if rule.rule == "gold"]
    for _ in range(5):
        items = Desk(study).arrive().items["main"]
        assert items.index(gold[-1]) == expected[-1] - 1


def test_practice_comes_first_and_is_marked():
    plan = build_plan(ANCHORING, Desk(ANCHORING).arrive())
    assert plan.tasks[0].is_practice
    assert not any(task.is_practice for task in plan.tasks[1:])
    assert isinstance(ANCHORING.items_by_id[plan.tasks[0].item_id], ResponsesItem)


def test_random_criterion_order_is_the_riders_own():
    study = with_design(ANCHORING, criterion_order="random")
    desk = Desk(study)
    orders = [{task.criteria for task in build_plan(study, desk.arrive()).tasks} for _ in range(20)]
    assert all(len(order) == 1 for order in orders)
    assert len(set().union(*orders)) == 2


def test_snapshot_order_does_not_matter():
    base = Snapshot(5, cell_counts={0: 1, 1: 1, 2: 1, 3: 1})
    assert draw_session(ANCHORING, base) == draw_session(ANCHORING, replace(base, cell_counts={3: 1, 2: 1, 1: 1, 0: 1}))


@pytest.mark.parametrize("n_shown", [1, 2])
@pytest.mark.parametrize("order", ["random", "fixed", "counterbalanced"])
def test_raters_who_see_some_of_the_systems_see_them_equally_often(n_shown, order):
    study = with_design(
        LIKERT, items_per_rater="all", judgments_per_item=None, systems_per_item=n_shown, system_order=order
    )
    study = replace(study, items=tuple(item for item in study.items if not item.metadata.get("practice"))[:9])
    names = [system.name for system in study.spec.systems]
    desk = Desk(study)
    raters = [build_plan(study, desk.arrive()).tasks for _ in range(2 * len(names))]
    for tasks in raters:
        shown = [task.systems for task in tasks if not task.is_practice]
        assert {len(systems) for systems in shown} == {n_shown}
        assert set(Counter(itertools.chain(*shown)).values()) == {n_shown * 9 // len(names)}
        if order == "fixed":
            assert all(list(systems) == sorted(systems, key=names.index) for systems in shown)
    by_item = Counter((task.item_id, system) for tasks in raters for task in tasks for system in task.systems)
    assert set(by_item.values()) == {2 * n_shown}
    assert len(by_item) == 9 * len(names)


def test_gold_items_are_shown_whole():
    changed = LIKERT.spec.design.model_copy(update={"systems_per_item": 1})
    study = replace(LIKERT, spec=LIKERT.spec.model_copy(update={"design": changed}))
    tasks = [task for task in build_plan(study, Desk(study).arrive()).tasks if not task.is_practice]
    gold = {task.item_id: len(task.systems) for task in tasks if task.item_id in study.gold_ids}
    assert gold
    assert set(gold.values()) == {3}
    assert {len(task.systems) for task in tasks if task.item_id not in gold} == {1}
