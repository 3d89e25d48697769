"""Every declared dependency is used, every used one is declared, and docs/decisions/dependencies.md gives each its reason."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import dialometer

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Loaded by a library that we use, by name; nothing here imports them.
LOADED_BY = {
    "httptools": "uvicorn parses HTTP with it",
    "uvloop": "uvicorn runs its loop",
    "python-multipart": "starlette reads uploaded files with it",
    "psycopg": "SQLAlchemy's driver of PostgreSQL",
}

# Packages whose modules have another name than the package.
PACKAGE_OF = {
    "argon2": "argon2-cffi",
    "faiss": "faiss-cpu",
    "jwt": "pyjwt",
    "markdown_it": "markdown-it-py",
    "sklearn": "scikit-learn",
    "vl_convert": "vl-convert-python",
    "yaml": "pyyaml",
}


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


@cache
def imported() -> dict[str, set[str]]:
    """Packages outside the standard library that the source imports, each with the modules that do."""
    found: dict[str, set[str]] = {}
    for path in Path(dialometer.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"dialometer", ""}:
                found.setdefault(name, set()).add(path.name)
    return found


def distributions() -> dict[str, set[str]]:
    return {PACKAGE_OF.get(module, module.lower().replace("_", "-")): where for module, where in imported().items()}


def declared() -> set[str]:
    lines = [
        *PROJECT["dependencies"],
        *(line for name in ("learn", "postgres", "ray", "oidc", "local-model") for line in EXTRAS[name]),
    ]
    return {name_of(line) for line in lines}


@pytest.mark.slow
def test_every_declared_dependency_is_imported():
    unused = declared() - set(distributions()) - set(LOADED_BY)
    assert not unused, f"declared but not imported by anything in src: {sorted(unused)}"


def test_every_imported_package_is_declared():
    unknown = {name: sorted(where) for name, where in distributions().items() if name not in declared()}
    assert not unknown, f"imported but not declared: {unknown}"


def test_every_dependency_has_a_lower_bound_and_its_reason():
    reasons = (ROOT / "docs" / "decisions" / "dependencies.md").read_text(encoding="utf-8")
    for line in [
        *PROJECT["dependencies"],
        *(line for name in ("learn", "postgres", "ray", "oidc", "local-model") for line in EXTRAS[name]),
    ]:
        assert ">=" in line, line
        assert f"`{name_of(line)}`" in reasons.lower(), (
            f"docs/decisions/dependencies.md says nothing of {name_of(line)}"
        )


def test_an_unused_one_would_be_seen():
    assert "statsmodels" not in distributions()
    assert {"numpy", "polars", "starlette"} <= set(distributions())
