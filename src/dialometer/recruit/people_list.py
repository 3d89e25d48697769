"""Lists of people as CSV files: read to give each a link, and written again with the links."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from dialometer.errors import DialometerError


def check_address(address: str) -> None:
    """Refuses what is no address of a study, before links with it are sent to everybody."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise DialometerError(
            f"'{address}' is not an address of a study", remedy="give it with --url, such as https://study.example.org"
        )


def read_people(people: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a list."""
    try:
        text = people.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DialometerError(
            f"the list of people cannot be read: {error}", where=str(people), remedy="give a CSV file in UTF-8"
        ) from error
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        remedy = "close every quoted cell, and end lines in the usual way"
        raise DialometerError(f"the list is broken CSV: {error}", where=str(people), remedy=remedy) from error
    if len(rows) < 2:
        raise DialometerError(
            "the list holds nobody", where=str(people), remedy="a line of column names, then one line per person"
        )
    header, *people_rows = rows
    header = [name.strip() for name in header]
    for number, row in enumerate(people_rows, start=2):
        if len(row) != len(header):
            raise DialometerError(
                f"{len(row)} cells where the first line has {len(header)}",
                where=f"{people}:{number}",
                remedy="give every line the same columns",
            )
    if len(set(header)) < len(header) or "" in header:
        raise DialometerError("the columns need names that differ", where=f"{people}:1", remedy="correct the header")
    return header, people_rows


def as_csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A list as a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()
