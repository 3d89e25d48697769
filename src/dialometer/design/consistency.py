"""What no single key can show: names that point nowhere, scales that do not fit the items, designs that cannot be run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dialometer.design.checks import adjudication, assignment, comparisons, items, judges, scales, texts
from dialometer.design.checks.checker import Checker
from dialometer.design.positions import Path, Positioned
from dialometer.errors import Problem
from dialometer.model.study import Study
from dialometer.recruit.platforms import PLATFORMS, platform_of
from dialometer.recruit.qualifying import qualification_problems


def inconsistencies(study: Study, source: Positioned) -> list[Problem]:
    """Every problem that needs more than one part of the study to see."""
    checker = Checker(study, source)
    for check in _CHECKS:
        check(checker)
    return checker.problems


def _names_are_unique(c: Checker) -> None:
    spec = c.spec
    families: list[tuple[Path, Sequence[str]]] = [
        (("systems",), [x.name for x in spec.systems]),
        (("criteria",), [x.name for x in spec.criteria]),
        (("design", "factors"), [x.name for x in spec.design.factors]),
        (("design", "blocks"), [x.name for x in spec.design.blocks]),
        (("judges",), [x.name for x in spec.judges]),
        (("analysis", "comparisons"), [x.name for x in spec.analysis.comparisons]),
    ]
    families += [
        (("design", "factors", i, "levels"), [level.name for level in factor.levels])
        for i, factor in enumerate(spec.design.factors)
    ]
    for path, names in families:
        for i, name in enumerate(names):
            if name in names[:i]:
                c.add((*path, i, "name"), f"the name '{name}' is given twice", "rename one of them")
    seen: set[str] = set()
    for path, question in c.questions():
        if question.name in seen:
            c.add((*path, "name"), f"the question name '{question.name}' is given twice", "rename one of them")
        seen.add(question.name)


def _factors_change_something(c: Checker) -> None:
    for i, factor in enumerate(c.spec.design.factors):
        if not any(level.set.model_fields_set for level in factor.levels):
            c.add(
                ("design", "factors", i),
                f"no level of the factor '{factor.name}' changes what raters see",
                "give the levels a 'set:' (anchor, task, layout, scales, deadline_s, text, tools …)",
            )


def _platform_can_be_used(c: Checker) -> None:
    recruitment = c.spec.recruitment
    if c.known(recruitment.platform, PLATFORMS, PLATFORMS.kind, ("recruitment", "platform")):
        for problem in platform_of(recruitment).problems(c.study):
            c.add(("recruitment", problem.field), problem.message, problem.remedy, problem.severity)
        if recruitment.signed and not platform_of(recruitment).parameters.get("rater"):
            what = f"the links of the platform '{recruitment.platform}' name nobody, so there is nothing to sign"
            c.add(("recruitment", "signed"), what, "set platform: redirect, or give parameters: {rater: …}")
        for problem in qualification_problems(c.spec, platform_of(recruitment), c.study.folder):
            path = ("recruitment", "qualifications", problem.field)
            c.add(path, problem.message, problem.remedy, problem.severity)


_CHECKS: tuple[Callable[[Checker], None], ...] = (
    _names_are_unique,
    _factors_change_something,
    *scales.CHECKS,
    *items.CHECKS,
    *comparisons.CHECKS,
    *judges.CHECKS,
    *assignment.CHECKS,
    *adjudication.CHECKS,
    *texts.CHECKS,
    _platform_can_be_used,
)
