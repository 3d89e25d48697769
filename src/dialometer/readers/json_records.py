"""JSON records with their positions: one per line, the elements of one array, or one object over several lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from dialometer.errors import Problem
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile

_WHITE = " \t\n\r"
LONG_RECORD = 2**18
"""Characters above which a record that does not end may be cut: only the beginning of a file serves to tell its format."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("|\\?\Z)|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """One JSON value and where it begins."""

    value: Any
    line: int
    column: int = 0


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key '{twice}' is given twice in one object")
    return fields


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
"""JSON by the letter: what Python would let pass or drop without a word (NaN, repeated keys) is an error."""


MAX_DEPTH = 60
"""Levels of lists and objects in one record. Nothing that is read here has ten; deeper ones only exhaust what walks them."""


def is_too_deep(value: Any) -> bool:
    """Whether a value has more levels than a record may have."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        level = [
            child
            for part in level
            if isinstance(part, dict | list)
            for child in (part.values() if isinstance(part, dict) else part)
        ]
        depth += 1
    return depth > MAX_DEPTH


def _shallow(value: Any, n_brackets: int) -> Any:
    """The value; raises RecursionError where it is nested too deeply."""
    if n_brackets > MAX_DEPTH and is_too_deep(value):
        raise RecursionError
    return value


def line_records(source: SourceFile, problems: Problems) -> Iterator[JsonRecord]:
    """One record per line, read as a stream; blank lines mean nothing, a broken line costs only itself."""
    for number, line in source.lines(problems):
        if not line.strip():
            continue
        try:
            yield JsonRecord(_shallow(DECODER.decode(line), line.count("[") + line.count("{")), number)
        except (ValueError, RecursionError) as error:
            problems.of_record([_broken(error, problems, line=number)])


def json_records(source: SourceFile, problems: Problems) -> Iterator[JsonRecord]:
    """Records of any of the three shapes; arrays are read whole, and after a fault in an array nothing can be read."""
    head = source.head().lstrip(_WHITE)
    is_spread_object = source.suffix == ".json" and first_record(head.partition("\n")[0]) is None
    if head.startswith("[") or is_spread_object:
        yield from _document_records(source.text(problems), problems)
    else:
        yield from line_records(source, problems)


def objects(records: Iterable[JsonRecord], problems: Problems) -> Iterator[JsonRecord]:
    """The records that are objects; any other is a fault."""
    for record in records:
        if isinstance(record.value, dict):
            yield record
        else:
            message = f"a dialogue must be an object, not {kind_of(record.value)}"
            problems.of_record([problems.problem(message, line=record.line, column=record.column)])


def first_record(text: str) -> Any:
    """The first record of a beginning of text, or None where it is not JSON; serves to tell a format."""
    start = len(text) - len(text.lstrip(_WHITE))
    if text.startswith("[", start):
        start += 1
        start += len(text[start:]) - len(text[start:].lstrip(_WHITE))
    for beginning in (text, *(_closed(text, start) if len(text) >= LONG_RECORD else ())):
        try:
            return DECODER.raw_decode(beginning, start)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _closed(text: str, start: int) -> Iterator[str]:
    """A record of which only the beginning is known, up to its last whole part, with everything closed that is open."""
    is_open: list[str] = []
    end = start
    for token in _TOKEN.finditer(text, start):
        if token[0][0] in "[{":
            is_open.append("]" if token[0] == "[" else "}")
        elif token[0] in ("]", "}"):
            if is_open:
                is_open.pop()
        elif token[1] != '"':  # a string that does not end
            break
        end = token.end()
    closing = "".join(reversed(is_open))
    yield from (text[:end] + value + closing for value in ("", ":null"))  # the last part may be a key


def kind_of(value: object) -> str:
    """A JSON value's kind in words, for messages."""
    if isinstance(value, bool):
        return "true or false"
    kinds = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _document_records(text: str, problems: Problems) -> Iterator[JsonRecord]:
    """The elements of one array, or one object, up to the first fault."""
    place = _Place(text)
    position = _skip_white(text, 0)
    is_open = text.startswith("[", position)  # whether an array still waits for its end
    if is_open:
        position = _skip_white(text, position + 1)
    is_done = is_open and text.startswith("]", position)
    while position < len(text) and not is_done:
        line, column = place.of(position)
        try:
            value, position = DECODER.raw_decode(text, position)
            _shallow(value, MAX_DEPTH + 1)
        except (ValueError, RecursionError) as error:
            problems.of_file(_broken(error, problems, line=line, column=column))
            return
        yield JsonRecord(value, line, column)
        position = _skip_white(text, position)
        if is_open and text.startswith(",", position):
            position = _skip_white(text, position + 1)
        else:
            is_done = True
    if is_open and text.startswith("]", position):
        is_open = False
        position = _skip_white(text, position + 1)
    if is_open or position < len(text):
        line, column = place.of(position)
        message = "the JSON array does not end" if position == len(text) else "unexpected text in the JSON"
        problems.of_file(problems.problem(message, remedy="is the file complete?", line=line, column=column))


class _Place:
    """Line and column of rising positions, counted once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line = 1
        self.seen = 0
        self.line_end = -1  # where the line before ends

    def of(self, position: int) -> tuple[int, int]:
        self.line += self.text.count("\n", self.seen, position)
        self.line_end = max(self.line_end, self.text.rfind("\n", self.seen, position))
        self.seen = position
        return self.line, position - self.line_end


def _skip_white(text: str, position: int) -> int:
    while position < len(text) and text[position] in _WHITE:
        position += 1
    return position


def _broken(error: Exception, problems: Problems, *, line: int, column: int = 0) -> Problem:
    """The problem of a record that begins at ``line`` (and, within a document, ``column``)."""
    if isinstance(error, json.JSONDecodeError):
        line = error.lineno if column else line
        return problems.problem(f"broken JSON: {error.msg}", line=line, column=error.colno)
    reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return problems.problem(f"broken JSON: {reason}", line=line, column=column)
