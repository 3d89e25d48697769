"""A part of a study's data, chosen after the fact: some conditions, items or raters. What it shows is exploratory."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.errors import DialometerError, UnknownName
from dialometer.model.study import LANGUAGE, Study
from dialometer.registry import did_you_mean

CONDITION, ITEM = "condition", "item"
OTHER_RATERS, OTHER_ITEMS = "raters who were not chosen", "items that were not chosen"
"""Why the others are left out."""
Sign = Literal["=", ">=", "<="]
_CHOICE = re.compile(r"([^=<>]+)(>=|<=|=)(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DataChoice:
    """One thing that was chosen: a condition, an item, or raters by their answer to a question."""

    name: str
    sign: Sign
    value: str

    @classmethod
    def parse(cls, text: str) -> DataChoice:
        """From ``name=value``; numbers also by ``age>=30`` and ``age<=30``."""
        match = _CHOICE.fullmatch(text)
        name, sign, value = (part.strip() for part in match.groups()) if match else ("", "", "")
        if not name or not value:
            raise DialometerError(
                f"'{text}' chooses nothing", where="--only", remedy="such as condition=…, item=… or gender=female"
            )
        return cls(name, sign, value)  # type: ignore[arg-type]  # what the pattern allows

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.value}"


def in_words(choices: Sequence[DataChoice]) -> str:
    """What was chosen, for people."""
    return "; ".join(f"{name}: {_values(own)}" for name, own in _by_name(choices).items())


def _values(choices: Sequence[DataChoice]) -> str:
    words = {">=": "at least", "<=": "at most"}
    named = " or ".join(choice.value for choice in choices if choice.sign == "=")
    bounds = " and ".join(f"{words[choice.sign]} {choice.value}" for choice in choices if choice.sign != "=")
    return ", ".join(part for part in (named, bounds) if part)


def explored(data: StudyData, choices: Sequence[DataChoice]) -> StudyData:
    """The chosen part. Several values of one name are alternatives; bounds on a number hold together."""
    by_name = _by_name(choices)
    if ITEM in by_name:
        data = _of_items(data, by_name.pop(ITEM))
    if by_name:
        chosen = set.intersection(*(set(_raters(data, name, own)) for name, own in by_name.items()))
        data = data.of_raters(sorted(chosen), OTHER_RATERS)
    return replace(data, study=undeclared(data.study))


def undeclared(study: Study) -> Study:
    """The study as if nothing had been declared: of a part that was chosen afterwards nothing is confirmatory."""
    nothing: dict[str, object] = {"comparisons": [], "primary": None, "judges": None, "looks": None, "stop": None}
    analysis = study.spec.analysis.model_copy(update=nothing)
    return replace(study, spec=study.spec.model_copy(update={"analysis": analysis}))


def _by_name(choices: Sequence[DataChoice]) -> dict[str, list[DataChoice]]:
    by_name: dict[str, list[DataChoice]] = {}
    for choice in choices:
        by_name.setdefault(choice.name, []).append(choice)
    return by_name


def _of_items(data: StudyData, choices: Sequence[DataChoice]) -> StudyData:
    items = [choice.value for choice in choices]
    known = set(data.study.items_by_id)
    for item in items:
        if item not in known:
            raise UnknownName(f"there is no item '{item}'", where="--only", remedy=did_you_mean(item, sorted(known)))
    is_chosen = pl.col("item").is_in(items)
    judgments = data.judgments.filter(is_chosen)
    n_out = len(data.judgments) - len(judgments)
    return replace(
        data,
        judgments=judgments,
        set_aside=data.set_aside.filter(is_chosen),
        by_models=data.by_models.filter(is_chosen),
        calls=data.calls.filter(is_chosen),
        settled=data.settled.filter(is_chosen),
        chats=data.chats.filter(is_chosen),
        battles=data.battles.filter(is_chosen),
        draws=data.draws.filter(is_chosen),
        n_left_out={**data.n_left_out, **({OTHER_ITEMS: n_out} if n_out else {})},
    )


def _raters(data: StudyData, name: str, choices: Sequence[DataChoice]) -> list[str]:
    """The raters of some conditions, or with some answers; the language they read in is among these."""
    if name == CONDITION:
        return _of_conditions(data, choices)
    if name != LANGUAGE and name not in data.study.question_scales:
        known = [CONDITION, ITEM, LANGUAGE, *data.study.question_scales]
        raise UnknownName(f"raters are not asked '{name}'", where="--only", remedy=did_you_mean(name, known))
    rows = data.answers.filter(pl.col("question") == name).select("rater", "answer", "text")
    return [rater for rater, answer, text in rows.iter_rows() if _fits(json.loads(answer), text, choices)]


def _of_conditions(data: StudyData, choices: Sequence[DataChoice]) -> list[str]:
    labels = [data.study.cell_label(cell) for cell in data.study.cells]
    for choice in choices:
        if choice.value not in labels:
            remedy = did_you_mean(choice.value, labels)
            raise UnknownName(f"there is no condition '{choice.value}'", where="--only", remedy=remedy)
    cells = [labels.index(choice.value) for choice in choices]
    return data.sessions.filter(pl.col("cell").is_in(cells))["rater"].unique().to_list()


def _fits(answer: object, text: str, choices: Sequence[DataChoice]) -> bool:
    """Whether an answer is one of the chosen ones, or has one of them among several, and is within the bounds."""
    named = [choice.value for choice in choices if choice.sign == "="]
    given = {text, *map(str, answer)} if isinstance(answer, list) else {text}
    is_number = isinstance(answer, int | float) and not isinstance(answer, bool)
    for choice in choices:
        if choice.sign != "=":
            bound = _bound(choice)
            if not is_number or not (answer >= bound if choice.sign == ">=" else answer <= bound):  # type: ignore[operator]
                return False
    return not named or bool(given & set(named))


def _bound(choice: DataChoice) -> float:
    try:
        return float(choice.value)
    except ValueError:
        raise DialometerError(
            f"'{choice.value}' is not a number", where=f"--only '{choice}'", remedy="such as age>=30"
        ) from None
