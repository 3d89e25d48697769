"""Judges, the share of items that raters get, and the analysis that uses both."""

from __future__ import annotations

from dialometer.design.checks.checker import Checker


def _judges_can_be_used(c: Checker) -> None:
    """Names of judges, items and strata, and people who leave items to a judge that there is."""
    judges, used = [judge.name for judge in c.spec.judges], c.spec.analysis.judges
    for i, judge in enumerate(c.spec.judges):
        for j, item in enumerate(judge.items if isinstance(judge.items, list) else ()):
            c.known(item, c.study.items_by_id, "item", ("judges", i, "items", j))
        for j, system in enumerate(judge.own_systems):
            c.known(system, [one.name for one in c.spec.systems], "system", ("judges", i, "own_systems", j))
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


CHECKS = (_judges_can_be_used, _people_can_be_given_a_share)
