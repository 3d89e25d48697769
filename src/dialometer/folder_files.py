"""Reading a file that a study names: inside the study's folder, a regular file, and not larger than such a file can be.

Who edits a study in the browser is not the administrator of the machine. A path in a study file must never open a device,
a pipe or another user's file, and reading it must not take all the memory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dialometer.errors import DialometerError

MIB = 2**20
MAX_TEXT_BYTES = MIB
"""Of a study file, and of a text that raters read."""
MAX_LIST_BYTES = 16 * MIB
"""Of a list of raters: about a million identifiers."""
MAX_ITEMS_BYTES = 512 * MIB
"""Of an items file: about a million dialogues."""


class FileRefused(DialometerError):
    """A named file is missing, lies outside its folder, is no regular file, or is too large."""


def read_inside(folder: Path, name: str, max_bytes: int) -> bytes:
    """The content of a file in a folder, links followed; raises :class:`FileRefused`, which says why and what to do."""
    path = _inside(folder, name)
    try:
        # A pipe would wait for a writer: it is opened without waiting, and refused like all that is no regular file.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _unreadable(error) from error
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _not_regular()
        content = file.read(max_bytes + 1) if found.st_size <= max_bytes else b""
    if found.st_size > max_bytes or len(content) > max_bytes:
        raise FileRefused(
            f"it is larger than {max_bytes // MIB} MiB", remedy="make it smaller, or split the study into several"
        )
    return content


def read_text_inside(folder: Path, name: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """The same as UTF-8 text."""
    try:
        return read_inside(folder, name, max_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileRefused("it is not UTF-8 text", remedy="save it as UTF-8") from error


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that no file can have, or that is too long for one, is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_inside(place: Path, folder: Path) -> bool:
    """Whether a file really lies in a folder, links followed."""
    return place.resolve().is_relative_to(folder.resolve())


def _inside(folder: Path, name: str) -> Path:
    """Where the file really is; nothing is opened before this is known to be in the folder."""
    try:
        path = (folder / name).resolve()
        is_there = is_inside(path, folder)
        mode = path.stat().st_mode if is_there else 0
    except OSError as error:
        raise _unreadable(error) from error
    except (ValueError, RuntimeError) as error:  # a zero byte in the name, links in a circle
        raise FileRefused("it cannot be the name of a file", remedy="correct the name") from error
    if not is_there:
        raise FileRefused(
            "it is outside the study's folder", remedy="copy the file into the study's folder and name it there"
        )
    if not stat.S_ISREG(mode):
        raise _not_regular()
    return path


def _not_regular() -> FileRefused:
    return FileRefused("it is not a regular file", remedy="name a file, not a folder, a device or a pipe")


def _unreadable(error: OSError) -> FileRefused:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return FileRefused("there is no such file", remedy="write it or correct the name")
    return FileRefused(error.strerror or str(error), remedy="check the name and the file's permissions")
