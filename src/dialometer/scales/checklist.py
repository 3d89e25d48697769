"""Checklist: several points, each met, not met or not applicable, with weights. The number is the share of points met.

Points that do not apply leave both sides of the share, so that a response is not punished for what nobody asked of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from dialometer.errors import AnswerError
from dialometer.model.part import Name, Part
from dialometer.model.rater_text import RaterText
from dialometer.model.scale import DetailTable, Floats, InputField, Level, NumberUse, Scale, Value
from dialometer.model.values import ObservedValues
from dialometer.scales import SCALES

YES, NO, NOT_APPLICABLE = "yes", "no", "not_applicable"
_SPELLINGS = {
    **dict.fromkeys(("yes", "y", "true", "1", "met"), YES),
    **dict.fromkeys(("no", "n", "false", "0", "not met"), NO),
    **dict.fromkeys(("not_applicable", "not applicable", "n/a", "na", "does not apply"), NOT_APPLICABLE),
}


class ChecklistPoint(Part):
    """One point of a checklist."""

    name: Name = Field(description="Short name used in tables and reports.")
    text: RaterText = Field(min_length=1, description="The question as raters read it; it is answered by yes or no.")
    weight: float = Field(default=1, gt=0, description="How much the point counts beside the others.")
    wanted: Literal["yes", "no"] = Field(
        default="yes", description="The answer with which the point is met; no for points that name a fault."
    )

    @field_validator("wanted", mode="before")
    @classmethod
    def _yaml_words(cls, value: object) -> object:
        """YAML reads yes and no without quotes as true and false."""
        return {True: YES, False: NO}.get(value, value) if isinstance(value, bool) else value


@SCALES.register("checklist")
class Checklist(Scale):
    """Points to be answered by yes or no, such as those of a rubric.

    Stored as ``{point: yes, no or not_applicable}``; as a number the weighted share of met points in percent.
    """

    type: Literal["checklist"] = "checklist"
    points: list[ChecklistPoint] = Field(min_length=1, description="The points in the order shown.")
    allow_not_applicable: bool = Field(default=True, description="Whether raters may say that a point does not apply.")
    level: ClassVar[Level] = "interval"
    number_words: ClassVar[str] = "the share of the points that are met, by weight, from 0 to 100"
    detail_table: ClassVar[DetailTable | None] = DetailTable(
        "checklist_points",
        "one row per point of a checklist",
        {
            "point": (str, "name of the point"),
            "answer": (str, "what the rater said: yes, no or not_applicable"),
            "is_met": (bool, "whether the point is met; empty where it does not apply"),
            "weight": (float, "weight of the point in the study file"),
        },
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Checklist:
        names = [point.name for point in self.points]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"points that are given twice: {', '.join(twice)}")
        return self

    @property
    def seconds_per_answer(self) -> float:  # type: ignore[override]
        """Each point is a question to read and answer."""
        return 5.0 * len(self.points)

    @property
    def answers(self) -> tuple[str, ...]:
        """What can be said about a point."""
        return (YES, NO, NOT_APPLICABLE) if self.allow_not_applicable else (YES, NO)

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        answers_by_point = {str(key).strip(): answer for key, answer in raw.items()} if isinstance(raw, Mapping) else {}
        known = {point.name for point in self.points}
        if not answers_by_point or not set(answers_by_point) <= known:
            raise AnswerError("Please answer the points shown.")
        answers: dict[str, str] = {}
        for point in self.points:
            answer = _SPELLINGS.get(str(answers_by_point.get(point.name, "")).strip().casefold(), "")
            if not answer:
                raise AnswerError(f"Please answer every point; this one is missing: “{point.text}”.")
            if answer not in self.answers:
                raise AnswerError("Please answer every point with yes or no.")
            answers[point.name] = answer
        return answers

    def number(self, value: Value) -> float | None:
        """Percent of the weight that applies; None where no point applies or a point is unknown."""
        results = self.point_results(value)
        weights = {point.name: point.weight for point in self.points}
        total = sum(weights[name] for name, is_met in results.items() if is_met is not None)
        met = sum(weights[name] for name, is_met in results.items() if is_met)
        return 100 * met / total if total else None

    def bounds(self) -> tuple[float, float]:
        return 0.0, 100.0

    def point_texts(self, *, as_shown: bool = False) -> dict[str, str]:
        added = {NO: "" if as_shown else " (wanted: no)", YES: ""}
        return {point.name: point.text + added[point.wanted] for point in self.points}

    def point_results(self, value: Value) -> dict[str, bool | None]:
        answers_by_point = value if isinstance(value, dict) else {}
        return {
            point.name: None
            if answers_by_point[point.name] == NOT_APPLICABLE
            else answers_by_point[point.name] == point.wanted
            for point in self.points
            if answers_by_point.get(point.name) in (YES, NO, NOT_APPLICABLE)
        }

    def details(self, value: Value) -> list[tuple[Any, ...]]:
        results, weights = self.point_results(value), {point.name: point.weight for point in self.points}
        assert isinstance(value, dict)
        return [(name, value[name], is_met, weights[name]) for name, is_met in results.items()]

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        return InputField("parts", tuple(point.name for point in self.points))

    def answer_format(self, alternatives: Sequence[str] = ()) -> str:
        words = ", ".join(f'"{answer}"' for answer in self.answers)
        listed = "; ".join(f'"{point.name}" = {point.text}' for point in self.points)
        return f"an object with one key for each point and one of {words} as its value ({listed})"

    def names(self, systems: Sequence[str]) -> list[str]:
        return []

    def describe(self) -> str:
        weights = ", weighted" if len({point.weight for point in self.points}) > 1 else ""
        n = len(self.points)
        return f"checklist of {n} point{'s' if n != 1 else ''}, percent met{weights}"

    def simulate(self, quality: Floats, use: NumberUse) -> NDArray[Any]:
        """Points from easy to hard. Perceived quality is continuous, so its later digits serve as the chance by which single
        points are answered apart, less where a case is clear; the same quality is answered alike."""
        shape, flat = np.shape(quality), np.ravel(quality)
        n = len(self.points)
        hardness = np.linspace(-0.8, 0.8, n) if n > 1 else np.zeros(1)
        chance = np.modf(np.abs(flat)[:, None] * 7919.0 * (1 + np.arange(n)))[0]
        is_met = flat[:, None] + 3.0 * (chance - 0.5) / (1 + flat[:, None] ** 2) > hardness
        applies = (chance < 0.95) | (np.abs(flat)[:, None] > 1.5) | (not self.allow_not_applicable)
        answers = np.empty(len(flat), dtype=object)
        opposite = {YES: NO, NO: YES}
        for row in range(len(flat)):
            answers[row] = {
                point.name: NOT_APPLICABLE
                if not applies[row, k]
                else point.wanted
                if is_met[row, k]
                else opposite[point.wanted]
                for k, point in enumerate(self.points)
            }
        return answers.reshape(shape)

    def simulate_question(
        self, rng: np.random.Generator, alternatives: Sequence[str] = (), *, is_required: bool = True
    ) -> Any:
        return {point.name: self.answers[int(rng.integers(2))] for point in self.points}

    @classmethod
    def guess(cls, seen: ObservedValues) -> dict[str, Any]:
        names = sorted(key for key in seen.keys if re.fullmatch(r"[A-Za-z][\w\-]{0,63}", key, re.ASCII))
        points = [{"name": name, "text": name.replace("_", " ").capitalize()} for name in names]
        return {**super().guess(seen), "points": points or [{"name": "point", "text": "Is the point met?"}]}
