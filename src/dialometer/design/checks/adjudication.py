"""Whether disagreements between raters can be found and settled."""

from __future__ import annotations

from dialometer.design.checks.checker import Checker


def _disagreements_can_be_settled(c: Checker) -> None:
    rule, design, place = c.spec.adjudication, c.spec.design, "adjudication"
    if rule is None:
        return
    if c.spec.items.kind in ("chat", "arena"):
        problem = "every rater has another conversation, so that two raters never judge the same"
        c.add((place,), problem, "remove it")
        return
    named = {"criteria": rule.criteria, "distance": list(rule.distance) if isinstance(rule.distance, dict) else []}
    for key, names in named.items():
        for name in names:
            c.known(name, c.study.criteria_by_name, "criterion", (place, key))
    n_wanted = design.judgments_per_item
    if n_wanted is not None and n_wanted < rule.raters:
        problem = (
            f"each item gets {n_wanted} rater{'s' if n_wanted > 1 else ''}, and {rule.raters} have to judge it first"
        )
        c.add((place, "raters"), problem, "raise judgments_per_item under design")
    elif n_wanted is not None and len(c.study.cells) > 1 and not design.is_quota_per_condition:
        problem = "raters are compared within a condition, and the raters of an item are spread over all conditions"
        c.add((place, "raters"), problem, "set 'quota_per: condition' under design", "warning")
    for criterion in c.spec.criteria:
        scale = c.spec.scales.get(criterion.scale)
        if scale is None or (rule.criteria and criterion.name not in rule.criteria):
            continue
        if scale.input_field().kind in ("range", "number") and not rule.distance_on(criterion.name):
            problem = (
                f"two raters hardly ever enter the same number on '{criterion.name}', so that nearly all would disagree"
            )
            c.add(
                (place, "distance"), problem, f"give a distance, such as distance: {{{criterion.name}: 20}}", "warning"
            )


CHECKS = (_disagreements_can_be_settled,)
