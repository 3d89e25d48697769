"""A study in numbers, as a protocol or ethics application needs them: conditions, raters, judgments, minutes, cost."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dialometer.model.design import Block, Condition, Presentation
from dialometer.model.item import ArenaItem, CandidateItem, ChatItem, DialogueItem, Item, PairItem, ResponsesItem
from dialometer.model.study import Study
from dialometer.quality.gold import Gold, placed_gold
from dialometer.recruit.platforms import platform_of
from dialometer.recruit.qualifying import met_qualifications

WORDS_PER_SECOND = 4.0  # careful silent reading, about 240 words a minute
SECONDS_PER_SCREEN = 3.0
SECONDS_PER_REASON = {None: 0.0, "optional": 5.0, "required": 15.0}
SECONDS_PER_CHAT_TURN = 20.0


@dataclass(frozen=True, slots=True)
class Protocol:
    """What the study asks for. Fields are None where the study file does not decide them."""

    conditions: tuple[str, ...]
    shown: tuple[str, ...]
    """What raters see of an anchor and a task, by the level or block that changes it; see :func:`shown_words`."""
    n_items: int
    n_items_per_rater: int | None
    n_judgments_per_rater: int | None
    n_raters: int | None
    n_judgments: int | None
    minutes_per_rater: float
    """As announced to raters, estimated where nothing is."""
    estimated_minutes: float
    pay_per_hour_cents: float | None
    cost_cents: int | None
    currency: str
    qualifications: tuple[str, ...] = ()
    """What raters must bring, each with what makes sure of it."""


def protocol(study: Study) -> Protocol:
    """The numbers of a study. Times are estimates from reading speed and answers unless the study states its minutes."""
    if ("protocol",) not in study.remembered:
        study.remembered["protocol",] = _protocol(study)
    result: Protocol = study.remembered["protocol",]
    return result


def _protocol(study: Study) -> Protocol:
    spec = study.spec
    n_items = _n_items_per_rater(study)
    n_raters = _n_raters(study, n_items)
    per_rater = _n_judgments_per_rater(study)
    estimated = estimate_minutes(study)
    minutes = spec.recruitment.minutes or estimated
    pay = spec.recruitment.pay_cents
    cost = None if n_raters is None else math.ceil(spec.recruitment.cost_cents(n_raters))
    return Protocol(
        conditions=tuple(study.cell_label(cell) for cell in study.cells),
        shown=tuple(shown_words(study)),
        n_items=sum(len(_ordinary_items(study, block)) for block in study.blocks),
        n_items_per_rater=n_items,
        n_judgments_per_rater=per_rater,
        n_raters=n_raters,
        n_judgments=_n_judgments(study, n_raters, per_rater),
        minutes_per_rater=minutes,
        estimated_minutes=estimated,
        pay_per_hour_cents=pay / minutes * 60 if pay else None,
        cost_cents=cost if pay else None,
        currency=spec.recruitment.currency,
        qualifications=tuple(
            f"{met.words} ({met.how})" for met in met_qualifications(spec, platform_of(spec.recruitment))
        ),
    )


def raters_wanted(study: Study, quota: int | None) -> int | None:
    """How many raters who count a study needs: its quota, else what the design takes; None where neither says."""
    return quota if quota is not None else protocol(study).n_raters


_TASK_VARIABLE = re.compile(r"\{\{\s*(criteria|anchor)\s*\}\}")


def shown_words(study: Study) -> list[str]:
    """What raters see of an anchor, and the sentence that gives them the task, for each level and block that changes it.

    One line about everyone where nothing changes it, none where the study has neither. Placeholders are filled as on a screen
    that asks for all criteria.
    """
    parts = [
        (f"{factor.label or factor.name}, {level.label or level.name}", level.set)
        for factor in study.spec.design.factors
        for level in factor.levels
    ]
    parts += [(f"block {block.title or block.name}", block.set) for block in study.spec.design.blocks]
    telling = [
        (name, change) for name, change in parts if change.model_fields_set & {"anchor", "anchor_values", "task"}
    ]
    base = study.spec.presentation
    lines = [f"{name}: {_seen(study, change.apply(base)) or 'neither anchor nor task'}" for name, change in telling]
    everyone = _seen(study, base)
    return lines or ([everyone] if everyone else [])


def _seen(study: Study, shown: Presentation) -> str:
    labels = {criterion.name: criterion.label or criterion.name for criterion in study.spec.criteria}
    values = study.shown_anchors(shown, study.spec.criteria)
    numbers = ", ".join(f"{labels[name]} {value:g}" for name, value in values.items())
    words = {
        "none": "",
        "number": f"the value of a standard ({numbers})",
        "text": "the standard response",
        "both": f"the standard response and its value ({numbers})",
    }
    same = {f"{value:g}" for value in values.values()}
    filled = {"criteria": ", ".join(labels.values()), "anchor": same.pop() if len(same) == 1 else numbers}
    task = f"the task “{_TASK_VARIABLE.sub(lambda match: filled[match[1]], shown.task)}”" if shown.task else ""
    return "; ".join(part for part in (words[shown.anchor], task) if part)


def _ordinary_items(study: Study, block: Block) -> list[Item]:
    """The items of a block without the gold items that a rule hands out to every rater beside them."""
    key = ("ordinary items", block.name)
    if key not in study.remembered:
        given = study.chances_for_people.keys() - placed_gold(study)
        study.remembered[key] = [item for item in study.block_items(block) if item.id in given]
    items: list[Item] = study.remembered[key]
    return items


def _gold_seconds_and_judgments(study: Study, condition: Condition) -> tuple[float, float]:
    """What the handed-out gold items add to one session."""
    seconds = judgments = 0.0
    for rule in study.spec.quality:
        if isinstance(rule, Gold) and rule.per_rater:
            items = [study.items_by_id[item_id] for item_id in rule.gold_ids(study)]
            share = rule.per_rater / max(1, len(items))
            for item in items:
                block = next((b for b in study.blocks if b.name == item.block), study.blocks[0])
                seconds += share * item_seconds(study, item, block, condition)
                judgments += share * judgments_on(study, item, block, condition)
    return seconds, judgments


def _n_in_block(study: Study, block: Block) -> int:
    n_available = len(_ordinary_items(study, block))
    if study.spec.design.blocks:
        return n_available if block.n_items == "all" else min(block.n_items, n_available)
    n_wanted = study.spec.design.items_per_rater
    return n_wanted if isinstance(n_wanted, int) else n_available


def _n_items_per_rater(study: Study) -> int | None:
    if study.spec.design.items_per_rater == "unlimited":
        return None
    return sum(_n_in_block(study, block) for block in study.blocks)


def _n_raters(study: Study, n_items_per_rater: int | None) -> int | None:
    design = study.spec.design
    if study.spec.recruitment.quota is not None:
        return study.spec.recruitment.quota
    if design.judgments_per_item is None or n_items_per_rater is None:
        return None
    times = len(study.cells) if design.is_quota_per_condition else 1
    per_block = [
        math.ceil(len(_ordinary_items(study, block)) * design.judgments_per_item / _n_in_block(study, block))
        for block in study.blocks
        if _n_in_block(study, block)
    ]
    return times * max(per_block, default=0)


def n_shown(study: Study, item: Item) -> int:
    """How many systems a rater sees on one item."""
    if isinstance(item, ArenaItem):
        return 2
    return study.n_systems_shown(item) if isinstance(item, ResponsesItem | PairItem) else 1


def judgments_on(study: Study, item: Item, block: Block, condition: Condition) -> int:
    """How many judgments one rater gives on one item."""
    n_targets = n_shown(study, item)
    if isinstance(item, DialogueItem) and study.spec.items.rate == "turns":
        n_targets = sum(turn.role == "agent" for turn in item.turns)
    n_compared, n_each = _asked_once(study, block, condition)
    return n_compared + n_each * n_targets


def _asked_once(study: Study, block: Block, condition: Condition) -> tuple[int, int]:
    """How many criteria of a block compare what is shown, and how many are asked of each thing; the same for all its items."""
    key = ("asked once", block.name, *sorted(condition.items()))
    if key not in study.remembered:
        presentation = study.presentation(condition, block)
        compares = [study.scale_for(criterion, presentation).compares for criterion in study.block_criteria(block)]
        study.remembered[key] = (sum(map(bool, compares)), sum(not is_comparison for is_comparison in compares))
    counts: tuple[int, int] = study.remembered[key]
    return counts


def _n_judgments_per_rater(study: Study) -> int | None:
    if study.spec.design.items_per_rater == "unlimited":
        return None
    _, total = _gold_seconds_and_judgments(study, study.cells[0])
    for block in study.blocks:
        items = _ordinary_items(study, block)
        if items:
            mean = sum(judgments_on(study, item, block, study.cells[0]) for item in items) / len(items)
            total += mean * _n_in_block(study, block)
    return round(total)


def _n_judgments(study: Study, n_raters: int | None, per_rater: int | None) -> int | None:
    design = study.spec.design
    if design.judgments_per_item is not None:
        times = design.judgments_per_item * (len(study.cells) if design.is_quota_per_condition else 1)
        n_wanted = times * sum(
            judgments_on(study, item, block, study.cells[0])
            for block in study.blocks
            for item in _ordinary_items(study, block)
        )
        _, gold = _gold_seconds_and_judgments(study, study.cells[0])
        return n_wanted + round((n_raters or 0) * gold)
    return n_raters * per_rater if n_raters is not None and per_rater is not None else None


def estimate_minutes(study: Study) -> float:
    """Minutes a careful rater needs, over conditions: reading everything once and answering every field."""
    times_s = [_session_s(study, condition) for condition in study.cells]
    return max(1.0, round(sum(times_s) / len(times_s) / 60, 1))


def announced_minutes(study: Study) -> int:
    """The whole minutes that raters and platforms are told."""
    return math.ceil(study.spec.recruitment.minutes or estimate_minutes(study))


def _session_s(study: Study, condition: Condition) -> float:
    words = sum(len(study.texts.get(name, "").split()) for name in study.spec.texts.model_dump().values())
    seconds = words / WORDS_PER_SECOND + _gold_seconds_and_judgments(study, condition)[0]
    for question in (*study.spec.screening, *study.spec.pre_questionnaire, *study.spec.post_questionnaire):
        seconds += len(question.text.split()) / WORDS_PER_SECOND + study.spec.scales[question.scale].seconds_per_answer
    for block in study.blocks:
        items = _ordinary_items(study, block)
        if not items:
            continue
        n_items = (
            min(_n_in_block(study, block), study.spec.design.batch_size * 2)
            if (study.spec.design.items_per_rater == "unlimited")
            else _n_in_block(study, block)
        )
        seconds += n_items * sum(item_seconds(study, item, block, condition) for item in items) / len(items)
    return seconds


def item_seconds(study: Study, item: Item, block: Block, condition: Condition) -> float:
    """Seconds for one item: reading it once, then answering; with one criterion per screen a glance for each screen."""
    presentation = study.presentation(condition, block)
    criteria = study.block_criteria(block)
    n_screens = len(criteria) if presentation.layout == "one_per_screen" else 1
    n_targets = n_shown(study, item)
    seconds = _n_words(item, n_targets) / WORDS_PER_SECOND + n_screens * SECONDS_PER_SCREEN
    for criterion in criteria:
        scale = study.scale_for(criterion, presentation)
        n_answers = 1 if scale.compares else n_targets
        seconds += (scale.seconds_per_answer + SECONDS_PER_REASON[criterion.reason]) * n_answers
    return seconds + chat_seconds(item)


def chat_seconds(item: Item) -> float:
    """Seconds for a live conversation, before it is rated; 0 for other items."""
    if isinstance(item, ArenaItem):  # one message, two responses to read
        return 3 * item.min_turns * SECONDS_PER_CHAT_TURN
    return 2 * item.min_turns * SECONDS_PER_CHAT_TURN if isinstance(item, ChatItem) else 0.0


def _n_words(item: Item, n_targets: int) -> float:
    match item:
        case ResponsesItem():
            read = sum(len(text.split()) for text in item.responses.values()) * n_targets / max(1, len(item.responses))
            return read + sum(len(text.split()) for text in (*(t.text for t in item.context), item.standard or ""))
        case PairItem():
            texts = [turn.text for turn in item.a.turns] + [turn.text for turn in item.b.turns]
        case DialogueItem():
            texts = [turn.text for turn in item.turns]
        case CandidateItem():
            texts = [turn.text for turn in item.context] + [item.candidate.text]
        case ChatItem() | ArenaItem():
            texts = [item.scenario]
    return sum(len(text.split()) for text in texts)
