"""What no single key can show: names that point nowhere, scales that do not fit the items, designs that cannot be run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

from dialometer.design.positions import Path, Positioned
from dialometer.design.text_claims import text_warnings
from dialometer.errors import AnswerError, Problem
from dialometer.model.item import Item, PairItem, ResponsesItem
from dialometer.model.quality import CheckQuestion
from dialometer.model.scale import Scale
from dialometer.model.study import Change, Comparison, Question, Study
from dialometer.quality.gold import Gold, is_gold
from dialometer.readers.study_media import faulty_images
from dialometer.recruit.platforms import PLATFORMS, platform_of
from dialometer.recruit.qualifying import qualification_problems
from dialometer.registry import did_you_mean

STUDY_FILE = "study.yaml"
FEWEST_PAIRS = 5
"""Transcript pairs of a strategy from which on a claim about the strategy in general is within reach."""
STANDARD_VARIABLES = ("title", "contact", "minutes", "pay")
TASK_VARIABLES = ("criteria", "anchor")
"""What the sentence above the items knows beside them."""


class _Checker:
    """Collects problems with the place of the key that caused each."""

    def __init__(self, study: Study, source: Positioned) -> None:
        self.study = study
        self.spec = study.spec
        self.source = source
        self.problems: list[Problem] = []

    def add(self, path: Path, message: str, remedy: str, severity: Literal["error", "warning"] = "error") -> None:
        line, column = self.source.at(path)
        self.problems.append(Problem(message, remedy, STUDY_FILE, line, column, ".".join(map(str, path)), severity))

    def add_item(
        self, line: int, message: str, remedy: str, field: str = "", severity: Literal["error", "warning"] = "error"
    ) -> None:
        self.problems.append(Problem(message, remedy, self.spec.items.file, line, 0, field, severity))

    def known(self, name: str, names: Iterable[str], what: str, path: Path) -> bool:
        known = list(names)
        if name in known:
            return True
        self.add(path, f"there is no {what} '{name}'", did_you_mean(name, known))
        return False


def inconsistencies(study: Study, source: Positioned) -> list[Problem]:
    """Every problem that needs more than one part of the study to see."""
    checker = _Checker(study, source)
    for check in _CHECKS:
        check(checker)
    return checker.problems


def _names_are_unique(c: _Checker) -> None:
    spec = c.spec
    families: list[tuple[Path, Sequence[str]]] = [
        (("systems",), [x.name for x in spec.systems]),
        (("criteria",), [x.name for x in spec.criteria]),
        (("design", "factors"), [x.name for x in spec.design.factors]),
        (("design", "blocks"), [x.name for x in spec.design.blocks]),
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
    for path, question in _questions(c):
        if question.name in seen:
            c.add((*path, "name"), f"the question name '{question.name}' is given twice", "rename one of them")
        seen.add(question.name)


def _questions(c: _Checker) -> Iterator[tuple[Path, Question]]:
    for part in ("screening", "pre_questionnaire", "post_questionnaire"):
        for i, question in enumerate(getattr(c.spec, part)):
            yield (part, i), question


def _changes(c: _Checker) -> Iterator[tuple[Path, Change]]:
    for i, factor in enumerate(c.spec.design.factors):
        for j, level in enumerate(factor.levels):
            yield ("design", "factors", i, "levels", j, "set"), level.set
    for i, block in enumerate(c.spec.design.blocks):
        yield ("design", "blocks", i, "set"), block.set


def _scales_exist(c: _Checker) -> None:
    criteria = [criterion.name for criterion in c.spec.criteria]
    for i, criterion in enumerate(c.spec.criteria):
        c.known(criterion.scale, c.spec.scales, "scale", ("criteria", i, "scale"))
        asked = c.spec.scales.get(criterion.scale)
        has_words = asked is not None and (asked.marks_text or (asked.takes_own_words and not asked.option_names()))
        if criterion.reason and has_words:
            c.add(
                ("criteria", i, "reason"),
                f"answers on the scale '{criterion.scale}' hold words of their own already",
                "leave the reason out",
            )
    replaced = [(("presentation", "scales"), c.spec.presentation.scales)]
    replaced += [((*path, "scales"), change.scales) for path, change in _changes(c) if change.scales]  # type: ignore[misc]
    for path, scales in replaced:
        for criterion_name, scale in scales.items():
            c.known(criterion_name, criteria, "criterion", (*path, criterion_name))
            c.known(scale, c.spec.scales, "scale", (*path, criterion_name))


def _questions_have_scales(c: _Checker) -> None:
    for path, question in _questions(c):
        if not c.known(question.scale, c.spec.scales, "scale", (*path, "scale")):
            continue
        if c.spec.scales[question.scale].compares_responses:
            c.add(
                (*path, "scale"),
                f"the scale '{question.scale}' compares responses and cannot answer a question",
                "use another scale",
            )
        if c.spec.scales[question.scale].marks_text:
            c.add(
                (*path, "scale"),
                f"the scale '{question.scale}' marks words in a text and cannot answer a question",
                "use another scale",
            )
            continue
        for value in question.accept or ():
            _check_answer(c, (*path, "accept"), question.scale, value)
    for i, rule in enumerate(c.spec.quality):
        for key, setting in rule:
            for j, check in enumerate(setting if isinstance(setting, list) else ()):
                path = ("quality", i, key, j)
                is_check = isinstance(check, CheckQuestion)
                if is_check and c.known(check.scale, c.spec.scales, "scale", (*path, "scale")):
                    _check_answer(c, (*path, "answer"), check.scale, check.answer)


def _check_answer(c: _Checker, path: Path, scale: str, value: object) -> None:
    try:
        parsed = c.spec.scales[scale].parse(value)
    except AnswerError as error:
        c.add(path, f"'{value}' is no possible answer on the scale '{scale}'", error.message)
        return
    if parsed != value:
        c.add(path, f"'{value}' is stored as {parsed!r} on the scale '{scale}'", f"write {parsed!r}")


def _scales_fit_items(c: _Checker) -> None:
    n_of_kind = {"transcript_pair": 2, "arena": 2, "responses": len(c.spec.systems)}
    n_shown = n_of_kind.get(c.spec.items.kind, 1)
    for condition in c.study.cells:
        for block in c.study.blocks:
            presentation = c.study.presentation(condition, block)
            for i, criterion in enumerate(c.spec.criteria):
                name = presentation.scales.get(criterion.name, criterion.scale)
                scale = c.spec.scales.get(name)
                if scale is not None and scale.marks_text and c.spec.items.kind == "chat":
                    c.add(
                        ("criteria", i, "scale"),
                        f"the scale '{name}' marks words, and a live conversation has none beforehand",
                        "export the conversations and mark them in a study of dialogues",
                    )
                if scale is None or not scale.compares_responses:
                    continue
                least, most = scale.n_alternatives
                if not least <= n_shown <= most:
                    wanted = "exactly two" if most == 2 else f"at least {least}"
                    c.add(
                        ("criteria", i, "scale"),
                        f"the scale '{name}' ({scale.type}) needs {wanted} alternatives, but an item shows {n_shown}",
                        "use a rating scale (likert, slider, magnitude), or other items",
                    )
    _drop_repeats(c)


def _drop_repeats(c: _Checker) -> None:
    c.problems = list(dict.fromkeys(c.problems))


def _anchors_can_be_shown(c: _Checker) -> None:
    anchors = {c.study.presentation(condition, block).anchor for condition in c.study.cells for block in c.study.blocks}
    path: Path = next(
        (("design", "factors", i) for i, f in enumerate(c.spec.design.factors) if f.name == "anchor"),
        ("presentation", "anchor"),
    )
    if anchors & {"text", "both"}:
        if c.spec.items.kind != "responses":
            c.add(
                path,
                f"a text anchor needs items of kind responses, not {c.spec.items.kind}",
                "use anchor none or number",
            )
        for item in c.study.items:
            if isinstance(item, ResponsesItem) and not item.standard:
                c.add_item(
                    item.line,
                    f"the item '{item.id}' has no standard response, which the text anchor shows",
                    'add "standard"',
                    "standard",
                )
    if anchors & {"number", "both"} and not any(_shown_numbers(c)):
        c.add(
            path,
            "a number anchor needs a magnitude scale with a modulus, or anchor_values",
            "add 'modulus: 100' to the scale or 'anchor_values: {criterion: 100}' to the presentation, or use anchor none "
            "or text",
        )


def _shown_numbers(c: _Checker) -> Iterator[float]:
    """The values of standards that raters of some condition see."""
    for condition in c.study.cells:
        for block in c.study.blocks:
            shown = c.study.presentation(condition, block)
            known = [
                criterion
                for criterion in c.study.block_criteria(block)
                if shown.scales.get(criterion.name, criterion.scale) in c.spec.scales
            ]
            yield from c.study.shown_anchors(shown, known).values()


def _anchor_values_are_of_criteria(c: _Checker) -> None:
    """Every value belongs to a criterion that is rated with numbers, lies on its scale and is shown to somebody."""
    anchors = {c.study.presentation(condition, block).anchor for condition in c.study.cells for block in c.study.blocks}
    given: list[tuple[Path, dict[str, float]]] = [(("presentation",), c.spec.presentation.anchor_values)]
    given += [(path, change.anchor_values) for path, change in _changes(c) if change.anchor_values]
    for path, values in given:
        for name, value in values.items():
            place = (*path, "anchor_values", name)
            if not c.known(name, c.study.criteria_by_name, "criterion", place):
                continue
            scale = c.spec.scales.get(c.study.criteria_by_name[name].scale)
            if scale is None:
                continue
            low, high = scale.bounds()
            if not scale.is_numeric:
                c.add(place, f"'{name}' is not rated with numbers", "remove its value")
            elif not low <= value <= high:
                c.add(
                    place,
                    f"{value:g} is not on the scale of '{name}' ({scale.describe()})",
                    "use a number of the scale",
                )
        if values and not anchors & {"number", "both"}:
            c.add(
                (*path, "anchor_values"),
                "no condition shows these values",
                "set 'anchor: number' or 'anchor: both' in the presentation or in a level, or remove them",
                "warning",
            )


def _blocks_have_items(c: _Checker) -> None:
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


def _numbers_can_be_met(c: _Checker) -> None:
    design = c.spec.design
    n_items = len(c.study.rated_items)
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


def _parts_of_items(c: _Checker, n_shown: int) -> None:
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


def _used_scales(c: _Checker) -> set[str]:
    changed = [change for factor in c.spec.design.factors for change in (level.set for level in factor.levels)]
    changed += [block.set for block in c.spec.design.blocks]
    used = {criterion.scale for criterion in c.spec.criteria}
    return used | {scale for change in changed for scale in (change.scales or {}).values()}


def _systems_are_used(c: _Checker) -> None:
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


def _factors_change_something(c: _Checker) -> None:
    for i, factor in enumerate(c.spec.design.factors):
        if not any(level.set.model_fields_set for level in factor.levels):
            c.add(
                ("design", "factors", i),
                f"no level of the factor '{factor.name}' changes what raters see",
                "give the levels a 'set:' (anchor, task, layout, scales, deadline_s, text, tools …)",
            )


def _gold_is_known(c: _Checker) -> None:
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


def _analysis_is_possible(c: _Checker) -> None:
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
    questions = [question.name for _, question in _questions(c)]
    for i, name in enumerate(analysis.subgroups):
        c.known(name, questions, "question", ("analysis", "subgroups", i))
    for name, starts in analysis.bins.items():
        path = ("analysis", "bins", name)
        c.known(name, questions, "question", path)
        if len(starts) < 2 or any(low >= high for low, high in pairwise(starts)):
            c.add(path, "groups need at least two beginnings, in rising order", "write them as [18, 25, 35, 50]")
        if name in questions and name not in analysis.subgroups:
            c.add(path, f"'{name}' is no subgroup, so its groups are not used", f"add '{name}' to analysis.subgroups")


def _direction_fits(c: _Checker, comparison: Comparison, path: Path, names: Sequence[str]) -> None:
    """An expected direction names what is compared, and does not say both a > b and b > a."""
    if not comparison.expected:
        return
    place = (*path, "expected")
    if comparison.test != "difference" or comparison.between == "items":
        c.add(place, "only a difference between systems or levels has a direction", "remove it")
        return
    what = "level" if comparison.between == "factor" else "system"
    for j, line in enumerate(comparison.expected):
        if ">" not in line:
            c.add((*place, j), f"'{line}' states no direction", f"write it as '{names[0]} > {names[-1]}'")
            return
        for name in dict.fromkeys(name.strip() for name in line.replace(">", ",").split(",")):
            if not c.known(name, names, what, (*place, j)):
                return
    pairs = set(comparison.expected_pairs)
    for first, second in comparison.expected_pairs:
        if (second, first) in pairs:
            c.add(place, f"'{first}' cannot be both above and below '{second}'", "keep one of the two directions")
            return


def _margin_fits(c: _Checker, comparison: Comparison, path: Path, names: Sequence[str]) -> None:
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
        what = "level" if comparison.between == "factor" else "system"
        if comparison.reference is None:
            c.add(path, "non-inferiority needs a reference", f"add 'reference:' with the {what} to compare with")
        else:
            c.known(comparison.reference, names, what, (*path, "reference"))
    elif comparison.reference is not None:
        c.add((*path, "reference"), "equivalence has no direction", "remove it, or use 'test: non_inferiority'")
    if comparison.margin is None:
        remedy = "add 'margin:' with the largest difference that does not matter"
        c.add(path, f"a test of {words} needs a margin", remedy)
        return
    asked = [
        criterion for criterion in c.spec.criteria if not comparison.criteria or criterion.name in comparison.criteria
    ]
    for criterion in asked:
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
            return f"a margin of {margin:g} is no share of choices", "write 0.1 for ten percentage points"
    elif scale.unit == "log":
        if margin <= 1:
            return f"magnitudes are compared by ratios: a margin of {margin:g}", "use a ratio above 1, such as 1.25"
    else:
        low, high = scale.bounds()
        if margin >= high - low:
            return f"a margin of {margin:g} is as long as the scale", f"use less than {high - low:g}"
    return None


def _tasks_can_be_filled(c: _Checker) -> None:
    """Sentences above the items know the values that are shown and the criteria, beside what every text knows."""
    variables = {*STANDARD_VARIABLES, *TASK_VARIABLES, *c.spec.presentation.variables}
    for _, change in _changes(c):
        variables |= set(change.variables or ())
    tasks: list[tuple[Path, str]] = [(("presentation", "task"), c.spec.presentation.task)]
    tasks += [((*path, "task"), change.task or "") for path, change in _changes(c)]
    for path, task in tasks:
        for name in re.findall(r"\{\{\s*([^{}]*?)\s*\}\}", task):
            if name not in variables:
                c.add(path, f"nothing is known under {{{{{name}}}}}", did_you_mean(name, sorted(variables)))
    for condition in c.study.cells:
        for block in c.study.blocks:
            shown = c.study.presentation(condition, block)
            if re.search(r"\{\{\s*anchor\s*\}\}", shown.task) and shown.anchor not in ("number", "both"):
                c.add(
                    next((path for path, task in tasks if task == shown.task), ("presentation", "task")),
                    f"the task names {{{{anchor}}}}, but raters of “{c.study.cell_label(condition)}” see no value",
                    "give that condition its own task",
                )
    _drop_repeats(c)


def _placeholders_have_values(c: _Checker) -> None:
    variables = {*STANDARD_VARIABLES, *c.spec.presentation.variables}
    for _, change in _changes(c):
        variables |= set(change.variables or ())
    for file, text in c.study.texts.items():
        for number, line in enumerate(text.splitlines(), start=1):
            for match in re.finditer(r"\{\{\s*([^{}]*?)\s*\}\}", line):
                if match[1] not in variables:
                    remedy = did_you_mean(match[1], sorted(variables))
                    c.problems.append(
                        Problem(f"nothing is known under {{{{{match[1]}}}}}", remedy, file, number, match.start() + 1)
                    )


def _texts_are_about_this_study(c: _Checker) -> None:
    c.problems += text_warnings(c.study)


def _controlled_pairs_are_pairs(c: _Checker) -> None:
    if c.spec.items.pairs == "controlled" and c.spec.items.kind != "transcript_pair":
        c.add(("items", "pairs"), "only transcript pairs can be controlled", "remove it, or use kind: transcript_pair")
    if any(isinstance(item, PairItem) and item.breaches for item in c.study.items) and c.spec.items.pairs == "free":
        c.add(
            ("items", "pairs"),
            "items declare breaches, but the pairs are not controlled",
            "use 'pairs: controlled'",
            "warning",
        )


def _arena_can_be_held(c: _Checker) -> None:
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
    if c.spec.arena.pairs == "uncertain" and uncertain_criterion(c.study) is None:
        c.add(
            ("arena", "pairs"),
            "no question is answered by choosing one of the two, so that no pair is uncertain",
            "add a criterion with a pairwise scale, or use 'pairs: balanced'",
        )


def uncertain_criterion(study: Study) -> str | None:
    """The question whose votes say which pairs are uncertain: the primary comparison's first, else the first of all."""
    spec = study.spec
    asked = [c.name for c in spec.criteria if c.scale in spec.scales and spec.scales[c.scale].choice_form == "one"]
    primary = next((c for c in spec.analysis.comparisons if c.name == spec.analysis.primary), None)
    wanted = [name for name in primary.criteria if name in asked] if primary else []
    return next(iter([*wanted, *asked]), None)


