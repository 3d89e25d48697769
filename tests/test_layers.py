"""The rooms of the house: imports go downward only, neighbours on one line do not import each other."""

import ast
from functools import cache
from pathlib import Path

import pytest

import dialometer

ROOT = Path(dialometer.__file__).parent
LINES = [
    {"errors", "_version"},
    {"model", "registry", "folder_files", "formula_cells", "patterns", "markup"},
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


@cache
def import_nodes(path: Path) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported_rooms(path: Path) -> set[tuple[str, int]]:
    rooms = set()
    for node in import_nodes(path):
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


def test_imports_go_down():
    """One test for all files: a test for each would take more time than the reading."""
    going_up = [
        f"{path.relative_to(ROOT)}:{line}: {room} may not import {other}"
        for path in FILES
        if (room := room_of(path)) not in ("__init__", "__main__")
        for other, line in imported_rooms(path)
        if other not in ("__version__", room) and LEVEL[other] >= LEVEL[room]
    ]
    assert going_up == []


def test_the_rule_would_see_a_breach(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from dialometer.web import app\nimport dialometer.cli.study.check\n")
    assert imported_rooms(bad) == {("web", 1), ("cli", 2)}


HEAVY = {"torch", "transformers", "sklearn"}


def test_torch_stays_in_its_rooms():
    for path in FILES:
        if room_of(path) in ("neural", "learned", "generators", "retrieval"):
            continue
        for node in import_nodes(path):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.split(".")[0] for name in names} & HEAVY, f"{path} imports a model library"


PARTS = {
    "web": ["server", "rater", "api", "study_app", "dashboard", "run"],
    "stats": [
        "observations", "compute", "sequential", "bootstrap", "clustered", "judged", "icc", "agreement", "effects", "ranking",
        "retrieval",
    ],
    "learned": ["data", "cmade", "gaussian", "evaluators", "score_file", "experiments", "store_in_study", "cross_fitting"],
}  # fmt: skip
"""Inside a large package each part (a folder or a module) may import those before it."""


def breaches(path: Path, package: str, part: str) -> list[str]:
    """Imports of a module in a part of a package that go to a later part."""
    found, order = [], PARTS[package]
    for node in import_nodes(path):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            other = name.split(".")[2] if name.startswith(f"dialometer.{package}.") else ""
            if other in order and order.index(other) > order.index(part):
                found.append(f"{path.name}:{node.lineno}: {part} may not import {name}")
    return found


@pytest.mark.parametrize("package", PARTS)
def test_the_parts_of_a_package_import_in_one_direction(package):
    for path in sorted((ROOT / package).rglob("*.py")):
        part = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        if part != "__init__":
            assert part in PARTS[package], f"{part} has no place in the order of {package}"
            assert breaches(path, package, part) == []


def test_a_breach_inside_a_package_would_be_seen(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from dialometer.web.dashboard import login\nfrom dialometer.web.server.logs import log\n")
    assert breaches(bad, "web", "rater") == ["bad.py:1: rater may not import dialometer.web.dashboard.login"]
    assert breaches(bad, "web", "run") == []


def test_no_folder_is_crowded():
    """About twenty modules are seen at a glance. ``model`` has one for each thing, and parts of none of them."""
    folders = [path for path in ROOT.rglob("*") if path.is_dir() and path != ROOT / "model"]
    crowded = {folder.name: n for folder in folders if (n := len(list(folder.glob("*.py")))) > 21}
    assert not crowded


ANALYSIS_LINES = [
    {"base"},
    {"shared"},
    {
        f"families.{name}"
        for name in [
            "ratings",
            "pairs",
            "votes",
            "nominal",
            "annotations",
            "candidates",
            "conversations",
            "judges",
            "judged",
        ]
    },
    {"families.common"},
    {"planning", "reproduce"},
]
ANALYSIS_LEVEL = {folder: level for level, folders in enumerate(ANALYSIS_LINES) for folder in folders}
ANALYSIS_FILES = [path for path in FILES if path.is_relative_to(ROOT / "analysis") and path.name != "__init__.py"]


def analysis_folder(module: str) -> str:
    """The folder of a module below dialometer.analysis, such as "families.votes"; empty for the package itself."""
    parts = module.split(".")[2:]
    return ".".join(parts[:2] if parts[:1] == ["families"] else parts[:1])


def imported_analysis_folders(path: Path) -> set[tuple[str, int]]:
    folders = set()
    for node in import_nodes(path):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        folders |= {(analysis_folder(name), node.lineno) for name in names if name.startswith("dialometer.analysis.")}
    return {(folder, line) for folder, line in folders if folder in ANALYSIS_LEVEL}


def test_every_folder_of_analysis_has_its_line():
    folders = {analysis_folder(".".join(("dialometer", *path.relative_to(ROOT).parts))) for path in ANALYSIS_FILES}
    assert folders == set(ANALYSIS_LEVEL)


def test_families_do_not_import_each_other():
    going_up = []
    for path in ANALYSIS_FILES:
        own = analysis_folder(".".join(("dialometer", *path.relative_to(ROOT).parts)))
        going_up += [
            f"{path.relative_to(ROOT)}:{line}: {own} may not import {other}"
            for other, line in imported_analysis_folders(path)
            if other != own and ANALYSIS_LEVEL[other] >= ANALYSIS_LEVEL[own]
        ]
    assert going_up == []


def test_the_rule_for_analysis_would_see_a_breach(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from dialometer.analysis.families.votes.rankings import standing\n"
        "from dialometer.analysis.families import pairs\n"
        "import dialometer.analysis.planning.power\n"
    )
    found = imported_analysis_folders(bad)
    assert found == {("families.votes", 1), ("families.pairs", 2), ("planning", 3)}
    assert all(ANALYSIS_LEVEL[folder] >= ANALYSIS_LEVEL["families.ratings"] for folder, _ in found)


def test_cmade_and_the_gaussian_process_do_not_import_each_other():
    for path in sorted((ROOT / "learned" / "gaussian").glob("*.py")):
        assert "dialometer.learned.cmade" not in path.read_text(encoding="utf-8"), path
