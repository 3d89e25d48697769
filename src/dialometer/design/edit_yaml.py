"""Writes YAML, and changes values in a YAML text while everything else stays as it was written: comments, order, quotes.

Only the places that differ are written anew, by the positions that the parser gives. A YAML library that reads and writes
whole files would also re-indent, re-wrap and re-quote what nobody touched (docs/decisions/0008-editing-study-files.md).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from dialometer.design.differences import differences
from dialometer.design.positions import StudyLoader, parse_yaml, scalar
from dialometer.errors import DialometerError

WIDTH = 110
LONG = 90
"""Longer texts are folded over several lines."""


class NotEditable(DialometerError):
    """The text cannot be changed value by value."""


def edited(text: str, data: Mapping[str, Any]) -> str:
    """The text with as few changes as it takes to say ``data``."""
    old = parse_yaml(text, "")
    if old.problems or not isinstance(old.data, dict):
        raise NotEditable("this file cannot be read as YAML", remedy="edit it as text first")
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
        raise NotEditable(
            "this file uses anchors (& and *)", remedy="edit it as text, or write out what they stand for"
        )
    if is_same(old.data, data):
        return text
    result = _Text(text).with_data(data)
    if not is_same(parse_yaml(result, "").data, data):
        raise NotEditable("this change cannot be written into the file", remedy="edit it as text")
    return result


def is_same(first: Any, second: Any) -> bool:
    """Whether two values say the same; 1 and 1.0 do, 1 and true do not. The order of keys does not count."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(is_same(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(is_same, first, second))
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    return bool(first == second)


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    new: str


_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What the parser counts as the end of a line."""


class _Text:
    """A text, where its lines begin, and the edits that were found necessary."""

    def __init__(self, text: str) -> None:
        self.text = text if text.endswith("\n") else f"{text}\n"
        self.lines = [0, *(ending.end() for ending in _LINE_END.finditer(self.text))]
        self.edits: list[_Edit] = []

    def with_data(self, data: Mapping[str, Any]) -> str:
        loader = StudyLoader(self.text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
        if root is None or not self._change(root, dict(data)):
            return _dump(dict(data))
        result = self.text
        # From the end on, so that places before stay right; what is inserted at one place keeps its order.
        numbered = [(edit.start, edit.end, number, edit) for number, edit in enumerate(self.edits)]
        for *_, edit in sorted(numbered, key=lambda entry: entry[:3], reverse=True):
            result = result[: edit.start] + edit.new + result[edit.end :]
        return result

    # Places

    def _at(self, mark: yaml.Mark) -> int:
        return self.lines[mark.line] + int(mark.column)

    def _end(self, node: yaml.Node) -> int:
        """Where a node really ends: collections and folded texts claim the blank lines and comments that follow."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            return self._end(last[1] if isinstance(last, tuple) else last)
        end = self._at(node.end_mark)
        return len(self.text[:end].rstrip()) if getattr(node, "style", None) in ("|", ">") else end

    def _line_start(self, at: int) -> int:
        return self.lines[bisect_right(self.lines, at) - 1]

    def _next_line(self, at: int) -> int:
        return self.lines[bisect_right(self.lines, at)]

    # Changes

    def _change(self, node: yaml.Node, new: Any) -> bool:
        """Changes a collection inside; False where the value must be written anew as a whole."""
        if not new or getattr(node, "flow_style", True):
            return False
        if isinstance(node, yaml.MappingNode) and isinstance(new, dict):
            return self._mapping(node, new)
        if isinstance(node, yaml.SequenceNode) and isinstance(new, list):
            return self._sequence(node, new)
        return False

    def _mapping(self, node: yaml.MappingNode, new: dict[Any, Any]) -> bool:
        column = node.start_mark.column
        entries = {_plain(key): (key, value) for key, value in node.value}
        kept = [key for key in entries if key in new]
        if not kept:
            return False
        own = list(entries)
        first_start = self._at(entries[own[0]][0].start_mark)
        is_after_dash = self.text[self._line_start(first_start) : first_start].strip() != ""
        for key, (key_node, value_node) in entries.items():
            start = self._at(key_node.start_mark)
            if key not in new:
                if own.index(key) < own.index(kept[0]) and is_after_dash:
                    continue
                self.edits.append(_Edit(self._line_start(start), self._next_line(self._end(value_node)), ""))
            elif not is_same(_plain(value_node), new[key]) and not self._change(value_node, new[key]):
                written = _indented(_dump({key: new[key]}), column).lstrip(" ").removesuffix("\n")
                self.edits.append(_Edit(start, self._end(value_node), written))
        if is_after_dash and kept[0] != own[0]:
            self.edits.append(_Edit(first_start, self._at(entries[kept[0]][0].start_mark), ""))
        before = next(key for key in new if key in entries)
        for key, value in new.items():
            if key in entries:
                before = key
            else:
                at = self._next_line(self._end(entries[before][1]))
                self.edits.append(_Edit(at, at, _indented(_dump({key: value}), column)))
        return True

    def _sequence(self, node: yaml.SequenceNode, new: list[Any]) -> bool:
        column = node.start_mark.column
        start = self._at(node.start_mark)
        if self.text[self._line_start(start) : start].strip():
            return False
        dashes = [self._dash(item, column) for item in node.value]
        old = [_plain(item) for item in node.value]
        for kind, i, j, k, m in differences([_key(one) for one in old], [_key(one) for one in new]):
            if kind == "equal":
                continue
            n_both = min(j - i, m - k)
            for place, value in zip(range(i, i + n_both), new[k : k + n_both], strict=True):
                item = node.value[place]
                if not self._change(item, value):
                    written = _indented(_dump([value]), column).lstrip(" ").removesuffix("\n")
                    self.edits.append(_Edit(dashes[place], self._end(item), written))
            for place in range(i + n_both, j):
                end = self._next_line(self._end(node.value[place]))
                self.edits.append(_Edit(self._line_start(dashes[place]), end, ""))
            more = new[k + n_both : m]
            if more:
                last = i + n_both - 1
                at = self._line_start(dashes[0]) if last < 0 else self._next_line(self._end(node.value[last]))
                self.edits.append(_Edit(at, at, _indented(_dump(more), column)))
        return True

    def _dash(self, item: yaml.Node, column: int) -> int:
        line = item.start_mark.line
        while self.text[self.lines[line] : self.lines[line] + column + 1] != " " * column + "-":
            line -= 1
        return self.lines[line] + column


