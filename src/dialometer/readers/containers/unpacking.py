"""Reading compressed files without being filled by them: what comes out is counted while it is read.

A file of 2 MB can unpack to 2 GB. Real data shrink 3 to 30 times, so a file that grows far more is refused early, whatever
sizes it declares.
"""

from __future__ import annotations

import gzip
import io
import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from dialometer.errors import DialometerError

MAX_RATIO = 200
"""How many times larger than the packed file its content can be, beyond the first ``FREE_BYTES``."""
FREE_BYTES = 64 * 2**20
MAX_TOTAL_BYTES = 16 * 2**30
"""Of a whole zip."""
_CHUNK_BYTES = 2**18
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError),
    *(FileExistsError, NotADirectoryError, IsADirectoryError),
)
"""What comes of files that are cut, changed, locked by a password, packed in an unknown way, or that hold a file and a folder
of one name."""


class UnpacksTooLarge(DialometerError):
    """A packed file holds far more than its size suggests."""


class Allowance:
    """How much may still come out of one packed file."""

    def __init__(self, path: Path, most_bytes: float = MAX_TOTAL_BYTES) -> None:
        self.path = path
        self.limit = int(min(most_bytes, FREE_BYTES + MAX_RATIO * path.stat().st_size))
        self.n_read = 0

    def take(self, n_bytes: int) -> None:
        """Counts what came out; raises :class:`UnpacksTooLarge` when it is too much."""
        self.check(n_bytes)
        self.n_read += n_bytes

    def check(self, n_bytes: int) -> None:
        """Whether so much may still come; raises :class:`UnpacksTooLarge`."""
        if self.n_read + n_bytes > self.limit:
            raise UnpacksTooLarge(
                f"it unpacks to more than {self.limit // 2**20:,} MiB",
                where=str(self.path),
                remedy="if you trust the file, unpack it yourself and name what is in it",
            )


def stays_inside(name: str) -> bool:
    """Whether an entry of this name lands below the folder into which it is unpacked, on every system."""
    path = PurePosixPath(name)
    return not (path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name)


def unpack(packed: zipfile.ZipFile, entries: Iterable[zipfile.ZipInfo], folder: Path, allowance: Allowance) -> None:
    """Writes entries into a folder. Names must have been checked; sizes are checked before, and again while reading."""
    files = [entry for entry in entries if not entry.is_dir()]
    allowance.check(sum(entry.file_size for entry in files))
    for entry in files:
        target = folder / entry.filename
        target.parent.mkdir(parents=True, exist_ok=True)
        with packed.open(entry) as source, target.open("wb") as out:
            while chunk := source.read(_CHUNK_BYTES):
                allowance.take(len(chunk))
                out.write(chunk)


def read_entry(packed: zipfile.ZipFile, entry: zipfile.ZipInfo | str, allowance: Allowance) -> bytes:
    """The content of one entry."""
    content = io.BytesIO()
    with packed.open(entry) as source:
        while chunk := source.read(_CHUNK_BYTES):
            allowance.take(len(chunk))
            content.write(chunk)
    return content.getvalue()


def open_gzip(path: Path) -> IO[bytes]:
    """The content of a gzipped file, counted as it is read."""
    return io.BufferedReader(_Counted(path), _CHUNK_BYTES)


class _Counted(io.RawIOBase):
    def __init__(self, path: Path) -> None:
        self._unpacked = gzip.open(path, "rb")  # noqa: SIM115 - closed by close()
        self._allowance = Allowance(path, math.inf)  # lines are read one at a time: only the ratio counts

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        # One piece at a time: of a file that was cut, everything before the cut is read first.
        piece = self._unpacked.read1(len(buffer))
        self._allowance.take(len(piece))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._unpacked.close()
        super().close()


def streamed(chunks: Iterator[bytes]) -> IO[bytes]:
    """Chunks of bytes that are made on the way, as a file."""
    return io.BufferedReader(_Chunked(chunks), _CHUNK_BYTES)


class _Chunked(io.RawIOBase):
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        piece, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)
