"""The one long table: a row for each judgment, in the form that analysis, export and plots all share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from dialometer.model.scale import Scale
from dialometer.model.study import Study

Columns = Mapping[str, list[Any]]
"""Judgments as the store gives them: one list per column."""
FACTOR_PREFIX = "factor_"

COLUMNS: dict[str, tuple[Any, str]] = {
    "judgment": (pl.Int64, "number of the judgment in the database"),
    "rater": (pl.String, "pseudonym of the rater, R and the order of arrival; one person has one"),
    "session": (pl.String, "the rater's session, S and the order of arrival; a rater has several only by imports"),
    "source": (pl.String, "person, simulated, model or imported"),
    "state": (pl.String, "state of the session: active, completed, screened_out, declined, stale, withdrawn"),
    "is_excluded": (pl.Boolean, "whether the session is excluded from the analysis"),
    "block": (pl.String, "within-subject block; main where the study has none"),
    "item": (pl.String, "id of the item"),
    "system": (pl.String, "system judged; empty where the answer compares systems"),
    "criterion": (pl.String, "criterion judged"),
    "turn": (pl.Int32, "turn of the dialogue, counted from 0, where turns are rated one by one"),
    "scale": (pl.String, "type of the scale"),
    "value": (pl.Float64, "the answer as a number, where the scale has numbers"),
    "choice": (pl.String, "the answer as a name: the chosen system, tie, cannot_tell, or the best in best-worst"),
    "worst": (pl.String, "the worst in best-worst"),
    "answer": (pl.String, "the answer as stored, in JSON"),
    "position": (pl.Int32, "place of the item in the session, from 1; 0 for practice"),
    "side": (pl.Int32, "place on the screen of the system judged or chosen, from 1; 0 where there is none"),
    "order": (pl.String, "systems in the order shown, separated by |"),
    "shown_at": (pl.Datetime("ms", "UTC"), "when the screen was shown (UTC)"),
    "answered_at": (pl.Datetime("ms", "UTC"), "when it was submitted (UTC)"),
    "duration_s": (pl.Float64, "seconds from shown to submitted"),
    "is_late": (pl.Boolean, "whether the answer came after the deadline"),
    "is_practice": (pl.Boolean, "whether the item was for practice; such judgments are never analysed"),
    "replaces": (pl.Int64, "number of the judgment that this one corrects"),
    "study_version": (pl.Int32, "version of the study under which it was collected"),
}
"""Every column of the long table with its type and meaning; factors follow as ``factor_<name>``."""


def rater_name(ordinal: int) -> str:
    """The pseudonym under which a rater leaves the database."""
    return f"R{ordinal:04d}"


def session_name(ordinal: int) -> str:
    """The name under which a session leaves the database; its id, which opens a rater's pages, never does."""
    return f"S{ordinal:04d}"


def long_table(batches: Iterable[Columns], study: Study | None = None) -> pl.DataFrame:
    """The long table from the store's batches of columns. Works in parts, so memory stays near the size of the result.

    With the study, the numbers of answers are those that their scales give; without it, only answers that are numbers
    have one.
    """
    answers: dict[str, tuple[float | None, str | None, str | None]] = {}
    conditions: dict[str, Mapping[str, str]] = {}
    numbers = _Numbers(study) if study is not None else None
    parts = [_part(batch, answers, conditions, numbers) for batch in batches]
    if not parts:
        return pl.DataFrame(schema={name: kind for name, (kind, _) in COLUMNS.items()})
    return pl.concat(parts, how="diagonal")


class _Numbers:
    """Numbers of answers by the scales they were given on; asks only scales whose numbers are not the answers themselves."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._types = {scale.type for scale in study.spec.scales.values() if type(scale).number is not Scale.number}
        self._scales: dict[tuple[str, str, str], Scale | None] = {}

    def replace(
        self, values: list[float | None], columns: Columns, conditions: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Put the numbers of such scales into the column of values."""
        if not self._types:
            return
        names = zip(columns["criterion"], columns["block"], columns["condition"], strict=True)
        for row, (scale_type, key) in enumerate(zip(columns["scale"], names, strict=True)):
            if scale_type not in self._types:
                continue
            if key not in self._scales:
                self._scales[key] = self._study.judged_on(key[0], key[1], conditions[key[2]])
            scale = self._scales[key]
            if scale is not None and scale.type == scale_type:
                values[row] = scale.number(json.loads(columns["value"][row]))


def _part(
    columns: Columns, answers: dict[str, Any], conditions: dict[str, Mapping[str, str]], numbers: _Numbers | None
) -> pl.DataFrame:
    for text in set(columns["value"]) - answers.keys():
        answers[text] = _read_answer(json.loads(text))
    for text in set(columns["condition"]) - conditions.keys():
        conditions[text] = json.loads(text)
    read = [answers[text] for text in columns["value"]]
    values = [value for value, _, _ in read]
    if numbers is not None:
        numbers.replace(values, columns, conditions)
    # Imported judgments may have no times; they are stored as 0, which must not become a moment in 1970.
    shown = pl.Series(columns["shown_at_ms"], dtype=pl.Int64).replace(0, None)
    answered = pl.Series(columns["answered_at_ms"], dtype=pl.Int64).replace(0, None)
    data: dict[str, Any] = {
        "judgment": columns["id"],
        "rater": [rater_name(number) for number in columns["rater_number"]],
        "session": [session_name(ordinal) for ordinal in columns["ordinal"]],
        "item": columns["item_id"],
        "value": values,
        "choice": [choice for _, choice, _ in read],
        "worst": [worst for _, _, worst in read],
        "answer": columns["value"],
        "order": ["|".join(json.loads(text)) if text else "" for text in columns["order"]],
        "shown_at": shown.cast(pl.Datetime("ms", "UTC")),
        "answered_at": answered.cast(pl.Datetime("ms", "UTC")),
        "duration_s": ((answered - shown) / 1000).round(3),
    }
    for name, (kind, _) in COLUMNS.items():
        data[name] = pl.Series(name, data[name] if name in data else columns[name], dtype=kind, strict=False)
    frame = pl.DataFrame({name: data[name] for name in COLUMNS})
    factors = {name for condition in conditions.values() for name in condition}
    of_row = [conditions[text] for text in columns["condition"]]
    return frame.with_columns(
        pl.Series(FACTOR_PREFIX + name, [condition.get(name) for condition in of_row], dtype=pl.String)
        for name in sorted(factors)
    )


def _read_answer(value: Any) -> tuple[float | None, str | None, str | None]:
    """Number, choice and worst of a stored value."""
    match value:
        case bool():
            return None, str(value), None
        case int() | float():
            return float(value), None, None
        case str():
            return None, value, None
        case {"best": best, "worst": worst}:
            return None, best, worst
        case _:
            return None, None, None
