"""Items for a study from any file: a table whose columns get their places in an item, guessed or chosen, dialogues in any
format that the readers know, or items as ``items.jsonl`` holds them.

What is wrong with an item is told at the line of the file that it came from, as ``dialometer check`` tells it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dialometer.design.items import ItemReader
from dialometer.errors import DialometerError, Problem, ReadError
from dialometer.exchange.own_systems.dialogue_outputs import WHOLE, read_pairs, read_rated_dialogues
from dialometer.exchange.own_systems.system_outputs import (
    ABOUT,
    CONTEXT,
    HIDDEN,
    ID,
    MAX_SYSTEMS,
    RESPONSE,
    STANDARD,
    SYSTEM,
    SystemOutputs,
    plain_name,
    read_outputs,
)
from dialometer.exchange.records import plain_name as system_name
from dialometer.model.dialogue import ROLES, Role, usual_role
from dialometer.model.item import Item, ItemKind
from dialometer.readers import read_dialogues
from dialometer.readers.json_records import json_records
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows
from dialometer.readers.turn_parts import PART_KEYS, turn_as_json

DIALOGUE, BEFORE, LAST, TEXT = "dialogue", "turns before the last response", "last response", "text"
"""Columns that a file of dialogues has here, and the one of a text with a line for each item."""
OWN_KEYS: Mapping[ItemKind, Mapping[str, type]] = {
    "responses": {"responses": dict, "context": list},
    "transcript_pair": {"a": dict, "b": dict},
    "dialogue": {"system": str, "turns": list},
    "candidate": {"candidate": dict, "context": list},
    "chat": {"system": str, "scenario": str},
    "arena": {"id": str, "scenario": str},
}
"""By what a record is recognised as an item of a kind."""
_COMMON = (("id", "Id"), ("block", "Block"), ("metadata", "Further information (not shown)"))
_PLACES: Mapping[ItemKind, tuple[tuple[str, str], ...]] = {
    "responses": (
        ("context", "What was said before"),
        ("standard", "Standard (reference) response"),
        ("system", "Name of the system"),
        ("response", "Response of the system that the row names"),
    ),
    "transcript_pair": (
        ("context", "What was said before, on both sides"),
        ("outcome", "Outcome, the same on both sides"),
    ),
    "dialogue": (("turns", "The dialogue"), ("system", "Name of the system")),
    "candidate": (
        ("context", "What was said before"),
        ("candidate", "The candidate response"),
        ("is_gold", "Whether it is known to be good"),
    ),
    "chat": (
        ("scenario", "Situation or question for the rater"),
        ("opening", "First message of the system"),
        ("system", "Name of the system"),
    ),
    "arena": (("scenario", "Situation or question for the rater"), ("opening", "First message of the systems")),
}
_COUNTS = (("min_turns", "Fewest messages"), ("max_turns", "Most messages"))
_PER_SYSTEM: Mapping[ItemKind, tuple[str, str]] = {
    "responses": ("response", "Response of"),
    "transcript_pair": ("side", "Transcript of"),
    "candidate": ("rank", "Rank given by"),
}
N_LOOKED_AT, FEW_ROWS = 200, 20
_TURN = re.compile(r"(?P<speaker>[^\s:#][^:\n]{0,39}):[ \t]*(?P<text>.*)")
Cells = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ItemTable:
    """What a file holds, as rows of named cells with their lines; ``is_items`` where its rows are items already."""

    file: str
    what: str
    columns: tuple[str, ...]
    rows: tuple[tuple[int, Cells], ...]
    notes: tuple[str, ...] = ()
    is_items: bool = False


@dataclass(slots=True)
class NewItems:
    """Items as ``items.jsonl`` holds them with the lines they are from, and the systems and speakers that they name."""

    rows: list[dict[str, Any]]
    lines: list[int]
    file: str
    systems: dict[str, str] = field(default_factory=dict)
    speakers: dict[str, Role] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    wrong: set[int] = field(default_factory=set)
    """The rows with errors, once they are checked."""
    repeated: list[Problem] = field(default_factory=list)
    """Second responses of one system to one context, at the lines of the file; the items hold the first."""
    is_mapped: bool = False
    """Whether they are made of columns, so that nobody wrote them as JSON."""

    def as_lines(self) -> str:
        """The content of an items file."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)

    def checked(
        self, kind: ItemKind, speakers: Mapping[str, Role], systems: Sequence[str], folder: Path | None
    ) -> tuple[list[Item], list[Problem]]:
        """The items, and what is wrong with them at the lines that they came from."""
        reader = ItemReader(kind, speakers, list(systems), self.file, folder)
        items = reader.read(self.as_lines().encode())
        self.wrong = {one.line - 1 for one in reader.problems if one.severity == "error" and one.line}
        return items, [*self.repeated, *(self._placed(problem) for problem in reader.problems)]

    @property
    def may_skip(self) -> bool:
        """Whether some rows have errors and others remain, once they are checked."""
        return bool(self.wrong or self.repeated) and len(self.wrong) < len(self.rows)

    def without_wrong(self) -> NewItems:
        """These items without the rows with errors, with a note that says how many were skipped."""
        kept = [number for number in range(len(self.rows)) if number not in self.wrong]
        note = f"rows with errors that are skipped: {len(self.wrong) + len(self.repeated):,}"
        rows, lines = [self.rows[number] for number in kept], [self.lines[number] for number in kept]
        return replace(self, rows=rows, lines=lines, notes=[*self.notes, note], repeated=[])

    def _placed(self, problem: Problem) -> Problem:
        """The problem at the line of the file; a dialogue is named by its id, since it has no line of its own."""
        if self.is_mapped and '"' in problem.remedy:  # how an items file writes it
            problem = replace(problem, remedy="choose the column that holds it, or correct the file")
        if not 0 < problem.line <= len(self.lines):
            return replace(problem, line=0)
        line = self.lines[problem.line - 1]
        if not line:
            words = (str(self.rows[problem.line - 1].get("id", "")), problem.field)
            return replace(problem, line=0, field=": ".join(filter(None, words)))
        message = re.sub(r"(?<=was given on line )\d+", lambda n: str(self.lines[int(n[0]) - 1]), problem.message)
        return replace(problem, message=message, line=line)


