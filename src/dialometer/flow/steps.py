"""The sequence of screens of a session, rebuilt from the study and the session's draw whenever it is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from dialometer.design.assign import build_plan
from dialometer.model.design import Block
from dialometer.model.item import ArenaItem, ChatItem
from dialometer.model.session import Draw, Plan, Task
from dialometer.model.study import Study
from dialometer.quality.checks import Attention, AttentionCheck, Comprehension

StepKind = Literal[
    "screening", "consent", "pre", "instructions", "comprehension", "chat", "item", "attention", "more", "post"
]


@dataclass(frozen=True, slots=True)
class Step:
    """One screen. ``key`` is its stable name in the stored data, ``shown`` the one that pages and programs get, where it is
    another: ids of items often name systems or gold items."""

    kind: StepKind
    key: str
    task: Task | None = None
    criteria: tuple[str, ...] = ()
    check: AttentionCheck | None = None
    attempt: int = 0
    shown: str = ""

    def is_called(self, name: str) -> bool:
        """Whether this screen is meant; pages that were open during an upgrade still send the key."""
        return name == self.key or (bool(self.shown) and name == self.shown)


@dataclass(frozen=True, slots=True)
class Path:
    """All steps of a session together with the plan they come from."""

    plan: Plan
    steps: tuple[Step, ...]
    n_items: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_items", sum(not task.is_practice for task in self.plan.tasks))


class Paths:
    """Builds and remembers the paths of sessions; a path follows from the draw alone."""

    def __init__(self, study: Study, n_kept: int = 1024) -> None:
        self.study = study
        self._build = lru_cache(maxsize=n_kept)(self._build_path)

    def of(self, draw: Draw) -> Path:
        """The path of a session with this draw."""
        return self._build(_Key(draw))

    def _build_path(self, key: _Key) -> Path:
        return path_of(self.study, build_plan(self.study, key.draw))


def path_of(study: Study, plan: Plan) -> Path:
    """The path through a plan."""
    return Path(plan, tuple(_steps(study, plan)))


class _Key:
    """A draw that can be looked up: ordinals are unique, and a draw only ever grows."""

    __slots__ = ("_key", "draw")

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        pairs = tuple(sorted((item, pair.systems) for item, pair in draw.pairs.items()))
        disputes = tuple(draw.disputes.items())
        items = tuple(sorted((k, v) for k, v in draw.items.items()))
        self._key = (draw.ordinal, draw.cell, draw.blocks, items, pairs, disputes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def comprehension_rule(study: Study) -> Comprehension | None:
    """The study's comprehension check, if it has one."""
    return next((rule for rule in study.spec.quality if isinstance(rule, Comprehension)), None)


def block_of(study: Study, task: Task) -> Block:
    """The block that a task belongs to."""
    return next(block for block in study.blocks if block.name == task.block)


def _steps(study: Study, plan: Plan) -> list[Step]:
    if any(task.disputes for task in plan.tasks):  # adjudicators are no raters: nothing is asked about them
        opening = [Step("consent", "consent"), Step("instructions", "instructions")]
        return opening + [step for task in plan.tasks for step in _task_steps(study, plan, task)]
    steps: list[Step] = []
    if study.spec.screening:
        steps.append(Step("screening", "screening"))
    steps.append(Step("consent", "consent"))
    if study.spec.pre_questionnaire:
        steps.append(Step("pre", "pre"))
    steps.append(Step("instructions", "instructions"))
    rule = comprehension_rule(study)
    for attempt in range(1, rule.attempts + 1 if rule else 1):
        steps.append(Step("comprehension", f"comprehension/{attempt}", attempt=attempt))
    checks = [check for r in study.spec.quality if isinstance(r, Attention) for check in r.checks]
    for task in plan.tasks:
        steps += _task_steps(study, plan, task)
        if not task.is_practice:
            steps += [
                Step("attention", f"attention/{c.name}", check=c) for c in checks if c.after_item == task.position
            ]
    if study.spec.design.items_per_rater == "unlimited":
        steps.append(Step("more", f"more/{len(plan.tasks)}"))
    if study.spec.post_questionnaire:
        steps.append(Step("post", "post"))
    return steps


def _task_steps(study: Study, plan: Plan, task: Task) -> list[Step]:
    kind, shown = "practice" if task.is_practice else "item", study.shown_ids[task.item_id]
    place, place_shown = f"{kind}/{task.item_id}", f"{kind}/{shown}"
    steps: list[Step] = []
    if isinstance(study.items_by_id[task.item_id], ChatItem | ArenaItem):
        steps.append(Step("chat", f"chat/{task.item_id}", task, shown=f"chat/{shown}"))
    layout = study.presentation(plan.condition, block_of(study, task)).layout
    if layout == "together":
        steps.append(Step("item", place, task, task.criteria, shown=place_shown))
    else:
        steps += [
            Step("item", f"{place}/{criterion}", task, (criterion,), shown=f"{place_shown}/{criterion}")
            for criterion in task.criteria
        ]
    return steps
