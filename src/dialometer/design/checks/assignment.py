"""Adaptive assignment: whether there is anything to choose, and whether the analysis can use the probabilities."""

from __future__ import annotations

import math

from dialometer.design.adaptive import compared_pairs, deciding_criterion, draws_items, sets_of_items
from dialometer.design.checks.checker import Checker

MOST_SETS = 500
"""Sets of systems above which most would be drawn hardly ever."""
PLACE = ("design", "assignment")
BALANCED = "use 'assignment: balanced'"


def _adaptive_assignment_can_hold(c: Checker) -> None:
    design, kind = c.spec.design, c.spec.items.kind
    if design.assignment.rule != "adaptive":
        return
    if kind == "arena":
        c.add(PLACE, "arenas say for themselves how pairs are drawn", "use 'pairs: uncertain' under arena")
    elif kind not in ("responses", "transcript_pair", "dialogue") or c.spec.items.pairs != "free":
        c.add(
            PLACE,
            "adaptive assignment compares systems on responses, dialogues and free transcript pairs; these items do not",
            BALANCED,
        )
    elif design.factors:
        c.add(PLACE, "tests of conditions do not use the probabilities of adaptive assignment", BALANCED)
    elif len(compared_pairs(c.study)) < 2:
        c.add(PLACE, "two systems make one comparison, so that there is nothing to choose", BALANCED)
    else:
        _analysis_uses_probabilities(c)
        _something_is_chosen(c)


def _analysis_uses_probabilities(c: Checker) -> None:
    analysis, primary = c.spec.analysis, c.study.primary_comparison
    if deciding_criterion(c.study) is None:
        c.add(
            PLACE, "no criterion is rated by numbers or chosen between two systems, so that nothing is open", BALANCED
        )
    if primary is None or primary.between != "systems":
        c.add(
            PLACE, "only a primary comparison between systems says what is open", "declare one under analysis.primary"
        )
    elif primary.test != "difference":
        c.add(PLACE, "the rule looks for the better system, not for whether a margin is kept", BALANCED)
    if analysis.judges is not None:
        c.add(
            PLACE,
            "human raters corrected by judges need items drawn with fixed probabilities",
            f"{BALANCED}, or no judges",
        )
    if analysis.model == "ordinal":
        c.add(
            ("analysis", "model"),
            "the ordinal model does not use the probabilities of adaptive assignment",
            "use 'linear'",
        )


def _something_is_chosen(c: Checker) -> None:
    design, study = c.spec.design, c.study
    ordinary = [item for item in study.rated_items if item.id not in study.gold_ids]
    if not draws_items(study):
        most = max((math.comb(len(item.systems), study.n_systems_shown(item)) for item in ordinary), default=0)
        if most == 1:
            c.add(PLACE, "every rater sees all systems of an item", "show fewer with 'systems_per_item'")
        elif most > MOST_SETS:
            c.add(PLACE, f"{most:,} sets of systems are too many to draw from", "show 2 with 'systems_per_item'")
        return
    if len(sets_of_items(study, ordinary)) < 2:
        c.add(
            PLACE,
            "all items show the same systems, so that there is nothing to choose",
            "show fewer with 'systems_per_item'",
        )
    numbers: list[object] = [block.n_items for block in design.blocks] or [design.items_per_rater]
    if "all" in numbers:
        c.add(
            PLACE,
            "every rater gets all items, so that there is nothing to choose",
            "give a number as 'items_per_rater'",
        )
    if design.judgments_per_item is not None:
        c.add(
            PLACE,
            "'judgments_per_item' gives every item the same number of raters in the end, so that nothing is chosen",
            "use recruitment.quota instead",
        )


CHECKS = (_adaptive_assignment_can_hold,)