# Reading


def read_item_table(path: Path, kind: ItemKind) -> ItemTable:
    """The file as a table: items of this kind, dialogues, a table with a header, or a text with a line for each item."""
    source = SourceFile(path)
    source.probe()
    is_json = source.head().lstrip()[:1] in ("{", "[")
    is_plain = not is_json and source.suffix in (".txt", ".text", ".md")
    table = _records(path, kind) if is_json else None if is_plain else _table(path)
    if table is not None and (table.is_items or (kind != "dialogue" and _names_contexts(table))):
        return table
    try:
        return _dialogues(path)
    except ReadError:
        return table or _text(path)


def _names_contexts(table: ItemTable) -> bool:
    """Whether a table has a column that can only be what comes before a response."""
    return bool({plain_name(name) for name in table.columns} & {*CONTEXT, "scenario", "responses"} - WHOLE)


def _records(path: Path, kind: ItemKind) -> ItemTable:
    problems = Problems(path.name)
    rows = []
    for record in json_records(SourceFile(path), problems):
        if isinstance(record.value, dict):
            rows.append((record.line, record.value))
        else:
            problems.of_record([problems.problem("not a JSON object", remedy='write {"id": …}', line=record.line)])
    problems.finish()
    own = OWN_KEYS[kind]
    is_items = bool(rows) and all(isinstance(rows[0][1].get(key), kept) for key, kept in own.items())
    return _made(path, rows, "item" if is_items else "record", is_items=is_items)


def _table(path: Path) -> ItemTable:
    problems = Problems(path.name)
    source = SourceFile(path)
    rows = [(row.line, row.cells) for row in table_rows(source, problems, ())]
    problems.finish()
    return _made(path, rows, "row", tuple(problems.assumed))


def _text(path: Path) -> ItemTable:
    problems = Problems(path.name)
    rows = [(number, {TEXT: line.strip()}) for number, line in SourceFile(path).lines(problems) if line.strip()]
    problems.finish()
    return _made(path, rows, "line", tuple(problems.assumed))


