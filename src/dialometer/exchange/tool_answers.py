"""Answers from the form of another tool, read back by the key: fields become criteria, places become systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialometer.exchange.formats.form import Intake
from dialometer.exchange.records import UNKNOWN_MS, Condition, Rated
from dialometer.exchange.tool_form import PLACES
from dialometer.table import FACTOR_PREFIX

NOT_IN_KEY = "answers to fields that the study's form does not have"
HALF = "best-worst answers of which one half is missing"
_LEFT, _RIGHT = ("left", "right")


class FormAnswers:
    """Turns the answers of one rater to one item into judgments. Without a key, fields are criteria as they are called."""

    def __init__(self, intake: Intake, key: Mapping[str, Any] | None) -> None:
        self.intake = intake
        self.fields = {field["name"]: field for field in (key or {}).get("fields", [])}
        self.items: Mapping[str, list[str]] = (key or {}).get("items", {})
        self.has_key = key is not None
        self.condition = _condition(intake)

    def records(
        self,
        rater: str,
        item: str,
        answers: Mapping[str, object],
        *,
        line: int,
        shown_at_ms: int = UNKNOWN_MS,
        answered_at_ms: int = UNKNOWN_MS,
    ) -> Iterator[Rated]:
        """The judgments; what the key does not know is left out and counted."""
        if self.has_key and item not in self.items:
            self.intake.wrong(line, f"the form has no item '{item}'", "give the answers to the form of this study")
            return
        systems = tuple(self.items.get(item, ()))
        halves: dict[str, dict[str, object]] = {}
        for name, raw in answers.items():
            field = self.fields.get(name)
            if field is None and self.has_key:
                self.intake.left_out[NOT_IN_KEY] += 1
                continue
            field = field or {"criterion": name, "place": 0, "part": ""}
            if field["part"]:
                halves.setdefault(field["criterion"], {})[field["part"]] = _system(raw, systems)
                continue
            place = int(field["place"])
            yield Rated(
                line=line,
                rater=rater,
                item=item,
                criterion=field["criterion"],
                raw=_system(raw, systems),
                system=systems[place - 1] if place else "",
                shown=systems,
                shown_at_ms=shown_at_ms,
                answered_at_ms=answered_at_ms,
                condition=self.condition,
                column=name,
            )
        for criterion, both in halves.items():
            if set(both) != {"best", "worst"}:
                self.intake.left_out[HALF] += 1
                continue
            yield Rated(
                line=line,
                rater=rater,
                item=item,
                criterion=criterion,
                raw=both,
                shown=systems,
                shown_at_ms=shown_at_ms,
                answered_at_ms=answered_at_ms,
                condition=self.condition,
                column=criterion,
            )


def _system(raw: object, systems: tuple[str, ...]) -> object:
    """The system behind a place (``A``, ``left``); anything else is an answer as it is."""
    if not isinstance(raw, str):
        return raw
    if raw in (_LEFT, _RIGHT) and len(systems) == 2:
        return systems[(_LEFT, _RIGHT).index(raw)]
    is_place = len(raw) == 1 and raw in PLACES[: len(systems)]
    return systems[PLACES.index(raw)] if is_place else raw


def _condition(intake: Intake) -> Condition:
    """Levels that ``--map factor_NAME=:LEVEL`` gives all answers; a form has no conditions of its own."""
    given = intake.options.columns.items()
    return tuple(
        (role.removeprefix(FACTOR_PREFIX), level[1:])
        for role, level in given
        if role.startswith(FACTOR_PREFIX) and level.startswith(":")
    )
