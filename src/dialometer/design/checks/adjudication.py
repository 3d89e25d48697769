"""Whether disagreements between raters can be found and settled."""

from __future__ import annotations

from dialometer.design.checks.checker import Checker


def _disagreements_can_be_settled(c: Checker) -> None:
    rule, design, place = c.spec.adjudication, c.spec.design, "adjudication"
    if rule is None:
        return
    if c.spec.items.kind in ("chat", "arena"):
        said = "every rater has another conversation, so that two raters never judge the same"
        c.add((place,), said, "remove it")
        return
    named = {"criteria": rule.criteria, "distance": list(rule.distance) if isinstance(rule.distance, dict) else []}
    for key, names in named.items():
        for name in names:
            c.known(name, c.study.criteria_by_name, "criterion", (place, key))
    wanted = design.judgments_per_item
    if wanted is not None and wanted < rule.raters:
        said = f"each item gets {wanted} rater{'s' if wanted > 1 else ''}, and {rule.raters} have to judge it first"
        c.add((place, "raters"), said, "raise judgments_per_item under design")
    elif wanted is not None and len(c.study.cells) > 1 and not design.is_quota_per_condition:
        said = "raters are compared within a condition, and the raters of an item are spread over all conditions"
        c.add((place, "raters"), said, "set 'quota_per: condition' under design", "warning")
    for criterion in c.spec.criteria:
        scale = c.spec.scales.get(criterion.scale)
        if scale is None or (rule.criteria and criterion.name not in rule.criteria):
            continue
        if scale.input_field().kind in ("range", "number") and not rule.distance_on(criterion.name):
            said = (
                f"two raters hardly ever enter the same number on '{criterion.name}', so that nearly all would disagree"
            )
            c.add((place, "distance"), said, f"give a distance, such as distance: {{{criterion.name}: 20}}", "warning")


CHECKS = (_disagreements_can_be_settled,)