def _dialogues(path: Path) -> ItemTable:
    reading = read_dialogues(path, lenient=True)
    rows: list[tuple[int, Cells]] = []
    for dialogue in reading:
        turns = [{**turn_as_json(turn), "role": turn.role} for turn in dialogue.turns]
        last = max((at for at, turn in enumerate(turns) if turn["role"] == "agent"), default=len(turns) - 1)
        cells: dict[str, Any] = {"id": dialogue.id, DIALOGUE: turns, BEFORE: turns[:last], LAST: turns[last]["text"]}
        prompt = {"system_prompt": dialogue.system_prompt} if dialogue.system_prompt else {}
        rows.append(
            (0, {**cells, **prompt, **{name: value for name, value in dialogue.metadata.items() if name not in cells}})
        )
    warnings = [str(replace(problem, file=path.name)) for problem, _ in reading.kinds_of_warnings]
    return _made(path, rows, "dialogue", tuple(warnings), more=f", format {reading.format}")


def _made(
    path: Path,
    rows: Sequence[tuple[int, Cells]],
    noun: str,
    notes: tuple[str, ...] = (),
    *,
    more: str = "",
    is_items: bool = False,
) -> ItemTable:
    if not rows:
        raise DialometerError(
            "there is nothing in the file", where=path.name, remedy="give a file with a row for each item"
        )
    columns = tuple(dict.fromkeys(name for _, cells in rows[:1000] for name in cells))
    what = f"{len(rows):,} {noun}{'s' if len(rows) > 1 else ''}{more}"
    return ItemTable(path.name, what, columns, tuple(rows), notes, is_items)


# Which column is what


def places_for(kind: ItemKind, column: str, systems: Sequence[str]) -> list[tuple[str, str]]:
    """What a column can be in items of a kind: its key and words for it."""
    places = [*_PLACES[kind], *(_COUNTS if kind in ("chat", "arena") else ())]
    if kind in _PER_SYSTEM:
        key, words = _PER_SYSTEM[kind]
        places += [(f"{key}:{name}", f"{words} {name}") for name in systems]
        new = system_name(column, "system")
        if new not in systems:
            places.append((f"{key}:{new}", f"{words} {new} (new)"))
    return [*places, *_COMMON, ("", "Not used")]


def guessed_places(table: ItemTable, kind: ItemKind, systems: Sequence[str]) -> dict[str, str]:
    """Which column is probably what; what describes the item is kept as further information."""
    places_by_name = {
        "responses": "context",
        "transcript_pair": "context",
        "candidate": "context",
        "dialogue": "turns",
        "chat": "scenario",
        "arena": "scenario",
    }
    main = places_by_name.get(kind, "")
    guesses: dict[str, str] = {}
    allowed = {key for key, _ in (*_PLACES[kind], *_COUNTS, *_COMMON)}
    names_systems = kind == "dialogue" or any(plain_name(name) in RESPONSE or name == LAST for name in table.columns)
    for column in table.columns:
        plain = plain_name(column)
        if plain in ID:
            guesses[column] = "id"
        elif plain in allowed - {"context"}:
            guesses[column] = plain
        elif plain in SYSTEM and names_systems and "system" in allowed and "system" not in guesses.values():
            guesses[column] = "system"
        elif main and main not in guesses.values() and _is_main(column, kind):
            guesses[column] = main
        elif kind == "responses" and plain in STANDARD and _varies(table, column):
            guesses[column] = "standard"
    rest = [
        column for column in table.columns if column not in guesses and column not in (DIALOGUE, BEFORE, LAST, TEXT)
    ]
    guesses |= _guessed_systems(table, rest, kind, systems, has_system="system" in guesses.values())
    return {
        column: guesses.get(column, "" if column in (DIALOGUE, BEFORE, LAST) else "metadata")
        for column in table.columns
    }


def _is_main(column: str, kind: ItemKind) -> bool:
    if column in (DIALOGUE, BEFORE, LAST):
        return column == {"dialogue": DIALOGUE, "responses": BEFORE, "candidate": BEFORE}.get(kind)
    return plain_name(column) in CONTEXT or column == TEXT


