"""Lists of raters who may, or may not, take part: a text file beside the study."""

from __future__ import annotations

from pathlib import Path


def read_rater_list(file: Path) -> set[str]:
    """Identifiers of raters, one a line; a # begins a remark. Read anew each time, so that the list may grow."""
    lines = file.read_text(encoding="utf-8-sig").splitlines()
    return {line.split("#", 1)[0].strip() for line in lines} - {""}
