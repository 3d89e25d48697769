"""What systems answered, as people keep it in files, turned into items for raters.

Three shapes are read, each as CSV, TSV, JSON or JSON Lines, plain or gzipped: one file with a context and one column per system,
one with a column that names the system of each row, or one file per system. The last two have a context and a response each, or
whole chats, whose last response is then judged. Files differ in the names of their columns and in how they write a
conversation; what was assumed is told in ``notes``. Only what is ambiguous is refused.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialometer.errors import DialometerError, UnknownName
from dialometer.exchange.records import NewNames
from dialometer.model.dialogue import Role, clean_text
from dialometer.readers.json_records import is_too_deep, json_records
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows
from dialometer.registry import did_you_mean

CONTEXT = (
    "context",
    "prompt",
    "question",
    "input",
    "query",
    "instruction",
    "messages",
    "conversation",
    "conversations",
    "dialogue",
    "user",
)
RESPONSE = (
    "response",
    "output",
    "answer",
    "completion",
    "reply",
    "prediction",
    "generated",
    "assistant",
    "text",
    "content",
)
ID = ("id", "item", "item_id", "question_id", "prompt_id", "context_id", "key", "index")
SYSTEM = ("system", "model", "model_name", "model_id", "system_name", "bot")
"""Columns that say whose response a row is."""
STANDARD = ("standard", "reference", "gold", "ground_truth", "human", "target")
ABOUT = ("topic", "category", "domain", "language", "source", "task", "split")
"""Columns that describe the item; raters may later be split by them."""
SPEAKERS: dict[str, tuple[str, Role]] = {
    "user": ("User", "user"),
    "human": ("User", "user"),
    "customer": ("User", "user"),
    "assistant": ("Assistant", "agent"),
    "agent": ("Assistant", "agent"),
    "bot": ("Assistant", "agent"),
    "gpt": ("Assistant", "agent"),
    "model": ("Assistant", "agent"),
}
HIDDEN = ("system", "developer", "tool", "function")
MAX_SYSTEMS = 8


@dataclass(slots=True)
class SystemOutputs:
    """Items as ``items.jsonl`` holds them, the systems (name and label), the speakers, and what was assumed on the way."""

    items: list[dict[str, Any]]
    systems: dict[str, str]
    speakers: dict[str, Role]
    notes: list[str] = field(default_factory=list)
    kind: str = "responses"


@dataclass(slots=True)
class _Row:
    """One record of a file: what is recognised of it."""

    line: int
    id: str
    turns: list[dict[str, str]]
    cells: dict[str, Any]

    @property
    def context(self) -> str:
        """What makes two contexts the same."""
        return json.dumps(self.turns, ensure_ascii=False)


@dataclass(slots=True)
class _Answered:
    """The rows of one system, with what it answered, and the file they come from."""

    path: Path
    rows: list[tuple[_Row, str]] = field(default_factory=list)

    @property
    def has_ids(self) -> bool:
        return all(row.id for row, _ in self.rows)

    def by(self, name: str) -> dict[str, tuple[_Row, str]]:
        """By id or by context, each of which must be there once."""
        problems = Problems(str(self.path))
        table: dict[str, tuple[_Row, str]] = {}
        for row, text in self.rows:
            key = getattr(row, name)
            if key in table:
                where = f"the id '{row.id}'" if name == "id" else "the same context"
                message = f"{where} was given on line {table[key][0].line}"
                problems.of_record([problems.problem(message, remedy="keep one response for each", line=row.line)])
            else:
                table[key] = (row, text)
        problems.finish()
        return table


def _check_named(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Refuses a column that no row has, rather than to miss its response in every row."""
    known = list(dict.fromkeys(name for row in rows for name in row))
    for name in columns:
        if known and name not in known:
            raise UnknownName(f"there is no column '{name}'", where=str(path), remedy=did_you_mean(name, known))


