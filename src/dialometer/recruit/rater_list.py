"""Lists of raters who may, or may not, take part: a text file beside the study."""

from __future__ import annotations

from pathlib import Path

from dialometer.folder_files import MAX_LIST_BYTES, read_text_inside


def read_rater_list(folder: Path, name: str) -> set[str]:
    """Identifiers of raters, one per line; a # begins a remark. Read anew each time, so that the list may grow."""
    lines = read_text_inside(folder, name, MAX_LIST_BYTES).removeprefix("\ufeff").splitlines()
    return {line.split("#", 1)[0].strip() for line in lines} - {""}
