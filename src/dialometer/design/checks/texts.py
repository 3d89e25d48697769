"""Whether texts can be filled and shown, and speak of this study."""

from __future__ import annotations

from dialometer.design.checks.checker import Checker
from dialometer.design.positions import Path
from dialometer.design.text_claims import text_warnings
from dialometer.errors import Problem
from dialometer.model.item import Item, PairItem, ResponsesItem
from dialometer.model.rater_text import PLACEHOLDER, placeholders_in
from dialometer.readers.study_media import faulty_images
from dialometer.registry import did_you_mean

STANDARD_VARIABLES = ("title", "contact", "minutes", "pay")
TASK_VARIABLES = ("criteria", "anchor")
"""What the sentence above the items knows beside them."""


def _tasks_can_be_filled(c: Checker) -> None:
    """Sentences above the items know the values that are shown and the criteria, beside what every text knows."""
    variables = {*STANDARD_VARIABLES, *TASK_VARIABLES, *c.spec.presentation.variables}
    for _, change in c.changes():
        variables |= set(change.variables or ())
    tasks: list[tuple[Path, str]] = [(("presentation", "task"), c.spec.presentation.task)]
    tasks += [((*path, "task"), change.task or "") for path, change in c.changes()]
    for path, task in tasks:
        for name in placeholders_in(task):
            if name not in variables:
                c.add(path, f"nothing is known under {{{{{name}}}}}", did_you_mean(name, sorted(variables)))
    for condition in c.study.cells:
        for block in c.study.blocks:
            shown = c.study.presentation(condition, block)
            if "anchor" in placeholders_in(shown.task) and shown.anchor not in ("number", "both"):
                c.add(
                    next((path for path, task in tasks if task == shown.task), ("presentation", "task")),
                    f"the task names {{{{anchor}}}}, but raters of “{c.study.cell_label(condition)}” see no value",
                    "give that condition its own task",
                )
    c.drop_repeats()


def _placeholders_have_values(c: Checker) -> None:
    variables = {*STANDARD_VARIABLES, *c.spec.presentation.variables}
    for _, change in c.changes():
        variables |= set(change.variables or ())
    for file, text in c.study.texts.items():
        for number, line in enumerate(text.splitlines(), start=1):
            for match in PLACEHOLDER.finditer(line):
                name = match[1].strip()
                if name not in variables:
                    remedy = did_you_mean(name, sorted(variables))
                    c.problems.append(
                        Problem(f"nothing is known under {{{{{name}}}}}", remedy, file, number, match.start() + 1)
                    )


def _texts_are_about_this_study(c: Checker) -> None:
    c.problems += text_warnings(c.study)


def _texts_can_be_shown(c: Checker) -> None:
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


CHECKS = (
    _tasks_can_be_filled,
    _placeholders_have_values,
    _texts_are_about_this_study,
    _texts_can_be_shown,
)
