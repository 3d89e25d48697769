"""Every saved version of a study's files, so that nothing is lost when two people edit one, and any version can be restored.

They lie in a hidden folder of the study: a log with one line for each version, and the contents by their hash. Archives,
exports and locks leave it out. What counts stays the files themselves: a change made on disk is kept as soon as somebody
saves over it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dialometer.design.differences import differences
from dialometer.design.lock import LOCK_FILE
from dialometer.errors import DialometerError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: one process serves a study there
    fcntl = None

FOLDER = ".versions"
LOG = "log.jsonl"
LOCK = "lock"
EDITING = "editing"
EDITING_S = 30
"""For so long after the last sign of life somebody counts as editing."""
_HASH = re.compile(r"[0-9a-f]{64}")
ON_DISK = ""
"""Who is named for a content that was found in the folder and not saved here."""
NO_FILE = "none"
"""Instead of the hash of a content: there was no file yet."""


@dataclass(frozen=True, slots=True)
class Version:
    """One saved content of a file; ``number`` counts from 1 over all files of the study."""

    number: int
    file: str
    content: str
    """The hash of the content; empty where the file was removed."""
    by: str
    at_ms: int


def hash_of(content: bytes) -> str:
    """By what a content is known."""
    return hashlib.sha256(content).hexdigest()


def state_of_file(path: Path) -> str:
    """The hash of a file as it is now, :data:`NO_FILE` where there is none: what to save a change of it with."""
    try:
        return hash_of(path.read_bytes())
    except FileNotFoundError:
        return NO_FILE


def write_whole(path: Path, content: bytes) -> None:
    """Writes one file; a reader finds the old content or the new one, never half of it."""
    handle, part = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
        Path(part).chmod(0o644)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def refuse_frozen(folder: Path) -> None:
    """Raises where a study has been frozen: it would no longer be what its lock says, and not open again."""
    if (folder / LOCK_FILE).exists():
        raise DialometerError(
            "a frozen study is not changed", remedy="copy it to a new study, or make a new version on the command line"
        )


class SavedMeanwhile(DialometerError):
    """The file is no longer as it was when somebody began to edit it."""


_one_at_a_time = threading.Lock()


class Versions:
    """The saved versions of one study folder, and who is editing."""

    def __init__(self, folder: Path) -> None:
        self._study = folder
        self._folder = folder / FOLDER

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One save at a time, or the freezing of the study, in this process and in others of this machine."""
        self._folder.mkdir(exist_ok=True)
        with _one_at_a_time, (self._folder / LOCK).open("a") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def all(self) -> list[Version]:
        """Every version, the oldest first."""
        try:
            lines = (self._folder / LOG).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        whole = [json.loads(line) for line in lines if line.endswith("}")]
        return [Version(number, **record) for number, record in enumerate(whole, start=1)]

    def newest(self, file: str) -> Version | None:
        """The last version of a file."""
        return next((version for version in reversed(self.all()) if version.file == file), None)

    def content(self, hash_: str) -> bytes | None:
        """A content by its hash; None where it was never kept. Forms say which, so it can be anything but a hash."""
        if not _HASH.fullmatch(hash_):
            return None
        try:
            return gzip.decompress((self._folder / f"{hash_}.gz").read_bytes())
        except FileNotFoundError:
            return None

    def save(self, file: str, content: bytes | None, by: str, at_ms: int, base: str = "") -> None:
        """Writes a file of a draft, or removes it where the content is None; what was there before is kept first.

        With ``base``, the hash of what was edited or :data:`NO_FILE`, nothing is written over anything else:
        :class:`SavedMeanwhile`.
        """
        path = self._study / file
        with self.locked():
            refuse_frozen(self._study)
            before = path.read_bytes() if path.is_file() else None
            if before == content:
                return
            if base and base != (NO_FILE if before is None else hash_of(before)):
                raise SavedMeanwhile(f"'{file}' was changed while you edited it")
            last = self.newest(file)
            if before is not None and (last is None or last.content != hash_of(before)):
                self._keep(file, before, ON_DISK, int(path.stat().st_mtime * 1000))
            if content is None:
                path.unlink()
            else:
                write_whole(path, content)
            self._keep(file, content, by, at_ms)

    def editing(self, file: str, by: str, at_ms: int) -> list[str]:
        """Notes that somebody is editing a file; returns who else is."""
        folder = self._folder / EDITING
        folder.mkdir(parents=True, exist_ok=True)
        sign = {"by": by, "file": file, "at_ms": at_ms}
        write_whole(folder / f"{hash_of(by.encode())[:16]}.json", json.dumps(sign).encode())
        signs = [json.loads(path.read_bytes()) for path in folder.glob("*.json")]
        return sorted(
            sign["by"]
            for sign in signs
            if sign["file"] == file and sign["by"] != by and at_ms - sign["at_ms"] < 1000 * EDITING_S
        )

    def _keep(self, file: str, content: bytes | None, by: str, at_ms: int) -> None:
        hash_ = "" if content is None else hash_of(content)
        if content is not None and not (self._folder / f"{hash_}.gz").exists():
            write_whole(self._folder / f"{hash_}.gz", gzip.compress(content, mtime=0))
        record = asdict(Version(0, file, hash_, by, at_ms))
        del record["number"]
        with (self._folder / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(record, ensure_ascii=False) + "\n")