def _texts_can_be_shown(c: _Checker) -> None:
    """Images that Markdown names, and what does not go together with it."""
    for item, message, remedy in faulty_images(c.study):
        c.add_item(item.line, f"an image of its Markdown: {message}", remedy, severity="warning")
    if any(shown.text == "markdown" and shown.highlight_differences for shown in c.study.presentations):
        c.add(
            ("presentation", "text"),
            "turns with marked differences are shown as they were written, not as Markdown",
            "use 'text: plain' where differences are marked",
            "warning",
        )
    if not any(item.system_prompt or _own_prompts(item) for item in c.study.items) and any(
        shown.system_prompt == "shown" for shown in c.study.presentations
    ):
        c.add(
            ("presentation", "system_prompt"), "no item has a system prompt", "add 'system_prompt' to items", "warning"
        )


def _own_prompts(item: Item) -> bool:
    """Whether a side or a response has a system prompt of its own."""
    if isinstance(item, PairItem):
        return bool(item.a.system_prompt or item.b.system_prompt)
    return isinstance(item, ResponsesItem) and bool(item.system_prompts)


def _pairs_of_dialogues_name_them(c: _Checker) -> None:
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


def _pairs_carry_general_claims(c: _Checker) -> None:
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


def _platform_can_be_used(c: _Checker) -> None:
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


_CHECKS: tuple[Callable[[_Checker], None], ...] = (
    _names_are_unique,
    _scales_exist,
    _questions_have_scales,
    _scales_fit_items,
    _anchors_can_be_shown,
    _anchor_values_are_of_criteria,
    _tasks_can_be_filled,
    _blocks_have_items,
    _numbers_can_be_met,
    _systems_are_used,
    _factors_change_something,
    _gold_is_known,
    _analysis_is_possible,
    _placeholders_have_values,
    _texts_are_about_this_study,
    _controlled_pairs_are_pairs,
    _arena_can_be_held,
    _pairs_of_dialogues_name_them,
    _pairs_carry_general_claims,
    _texts_can_be_shown,
    _platform_can_be_used,
)
