"""The one long table: a row for each judgment, in the form that analysis, export and plots all share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from dialometer.model.scale import Scale
from dialometer.model.study import Study

Columns = Mapping[str, Sequence[Any] | pl.Series]
"""Judgments as the store gives them: one list or series per column."""
FACTOR_PREFIX = "factor_"

COLUMNS: dict[str, tuple[Any, str]] = {
    "judgment": (pl.Int64, "number of the judgment in the database"),
    "rater": (pl.String, "pseudonym of the rater, R and the order of arrival; one person has one"),
    "session": (pl.String, "the rater's session, S and the order of arrival; a rater has several only by imports"),
    "source": (
        pl.String,
        "person, simulated, model or imported; adjudicator or simulated_adjudicator where the answer settles a disagreement",
    ),
    "state": (pl.String, "state of the session: active, completed, screened_out, declined, stale, withdrawn"),
    "is_excluded": (pl.Boolean, "whether the session is excluded from the analysis"),
    "block": (pl.String, "within-subject block; main where the study has none"),
    "item": (pl.String, "id of the item"),
    "system": (pl.String, "system judged; empty where the answer compares systems"),
    "criterion": (pl.String, "criterion judged"),
    "turn": (pl.Int32, "turn of the dialogue, counted from 0, where turns are rated one by one"),
    "scale": (pl.String, "type of the scale"),
    "value": (pl.Float64, "the answer as a number, where the scale has numbers"),
    "choice": (
        pl.String,
        "the answer as a name: the chosen system, tie, both_bad, cannot_tell, or the best in best-worst",
    ),
    "worst": (pl.String, "the worst in best-worst"),
    "answer": (pl.String, "the answer as stored, in JSON"),
    "position": (pl.Int32, "place of the item in the session, from 1; 0 for practice"),
    "side": (pl.Int32, "position on the screen of the system judged or chosen, from 1; 0 where there is none"),
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


def long_table(batches: Iterable[Columns], study: Study | None = None, *, without: Sequence[str] = ()) -> pl.DataFrame:
    """The long table from the store's batches of columns. Works in parts, so memory stays near the size of the result.

    With the study, the numbers of answers are those that their scales give; without it, only answers that are numbers
    have one. What repeats (answers, conditions, names, orders) is worked out once for each distinct text of a part.
    """
    conditions: dict[str, Mapping[str, str]] = {}
    numbers = _Numbers(study) if study is not None else None
    parts = [_part(batch, conditions, numbers).drop(without) for batch in batches]
    if not parts:
        return pl.DataFrame(schema={name: kind for name, (kind, _) in COLUMNS.items()})
    return pl.concat(parts, how="diagonal")


class _Numbers:
    """Numbers of answers by the scales they were given on; asks only scales whose numbers are not the answers themselves."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._types = [scale.type for scale in study.spec.scales.values() if type(scale).number is not Scale.number]

    def replaced(self, frame: pl.DataFrame, conditions: Mapping[str, Mapping[str, str]]) -> pl.Series:
        """The column of values with the numbers of such scales in it."""
        is_asked = frame["scale"].is_in(self._types)
        if not self._types or not is_asked.any():
            return frame["value"]
        key = ["criterion", "block", "condition", "scale", "answer"]
        distinct = frame.filter(is_asked).select(key).unique()
        found = [self._number(*row, conditions=conditions) for row in distinct.iter_rows()]
        numbers = distinct.with_columns(
            pl.Series("number", [number for number, _ in found], dtype=pl.Float64, strict=False),
            pl.Series("is_of_scale", [is_of_scale for _, is_of_scale in found], dtype=pl.Boolean),
        )
        joined = frame.select("value", *key).join(numbers, on=key, how="left", maintain_order="left")
        return joined.select(
            pl.when(pl.col("is_of_scale")).then(pl.col("number")).otherwise(pl.col("value")).alias("value")
        )["value"]

    def _number(
        self,
        criterion: str,
        block: str,
        condition: str,
        scale_type: str,
        answer: str,
        *,
        conditions: Mapping[str, Mapping[str, str]],
    ) -> tuple[float | None, bool]:
        """The number of an answer, and whether the scale that it was given on is the study's."""
        scale = self._study.judged_on(criterion, block, conditions[condition])
        if scale is None or scale.type != scale_type:
            return None, False
        return scale.number(json.loads(answer)), True


def _part(columns: Columns, conditions: dict[str, Mapping[str, str]], numbers: _Numbers | None) -> pl.DataFrame:
    # Imported judgments may have no times; they are stored as 0, which must not become a moment in 1970.
    shown, answered = (
        pl.Series(columns[name], dtype=pl.Int64).replace(0, None) for name in ("shown_at_ms", "answered_at_ms")
    )
    condition = pl.Series("condition", columns["condition"], dtype=pl.String)
    for text in condition.unique().to_list():
        if text not in conditions:
            conditions[text] = json.loads(text)
    answer = pl.Series("answer", columns["value"], dtype=pl.String)
    data: dict[str, Any] = {
        "judgment": columns["id"],
        "rater": _named("rater", columns["rater_number"], rater_name),
        "session": _named("session", columns["ordinal"], session_name),
        "item": columns["item_id"],
        **_read_answers(answer),
        "answer": answer,
        "order": _named("order", columns["order"], lambda text: "|".join(json.loads(text)) if text else ""),
        "shown_at": shown.cast(pl.Datetime("ms", "UTC")),
        "answered_at": answered.cast(pl.Datetime("ms", "UTC")),
        "duration_s": ((answered - shown) / 1000).round(3),
    }
    for name, (kind, _) in COLUMNS.items():
        data[name] = pl.Series(name, data[name] if name in data else columns[name], dtype=kind, strict=False)
    frame = pl.DataFrame({name: data[name] for name in COLUMNS}).with_columns(condition)
    if numbers is not None:
        frame = frame.with_columns(numbers.replaced(frame, conditions))
    factors = sorted({name for levels in conditions.values() for name in levels})
    levels = {name: {text: level.get(name) for text, level in conditions.items()} for name in factors}
    return _compact(
        frame.with_columns(_named(FACTOR_PREFIX + name, condition, levels[name].__getitem__) for name in factors).drop(
            "condition"
        )
    )


def _compact(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns with one value throughout are held as that value: half of a usual study's columns, and half of its memory."""
    same = [column for column in frame.iter_columns() if column.eq_missing(column[0]).all()]
    return frame.with_columns(pl.lit(column[0], dtype=column.dtype).alias(column.name) for column in same)


def _named(name: str, values: Sequence[Any] | pl.Series, name_of: Callable[[Any], str | None]) -> pl.Series:
    """A column of texts that follow from another column, each distinct value looked at once."""
    column = pl.Series("given", values)
    distinct = column.unique()
    lookup = pl.DataFrame([distinct, pl.Series(name, map(name_of, distinct.to_list()), dtype=pl.String)])
    return column.to_frame().join(lookup, on="given", how="left", maintain_order="left")[name]


def _read_answers(answer: pl.Series) -> dict[str, pl.Series]:
    """Number, choice and worst of stored answers."""
    distinct = answer.unique()
    read = [_read_answer(json.loads(text)) for text in distinct.to_list()]
    kinds = {"value": pl.Float64, "choice": pl.String, "worst": pl.String}
    columns = [
        pl.Series(name, [parts[place] for parts in read], dtype=kind)
        for place, (name, kind) in enumerate(kinds.items())
    ]
    joined = answer.to_frame().join(pl.DataFrame([distinct, *columns]), on="answer", how="left", maintain_order="left")
    return {name: joined[name] for name in kinds}


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