class OutputReader:
    """Reads one or several files of outputs; problems are collected for each file and raised together."""

    def __init__(self) -> None:
        self.speakers: dict[str, Role] = {}
        self.notes: list[str] = []
        self.n_hidden = 0

    def read(self, files: Sequence[Path], systems: Sequence[str] = ()) -> SystemOutputs:
        """The items of all files; ``systems`` names the columns that are systems where other columns are not."""
        names = NewNames("system")
        if len(files) == 1:
            items, labels = self._one_file(files[0], systems, names)
        else:
            if systems:
                raise DialometerError(
                    "several files hold one system each, so that no columns can be named",
                    where="--systems",
                    remedy="leave it out; the names of the files name the systems",
                )
            items, labels = self._file_each(files)
        if self.n_hidden:
            self.notes.append(f"{self.n_hidden:,} system prompts and tool messages are not shown to raters")
        return SystemOutputs(items, labels, self.speakers, self.notes)

    # One file with all systems.

    def _one_file(
        self, path: Path, systems: Sequence[str], names: NewNames
    ) -> tuple[list[dict[str, Any]], dict[str, str]]:
        problems = Problems(str(path))
        rows = list(self._rows(path, problems))
        problems.finish()
        column = next((name for name in (rows[0].cells if rows else ()) if plain_name(name) in SYSTEM), "")
        if column and not systems and (_response_column(rows) or _are_whole(rows)):
            self.notes.append(f"the column '{column}' names the system of each row")
            return self._row_each(path, rows, column, names)
        is_items = bool(rows) and all(isinstance(row.cells.get("responses"), dict) for row in rows)
        columns = list(systems) if systems else self._systems_of(rows, path, is_items=is_items)
        _check_named(columns, [row.cells["responses"] if is_items else row.cells for row in rows], path)
        labels = {names.name(column): column for column in columns}
        items = []
        for row in rows:
            responses = row.cells["responses"] if is_items else row.cells
            texts = {name: self._text(responses.get(column)) for name, column in labels.items()}
            missing = [labels[name] for name, text in texts.items() if not text]
            if missing:
                problems.of_record(
                    [problems.problem(f"no response of {', '.join(missing)}", remedy="add it", line=row.line)]
                )
                continue
            items.append(self._item(row, texts, set(columns)))
        problems.finish()
        return items, labels

    def _systems_of(self, rows: Sequence[_Row], path: Path, *, is_items: bool) -> list[str]:
        """Which columns are systems: all that have no other known meaning."""
        if is_items:
            return list(dict.fromkeys(name for row in rows for name in row.cells["responses"]))
        known = {*CONTEXT, *ID, *STANDARD, *ABOUT, "metadata"}
        columns = [
            name for name in dict.fromkeys(name for row in rows for name in row.cells) if plain_name(name) not in known
        ]
        if not 2 <= len(columns) <= MAX_SYSTEMS:
            seen = ", ".join(columns) or "none"
            raise DialometerError(
                f"which columns are systems is not clear (beside context and id: {seen})",
                where=str(path),
                remedy="name them: --systems first,second; or give one file for each system",
            )
        self.notes.append(
            f"systems are the columns {', '.join(columns)}; if some are not, name those that are "
            "(--systems, or the field under the file)"
        )
        return columns

    # One system in each row, or in each file.

    def _row_each(
        self, path: Path, rows: Sequence[_Row], column: str, names: NewNames
    ) -> tuple[list[dict[str, Any]], dict[str, str]]:
        of_system: dict[str, list[_Row]] = {}
        for row in rows:
            of_system.setdefault(self._text(row.cells.get(column)), []).append(row)
        if "" in of_system:
            raise DialometerError(
                "a row names no system", where=f"{path}:{of_system[''][0].line}", remedy=f"fill in '{column}'"
            )
        if len(of_system) > MAX_SYSTEMS:
            raise DialometerError(
                f"'{column}' names {len(of_system)} systems, and a rater can compare {MAX_SYSTEMS} at most",
                where=str(path),
                remedy="keep the rows of fewer systems",
            )
        labels = {names.name(label): label for label in of_system}
        answered = {name: self._answered(path, of_system[label]) for name, label in labels.items()}
        return self._matched(answered), labels

    def _file_each(self, files: Sequence[Path]) -> tuple[list[dict[str, Any]], dict[str, str]]:
        labels = system_labels(files)
        answered: dict[str, _Answered] = {}
        for name, path in zip(labels, files, strict=True):
            problems = Problems(str(path))
            rows = list(self._rows(path, problems))
            problems.finish()
            answered[name] = self._answered(path, rows)
        return self._matched(answered), labels

    def _answered(self, path: Path, rows: Sequence[_Row]) -> _Answered:
        """Each row's response: its own column, or the last turn of a whole chat."""
        column = _response_column(rows)
        if not column and _are_whole(rows):
            note = "whole chats: their last response is judged, and what comes before it is the context"
            if note not in self.notes:
                self.notes.append(note)
            return _Answered(path, [(replace(row, turns=row.turns[:-1]), row.turns[-1]["text"]) for row in rows])
        if not column:
            raise DialometerError(
                "there is no column of responses",
                where=str(path),
                remedy=f"call it '{RESPONSE[0]}' ({', '.join(RESPONSE[1:5])}, …)",
            )
        problems = Problems(str(path))
        answered = _Answered(path)
        for row in rows:
            text = self._text(row.cells.get(column))
            if text:
                answered.rows.append((row, text))
            else:
                problems.of_record(
                    [problems.problem("the response is empty", remedy="fill it in or remove the row", line=row.line)]
                )
        problems.finish()
        return answered

    def _matched(self, answered: Mapping[str, _Answered]) -> list[dict[str, Any]]:
        """Items that all systems answered: by id where all rows have one and some are the same, else by context."""
        by = "id"
        tables: dict[str, dict[str, tuple[_Row, str]]] = {}
        shared: list[str] = []
        if all(rows.has_ids for rows in answered.values()):
            tables, shared = _shared(answered, by)
        if not shared:
            by = "context"
            tables, shared = _shared(answered, by)
        where = ", ".join(dict.fromkeys(str(rows.path) for rows in answered.values()))
        if not shared:
            raise DialometerError(
                "no id and no context is in all of them",
                where=where,
                remedy="use the same ids or contexts for all systems",
            )
        self.notes.append(f"rows are matched by their {by}")
        n_partial = len({key for table in tables.values() for key in table}) - len(shared)
        if n_partial:
            self.notes.append(f"{n_partial:,} contexts that not all systems answered are excluded")
        n_other = sum(len({table[key][0].context for table in tables.values()}) > 1 for key in shared)
        if n_other:
            self.notes.append(
                f"{n_other:,} of {len(shared):,} ids have other contexts for other systems; raters see the first system's"
            )
        first = next(iter(tables.values()))
        return [
            self._item(first[key][0], {name: table[key][1] for name, table in tables.items()}, set(RESPONSE))
            for key in shared
        ]

    # Records.

    def _rows(self, path: Path, problems: Problems) -> Iterator[_Row]:
        source = SourceFile(path)
        source.probe()
        records: Iterator[tuple[Any, int]]
        if source.head().lstrip()[:1] in ("{", "["):
            records = ((record.value, record.line) for record in json_records(source, problems))
        else:
            records = ((row.cells, row.line) for row in table_rows(source, problems, ()))
        for value, line in records:
            if not isinstance(value, dict):
                problems.of_record([problems.problem("not a JSON object", remedy='write {"context": …}', line=line)])
                continue
            if why := _why_not_text(value):
                problems.of_record([problems.problem(why, remedy="remove the character", line=line)])
                continue
            context = _cell(value, CONTEXT)
            turns = self._turns(context)
            if not turns:
                remedy = f"call the column '{CONTEXT[0]}' ({', '.join(CONTEXT[1:5])}, …) and fill it in"
                problems.of_record([problems.problem("there is no context", remedy=remedy, line=line, field="context")])
                continue
            yield _Row(line, str(_cell(value, ID) or "").strip(), turns, value)

    def _turns(self, context: Any) -> list[dict[str, str]]:
        """A plain text is one turn of the user; lists are turns as chat programs write them."""
        if isinstance(context, str) and context.lstrip().startswith("["):
            with suppress(ValueError, RecursionError):  # a text may begin with a bracket
                context = _shallow_json(context)
        if not isinstance(context, list):
            context = [{"speaker": "user", "text": context}] if context else []
        turns = []
        for turn in context:
            if not isinstance(turn, dict):
                return []
            who = str(turn.get("speaker") or turn.get("role") or turn.get("from") or "user")
            text = self._text(turn.get("text") or turn.get("content") or turn.get("value"))
            if who.lower() in HIDDEN:
                self.n_hidden += 1
                continue
            if not text and turn.get("tool_calls"):
                self.n_hidden += 1
                continue
            if not text:
                return []
            speaker, role = SPEAKERS.get(who.lower(), (who, "person"))
            self.speakers.setdefault(speaker, role)
            turns.append({"speaker": speaker, "text": text})
        return turns

    def _text(self, value: Any) -> str:
        if isinstance(value, list):  # parts of one message, or a list of messages that holds the response
            value = "\n".join(
                filter(
                    None,
                    (
                        self._text(part.get("text") or part.get("content")) if isinstance(part, dict) else str(part)
                        for part in value
                    ),
                )
            )
        return clean_text(value) if isinstance(value, str) else ("" if value is None else str(value))

    def _item(self, row: _Row, responses: Mapping[str, str], used: set[str]) -> dict[str, Any]:
        item: dict[str, Any] = {"id": row.id, "context": row.turns, "responses": dict(responses)}
        standard = self._text(_cell(row.cells, STANDARD))
        if standard:
            item["standard"] = standard
        metadata = dict(row.cells.get("metadata") or {}) if isinstance(row.cells.get("metadata"), dict) else {}
        metadata |= {
            plain_name(k): v
            for k, v in row.cells.items()
            if plain_name(k) in ABOUT and k not in used and v not in (None, "")
        }
        if metadata:
            item["metadata"] = metadata
        return item


