"""Spreadsheet files (``.xlsx``) as CSV: the first sheet that holds anything, its cells as they are stored.

An .xlsx is a zip of XML files. What is needed of it is small, so it is read with the standard library, within the limits of
:mod:`dialometer.readers.containers.unpacking`. Formulas give their last result; dates are the numbers that the spreadsheet stores.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as Xml  # nosec B405  # entities are refused before anything is parsed

from dialometer.errors import DialometerError
from dialometer.readers.containers.unpacking import DAMAGED, Allowance, read_entry

ZIP_MAGIC = b"PK\x03\x04"
MAX_COLUMNS = 16_384
"""Of a sheet, as spreadsheet programs have it."""
MAX_ROWS = 1_048_576
MAX_XML_BYTES = 512 * 2**20
MAX_CELLS = 20_000_000
"""Of a sheet, empty ones left of others included: one cell in the last corner is a row of 16,384."""
MAX_PARTS = 20 * MAX_COLUMNS
"""Of one row or text, and of all that stands before the first."""
PIECE_BYTES = 2**15
_SHEET = re.compile(r"xl/worksheets/sheet(\d+)\.xml")
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_REMEDY = "save the sheet as CSV and read that"


class WorkbookError(DialometerError):
    """A spreadsheet file that cannot be read."""


def is_workbook(path: Path) -> bool:
    """Whether a file is a spreadsheet, by its content and its name."""
    if not path.name.lower().endswith((".xlsx", ".xlsm")):
        return False
    with path.open("rb") as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def sheet_as_csv(path: Path) -> tuple[bytes, str]:
    """The first sheet with content as CSV in UTF-8, and what was assumed, in words."""
    allowance = Allowance(path, MAX_XML_BYTES)
    try:
        with zipfile.ZipFile(path) as packed:
            names = sorted((int(match[1]), name) for name in packed.namelist() if (match := _SHEET.fullmatch(name)))
            if not names:
                raise WorkbookError("the spreadsheet has no sheets", where=str(path), remedy=_REMEDY)
            shared = _shared_texts(packed, allowance)
            for number, name in names:
                rows = list(_rows(read_entry(packed, name, allowance), shared))
                if rows:
                    remark = f"; the other {len(names) - 1} are not read" if len(names) > 1 else ""
                    return _csv(rows), f"read from sheet {number} of the spreadsheet{remark}"
    except (OSError, Xml.ParseError, ValueError, LookupError, *DAMAGED) as error:
        raise WorkbookError(f"the spreadsheet cannot be read: {error}", where=str(path), remedy=_REMEDY) from error
    return b"", "the spreadsheet is empty"


def _each(content: bytes, name: str) -> Iterator[Xml.Element]:
    """The elements of that name, one after the other; nothing is kept of what was read before."""
    # Entities can make a small file huge. No spreadsheet program writes them, so a file that declares any is refused.
    plain = content.replace(b"\0", b"")  # also where every character has two bytes
    if b"<!DOCTYPE" in plain or b"<!ENTITY" in plain:
        raise ValueError("it declares entities")
    around: list[Xml.Element] = []
    n_kept = depth = 0
    source = _Growing(content)
    events = Xml.iterparse(source, events=("start", "end"))  # nosec B314  # without entities
    for event, element in events:
        source.piece_bytes = PIECE_BYTES
        if event == "start":
            around.append(element)
            depth += bool(depth or _local(element) == name)
            n_kept += 1
            if n_kept > MAX_PARTS:
                raise ValueError("a row or text has too many parts")
            continue
        around.pop()
        depth = max(0, depth - 1)
        if not depth:
            if _local(element) == name:
                yield element
                n_kept = 0
            elif _local(element) == "sheetData":
                return
            if around:
                del around[-1][:]


class _Growing(io.BytesIO):
    """Read in pieces that double until something comes out of one: the parser begins each unfinished tag or comment anew, and
    one of 64 MiB in small pieces would take minutes."""

    piece_bytes = PIECE_BYTES

    def read(self, _n_bytes: int | None = -1, /) -> bytes:
        """The next piece."""
        self.piece_bytes *= 2
        return super().read(self.piece_bytes)


def _local(element: Xml.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text_of(element: Xml.Element) -> str:
    """All text of a cell's rich or plain text; phonetic readings beside it are no part."""
    parts = []
    for child in element:
        if _local(child) == "t":
            parts.append(child.text or "")
        elif _local(child) == "r":
            parts += [run.text or "" for run in child if _local(run) == "t"]
    return "".join(parts)


def _shared_texts(packed: zipfile.ZipFile, allowance: Allowance) -> list[str]:
    name = "xl/sharedStrings.xml"
    if name not in packed.namelist():
        return []
    return [_text_of(entry) for entry in _each(read_entry(packed, name, allowance), "si")]


def _rows(content: bytes, shared: list[str]) -> Iterator[list[str]]:
    """Rows of cells, from the first one that holds anything; empty rows between them stay, for their line numbers."""
    n_done = n_cells = 0
    for row in _each(content, "row"):
        cells = _cells(row, shared)
        number = int(row.get("r", n_done + 1))
        if not n_done < number <= MAX_ROWS:
            raise ValueError(f"its row {number} is out of order")
        n_cells += len(cells)
        if n_cells > MAX_CELLS:
            raise ValueError(f"it has more than {MAX_CELLS:,} cells")
        if n_done or any(cells):
            yield from ([] for _ in range(n_done + 1, number) if n_done)
            yield cells
            n_done = number


def _cells(row: Xml.Element, shared: list[str]) -> list[str]:
    cells: list[str] = []
    for cell in row:
        reference = _REFERENCE.fullmatch(cell.get("r", ""))
        place = _column(reference[1]) if reference else len(cells)
        if place >= MAX_COLUMNS:
            raise ValueError("a row has too many columns")
        cells += [""] * (place + 1 - len(cells))
        cells[place] = _value(cell, shared)
    return cells


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _value(cell: Xml.Element, shared: list[str]) -> str:
    kind = cell.get("t", "n")
    inline = next((child for child in cell if _local(child) == "is"), None)
    if inline is not None:
        return _text_of(inline)
    text = next((child.text or "" for child in cell if _local(child) == "v"), "")
    if kind == "s" and text:
        place = int(text)
        if not 0 <= place < len(shared):
            raise ValueError("a cell names a text that is not there")
        return shared[place]
    if kind == "b":
        return {"1": "true", "0": "false"}.get(text, text)
    if kind == "n" and re.fullmatch(r"-?\d+\.0+", text):
        return text.partition(".")[0]
    return text


def _csv(rows: list[list[str]]) -> bytes:
    width = max(map(len, rows))
    if width * sum(map(any, rows)) > MAX_CELLS:
        raise ValueError(
            f"its rows are as long as the longest of them, {width:,} cells: delete the columns without data"
        )
    out = io.StringIO()
    padded = ([*row, *[""] * (width - len(row))] if any(row) else [] for row in rows)
    csv.writer(out, lineterminator="\n").writerows(padded)
    return out.getvalue().encode("utf-8", "surrogatepass")
