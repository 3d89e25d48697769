"""What the study file tells a judge beside the raters' instructions: a rubric, and items with the right answers."""

from __future__ import annotations

from typing import Any

from dialometer.errors import DialometerError
from dialometer.flow.screen_json import screen_content
from dialometer.flow.screens import Field, build_screen, criterion_of
from dialometer.flow.steps import path_of
from dialometer.judges.answers import REASONS, complaint
from dialometer.judges.prompt import example_prompt
from dialometer.model.item import Item
from dialometer.model.judges import Judge, JudgeExample
from dialometer.model.session import Plan, Task
from dialometer.model.study import Study


def guidance(study: Study, judge: Judge) -> str:
    """The rubric and the examples in words."""
    parts = [f"What to look for:\n\n{judge.rubric.strip()}"] if judge.rubric.strip() else []
    for number, example in enumerate(judge.examples, start=1):
        parts.append(f"Example {number}:\n\n{_example(study, judge, number - 1, example)}")
    return "\n\n".join(parts)


def _example(study: Study, judge: Judge, number: int, example: JudgeExample) -> str:
    item = study.items_by_id[example.item]
    block = next((one for one in study.blocks if one.name == item.block), study.blocks[0])
    task = Task(block.name, item.id, 1, tuple(item.systems), tuple(example.answers), is_practice=False)
    path = path_of(study, Plan(study.cells[0], (task,)))
    screens = [build_screen(study, path, i) for i, step in enumerate(path.steps) if step.kind == "item"]
    answers: dict[str, Any] = {REASONS: example.reasons.strip()} if example.reasons.strip() else {}
    for screen, shown in ((screen, screen_content(screen)) for screen in screens):
        by_name = {field["name"]: field for field in shown["fields"]}
        for field in screen.fields:
            value = _value(item, field, example)
            if value is None:
                continue
            if why := complaint(value, by_name[field.name]):
                raise DialometerError(
                    f"the answer to '{criterion_of(field)}' does not fit its scale: {why}",
                    where=f"judges.{judge.name}.examples.{number}",
                    remedy="give a value of the scale; for a choice the name of the system",
                )
            answers[field.name] = value
    return example_prompt(screen_content(screens[0]), answers)


def _value(item: Item, field: Field, example: JudgeExample) -> Any:
    """The example's answer as the model would write it: systems are numbered by their place."""
    answer = example.answers.get(criterion_of(field))
    places = {system: str(place) for place, system in enumerate(item.systems, start=1)}
    if isinstance(answer, dict) and field.target.isdigit():
        return next((value for system, value in answer.items() if places.get(system) == field.target), None)
    return places.get(answer, answer) if isinstance(answer, str) and field.scale.compares else answer
