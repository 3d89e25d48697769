"""From a submitted screen to judgments and answers: every field is read by its scale, all complaints come together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialometer.errors import AnswerError, AnswersRejected
from dialometer.flow.screens import Field, Screen, criterion_of
from dialometer.flow.steps import Step
from dialometer.model.scale import Value
from dialometer.model.session import Answer, Judgment


@dataclass(frozen=True, slots=True)
class Timing:
    """When a screen was shown and used, in milliseconds since 1970 (UTC)."""

    shown_at_ms: int
    submitted_at_ms: int
    first_input_at_ms: int | None = None
    focus_lost_n: int = 0
    focus_lost_s: float = 0.0
    device: str = ""
    opened: tuple[str, ...] = ()
    """Places of the long responses that were opened."""


def read_values(fields: Sequence[Field], raw: Mapping[str, object]) -> dict[str, Value]:
    """The values of all fields; raises :class:`AnswersRejected` with a sentence for every field that is not in order."""
    values: dict[str, Value] = {}
    wrong: dict[str, str] = {}
    for field in fields:
        given = raw.get(field.name)
        if given in (None, "", [], {}):
            # Choosing nothing is an answer where the scale allows it.
            if getattr(field.scale, "at_least", 1) == 0:
                values[field.name] = []
            elif field.is_required:
                wrong[field.name] = field.scale.no_answer
            continue
        try:
            values[field.name] = field.scale.parse_about(given, field.alternatives, field.passages)
        except AnswerError as error:
            wrong[field.name] = error.message
    if wrong:
        raise AnswersRejected(wrong)
    return values


def opened_systems(step: Step, places: Sequence[str]) -> tuple[str, ...]:
    """The systems whose long responses were opened; places that the screen does not have are no openings."""
    systems = step.task.systems if step.task is not None else ()
    return tuple(dict.fromkeys(system for i, system in enumerate(systems, start=1) if str(i) in places))


def to_judgments(
    screen: Screen, step: Step, values: Mapping[str, Value], session_id: str, timing: Timing, *, is_late: bool
) -> list[Judgment]:
    """Judgments with the position on the screen turned into systems."""
    task = step.task
    assert task is not None
    systems = {str(i): system for i, system in enumerate(task.systems, start=1)}
    judgments = []
    for field in screen.fields:
        if field.name not in values:
            continue
        value = values[field.name]
        criterion = criterion_of(field)
        turn = int(field.target[1:]) if field.target.startswith("t") else None
        if field.scale.compares:
            system, side = "", int(value) if isinstance(value, str) and value in systems else 0
        elif field.target in systems:
            system, side = systems[field.target], int(field.target)
        else:
            system, side = (task.systems[0] if len(task.systems) == 1 else ""), 0
        judgments.append(
            Judgment(
                session_id=session_id,
                item_id=task.item_id,
                criterion=criterion,
                value=field.scale.rename(value, systems) if field.scale.compares else value,
                scale=field.scale.type,
                system=system,
                turn=turn,
                block=task.block,
                position=task.position,
                side=side,
                order=task.systems,
                shown_at_ms=timing.shown_at_ms,
                answered_at_ms=timing.submitted_at_ms,
                is_late=is_late,
                is_practice=task.is_practice,
            )
        )
    return judgments


def to_answers(part: str, values: Mapping[str, Value], session_id: str, timing: Timing) -> list[Answer]:
    """Answers to the questions of a questionnaire or check."""
    return [
        Answer(
            session_id=session_id,
            part=part,
            question=question,
            value=value,
            shown_at_ms=timing.shown_at_ms,
            answered_at_ms=timing.submitted_at_ms,
        )
        for question, value in values.items()
    ]
