"""Which studies a server has, and where they lie. The folders on disk are the truth; this only finds them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from dialometer.design.load import STUDY_FILE
from dialometer.design.lock import LOCK_FILE
from dialometer.errors import DialometerError
from dialometer.model.places import DATABASE_FILE

ACCOUNTS_FILE = "desk.db"
RESERVED = frozenset({"desk", "static", "api", "s", "start", "wizard", "healthz", "metrics"})
"""Addresses that are not studies."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\-]{0,63}")


class NoStudy(DialometerError):
    """There is no study of that name here."""


class IsDraft(NoStudy):
    """The study is here, and raters may not come yet."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Folders of studies named one by one, or a parent folder that holds them and takes new ones.

    ``database`` may name a server's database, with ``{study}`` where there are several studies; ``accounts`` the database
    of the accounts. ``report_command`` writes a study's report; ``{folder}``, ``{database}`` and ``{out}`` are filled in.
    """

    folders: tuple[str, ...] = ()
    parent: str = ""
    database: str = ""
    accounts: str = ""
    report_command: tuple[str, ...] = ()

    @property
    def is_single(self) -> bool:
        """Whether there is one study only, which then needs no name in its address."""
        return not self.parent and len(self.folders) == 1

    @property
    def may_grow(self) -> bool:
        """Whether new studies can be made here."""
        return bool(self.parent)

    def names(self) -> list[str]:
        """All studies by the names of their folders, in alphabetical order."""
        return sorted(self._named() | self._found(), key=str.lower)

    def folder(self, name: str) -> Path:
        """The folder of a study; raises :class:`NoStudy`. Nothing outside the shelf can be named."""
        named = next((Path(folder) for folder in self.folders if _name_of(folder) == name), None)
        if named is not None:
            return named
        if self.parent and is_name(name) and (Path(self.parent) / name / STUDY_FILE).is_file():
            return Path(self.parent) / name
        raise NoStudy(f"there is no study '{name[:64]}' here", remedy="go back to the list of studies")

    def is_named(self, name: str) -> bool:
        """Whether the study was given on the command line, and so is open to raters without more ado."""
        return name in self._named()

    def is_frozen(self, name: str) -> bool:
        """Whether the study has a lock."""
        return (self.folder(name) / LOCK_FILE).is_file()

    def new_folder(self, name: str) -> Path:
        """Where a new study would lie; raises when that is not possible."""
        if not self.may_grow:
            raise DialometerError(
                "this server has no place for new studies",
                remedy="serve the folder that holds your studies: dialometer serve FOLDER",
            )
        if not is_name(name) or name.lower() in RESERVED:
            raise DialometerError(
                f"'{name[:64]}' cannot be a study's name",
                remedy="a letter first, then letters, digits, - and _; at most 64 in all",
            )
        target = Path(self.parent) / name
        if target.exists() or name.lower() in {known.lower() for known in self.names()}:
            raise DialometerError(f"there is a study '{name}' already", remedy="choose another name")
        return target

    def database_of(self, name: str) -> str | Path:
        """The database of a study."""
        return self.database.replace("{study}", name) if self.database else self.folder(name) / DATABASE_FILE

    def accounts_database(self) -> str | Path:
        """The database of the accounts: the study's own where there is one study, else one for all."""
        if self.accounts:
            return self.accounts
        if self.parent and not self.database:
            return Path(self.parent) / ACCOUNTS_FILE
        return self.database.replace("{study}", "desk") if self.parent else self.database_of(self.names()[0])

    def as_json(self) -> str:
        """The shelf as text for :meth:`from_json`, so that the processes of a server can hand it to each other."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The shelf that :meth:`as_json` wrote."""
        raw = json.loads(text)
        return cls(tuple(raw["folders"]), raw["parent"], raw["database"], raw["accounts"], tuple(raw["report_command"]))

    def _named(self) -> set[str]:
        return {_name_of(folder) for folder in self.folders}

    def _found(self) -> set[str]:
        if not self.parent:
            return set()
        inside = Path(self.parent).iterdir()
        return {one.name for one in inside if is_name(one.name) and (one / STUDY_FILE).is_file()}


def is_name(text: str) -> bool:
    """Whether a text can name a study in an address and on disk."""
    return bool(_NAME.fullmatch(text))


def _name_of(folder: str) -> str:
    return Path(folder).resolve().name
