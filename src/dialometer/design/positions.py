"""YAML with positions: the data, and the line and column of every key and value, for exact error messages."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import yaml

from dialometer.errors import Problem

Path = tuple[str | int, ...]
_MAX_NODES = 200_000  # bounds what aliases can expand to


class _Loader(yaml.SafeLoader):
    """YAML 1.2 core: yes, no, on, off and dates are plain words, as people who write level names expect."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:int", r"^[-+]?[0-9]+$", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+)$",
        "-+.0123456789",
    ),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), list(_first))


@dataclass
class Positioned:
    """Parsed YAML: the plain data, where each path stands, and what was wrong with the text itself."""

    data: Any = None
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def at(self, path: Path) -> tuple[int, int]:
        """Line and column of a path, or of the nearest thing around it."""
        while path and path not in self.positions:
            path = path[:-1]
        return self.positions.get(path, (1, 1))


def parse_yaml(text: str, file: str) -> Positioned:
    """Parses a YAML text; syntax errors and keys given twice become problems."""
    result = Positioned()
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is not None:
                result.data = _Builder(loader, file, result).build(node, ())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(filter(None, [error.context, error.problem]))
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        result.problems.append(
            Problem(f"not valid YAML: {what}", "check indentation, colons and quotes here", file, line, column)
        )
    except yaml.reader.ReaderError as error:
        result.problems.append(Problem(f"not valid YAML: {error.reason}", "remove the character", file, 1, 1))
    except RecursionError:
        result.problems.append(Problem("not valid YAML: nested too deeply", "flatten the file", file, 1, 1))
    return result


class _Builder:
    def __init__(self, loader: _Loader, file: str, result: Positioned) -> None:
        self.loader = loader
        self.file = file
        self.result = result
        self.n_nodes = 0

    def build(self, node: yaml.Node, path: Path) -> Any:
        self.n_nodes += 1
        if self.n_nodes > _MAX_NODES:
            raise yaml.MarkedYAMLError(problem="the file expands to too many values", problem_mark=node.start_mark)
        self.result.positions.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(child, (*path, i)) for i, child in enumerate(node.value)]
        return self.loader.construct_object(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[Hashable, Any]:
        data: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = self.loader.construct_object(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            mark = key_node.start_mark
            if key is None or not isinstance(key, str | int):
                raise yaml.MarkedYAMLError(problem="keys must be plain words", problem_mark=mark)
            if key in data:
                self.result.problems.append(
                    Problem(f"the key '{key}' is given twice", "keep one", self.file, mark.line + 1, mark.column + 1)
                )
            # A key's own position serves for its value: an editor should land on the line that names it.
            self.result.positions[(*path, key)] = (mark.line + 1, mark.column + 1)
            data[key] = self.build(value_node, (*path, key))
        return data