def read_prompts(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Contexts for systems to answer, as items without responses: a table or JSON with a context each, or a text of lines.

    The second value is how many system prompts and tool messages the file has, which are not part of a context.
    """
    reader, problems = OutputReader(), Problems(str(path))
    if path.name.removesuffix(".gz").endswith(".txt"):
        lines = ((n, line.strip()) for n, line in SourceFile(path).lines(problems))
        rows = [_Row(n, "", reader._turns([{"role": "user", "content": line}]), {}) for n, line in lines if line]
    else:
        rows = list(reader._rows(path, problems))
    problems.finish()
    if not rows:
        raise DialometerError(
            "there are no prompts", where=str(path), remedy="write one per line, or a column 'prompt'"
        )
    items = ({"id": row.id, **reader._item(row, {}, set())} for row in rows)
    return _with_ids([{k: v for k, v in item.items() if k != "responses"} for item in items]), reader.n_hidden


def system_labels(files: Sequence[Path]) -> dict[str, str]:
    """Names of systems by their files, one each, with the file's name as the label."""
    names = NewNames("system")
    labels: dict[str, str] = {}
    for path in files:
        stem = SourceFile(path).stem
        name = names.name(stem)
        if name in labels:
            raise DialometerError(
                f"two files are called '{stem}'", where=str(path), remedy="rename one; files name the systems"
            )
        labels[name] = stem
    return labels


def read_outputs(
    files: Sequence[Path], *, systems: Sequence[str] = (), n_items: int | None = None, seed: int = 1
) -> SystemOutputs:
    """Items from files of outputs; with ``n_items`` so many are drawn at random. Ids are made where the files have none."""
    outputs = OutputReader().read(files, systems)
    if len(outputs.systems) < 2:
        raise DialometerError(
            "there is one system only",
            where=str(files[0]),
            remedy="give a second column, or a second file with --responses",
        )
    outputs.items = _with_ids(outputs.items)
    if n_items is not None and n_items < len(outputs.items):
        rng = np.random.default_rng(seed)
        drawn = np.sort(rng.choice(len(outputs.items), n_items, replace=False))
        outputs.notes.append(f"{n_items:,} of {len(outputs.items):,} contexts are drawn at random (seed {seed})")
        outputs.items = [outputs.items[number] for number in drawn]
    return outputs


def _with_ids(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    width = len(str(len(items)))
    counts = Counter(item["id"] for item in items)
    if any(n > 1 for name, n in counts.items() if name):
        twice = next(name for name, n in counts.items() if name and n > 1)
        raise DialometerError(f"the id '{twice}' is given {counts[twice]} times", remedy="give each context its own id")
    return [{**item, "id": item["id"] or f"item-{number:0{width}d}"} for number, item in enumerate(items, start=1)]


def _shared(answered: Mapping[str, _Answered], by: str) -> tuple[dict[str, dict[str, tuple[_Row, str]]], list[str]]:
    """Each system's rows by id or by context, and what all of them have."""
    tables = {name: rows.by(by) for name, rows in answered.items()}
    first, *rest = tables.values()
    return tables, [key for key in first if all(key in table for table in rest)]


def _response_column(rows: Sequence[_Row]) -> str:
    return next((name for name in (rows[0].cells if rows else ()) if plain_name(name) in RESPONSE), "")


def _are_whole(rows: Sequence[_Row]) -> bool:
    """Whether each row is a chat that ends with a response to something."""
    agents = {speaker for speaker, role in SPEAKERS.values() if role == "agent"}
    return bool(rows) and all(len(row.turns) > 1 and row.turns[-1]["speaker"] in agents for row in rows)


def _shallow_json(text: str) -> Any:
    value = json.loads(text)
    if is_too_deep(value):
        raise ValueError("nested too deeply")
    return value


def _why_not_text(value: Any) -> str:
    """What no page can show in any of the texts of a row; empty where there is nothing."""
    if isinstance(value, str):
        try:
            clean_text(value)
        except ValueError as error:
            return str(error)
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(_why_not_text, parts)), "")


def plain_name(name: str) -> str:
    """A column's name without capitals, spaces and hyphens."""
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _cell(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of the columns that the row has, in the order of the names."""
    cells = {plain_name(str(key)): value for key, value in row.items()}
    return next((cells[name] for name in names if cells.get(name) not in (None, "")), None)
