"""The tables of an export: every column with its type and meaning, the one source for files and data dictionary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from dialometer.table import COLUMNS, FACTOR_PREFIX

Columns = dict[str, tuple[Any, str]]
_TIME = pl.Datetime("ms", "UTC")
_RATER = (pl.String, "pseudonym of the rater, the same in all files")
_SESSION = COLUMNS["session"]


@dataclass(frozen=True, slots=True)
class ExportTable:
    """One table: its name (the file's name without suffix), what a row is, and its columns with type and meaning."""

    name: str
    meaning: str
    columns: Columns

    @property
    def schema(self) -> dict[str, Any]:
        """Types by column."""
        return {name: kind for name, (kind, _) in self.columns.items()}


def factor_columns(names: Iterable[str]) -> Columns:
    """The columns that say in which condition a rater was."""
    return {
        FACTOR_PREFIX + name: (pl.String, f"level of the factor '{name}' that the rater was given") for name in names
    }


def judgments_table(factors: Iterable[str]) -> ExportTable:
    """The one long table."""
    return ExportTable("judgments", "one judgment of one rater a row", {**COLUMNS, **factor_columns(factors)})


def sessions_table(factors: Iterable[str]) -> ExportTable:
    """Who took part, under which condition, and how it ended."""
    columns: Columns = {
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "program": (pl.String, "name of the model, where the rater is a program"),
        "state": COLUMNS["state"],
        "is_excluded": COLUMNS["is_excluded"],
        "exclusion_reason": (pl.String, "why the session is kept out of the analysis"),
        "started_at": (_TIME, "when the rater arrived (UTC)"),
        "finished_at": (_TIME, "when the session ended (UTC)"),
        "last_seen_at": (_TIME, "when the rater was last seen (UTC)"),
        "duration_s": (pl.Float64, "seconds from arrival to the end"),
        "consent_version": (
            pl.String,
            "short hash of the consent text the rater agreed to; empty where none was given",
        ),
        "study_version": COLUMNS["study_version"],
        "cell": (pl.Int32, "number of the condition in the order of the study file, from 0"),
        "n_judgments": (pl.Int64, "judgments that count: practice and corrected ones are not among them"),
        **factor_columns(factors),
    }
    return ExportTable("sessions", "one rater's session a row", columns)


ANSWERS = ExportTable(
    "answers",
    "one answer to a questionnaire or check a row",
    {
        "entry": (pl.Int64, "number of the answer in the database"),
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "part": (pl.String, "where it was asked: screening, pre, post, attention, comprehension/1 …"),
        "question": (pl.String, "name of the question"),
        "value": (pl.Float64, "the answer as a number, where it is one"),
        "text": (pl.String, "the answer as text, where it is one: the chosen option or the free text"),
        "answer": (pl.String, "the answer as stored, in JSON"),
        "shown_at": COLUMNS["shown_at"],
        "answered_at": COLUMNS["answered_at"],
        "duration_s": COLUMNS["duration_s"],
        "replaces": (pl.Int64, "number of the answer that this one corrects"),
    },
)
SCREENS = ExportTable(
    "screens",
    "one screen that a rater submitted a row",
    {
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "screen": (pl.String, "name of the screen: consent, instructions, item/<id>, item/<id>/<criterion> …"),
        "shown_at": COLUMNS["shown_at"],
        "first_input_at": (_TIME, "when the rater first touched a field (UTC)"),
        "submitted_at": COLUMNS["answered_at"],
        "duration_s": COLUMNS["duration_s"],
        "focus_lost_n": (pl.Int64, "how often the rater went to another window or tab"),
        "focus_lost_s": (pl.Float64, "seconds spent there"),
        "device": (pl.String, "kind of device"),
        "is_late": (pl.Boolean, "whether it was submitted after the deadline"),
    },
)
FINDINGS = ExportTable(
    "findings",
    "one finding of a quality rule a row",
    {
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "rule": (pl.String, "the rule that found it"),
        "action": (pl.String, "what followed: screen_out, exclude or flag"),
        "reason": (pl.String, "what was found, in words"),
        "details": (pl.String, "numbers behind it, in JSON"),
        "found_at": (_TIME, "when (UTC)"),
    },
)
CHAT_TURNS = ExportTable(
    "chat_turns",
    "one utterance of a live conversation a row",
    {
        "rater": _RATER,
        "session": _SESSION,
        "source": COLUMNS["source"],
        "item": COLUMNS["item"],
        "system": (pl.String, "system the rater talked to"),
        "turn": (pl.Int64, "place in the conversation, counted from 0, without the system's opening"),
        "role": (pl.String, "who spoke: user (the rater) or agent"),
        "text": (pl.String, "what was said"),
        "said_at": (_TIME, "when it was stored (UTC)"),
        "details": (pl.String, "what the agent told about its reply, in JSON"),
    },
)