def _guessed_systems(
    table: ItemTable, rest: Sequence[str], kind: ItemKind, systems: Sequence[str], *, has_system: bool
) -> dict[str, str]:
    """Columns of what systems said: by the names of the study's systems, else all that could be."""
    if kind not in _PER_SYSTEM:
        return {}
    key = _PER_SYSTEM[kind][0]
    if kind == "candidate":
        response_column = next(
            (column for column in [*rest, *table.columns] if plain_name(column) in RESPONSE or column == LAST), None
        )
        ranked = {column: f"rank:{system_name(column)}" for column in rest if system_name(column) in systems}
        return ({response_column: "candidate"} if response_column else {}) | ranked
    responses = [column for column in rest if plain_name(column) in RESPONSE]
    if kind == "responses" and has_system and responses:
        return {responses[0]: "response"}
    known = [column for column in rest if system_name(column) in systems]
    texts = [column for column in rest if plain_name(column) not in ABOUT and _varies(table, column)]
    if LAST in table.columns and kind == "responses":
        of_file = system_name(Path(table.file.removesuffix(".gz")).stem, "system")
        return {LAST: "response" if has_system else f"{key}:{of_file}"}
    least, most = (2, 2) if kind == "transcript_pair" else (1 if responses else 2, MAX_SYSTEMS)
    chosen = known if len(known) >= 2 else texts if least <= len(texts) <= most else []
    return {column: f"{key}:{system_name(column, 'system')}" for column in chosen}


def _varies(table: ItemTable, column: str) -> bool:
    """Whether a column can hold what a system said: labels, ratings and the like repeat a few values over and over."""
    values = [str(cells.get(column)) for _, cells in table.rows[:N_LOOKED_AT]]
    return len(values) < FEW_ROWS or len(set(values)) > len(values) / 2


# From rows to items


def items_from_table(
    table: ItemTable,
    places: Mapping[str, str],
    kind: ItemKind,
    speakers: Mapping[str, Role],
    systems: Sequence[str],
    default_system: str = "",
    n_rows: int | None = None,
) -> NewItems:
    """The items of a table, or those in its first ``n_rows``. ``default_system`` is of whom dialogues are that name no system."""
    if table.is_items:
        rows = [dict(cells) for _, cells in table.rows[:n_rows]]
        return NewItems(rows, [line for line, _ in table.rows[:n_rows]], table.file, _named_systems(rows, systems))
    builder = _ItemBuilder(kind, places, speakers, default_system)
    new = NewItems([], [], table.file, notes=list(table.notes), is_mapped=True)
    by_key: dict[str, dict[str, Any]] = {}
    said_on: dict[tuple[str, str], int] = {}
    is_long = kind == "responses" and "response" in places.values()
    for number, (line, cells) in _looked_at(table, places, n_rows, is_long=is_long):
        for item in builder.items(cells, systems, f"item-{number:0{len(str(len(table.rows)))}d}"):
            key = json.dumps(item.get("context"), ensure_ascii=False) if "id" not in places.values() else item["id"]
            for system, text in item.get("responses", {}).items() if is_long else ():
                first = said_on.setdefault((key, system), line)
                kept = by_key.get(key, item).setdefault("responses", {}).setdefault(system, text)
                if kept != text:
                    message = f"another response of {system} to the same context was given on line {first}"
                    new.repeated.append(Problem(message, "keep one response for each", table.file, line))
            if is_long and key in by_key:
                continue
            by_key[key] = item
            new.rows.append(item)
            new.lines.append(line)
    new.systems = {name: builder.labels.get(name, name) for name in _named_systems(new.rows, systems)}
    new.speakers = builder.new_speakers
    if builder.n_hidden:
        new.notes.append(f"{builder.n_hidden:,} system prompts and tool messages are not shown to raters")
    return new


