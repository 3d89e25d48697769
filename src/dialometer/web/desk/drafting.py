"""Writing the files of a study that is being made: plain names in its own folder, whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from dialometer.design.load import STUDY_FILE
from dialometer.design.lock import LOCK_FILE
from dialometer.errors import DialometerError
from dialometer.web.desk.held import study_files

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,80}\.(yaml|jsonl|json|md|txt|csv)")


def is_own_file(name: str) -> bool:
    """Whether a name can be that of a file of a study; never a path, never the lock."""
    return bool(_FILE.fullmatch(name)) and ".." not in name and name != LOCK_FILE


def write_file(folder: Path, name: str, content: bytes) -> None:
    """Writes one file; a reader finds the old content or the new one, never half of it."""
    if not is_own_file(name):
        raise DialometerError(
            f"'{name[:80]}' cannot be a file of a study",
            remedy="letters, digits, - and _, ending in .yaml, .jsonl, .md, .txt, .json or .csv",
        )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DialometerError(f"'{name}' is not UTF-8 text", remedy="save it as UTF-8") from error
    handle, part = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
        Path(part).chmod(0o644)
        Path(part).replace(folder / name)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def give_name(folder: Path, name: str, title: str) -> None:
    """Sets the name, and the title if there is one, in a copied study.yaml; comments and the rest stay as they are."""
    path = folder / STUDY_FILE
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^name:.*$", lambda _: f"name: {name}", text, count=1, flags=re.MULTILINE)
    if title:
        quoted = json.dumps(title, ensure_ascii=False)
        text = re.sub(r"^title:.*(?:\n[ \t]+\S.*)*$", lambda _: f"title: {quoted}", text, count=1, flags=re.MULTILINE)
    write_file(folder, STUDY_FILE, text.encode())


def copy_study(source: Path, target: Path) -> None:
    """Copies the files of a study into a new folder, without its lock and its data."""
    target.mkdir(parents=True)
    for path in study_files(source):
        if path.name != LOCK_FILE:
            shutil.copyfile(path, target / path.name)
