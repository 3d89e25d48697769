"""Packages that pages of docs/how-to show, put into a folder as pip would install them."""

import re
import tomllib
from pathlib import Path

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
FILE = re.compile(r'^```\w+ title="(?:[^"]+/)?([^"/]+)"\n(.*?)^```', flags=re.DOTALL | re.MULTILINE)


def install(page: str, folder: Path) -> dict[str, dict[str, str]]:
    """Writes the page's modules and what pip notes of their package; gives its entry points by group."""
    files = dict(FILE.findall((HOW_TO / page).read_text(encoding="utf-8")))
    project = tomllib.loads(files.pop("pyproject.toml"))["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    note = folder / f"{name}-{version}.dist-info"
    note.mkdir(parents=True)
    (note / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n")
    groups = project["entry-points"]
    lines = [
        line for group, parts in groups.items() for line in (f"[{group}]", *(f"{n} = {m}" for n, m in parts.items()))
    ]
    (note / "entry_points.txt").write_text("\n".join([*lines, ""]))
    for title, text in files.items():
        if title.endswith((".py", ".html")):
            (folder / title).write_text(text, encoding="utf-8")
    return groups
