"""docs/reliability.md: each command writes its own section, with date and machine, and leaves the others alone."""

from __future__ import annotations

import os
import platform
from datetime import date
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


def write_section(title: str, command: str, text: str, page: Path = PAGE) -> None:
    """Put a text between the marks of a section; a section that is new comes last."""
    begin, end = f"<!-- begin: {title} -->", f"<!-- end: {title} -->"
    content = page.read_text(encoding="utf-8")
    made = f"Made on {date.today().isoformat()} by `{command}` on {machine()}, at a load of {os.getloadavg()[2]:.0f}."
    section = f"{begin}\n\n{made}\n\n{text}\n\n{end}"
    if begin in content:
        before, rest = content.split(begin)
        content = f"{before}{section}{rest.split(end)[1]}"
    else:
        content = f"{content.rstrip()}\n\n## {title}\n\n{section}\n"
    page.write_text(content, encoding="utf-8")


def machine() -> str:
    """The machine in words: cores, memory, system."""
    memory = ""
    if Path("/proc/meminfo").exists():
        kib = int(Path("/proc/meminfo").read_text().split()[1])
        memory = f", {kib / 2**20:.0f} GiB of memory"
    return (
        f"{os.cpu_count()} cores{memory}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )
