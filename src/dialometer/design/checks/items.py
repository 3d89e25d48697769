"""Whether items fit the design: blocks, numbers, systems, gold, and what each kind of item needs."""

from __future__ import annotations

from collections import Counter

from dialometer.design.adaptive import deciding_criterion
from dialometer.design.checks.checker import Checker
from dialometer.model.item import PairItem
from dialometer.quality.gold import Gold, is_gold
from dialometer.registry import did_you_mean

FEWEST_PAIRS = 5
"""Transcript pairs of a strategy from which on a claim about the strategy in general is within reach."""


def _blocks_have_items(c: Checker) -> None:
    declared = [block.name for block in c.spec.design.blocks]
    for item in c.study.items:
        if item.block not in declared and (declared or item.block) and not item.metadata.get("practice"):
            if not item.block:
                c.add_item(
                    item.line,
                    f"the item '{item.id}' names no block",
                    f'add "block": one of {", ".join(declared)}',
                    "block",
                )
            else:
                remedy = (
                    did_you_mean(item.block, declared) if declared else "declare it under design.blocks in study.yaml"
                )
                c.add_item(item.line, f"the item '{item.id}' names the unknown block '{item.block}'", remedy, "block")
    for i, block in enumerate(c.spec.design.blocks):
        n_items = len(c.study.block_items(block))
        if not n_items:
            c.add(
                ("design", "blocks", i, "name"),
                f"no item belongs to the block '{block.name}'",
                "name it in the items' field 'block'",
            )
        elif isinstance(block.n_items, int) and block.n_items > n_items:
            c.add(
                ("design", "blocks", i, "n_items"),
                f"the block '{block.name}' has only {n_items} items",
                f"use {n_items} or 'all'",
            )
        for j, name in enumerate(block.criteria or ()):
            c.known(name, c.study.criteria_by_name, "criterion", ("design", "blocks", i, "criteria", j))


def _numbers_can_be_met(c: Checker) -> None:
    design = c.spec.design
    n_items = len(c.study.people_items)
    if isinstance(design.items_per_rater, int) and design.items_per_rater > n_items > 0:
        c.add(("design", "items_per_rater"), f"there are only {n_items} items", f"use {n_items} or 'all'")
    if design.blocks and design.items_per_rater not in ("all",):
        c.add(
            ("design", "items_per_rater"),
            "with blocks, each block says how many items a rater gets",
            "use n_items in the blocks",
        )
    if design.systems_per_item is not None:
        _parts_of_items(c, design.systems_per_item)
    n_practice = len(c.study.practice_items)
    if design.n_practice_items > n_practice:
        c.add(
            ("design", "n_practice_items"),
            f"{design.n_practice_items} practice items are wanted, but {n_practice} are marked",
            'mark items with "metadata": {"practice": true}',
        )
    if design.judgments_per_item is None and c.spec.recruitment.quota is None:
        c.add(
            ("recruitment",),
            "nothing says when the study is complete",
            "give recruitment.quota or design.judgments_per_item",
            "warning",
        )


def _parts_of_items(c: Checker, n_shown: int) -> None:
    """Whether raters can be shown only some of an item's responses."""
    place = ("design", "systems_per_item")
    most = max((len(item.systems) for item in c.study.items), default=n_shown)
    if c.spec.items.kind != "responses":
        c.add(place, "only items of the kind 'responses' can be shown in part", "remove it")
    elif n_shown > most:
        c.add(place, f"no item has more than {most} responses", f"use a number up to {most}, or remove it")
    elif any(scale.compares for name, scale in c.spec.scales.items() if name in _used_scales(c)):
        c.add(
            place, "a scale that compares responses needs all of them on the screen", "remove it, or use a rating scale"
        )


def _used_scales(c: Checker) -> set[str]:
    changed = [change for factor in c.spec.design.factors for change in (level.set for level in factor.levels)]
    changed += [block.set for block in c.spec.design.blocks]
    used = {criterion.scale for criterion in c.spec.criteria}
    return used | {scale for change in changed for scale in (change.scales or {}).values()}


def _systems_are_used(c: Checker) -> None:
    used = {system for item in c.study.items for system in item.systems}
    for i, system in enumerate(c.spec.systems):
        if system.name not in used and c.study.items:
            c.add(
                ("systems", i, "name"),
                f"no item shows the system '{system.name}'",
                "add items or remove the system",
                "warning",
            )
        if c.spec.items.kind in ("chat", "arena") and system.name in used and system.agent is None:
            c.add(
                ("systems", i),
                f"raters talk to '{system.name}', but it has no agent",
                "add 'agent:' with a type (scripted, http, openai, anthropic, ollama, local …)",
            )


