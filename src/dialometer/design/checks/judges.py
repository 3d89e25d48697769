"""Judges, the share of items that raters get, and the analysis that uses both."""

from __future__ import annotations

from dialometer.design.checks.checker import Checker
from dialometer.model.study import Criterion

MOST_LABELS = 25
"""Points of a scale that can be labels of Dawid and Skene's model."""


def _judges_can_be_used(c: Checker) -> None:
    """Names of judges, items and strata, and people who leave items to a judge that there is."""
    judges, used = [judge.name for judge in c.spec.judges], c.spec.analysis.judges
    for i, judge in enumerate(c.spec.judges):
        for j, item in enumerate(judge.items if isinstance(judge.items, list) else ()):
            c.known(item, c.study.items_by_id, "item", ("judges", i, "items", j))
        for j, system in enumerate(judge.own_systems):
            c.known(system, [declared.name for declared in c.spec.systems], "system", ("judges", i, "own_systems", j))
        for j, example in enumerate(judge.examples):
            c.known(example.item, c.study.items_by_id, "item", ("judges", i, "examples", j, "item"))
            for name in example.answers:
                c.known(name, c.study.criteria_by_name, "criterion", ("judges", i, "examples", j, "answers", name))
        if judge.agent is not None and judge.kind != "model":
            c.add(
                ("judges", i, "agent"), "only language models are reached by an agent", "remove it, or use kind: model"
            )
    for i, name in enumerate(used.use if used else ()):
        c.known(name, judges, "judge", ("analysis", "judges", i))


CORRECTABLE = "ratings with numbers (likert, slider, magnitude and the like) and choices between two responses"


def _raters_can_be_corrected(c: Checker) -> None:
    """Which designs and scales the analysis 'raters corrected by judges' can do; the others are refused by name."""
    used = c.spec.analysis.judges
    if used is None:
        return
    path = ("analysis", "judges")
    if c.spec.design.factors:
        c.add(
            path,
            "raters cannot be corrected by judges in a study with factors: a judge sees one condition only",
            "remove design.factors, or leave analysis.judges out and let the report compare judges with raters",
        )
    if c.spec.items.kind in ("chat", "arena"):
        c.add(
            path,
            "judges cannot rate live dialogues by their items",
            "rate stored dialogues, or leave analysis.judges out",
        )
    if any(problem.message.startswith("there is no scale") for problem in c.problems):
        return  # reported already; without its scale nothing can be said of a criterion
    reasons = {criterion.name: _not_corrected(c, criterion) for criterion in c.spec.criteria}
    left_out = [f"'{name}' ({why})" for name, why in reasons.items() if why]
    if left_out:
        what = f"judges do not correct {', '.join(left_out)}; they can correct {CORRECTABLE}"
        if len(left_out) == len(reasons):
            c.add(path, what, "ask on such a scale, or leave analysis.judges out")
        else:
            c.add(path, what, "nothing, if raters alone are enough there", "warning")
    if used.combine == "dawid_skene":
        _labels_can_be_weighed(c, [criterion for criterion in c.spec.criteria if not reasons[criterion.name]])


def _not_corrected(c: Checker, criterion: Criterion) -> str:
    """Why the estimate on a criterion cannot be corrected; empty where it can."""
    scales = c.study.scales_of(criterion)
    if all(scale.choice_form == "one" and scale.compares_responses for scale in scales):
        most = max((c.study.n_systems_shown(item) for item in c.study.rated_items), default=2)
        return "" if most <= 2 else f"{most} responses on a screen"
    if any(scale.compares or not scale.is_numeric for scale in scales):
        return next(scale.type for scale in scales if scale.compares or not scale.is_numeric)
    return "" if len({(scale.unit, scale.bounds()) for scale in scales}) == 1 else "different scales"


def _labels_can_be_weighed(c: Checker, criteria: list[Criterion]) -> None:
    path = ("analysis", "judges", "combine")
    used = c.spec.analysis.judges
    if used is not None and len(used.use) < 2:
        c.add(
            path, "Dawid and Skene's model weighs several judges, and one is named", "name more judges, or leave it out"
        )
    for criterion in criteria:
        scales = c.study.scales_of(criterion)
        if any(not scale.compares and not 2 <= len(scale.categories() or ()) <= MOST_LABELS for scale in scales):
            c.add(
                path,
                f"Dawid and Skene's model needs labels, and the scale of '{criterion.name}' has no points or more than {MOST_LABELS}",
                "use combine: mean",
            )


def _people_can_be_given_a_share(c: Checker) -> None:
    rate = c.spec.design.people_rate
    strata = {c.study.stratum(item) for item in c.study.rated_items}
    for name in rate.shares:
        c.known(name, strata, "stratum", ("design", "people_rate", "shares", name))
    if rate.by and rate.by != "block" and "" in strata:
        c.add(
            ("design", "people_rate", "by"), f"some items have no '{rate.by}' in their metadata", "give every item one"
        )
    if min(c.study.chances_for_people.values(), default=1) < 1 and c.spec.analysis.judges is None:
        why = "raters get a part of the items only, and no judge is declared to rate the rest"
        c.add(
            ("design", "people_rate"), why, "name judges under analysis.judges, or let raters have all items", "warning"
        )


CHECKS = (_judges_can_be_used, _raters_can_be_corrected, _people_can_be_given_a_share)
