"""Invitations: every person of a list gets a personal link, and the study learns only the tokens in the links."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from dialometer.errors import DialometerError
from dialometer.recruit.platform import Platform
from dialometer.recruit.platforms import PLATFORMS

INVITATION = "invite"
"""The parameter of the link that holds the token."""
INVITATIONS_FILE = "invitations.txt"
"""Beside the study: one token a line. Who has which token is only in the list that is given back."""
TOKEN_COLUMN, LINK_COLUMN = "invitation", "link"


@PLATFORMS.register("invite")
class Invitations(Platform):
    """Raters with a personal link."""

    label = "invitations"
    arrival: ClassVar[Mapping[str, str]] = {"rater": INVITATION}

    def accepts(self, rater: str, folder: Path | None) -> bool:
        tokens = read_invitations(folder) if folder else set()
        return (not tokens or rater in tokens) and super().accepts(rater, folder)

    def is_proof(self, rater: str, folder: Path | None) -> bool:
        return folder is not None and rater in read_invitations(folder)


@dataclass(frozen=True, slots=True)
class InvitationList:
    """A list of people with their links: its header and rows, and how many links are new."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_new: int

    def as_csv(self) -> str:
        """The list as a CSV file."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()


def read_invitations(folder: Path) -> set[str]:
    """The tokens that are accepted; a # begins a comment. Read anew each time, so the list may grow."""
    file = folder / INVITATIONS_FILE
    if not file.is_file():
        return set()
    lines = file.read_text(encoding="utf-8").splitlines()
    return {line.split("#", 1)[0].strip() for line in lines} - {""}


def invite(people: Path, address: str) -> InvitationList:
    """Give every person of a CSV file a token and a link; those who have a token keep it."""
    _check_address(address)
    header, rows = _read(people)
    is_again = TOKEN_COLUMN in header
    plain = [name for name in header if name not in (TOKEN_COLUMN, LINK_COLUMN)]
    made, n_new = [], 0
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        token = cells.get(TOKEN_COLUMN, "").strip() if is_again else ""
        n_new += not token
        token = token or secrets.token_urlsafe(12)
        made.append((*(cells[name] for name in plain), token, f"{address.rstrip('/')}/?{INVITATION}={token}"))
    tokens = [row[-2] for row in made]
    if len(set(tokens)) < len(tokens):
        raise DialometerError("two people have the same invitation", where=str(people), remedy="empty one of the cells")
    return InvitationList((*plain, TOKEN_COLUMN, LINK_COLUMN), tuple(made), n_new)


def add_invitations(folder: Path, tokens: set[str]) -> int:
    """Let the study accept these tokens too; returns how many are new to it."""
    new = sorted(tokens - read_invitations(folder))
    if new:
        file = folder / INVITATIONS_FILE
        before = file.read_text(encoding="utf-8") if file.is_file() else ""
        joined = before if not before or before.endswith("\n") else before + "\n"
        part = file.with_suffix(".part")
        part.write_text(joined + "\n".join(new) + "\n", encoding="utf-8")
        part.replace(file)
    return len(new)


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise DialometerError(
            f"'{address}' is no address of a study", remedy="give it with --url, such as https://study.example.org"
        )


def _read(people: Path) -> tuple[list[str], list[list[str]]]:
    try:
        text = people.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DialometerError(
            f"the list of people cannot be read: {error}", where=str(people), remedy="give a CSV file in UTF-8"
        ) from error
    rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise DialometerError(
            "the list holds nobody", where=str(people), remedy="a line of column names, then one line a person"
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
