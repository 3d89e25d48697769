"""A scale's type is its own affair: outside ``scales/`` code asks what a scale says of itself, so that plug-ins take part."""

import ast
from pathlib import Path

import dialometer
from dialometer.scales import SCALES

ROOT = Path(dialometer.__file__).parent
ALLOWED = {
    "analysis/reproduce/rankme.py": "the published data set names its methods",
    "exchange/formats/choices.py": "the format says on which scale its choices were given",
    "exchange/formats/label_studio.py": "names of Label Studio's own controls",
    "exchange/formats/potato.py": "names of Potato's own controls",
    "exchange/formats/rankme.py": "the format says on which scale its numbers were given",
    "exchange/formats/votes.py": "the format says on which scale its votes were given",
    "exchange/formats/preferences.py": "the format says on which scale its preferences were given",
    "exchange/formats/acute.py": "the format says on which scale its choices were given",
    "exchange/own_systems/study_of_kind.py": "it writes study files, which say on which scales raters answer",
    "learned": "stages of training are called pairwise; no scale is meant",
    "cli/learn/evaluate.py": "a stage of training is called pairwise; no scale is meant",
    "analysis/families/votes/best_worst.py": "the name of the analysis of best-worst choices in the registry of families",
}
COMMON_WORDS = {"text", "choice", "multiple"}
"""Types that are also keys and columns; only comparisons with a scale's type are looked for."""


def literals(source):
    """Line and name of each use of a scale type's name: anywhere, or for common words in comparisons with a type."""
    tree = ast.parse(source)
    types = set(SCALES.names())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in types - COMMON_WORDS:
            yield node.lineno, node.value
        compared = []
        if isinstance(node, ast.Compare) and _is_type(node.left):
            compared = node.comparators
        elif isinstance(node, ast.Match) and _is_type(node.subject):
            compared = node.cases
        names = [inner.value for part in compared for inner in ast.walk(part) if isinstance(inner, ast.Constant)]
        yield from ((node.lineno, name) for name in names if name in COMMON_WORDS)


def _is_type(node):
    words = [inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)]
    words += [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
    return ("type" in words and "scale" in ast.dump(node)) or "scale" in words


def test_no_scale_type_is_named_outside_scales():
    found = []
    for file in sorted(ROOT.rglob("*.py")):
        path = file.relative_to(ROOT).as_posix()
        if path.startswith("scales/") or any(path == allowed or path.startswith(f"{allowed}/") for allowed in ALLOWED):
            continue
        found += [f"{path}:{line}: {name}" for line, name in literals(file.read_text(encoding="utf-8"))]
    assert not found, "ask the scale instead (see dialometer.model.scale): " + "; ".join(found)


def test_every_allowed_place_needs_its_exception():
    for allowed in ALLOWED:
        files = [ROOT / allowed] if allowed.endswith(".py") else (ROOT / allowed).rglob("*.py")
        assert any(list(literals(file.read_text(encoding="utf-8"))) for file in files), allowed


def test_the_rule_would_see_a_breach():
    assert list(literals('if scale.type == "text": pass')) == [(1, "text")]
    assert list(literals('kept = pl.col("scale") == "choice"')) == [(1, "choice")]
    assert list(literals('match scale["type"]:\n    case "multiple": pass')) == [(1, "multiple")]
    assert list(literals('kinds = ("likert",)')) == [(1, "likert")]
    assert not list(literals('column = row["text"]'))
