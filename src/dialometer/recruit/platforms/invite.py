"""Invitations: every person of a list gets a personal link, and the study learns only the tokens in the links."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dialometer.errors import DialometerError
from dialometer.folder_files import MAX_LIST_BYTES, read_text_inside
from dialometer.recruit.people_list import as_csv, check_address, read_people
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
        return as_csv(self.header, self.rows)


def read_invitations(folder: Path) -> set[str]:
    """The tokens that are accepted; a # begins a comment. Read anew each time, so the list may grow."""
    file = folder / INVITATIONS_FILE
    if not file.is_file():
        return set()
    lines = read_text_inside(folder, INVITATIONS_FILE, MAX_LIST_BYTES).removeprefix("\ufeff").splitlines()
    return {line.split("#", 1)[0].strip() for line in lines} - {""}


def invite(people: Path, address: str) -> InvitationList:
    """Give every person of a CSV file a token and a link; those who have a token keep it."""
    check_address(address)
    header, rows = read_people(people)
    is_again = TOKEN_COLUMN in header
    plain = [name for name in header if name not in (TOKEN_COLUMN, LINK_COLUMN)]
    invitations, n_new = [], 0
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        token = cells.get(TOKEN_COLUMN, "").strip() if is_again else ""
        n_new += not token
        token = token or secrets.token_urlsafe(12)
        invitations.append((*(cells[name] for name in plain), token, f"{address.rstrip('/')}/?{INVITATION}={token}"))
    tokens = [row[-2] for row in invitations]
    if len(set(tokens)) < len(tokens):
        raise DialometerError("two people have the same invitation", where=str(people), remedy="empty one of the cells")
    return InvitationList((*plain, TOKEN_COLUMN, LINK_COLUMN), tuple(invitations), n_new)


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
