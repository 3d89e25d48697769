"""Rows that hold two conversations: battles of an arena, judgments of a benchmark, chosen and rejected responses.

Readers make dialogues of both sides, importers make items of them; what a row's columns are called is known here only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from dialometer.readers.chats import as_messages
from dialometer.readers.json_records import json_records, objects
from dialometer.readers.problems import Problems
from dialometer.readers.reader import DELIMITERS, Head
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import is_json, table_rows

Side = Literal["a", "b"]
SIDES: tuple[Side, Side] = ("a", "b")
SYSTEMS: dict[Side, str] = {"a": "model_a", "b": "model_b"}
SAID = ("conversation", "messages", "response", "answer", "output")
"""Columns with what one side said are called so, with ``_a`` or ``_b`` behind."""
PROMPT = ("prompt", "question", "instruction", "input", "query", "context")
CHOSEN, REJECTED = "chosen", "rejected"
WINNERS = {"winner_model_a": "model_a", "winner_model_b": "model_b", "winner_tie": "tie"}
"""Columns of the Arena-55k layout, one of which holds a 1, and the winner that it means."""
REPEATED = ("full_conversation",)
"""Columns that repeat what both sides said."""


def said_column(names: Mapping[str, Any] | set[str], side: Side) -> str:
    """The column with what a side said; empty where there is none."""
    return next((f"{name}_{side}" for name in SAID if f"{name}_{side}" in names), "")


def prompt_column(names: Mapping[str, Any] | set[str]) -> str:
    """The column with what came before both; empty where there is none."""
    return next((name for name in PROMPT if name in names), "")


def is_battle(names: set[str]) -> bool:
    """Whether a row with these columns holds two systems and what each said."""
    return set(SYSTEMS.values()) <= names and bool(said_column(names, "a"))


def is_preference(names: set[str]) -> bool:
    """Whether a row with these columns holds a chosen and a rejected response."""
    return {CHOSEN, REJECTED} <= names


def names_of(head: Head) -> set[str]:
    """The columns of a table, or the keys of the first JSON object."""
    if isinstance(head.record, dict):
        return set(head.record)
    return max((set(head.columns(mark)) for mark in DELIMITERS), key=len)


def rows(source: SourceFile, problems: Problems) -> Iterator[tuple[Mapping[str, Any], int]]:
    """The rows of a table or the objects of a JSON file, with their lines."""
    if is_json(source):
        for record in objects(json_records(source, problems), problems):
            yield record.value, record.line
        return
    for row in table_rows(source, problems, ()):
        yield {name: cell if cell.strip() else None for name, cell in row.cells.items()}, row.line


def side_messages(row: Mapping[str, Any], side: Side) -> list[Any] | None:
    """What one side of a battle said and was told, as messages."""
    column = said_column(row, side)
    prompt = row.get(prompt_column(row)) if column else None
    return as_messages(row.get(column), prompt) if column else None


def preference_messages(row: Mapping[str, Any], which: str) -> list[Any] | None:
    """The chosen or the rejected conversation, as messages."""
    return as_messages(row.get(which), row.get(prompt_column(row)))


def is_set(cell: object) -> bool:
    """Whether a cell of 0 and 1 holds the 1."""
    return str(cell).strip().casefold() in ("1", "1.0", "true")


def winner_in(row: Mapping[str, Any]) -> str:
    """The winner of the Arena-55k layout, empty where none of its columns is set, or several are."""
    marked = [word for column, word in WINNERS.items() if is_set(row.get(column))]
    return marked[0] if len(marked) == 1 else ""