def _looked_at(
    table: ItemTable, places: Mapping[str, str], n_rows: int | None, *, is_long: bool
) -> list[tuple[int, tuple[int, Cells]]]:
    """The first rows with their numbers; where each holds one response, the others of the same items wherever they are."""
    rows = list(enumerate(table.rows, start=1))
    if not is_long or n_rows is None:
        return rows[:n_rows]
    key = "id" if "id" in places.values() else "context"
    columns = [column for column, place in places.items() if place == key]

    def item_of(row: tuple[int, tuple[int, Cells]]) -> str:
        return repr([row[1][1].get(column) for column in columns])

    first = set(map(item_of, rows[:n_rows]))
    return [row for row in rows if item_of(row) in first]


def items_from_files(files: Sequence[Path], kind: ItemKind) -> NewItems:
    """Items of several files, one for each system: matched as ``dialometer new --responses`` matches them."""
    outputs: SystemOutputs
    if kind == "responses":
        outputs = read_outputs(files)
    elif kind == "transcript_pair" and len(files) == 2:
        outputs = read_pairs(files)
    elif kind == "dialogue":
        outputs = read_rated_dialogues(files)
    else:
        raise DialometerError(
            "several files cannot be put together to items of this kind", remedy="bring one file at a time"
        )
    name = " + ".join(path.name for path in files)
    lines = list(range(1, len(outputs.items) + 1))
    return NewItems(outputs.items, lines, name, dict(outputs.systems), dict(outputs.speakers), list(outputs.notes))


def _named_systems(rows: Sequence[Mapping[str, Any]], known: Sequence[str]) -> dict[str, str]:
    """The systems that items name, in the order of the study's own, then as they come."""
    labels: dict[str, str] = {}
    for row in rows:
        sides = [row[side].get("system") for side in ("a", "b") if isinstance(row.get(side), dict)]
        columns = [
            *(row.get("responses") or {}),
            *(row.get("ranks") or {}),
            row.get("system"),
            *(row.get("systems") or []),
            *sides,
        ]
        labels |= {str(name): str(name) for name in columns if isinstance(name, str) and name}
    return {name: name for name in (*(one for one in known if one in labels), *labels)}


