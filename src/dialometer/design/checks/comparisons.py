"""Whether the declared analysis can be made: comparisons, directions, margins, subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dialometer.design.checks.checker import Checker
from dialometer.design.positions import Path
from dialometer.design.protocol import protocol
from dialometer.model.analysis_plan import Comparison
from dialometer.model.scale import Scale


def _analysis_is_possible(c: Checker) -> None:
    analysis = c.spec.analysis
    if analysis.primary:
        c.known(analysis.primary, [x.name for x in analysis.comparisons], "comparison", ("analysis", "primary"))
    factors = {factor.name: [level.name for level in factor.levels] for factor in c.spec.design.factors}
    systems = [system.name for system in c.spec.systems]
    for i, comparison in enumerate(analysis.comparisons):
        path: Path = ("analysis", "comparisons", i)
        for j, name in enumerate(comparison.criteria):
            c.known(name, c.study.criteria_by_name, "criterion", (*path, "criteria", j))
        for j, name in enumerate(comparison.blocks):
            c.known(name, [block.name for block in c.spec.design.blocks], "block", (*path, "blocks", j))
        names = systems
        if comparison.between == "factor":
            if comparison.factor is None:
                c.add(path, "a comparison between levels needs its factor", "add 'factor:'")
                continue
            if not c.known(comparison.factor, factors, "factor", (*path, "factor")):
                continue
            names = factors[comparison.factor]
        for j, name in enumerate(comparison.levels):
            c.known(name, names, "level" if comparison.between == "factor" else "system", (*path, "levels", j))
        _margin_fits(c, comparison, path, comparison.levels or names)
        _direction_fits(c, comparison, path, comparison.levels or names)
    questions = [question.name for _, question in c.questions()]
    for i, name in enumerate(analysis.subgroups):
        c.known(name, c.study.rater_variables, "question", ("analysis", "subgroups", i))
    for name, starts in analysis.bins.items():
        path = ("analysis", "bins", name)
        c.known(name, questions, "question", path)
        if len(starts) < 2 or any(low >= high for low, high in pairwise(starts)):
            c.add(path, "groups need at least two beginnings, in rising order", "write them as [18, 25, 35, 50]")
        if name in questions and name not in analysis.subgroups:
            c.add(
                path, f"'{name}' is not a subgroup, so its groups are not used", f"add '{name}' to analysis.subgroups"
            )


def _direction_fits(c: Checker, comparison: Comparison, path: Path, names: Sequence[str]) -> None:
    """An expected direction names what is compared, and does not say both a > b and b > a."""
    if not comparison.expected:
        return
    place = (*path, "expected")
    if comparison.test != "difference" or comparison.between == "items":
        c.add(place, "only a difference between systems or levels has a direction", "remove it")
        return
    noun = "level" if comparison.between == "factor" else "system"
    for j, line in enumerate(comparison.expected):
        if ">" not in line:
            c.add((*place, j), f"'{line}' states no direction", f"write it as '{names[0]} > {names[-1]}'")
            return
        for name in dict.fromkeys(name.strip() for name in line.replace(">", ",").split(",")):
            if not c.known(name, names, noun, (*place, j)):
                return
    pairs = set(comparison.expected_pairs)
    for first, second in comparison.expected_pairs:
        if (second, first) in pairs:
            c.add(place, f"'{first}' cannot be both above and below '{second}'", "keep one of the two directions")
            return


def _margin_fits(c: Checker, comparison: Comparison, path: Path, names: Sequence[str]) -> None:
    """Equivalence and non-inferiority need a margin in the unit of their scales, and the latter a reference."""
    if comparison.test == "difference":
        for key in ("margin", "reference"):
            if getattr(comparison, key) is not None:
                remedy = "add 'test: equivalence' or 'test: non_inferiority', or remove it"
                c.add((*path, key), f"a {key} has no meaning in a test of a difference", remedy)
        return
    words = comparison.test.replace("_", "-")
    if comparison.between == "items":
        c.add((*path, "test"), f"single items have no test of {words}", "compare systems or levels of a factor")
    if comparison.test == "non_inferiority":
        noun = "level" if comparison.between == "factor" else "system"
        if comparison.reference is None:
            c.add(path, "non-inferiority needs a reference", f"add 'reference:' with the {noun} to compare with")
        else:
            c.known(comparison.reference, names, noun, (*path, "reference"))
    elif comparison.reference is not None:
        c.add((*path, "reference"), "equivalence has no direction", "remove it, or use 'test: non_inferiority'")
    if comparison.margin is None:
        remedy = "add 'margin:' with the largest difference that does not matter"
        c.add(path, f"a test of {words} needs a margin", remedy)
        return
    declared = [
        criterion for criterion in c.spec.criteria if not comparison.criteria or criterion.name in comparison.criteria
    ]
    for criterion in declared:
        if (scale := c.spec.scales.get(criterion.scale)) is None:
            continue
        problem = margin_problem(scale, comparison.margin)
        if problem:
            c.add((*path, "margin"), f"{problem[0]} (criterion '{criterion.name}')", problem[1])
            return


def margin_problem(scale: Scale, margin: float) -> tuple[str, str] | None:
    """Why a margin cannot be one on this scale, and what to write instead; None where it can."""
    if not scale.is_numeric:
        if scale.choice_form is not None and margin >= (1 if scale.choice_form == "ends" else 0.5):
            return f"a margin of {margin:g} is not a share of choices", "write 0.1 for ten percentage points"
    elif scale.unit == "log":
        if margin <= 1:
            return f"magnitudes are compared by ratios: a margin of {margin:g}", "use a ratio above 1, such as 1.25"
    else:
        low, high = scale.bounds()
        if margin >= high - low:
            return f"a margin of {margin:g} is as long as the scale", f"use less than {high - low:g}"
    return None


def _looks_fit(c: Checker) -> None:
    """Looks before the end: rising numbers of raters up to the planned one, and a rule that has what it needs."""
    analysis, path = c.spec.analysis, ("analysis", "looks")
    is_asked = analysis.looks is not None or analysis.stop is not None
    is_sound = not any(problem.severity == "error" for problem in c.problems)
    planned = protocol(c.study).n_raters if is_asked and is_sound else None
    if isinstance(analysis.looks, list):
        looks = analysis.looks
        if len(looks) < 2 or any(later <= earlier for earlier, later in pairwise(looks)):
            c.add(path, "looks are at least two numbers of raters, in rising order", "write them as [40, 80, 120]")
        elif planned is not None and looks[-1] != planned:
            wrong = "beyond" if looks[-1] > planned else "before"
            c.add(
                path,
                f"the last look, at {looks[-1]} raters, is {wrong} the {planned} raters that the study takes",
                f"end with {planned}, or set 'quota: {looks[-1]}' under recruitment",
            )
    elif "spending" in analysis.model_fields_set:
        c.add(
            ("analysis", "spending"),
            "the error is spent over planned looks only",
            "list them, as in looks: [40, 80, 120]",
        )
    _stop_fits(c, planned)


def _stop_fits(c: Checker, planned: int | None) -> None:
    rule, path = c.spec.analysis.stop, ("analysis", "stop")
    if rule is None:
        return
    if c.spec.analysis.looks is None:
        c.add(
            path, "a study without looks before its end cannot stop early", "declare 'looks: anytime' or planned looks"
        )
    if (rule.decided or rule.futile) and not c.spec.analysis.comparisons:
        c.add(
            path,
            "the rule waits for a hypothesis, and no comparison is declared",
            "declare it under analysis.comparisons",
        )
    if rule.futile and planned is None and not isinstance(c.spec.analysis.looks, list):
        c.add(
            (*path, "futile"),
            "the chance at the planned end needs a planned number of raters",
            "add 'quota:' under recruitment",
        )
    if rule.budget_cents is not None and not c.spec.recruitment.pay_cents:
        c.add(
            (*path, "budget_cents"),
            "raters are not paid, so the budget is never spent",
            "add 'pay_cents:' under recruitment",
        )
    if not (rule.decided or rule.futile or rule.budget_cents):
        c.add(path, "the rule never stops the study", "set one of decided, futile and budget_cents")


CHECKS = (_analysis_is_possible, _looks_fit)