def _gold_is_known(c: Checker) -> None:
    for i, rule in enumerate(c.spec.quality):
        if not isinstance(rule, Gold):
            continue
        for j, item_id in enumerate(rule.items or ()):
            c.known(item_id, c.study.items_by_id, "item", ("quality", i, "items", j))
        n_gold = len(rule.gold_ids(c.study))
        if not n_gold and rule.items is None and c.study.items:
            c.add(
                ("quality", i),
                "no item is marked as gold",
                'name them under items, or mark them with "metadata": {"gold": true}',
            )
        if rule.per_rater and rule.per_rater > n_gold:
            c.add(("quality", i, "per_rater"), f"there are only {n_gold} gold items", f"use {n_gold} or less")
        for j, acceptable in enumerate(rule.acceptable):
            path = ("quality", i, "acceptable", j)
            c.known(acceptable.criterion, c.study.criteria_by_name, "criterion", (*path, "criterion"))
            if acceptable.system:
                c.known(acceptable.system, [s.name for s in c.spec.systems], "system", (*path, "system"))
            criterion = c.study.criteria_by_name.get(acceptable.criterion)
            scale = c.spec.scales.get(criterion.scale) if criterion else None
            if acceptable.point and scale is not None:
                c.known(acceptable.point, scale.point_texts(), "point of the checklist", (*path, "point"))


def _controlled_pairs_are_pairs(c: Checker) -> None:
    if c.spec.items.pairs == "controlled" and c.spec.items.kind != "transcript_pair":
        c.add(("items", "pairs"), "only transcript pairs can be controlled", "remove it, or use kind: transcript_pair")
    if any(isinstance(item, PairItem) and item.breaches for item in c.study.items) and c.spec.items.pairs == "free":
        c.add(
            ("items", "pairs"),
            "items declare breaches, but the pairs are not controlled",
            "use 'pairs: controlled'",
            "warning",
        )


def _arena_can_be_held(c: Checker) -> None:
    if c.spec.items.kind != "arena":
        if "arena" in c.spec.model_fields_set:
            c.add(("arena",), "only items of the kind arena use this part", "remove it, or use kind: arena")
        return
    for i, system in enumerate(c.spec.systems):
        if system.agent is not None and system.agent.type == "wizard":
            c.add(
                ("systems", i, "agent", "type"),
                "a person cannot answer as one of two systems side by side: the slower one would be recognised",
                "use an agent that answers by itself, or items of the kind chat",
            )
    if c.spec.arena.pairs == "uncertain" and len(c.spec.systems) == 2:
        c.add(("arena", "pairs"), "two systems make one pair, so that there is nothing to draw", "remove it", "warning")
    if c.spec.arena.pairs == "uncertain" and deciding_criterion(c.study) is None:
        c.add(
            ("arena", "pairs"),
            "no question is answered by choosing one of the two, so that no pair is uncertain",
            "add a criterion with a pairwise scale, or use 'pairs: balanced'",
        )


def _pairs_of_dialogues_name_them(c: Checker) -> None:
    if c.spec.items.pairs != "dialogues":
        return
    if c.spec.items.kind != "transcript_pair":
        c.add(("items", "pairs"), "only transcript pairs can be pairs of dialogues", "use kind: transcript_pair")
    for item in c.study.items:
        is_checked = item.metadata.get("gold") or item.metadata.get("practice")
        missing = [side for side in ("first", "second") if not item.metadata.get(side)]
        if isinstance(item, PairItem) and missing and not is_checked:
            names = " and ".join(missing)
            c.add_item(item.line, f"the dialogue is not named ({names})", "give its id in the metadata", "metadata")


def _pairs_carry_general_claims(c: Checker) -> None:
    """Transcript pairs are a sample of what can carry a strategy; very few of them say nothing about it in general."""
    if c.spec.items.pairs != "controlled" or c.spec.analysis.items == "fixed":
        return
    gold = c.study.gold_ids | {item.id for item in c.study.items if is_gold(item)}
    pairs = [item for item in c.study.rated_items if isinstance(item, PairItem) and item.id not in gold]
    counts = Counter(item.block if c.spec.design.blocks else item.b.system for item in pairs)
    few = [f"{name} ({n})" for name, n in counts.items() if n < FEWEST_PAIRS]
    if few:
        c.add(
            ("items", "file"),
            f"few transcript pairs for {', '.join(few)}: with fewer than {FEWEST_PAIRS} the report can hardly ever say that a "
            "strategy is preferred in general, only in the pairs shown",
            "add pairs ('dialometer power' says how many are needed), or make claims about these texts only with "
            "'items: fixed' under analysis",
            "warning",
        )


CHECKS = (
    _blocks_have_items,
    _numbers_can_be_met,
    _systems_are_used,
    _gold_is_known,
    _controlled_pairs_are_pairs,
    _arena_can_be_held,
    _pairs_of_dialogues_name_them,
    _pairs_carry_general_claims,
)
