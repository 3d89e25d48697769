"""One name, one idea: a public class name is defined once in the tree, so that a reader who meets it knows which one it is."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import dialometer

ROOT = Path(dialometer.__file__).parent

SHARED = {
    "Agent": "how a study file declares a system's agent, and the interface of agents",
    "Answer": "what a rater answered, and an answer of a knowledge base",
    "Avatar": "the interface that an agent needs, and what retrieval offers for it; agents do not import retrieval",
    "AvatarReply": "as Avatar",
    "Problem": "what is wrong in a file, and the body of the API's answer that reports it",
}
"""Names that two modules share, and what each means there. Rename one of the two rather than add a name here."""


@cache
def modules_by_class(root):
    modules = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path.relative_to(root).as_posix())
    return modules


def test_a_class_name_is_used_once():
    shared = {name: paths for name, paths in modules_by_class(ROOT).items() if len(paths) > 1 and name not in SHARED}
    assert not shared, f"give each its own name: {shared}"


def test_every_exception_is_needed():
    assert {name for name, paths in modules_by_class(ROOT).items() if len(paths) > 1} == set(SHARED)


def test_the_search_sees_a_second_class(tmp_path):
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text("class Reading:\n    pass\n\n\nclass _Private:\n    pass\n")
    assert modules_by_class(tmp_path) == {"Reading": ["first.py", "second.py"]}


def test_few_modules_share_a_file_name():
    folders = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        if path.name != "__init__.py" and path.relative_to(ROOT).parts[0] != "cli":  # a verb's file has the verb's name
            folders[path.name].append(path.parent.relative_to(ROOT).as_posix())
    assert not {name: several for name, several in folders.items() if len(several) > 4}
