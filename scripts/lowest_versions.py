"""Prints the lowest allowed version of each dependency as a pip constraint: ``python scripts/lowest_versions.py [EXTRA …]``.

``make test-lowest`` installs these and runs the tests, so that the bounds in pyproject.toml are true.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(extras: list[str]) -> list[str]:
    """One line ``name==version`` for each dependency of the core and of the extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    declared = [
        *project["dependencies"],
        *(line for extra in extras for line in project["optional-dependencies"][extra]),
    ]
    pins = []
    for line in declared:
        match = re.match(r"([\w.-]+)(?:\[[\w,]+\])?\s*>=\s*([\w.]+)", line)
        if match:
            pins.append(f"{match[1]}=={match[2]}")
    return pins


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1:])))
