"""What dialogues and judgments are read from: text, plain or gzipped, in any usual encoding, a spreadsheet, Parquet or Arrow.

Readers get decoded lines with positions for messages, whatever the file is.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dialometer.errors import Problem, ReadError
from dialometer.readers.containers.columnar import (
    ColumnarError,
    ColumnarPart,
    described,
    is_columnar,
    json_lines,
    parts_of,
)
from dialometer.readers.containers.encodings import NAMES, UTF8, Recoded, encoding_of
from dialometer.readers.containers.unpacking import UnpacksTooLarge, open_gzip, streamed
from dialometer.readers.containers.workbook import WorkbookError, is_workbook, sheet_as_csv
from dialometer.readers.eval_logs import EvalLogError, is_eval_log, log_lines
from dialometer.readers.problems import Problems

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 1 << 20
_OTHER_FILES = {
    b"%PDF-": "this is a PDF file",
    b"\xd0\xcf\x11\xe0": "this is an old Office file",
    b"PK\x03\x04": "this is an archive or a document",
    b"\x89PNG": "this is a picture",
    b"\xff\xd8\xff": "this is a picture",
}
"""Files that people take for tables or that hold one, by their first bytes."""
_UNREADABLE = (WorkbookError, ColumnarError, EvalLogError, UnpacksTooLarge)


class SourceFile:
    """Where dialogues are read from. Compression is told by the content, so a wrongly named file still opens."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = str(path)
        plain = self.path.with_suffix("") if self.path.suffix.lower() == ".gz" else self.path
        self.stem = plain.stem or plain.resolve().name
        self.suffix = plain.suffix.lower()
        self._encoding = ""
        self._sheet: tuple[bytes, str] | None = None
        self._parts: list[ColumnarPart] = []

    def probe(self) -> None:
        """Fail now rather than at the first line where the file cannot be opened."""
        try:
            self._open().close()
        except OSError as error:
            raise ReadError([self._unopened(error)]) from error
        except _UNREADABLE as error:
            raise ReadError([Problem(error.message, error.remedy, self.name)]) from error
        for mark, message in _OTHER_FILES.items() if self._encoding else ():
            if self._starts_with(mark):
                raise ReadError([Problem(message, "save what it holds as .xlsx, CSV or text", self.name)])

    def head(self) -> str:
        """The first part of the text, for telling the format; bytes that are not UTF-8 are no matter here."""
        try:
            with self._open() as stream:
                return stream.read(_HEAD_BYTES).removeprefix(_BOM).decode("utf-8", errors="replace")
        except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError, *_UNREADABLE):
            return ""  # the reading itself will say so, with the line

    def lines(self, problems: Problems) -> Iterator[tuple[int, str]]:
        """Numbered lines without their ends. Bytes that are not UTF-8 are a problem of the file and come as U+FFFD.

        Where nearly every line is a problem they end early, with a problem that says so.
        """
        number = 0
        try:
            with self._open() as stream:
                if self.assumed:
                    problems.assume(self.assumed)
                for number, raw in enumerate(stream, start=1):
                    yield number, _decode(raw.removeprefix(_BOM) if number == 1 else raw, number, problems)
                    if problems.is_hopeless:
                        message = f"the file has {problems.n_errors:,} problems up to here; the rest was not read"
                        problems.of_file(problems.problem(message, remedy="correct these first", line=number))
                        return
        except _UNREADABLE as error:
            problems.of_file(problems.problem(error.message, remedy=error.remedy, line=number + 1))
        except UnicodeDecodeError as error:
            message = f"damaged {NAMES.get(self._encoding, self._encoding)} text: {error.reason}"
            problems.of_file(problems.problem(message, remedy="save the file as UTF-8", line=number + 1))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            remedy = "copy or download the file again"
            problems.of_file(problems.problem(f"damaged gzip data: {error}", remedy=remedy, line=number + 1))

    def text(self, problems: Problems) -> str:
        """The whole text, lines joined by ``\\n``."""
        return "\n".join(line for _, line in self.lines(problems))

    @property
    def assumed(self) -> str:
        """What had to be assumed to read the file as text, in words; empty where it is plain UTF-8."""
        if self._sheet is not None:
            return self._sheet[1]
        if len(self._parts) > 1:
            return described(self._parts)
        name = NAMES.get(self._encoding, "")
        return f"read as {name}" if name else ""

    def forms(self) -> list[str]:
        """In words, how the file is written where that is not plain UTF-8 with lines as on Linux; call it after ``probe``."""
        if self._parts:
            return [described(self._parts).removeprefix("read from ")]
        if self._sheet is not None:
            return ["a spreadsheet"]
        if is_eval_log(self.path):
            return ["a packed log"]
        with self._stored() as stored:
            head = stored.read(_HEAD_BYTES)
        words = ["gzip"] if self._starts_with(_GZIP_MAGIC) else []
        words += [NAMES[self._encoding]] if self._encoding in NAMES else []
        words += ["a mark at its beginning (BOM)"] if head.startswith(_BOM) else []
        words += ["Windows line ends"] if b"\r\n" in head else []
        first = head.removeprefix(_BOM).lstrip().partition(b"\n")[0]
        if self.suffix in (".csv", ".tsv") and not first.startswith((b"{", b"[")):
            marks = {b";": "semicolons between columns", b"\t": "tabs between columns"}
            words += [word for mark, word in marks.items() if first.count(mark) > first.count(b",")]
        return words

    def _open(self) -> IO[bytes]:
        """The content as UTF-8, whatever it is stored as."""
        if self._parts or is_columnar(self.path):
            self._parts = self._parts or parts_of(self.path)
            self.suffix = ".jsonl"
            return streamed(json_lines(self._parts))
        if is_eval_log(self.path):
            self.suffix = ".jsonl"
            return streamed(log_lines(self.path))
        if is_workbook(self.path):
            if self._sheet is None:
                self._sheet = sheet_as_csv(self.path)
                self.suffix = ".csv"
            return io.BytesIO(self._sheet[0])
        if not self._encoding:
            try:
                with self._stored() as stream:
                    self._encoding = encoding_of(stream)
            except (EOFError, gzip.BadGzipFile, zlib.error, UnpacksTooLarge):
                self._encoding = UTF8  # the reading itself will say so, with the line
        stored = self._stored()
        return stored if self._encoding == UTF8 else io.BufferedReader(Recoded(stored, self._encoding))

    def _stored(self) -> IO[bytes]:
        return open_gzip(self.path) if self._starts_with(_GZIP_MAGIC) else self.path.open("rb")

    def _starts_with(self, mark: bytes) -> bool:
        with self.path.open("rb") as file:
            return file.read(len(mark)) == mark

    def _unopened(self, error: OSError) -> Problem:
        if self.path.is_dir():
            message = "this is a folder without Parquet or Arrow files"
            return Problem(message, remedy="name one of the files in it", file=self.name)
        message = f"cannot be opened: {error.strerror or error}"
        return Problem(message, remedy="check the path and its permissions", file=self.name)


def _decode(raw: bytes, number: int, problems: Problems) -> str:
    raw = raw.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        column = len(raw[: error.start].decode("utf-8")) + 1
        message = f"byte 0x{raw[error.start]:02X} is not UTF-8"
        problems.of_file(problems.problem(message, remedy="save the file as UTF-8", line=number, column=column))
        return raw.decode("utf-8", errors="replace")
