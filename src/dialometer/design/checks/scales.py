"""Whether scales exist, fit what they answer, and anchors can be shown with them."""

from __future__ import annotations

from collections.abc import Iterator

from dialometer.design.checks.checker import Checker
from dialometer.design.positions import Path
from dialometer.errors import AnswerError
from dialometer.model.item import ResponsesItem
from dialometer.model.quality import CheckQuestion


def _scales_exist(c: Checker) -> None:
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
    replaced += [((*path, "scales"), change.scales) for path, change in c.changes() if change.scales]  # type: ignore[misc]
    for path, scales in replaced:
        for criterion_name, scale in scales.items():
            c.known(criterion_name, criteria, "criterion", (*path, criterion_name))
            c.known(scale, c.spec.scales, "scale", (*path, criterion_name))


def _questions_have_scales(c: Checker) -> None:
    for path, question in c.questions():
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


def _check_answer(c: Checker, path: Path, scale: str, value: object) -> None:
    try:
        parsed = c.spec.scales[scale].parse(value)
    except AnswerError as error:
        c.add(path, f"'{value}' is not a possible answer on the scale '{scale}'", error.message)
        return
    if parsed != value:
        c.add(path, f"'{value}' is stored as {parsed!r} on the scale '{scale}'", f"write {parsed!r}")


def _scales_fit_items(c: Checker) -> None:
    n_of_kind = {"transcript_pair": 2, "arena": 2, "responses": len(c.spec.systems)}
    n_shown = n_of_kind.get(c.spec.items.kind, 1)
    for condition in c.study.cells:
        for block in c.study.blocks:
            presentation = c.study.presentation(condition, block)
            for i, criterion in enumerate(c.spec.criteria):
                name = presentation.scales.get(criterion.name, criterion.scale)
                scale = c.spec.scales.get(name)
                if scale is not None and scale.marks_text and c.spec.items.kind in ("chat", "arena"):
                    c.add(
                        ("criteria", i, "scale"),
                        f"the scale '{name}' marks words, and a live conversation has none beforehand",
                        "export the conversations and mark them in a study of dialogues",
                    )
                if scale is None or not scale.compares_responses:
                    continue
                least, most = scale.n_alternatives
                if not least <= n_shown <= most:
                    n_words = "exactly two" if most == 2 else f"at least {least}"
                    c.add(
                        ("criteria", i, "scale"),
                        f"the scale '{name}' ({scale.type}) needs {n_words} alternatives, but an item shows {n_shown}",
                        "use a rating scale (likert, slider, magnitude), or other items",
                    )
    c.drop_repeats()


def _anchors_can_be_shown(c: Checker) -> None:
    anchors = {shown.anchor for shown in c.study.presentations}
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


def _shown_numbers(c: Checker) -> Iterator[float]:
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


def _anchor_values_are_of_criteria(c: Checker) -> None:
    """Every value belongs to a criterion that is rated with numbers, lies on its scale and is shown to somebody."""
    anchors = {shown.anchor for shown in c.study.presentations}
    given: list[tuple[Path, dict[str, float]]] = [(("presentation",), c.spec.presentation.anchor_values)]
    given += [(path, change.anchor_values) for path, change in c.changes() if change.anchor_values]
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


CHECKS = (
    _scales_exist,
    _questions_have_scales,
    _scales_fit_items,
    _anchors_can_be_shown,
    _anchor_values_are_of_criteria,
)
