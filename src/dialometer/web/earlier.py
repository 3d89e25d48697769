"""What a rater answered on an earlier screen, in the form in which the screen asks, so that going back shows it."""

from __future__ import annotations

from dialometer.flow.engine import Flow
from dialometer.flow.screens import Screen
from dialometer.model.scale import Value
from dialometer.model.session import Session


def earlier_answers(flow: Flow, session: Session, screen: Screen) -> dict[str, object]:
    """The current judgments of a screen by field, with systems turned back into their places on the screen."""
    step = flow.path(session).steps[screen.step]
    task = step.task
    if task is None:
        return {}
    places = {system: str(place) for place, system in enumerate(task.systems, start=1)}
    found: dict[tuple[str, str], Value] = {}
    for judgment in flow.store.record_of(session.id).judgments:
        if judgment.item_id != task.item_id or judgment.is_practice != task.is_practice:
            continue
        target = f"t{judgment.turn}" if judgment.turn is not None else places.get(judgment.system, "")
        found[judgment.criterion, target] = judgment.value
    answers: dict[str, object] = {}
    for field in screen.fields:
        criterion = field.name.split(".", 1)[0]
        # A field about the whole item has no place, but the one system shown has.
        is_whole = not field.target and not field.scale.compares and len(places) == 1
        value = found.get((criterion, "1" if is_whole else field.target))
        if value is not None:
            answers[field.name] = field.scale.rename(value, places) if field.scale.compares else value
    return answers