class _ItemBuilder:
    """Makes items of rows; speakers are called as the study calls those of their role."""

    def __init__(
        self, kind: ItemKind, places: Mapping[str, str], speakers: Mapping[str, Role], default_system: str
    ) -> None:
        self.kind = kind
        self.places = places
        self.speakers = speakers
        self.default_system = default_system
        self.new_speakers: dict[str, Role] = {}
        self.labels = {place.partition(":")[2]: column.strip() for column, place in places.items() if ":" in place}
        """Systems as the file writes their names."""
        self.n_hidden = 0

    def items(self, cells: Cells, systems: Sequence[str], fallback_id: str) -> Iterator[dict[str, Any]]:
        """The items of a row: one, or for a chat that names no system one for each."""
        item = {"id": fallback_id, **self._item(cells)}
        if self.kind in ("dialogue", "chat") and not item.get("system"):
            if self.kind == "dialogue" or self.default_system:
                item["system"] = self.default_system
            else:
                for number, system in enumerate(systems, start=1):
                    yield {**item, "id": f"{item['id']}-{number}", "system": system}
                return
        yield item

    def _item(self, cells: Cells) -> dict[str, Any]:
        item: dict[str, Any] = {}
        metadata: dict[str, Any] = {}
        row_system = next((_words(cells.get(c)) for c, place in self.places.items() if place == "system"), "").strip()
        self.labels.setdefault(system_name(row_system, "system"), row_system or "system")
        for column, place in self.places.items():
            value = cells.get(column)
            if not place or value is None or value == "":
                continue
            if place == "metadata":
                metadata |= value if column == "metadata" and isinstance(value, dict) else {plain_name(column): value}
            else:
                self._put(item, *place.partition(":")[::2], value, row_system)
        if cells.get("system_prompt") and "system_prompt" not in self.places:
            item["system_prompt"] = _words(cells["system_prompt"])
        before = item.pop("context", []) if self.kind == "transcript_pair" else []
        for side in ("a", "b") if before else ():
            if side in item:
                item[side]["turns"] = [*before, *item[side]["turns"]]
        outcome = item.pop("outcome", "")
        for side in ("a", "b") if outcome else ():
            item.get(side, {})["outcome"] = outcome
        return {**item, **({"metadata": metadata} if metadata else {})}

    def _put(self, item: dict[str, Any], key: str, system: str, value: Any, row_system: str) -> None:
        match key:
            case "context" | "turns":
                item[key] = self._turns(value)
            case "response":
                item.setdefault("responses", {})[system or system_name(row_system, "system")] = _words(value)
            case "side":
                speaks = "assistant" if "context" in self.places.values() else "user"
                item["b" if "a" in item else "a"] = {"system": system, "turns": self._turns(value, speaks)}
            case "rank":
                item.setdefault("ranks", {})[system] = _number(value)
            case "candidate":
                item[key] = {"speaker": self._speaker("Assistant", "agent"), "text": _words(value)}
            case "is_gold":
                item[key] = _words(value).casefold() in ("true", "yes", "1", "gold")
            case "min_turns" | "max_turns":
                item[key] = _number(value)
            case "system":
                item |= {} if self.kind == "responses" else {key: system_name(_words(value), "system")}
            case _:
                item[key] = _words(value).strip()

    def _turns(self, value: Any, speaks: str = "user") -> list[dict[str, Any]]:
        """Turns as chat programs write them, a transcript with a name before each turn, or one message of who ``speaks``."""
        if isinstance(value, str):
            text = value.strip()
            parsed = _json_list(text)
            value = (
                parsed
                if parsed is not None
                else turns_of_text(text, self._is_speaker) or [{"role": speaks, "text": text}]
            )
        turns = []
        for entry in value if isinstance(value, list) else [value]:
            turn = entry if isinstance(entry, dict) else {"role": "user", "text": str(entry)}
            speaker = str(turn.get("speaker") or turn.get("role") or turn.get("from") or "user")
            if speaker.casefold() in HIDDEN and speaker not in self.speakers:
                self.n_hidden += 1
                continue
            text = _words(turn.get("text") or turn.get("content") or turn.get("value"))
            parts = {name: turn[name] for name in PART_KEYS if turn.get(name)}
            known = turn.get("role") if turn.get("speaker") else None  # as the reader of dialogues says
            role = next((role for role in ROLES if role == known), usual_role(speaker) or "person")
            turns.append({"speaker": self._speaker(speaker, role), "text": text, **parts})
        return turns

    def _is_speaker(self, name: str) -> bool:
        return name in self.speakers or usual_role(name) is not None

    def _speaker(self, name: str, role: Role) -> str:
        if name in self.speakers:
            return name
        own = [known for known, of in {**self.speakers, **self.new_speakers}.items() if of == role]
        if role != "person" and own:
            return own[0]
        label = {"user": "User", "agent": "Assistant"}.get(role, name)
        self.new_speakers.setdefault(label, role)
        return label


def turns_of_text(text: str, is_speaker: Callable[[str], bool] = lambda _: False) -> list[dict[str, str]]:
    """A transcript with ``Name: `` before each turn; nothing where the text is none. Other lines continue a turn."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    starts = [match for line in lines if (match := _TURN.fullmatch(line))]
    if not lines or not _TURN.fullmatch(lines[0]) or not (len(starts) > 1 or is_speaker(starts[0]["speaker"])):
        return []
    turns: list[dict[str, str]] = []
    for line in lines:
        match = _TURN.fullmatch(line)
        if match and not line[0].isspace():
            turns.append({"speaker": match["speaker"].strip(), "text": match["text"].strip()})
        else:
            turns[-1]["text"] = f"{turns[-1]['text']}\n{line.strip()}".strip()
    return turns


def _json_list(text: str) -> list[Any] | None:
    if not text.startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a text may begin with a bracket
        return None
    return value if isinstance(value, list) and all(isinstance(turn, dict) for turn in value) else None


def _words(value: Any) -> str:
    """Text of a cell; of a message in several parts all of them."""
    if isinstance(value, list):
        parts = [part.get("text") or part.get("content") if isinstance(part, dict) else str(part) for part in value]
        return "\n".join(filter(None, map(_words, parts)))
    return value if isinstance(value, str) else "" if value is None else str(value)


def _number(value: Any) -> Any:
    text = _words(value).strip()
    return int(text) if re.fullmatch(r"\d{1,9}", text) else value
