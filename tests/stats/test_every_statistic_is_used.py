"""No statistic lies idle: each is used by a report, has a name in the registry, or is offered by ``import dialometer as dm``."""

import ast
from pathlib import Path

import dialometer
from dialometer.stats import STATISTICS

ROOT = Path(dialometer.__file__).parent
STATS = sorted((ROOT / "stats").rglob("*.py"))
ROOMS = ("analysis", "learned", "retrieval", "generators", "public")
USERS = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]


def module_of(path):
    return ".".join(("dialometer", *path.relative_to(ROOT).with_suffix("").parts))


def imported(tree):
    """What a module imports by name: (module, name) by the name it has here."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def names_in(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def definitions():
    """Every function and class of ``stats``, and which other ones each refers to."""
    refers, public = {}, set()
    for path in STATS:
        tree, module = ast.parse(path.read_text(encoding="utf-8")), module_of(path)
        here = imported(tree)
        own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found = {(module, name) for name in names_in(node) & own}
                refers[module, node.name] = found | {here[name] for name in names_in(node) & here.keys()}
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    public.add((module, node.name, ast.unparse(node.returns) if node.returns else ""))
    return refers, public


def results(refers):
    """Classes that hold estimates: what a statistic gives when one estimate is not enough."""
    estimate = ("dialometer.model.estimate", "Estimate")
    return {name for (module, name), others in refers.items() if estimate in others and name[0].isupper()}


def test_every_statistic_is_used_or_offered():
    refers, public = definitions()
    used = {pair for path in USERS for pair in imported(ast.parse(path.read_text(encoding="utf-8"))).values()}
    used |= {(home, name) for name, home in dialometer._HOMES.items()}
    used |= {(known.function.__module__, known.function.__name__) for known in map(STATISTICS.get, STATISTICS)}
    reached, waiting = set(), [pair for pair in used if pair in refers]
    while waiting:
        pair = waiting.pop()
        if pair not in reached:
            reached.add(pair)
            waiting += [other for other in refers.get(pair, ()) if other in refers]
    kinds = {"Estimate", *results(refers)}
    statistics = {(module, name) for module, name, gives in public if any(kind in gives for kind in kinds)}
    assert len(statistics) > 60
    idle = sorted(f"{module}.{name}" for module, name in statistics - reached)
    assert not idle, f"neither a report nor dm uses: {', '.join(idle)}"
