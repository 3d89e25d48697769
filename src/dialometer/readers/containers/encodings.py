"""In which encoding a file of text is: told by its bytes, so that files from Windows and from spreadsheets are read as they are.

Everything is read as UTF-8 in the end. UTF-16 and UTF-32 are told by their marks, UTF-16 without a mark by its zero bytes.
What is not UTF-8 is Windows-1252 where it can be nothing else; a file that is UTF-8 in other places is damaged, and refused.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import IO

UTF8 = "utf-8"
_MARKS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
NAMES = {"utf-16": "UTF-16", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "utf-32": "UTF-32", "cp1252": "Windows-1252"}
_CHUNK_BYTES = 2**18
_N_LOOKED_AT = 4096
# Control characters that no text holds, the five bytes that mean nothing in Windows-1252, and ÿ, which is mostly damage.
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d\xff]")
_LETTER_OF_UTF8 = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def encoding_of(stream: IO[bytes]) -> str:
    """The encoding of what a stream holds; it is read to its end, or up to what decides."""
    head = stream.read(_N_LOOKED_AT)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            if encoding != UTF8:
                return encoding
            break
    if not head.startswith(codecs.BOM_UTF8) and (wide := _without_mark(head)):
        return wide
    decoder = codecs.getincrementaldecoder(UTF8)()
    is_utf8, is_cp1252 = True, True
    chunk = head
    while chunk:
        if is_utf8:
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                is_utf8 = False
        if is_cp1252 and (_NO_TEXT.search(chunk) or _LETTER_OF_UTF8.search(chunk)):
            is_cp1252 = False
        if not is_utf8 and not is_cp1252:
            return UTF8
        chunk = stream.read(_CHUNK_BYTES)
    return UTF8 if is_utf8 or not is_cp1252 else "cp1252"


def _without_mark(head: bytes) -> str:
    """UTF-16 of mostly Latin letters has a zero in every second byte."""
    n = len(head) // 2
    if n < 2 or head.count(0) < 0.4 * 2 * n * 0.9:
        return ""
    if head[1::2].count(0) > 0.8 * n and head[0::2].count(0) < 0.05 * n:
        return "utf-16-le"
    if head[0::2].count(0) > 0.8 * n and head[1::2].count(0) < 0.05 * n:
        return "utf-16-be"
    return ""


class Recoded(io.RawIOBase):
    """A stream of another encoding as UTF-8; bytes that are no text raise UnicodeDecodeError."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._left = b""
        self._is_done = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left and not self._is_done:
            chunk = self._stream.read(_CHUNK_BYTES)
            self._is_done = not chunk
            self._left = self._decoder.decode(chunk, final=self._is_done).encode(UTF8, "surrogatepass")
        piece, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        super().close()