def merged(base: str, mine: str, theirs: str) -> str | None:
    """Both changes of one text, line by line; None where they touch the same or neighbouring lines.

    Neighbouring lines count as the same, as in ``git merge-file``, with which the tests compare it.
    """
    lines = base.splitlines(keepends=True)
    my_changes, their_changes = _changes(lines, mine), _changes(lines, theirs)
    for change in their_changes:
        if change in my_changes:
            continue
        if any(change[0] <= own[1] and own[0] <= change[1] for own in my_changes):
            return None
    for start, end, new in sorted({*my_changes, *their_changes}, reverse=True):
        lines[start:end] = new
    return "".join(lines)


class BothChanged(Exception):
    """Two people changed the same values differently; ``places`` are their paths."""

    def __init__(self, value: Any, places: Sequence[str], *, is_structural: bool) -> None:
        super().__init__(", ".join(places))
        self.value = value
        """Both changes together, with the reader's own in these places."""
        self.places = places
        self.is_structural = is_structural
        """Whether one of them added, removed or renamed an entry that the other one changed."""


def merged_values(base: Any, mine: Any, theirs: Any) -> Any:
    """Both changes of the data of one file, value by value; :class:`BothChanged` where both changed one differently."""
    places: list[str] = []
    structural: list[str] = []
    value = _merged_value((base, mine, theirs), "", places, structural)
    if places:
        raise BothChanged(value, places, is_structural=bool(structural))
    return value


_ABSENT = object()


def _merged_value(three: tuple[Any, Any, Any], path: str, places: list[str], structural: list[str]) -> Any:
    base, mine, theirs = three
    if mine in (base, theirs):
        return theirs
    if theirs == base:
        return mine
    start = f"{path}." if path else ""
    if all(isinstance(one, dict) for one in three):
        both: dict[Any, Any] = {}
        for key in (*theirs, *(key for key in mine if key not in theirs)):
            inner = (base.get(key, _ABSENT), mine.get(key, _ABSENT), theirs.get(key, _ABSENT))
            value = _merged_value(inner, f"{start}{key}", places, structural)
            both |= {} if value is _ABSENT else {key: value}
        return both
    if all(isinstance(one, list) for one in three) and len(base) == len(mine) == len(theirs):
        entries = enumerate(zip(base, mine, theirs, strict=True))
        return [_merged_value(inner, f"{start}{number}", places, structural) for number, inner in entries]
    places.append(path)
    if any(one is _ABSENT or _has_parts(one) for one in (mine, theirs)):
        structural.append(path)
    return mine


def _has_parts(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(one, dict | list) for one in inner)


def _changes(base: Sequence[str], text: str) -> list[tuple[int, int, tuple[str, ...]]]:
    """Which lines of the base were replaced by which others."""
    new = text.splitlines(keepends=True)
    return [(i, j, tuple(new[k:m])) for kind, i, j, k, m in differences(base, new) if kind != "equal"]
