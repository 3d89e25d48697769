"""The data of an analysis from the files of an export, so that whoever has the files gets the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from dialometer.analysis.data import (
    CHAT_COLUMNS,
    FINDING_COLUMNS,
    SESSION_COLUMNS,
    StudyData,
    answers_table,
    chats_table,
    names_apart,
    select_data,
)
from dialometer.errors import DialometerError
from dialometer.model.study import Study
from dialometer.table import COLUMNS, FACTOR_PREFIX

_TIME = pl.Datetime("ms", "UTC")
_MAY_LACK = ("choice", "worst")
"""Texts of the long table that may be unknown, which is not the same as empty."""


def load_exported(study: Study, folder: Path, *, sources: tuple[str, ...] = ()) -> StudyData:
    """The data of a folder that ``dialometer export --include-practice`` wrote as CSV; the same as from the database."""
    listed = _read(folder / "sessions.csv")
    raters = names_apart(
        (session, int(rater[1:]), int(cell))
        for session, rater, cell in listed.select("session", "rater", "cell").rows()
    )
    sessions = _sessions(study, listed, raters)
    written = _read(folder / "answers.csv").select("session", "part", "question", "answer").rows()
    given = [(session, part, question, json.loads(answer)) for session, part, question, answer in written]
    programs = dict(listed.filter(pl.col("source") == "model").select("session", "program").rows())
    answers = answers_table(given, programs, raters)
    found = _read(folder / "findings.csv").select("session", "rule", "action", "reason").rows()
    findings = pl.DataFrame(
        [(raters[session], rule, action, reason or "") for session, rule, action, reason in found],
        schema=FINDING_COLUMNS,
        orient="row",
    )
    chats = pl.DataFrame(schema=CHAT_COLUMNS)
    if study.spec.items.kind == "chat":
        said = _read(folder / "chat_turns.csv", {"said_at": _TIME})
        said = said.with_columns(pl.col("said_at").dt.epoch("ms").fill_null(0))
        turns = said.select("session", "item", "role", "text", "said_at").rows()
        chats = chats_table((raters[session], (item, role, text, at_ms)) for session, item, role, text, at_ms in turns)
    return select_data(study, _judgments(folder / "judgments.csv"), sessions, answers, findings, chats, sources)


def _judgments(path: Path) -> pl.DataFrame:
    """The long table with its types; what can only be empty, and never unknown, is empty."""
    frame = _read(path, {name: kind for name, (kind, _) in COLUMNS.items() if kind != pl.String})
    texts = [name for name, (kind, _) in COLUMNS.items() if kind == pl.String and name not in _MAY_LACK]
    factors = sorted(name for name in frame.columns if name.startswith(FACTOR_PREFIX))
    return frame.with_columns(pl.col(texts).fill_null("")).select(*COLUMNS, *factors)


def _sessions(study: Study, listed: pl.DataFrame, raters: dict[str, str]) -> pl.DataFrame:
    times = listed.select(
        pl.col(name).str.to_datetime(time_unit="ms", time_zone="UTC").dt.epoch("ms").fill_null(0)
        for name in ("started_at", "finished_at", "last_seen_at")
    ).rows()
    rows = []
    for row, (started, finished, last_seen) in zip(listed.iter_rows(named=True), times, strict=True):
        duration_s = ((finished or last_seen) - started) / 1000 if started else None
        state = (row["source"], row["state"], row["is_excluded"] == "true", int(row["cell"]))
        rows.append((raters[row["session"]], row["session"], *state, started, duration_s))
    frame = pl.DataFrame(rows, schema=SESSION_COLUMNS, orient="row")
    factors = [FACTOR_PREFIX + factor.name for factor in study.spec.design.factors]
    return frame.with_columns(
        listed[name] if name in listed.columns else pl.lit(None, dtype=pl.String).alias(name) for name in factors
    )


def _read(path: Path, kinds: dict[str, pl.DataType | type[pl.DataType]] | None = None) -> pl.DataFrame:
    """A table of the export: texts as they are, everything else as its column says."""
    try:
        frame = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DialometerError(
            f"the table cannot be read: {error}", where=str(path), remedy="export the study again"
        ) from error
    converted = []
    for name, kind in (kinds or {}).items():
        if isinstance(kind, pl.Datetime):
            converted.append(pl.col(name).str.to_datetime(time_unit="ms", time_zone="UTC"))
        elif kind == pl.Boolean:
            converted.append((pl.col(name) == "true").alias(name))
        else:
            converted.append(pl.col(name).cast(kind))
    return frame.with_columns(converted)