def _plain(node: yaml.Node) -> Any:
    """What a node says."""
    if isinstance(node, yaml.MappingNode):
        return {_plain(key): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    return scalar(node)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _indented(text: str, column: int) -> str:
    return "".join(" " * column + line if line.strip() else line for line in text.splitlines(keepends=True))


class _Dumper(yaml.SafeDumper):
    """Writes as the templates are written: lists indented, short lists of words in one line, long texts folded."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text.strip():
        style = "|"
    elif len(text) > LONG and "\n" not in text and "  " not in text:
        style = ">"
    elif _looks_like_another_kind(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_READERS: tuple[Any, Any] = (StudyLoader(""), yaml.SafeLoader(""))


def _looks_like_another_kind(text: str) -> bool:
    """Whether our reader, or one of YAML 1.1, would take the bare words for a number, a truth value or nothing."""
    return any(not reader.resolve(yaml.ScalarNode, text, (True, False)).endswith(":str") for reader in _READERS)


def _list_node(dumper: yaml.SafeDumper, values: Sequence[Any]) -> yaml.SequenceNode:
    is_short = all(isinstance(value, str | int | float) and "\n" not in str(value) for value in values)
    is_short = is_short and sum(len(str(value)) + 2 for value in values) < LONG
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=is_short)


_Dumper.add_representer(str, _text_node)
_Dumper.add_representer(list, _list_node)


def _dump(value: Any) -> str:
    if isinstance(value, list):  # the list itself always has one line for each value
        return "".join("- " + _indented(yaml_text(entry), 2).lstrip(" ") for entry in value)
    return yaml_text(value)


def yaml_text(value: Any) -> str:
    """A value as YAML, in the form of the templates; words that any reader could take for something else have quotes."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=False
    )
    return text.removesuffix("...\n")
