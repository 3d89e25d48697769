"""The rooms of the house: imports go downward only, neighbours on one line do not import each other."""

import ast
from pathlib import Path

import pytest

import dialometer

ROOT = Path(dialometer.__file__).parent
LINES = [
    {"errors", "_version"},
    {"model", "registry"},
    {"neural", "scales", "quality", "readers", "stats", "report", "recruit"},
    {"design", "storage", "agents", "retrieval", "generators", "simulate"},
    {"flow", "exchange"},
    {"web", "analysis", "learned", "judges"},
    {"cli", "public"},
]
LEVEL = {room: level for level, rooms in enumerate(LINES) for room in rooms}
FILES = sorted(ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path: Path) -> set[tuple[str, int]]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "dialometer":
                names = [f"dialometer.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {(name.split(".")[1], node.lineno) for name in names if name.startswith("dialometer.")}
    return rooms


def test_every_room_has_its_line():
    rooms = {room_of(path) for path in FILES} - {"__init__", "__main__"}
    assert rooms <= set(LEVEL), f"rooms without a place in the picture: {rooms - set(LEVEL)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path):
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    for other, line in imported_rooms(path):
        if other in ("__version__", room):
            continue
        assert LEVEL[other] < LEVEL[room], f"{path.name}:{line}: {room} may not import {other}"


def test_the_rule_would_see_a_breach(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from dialometer.web import app\nimport dialometer.cli.study.check\n")
    assert imported_rooms(bad) == {("web", 1), ("cli", 2)}


HEAVY = {"torch", "transformers", "sklearn"}


def test_torch_stays_in_its_rooms():
    for path in FILES:
        if room_of(path) in ("neural", "learned", "generators", "retrieval"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.split(".")[0] for name in names} & HEAVY, f"{path} imports a model library"
