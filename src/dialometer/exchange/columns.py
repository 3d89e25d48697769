"""Which column of a table plays which role: given on the command line, else known by the column's name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dialometer.errors import DialometerError
from dialometer.readers.table_rows import plain_column
from dialometer.registry import did_you_mean
from dialometer.storage.table import FACTOR_PREFIX


@dataclass(frozen=True, slots=True)
class Role:
    """A role that a column can play: its meaning, names of columns that are taken for it unasked, whether it is needed."""

    meaning: str
    usual: tuple[str, ...] = ()
    is_needed: bool = False


Roles = Mapping[str, Role]


def parse_map(entries: Sequence[str]) -> dict[str, str]:
    """``role=column`` or ``role=:constant`` for each entry."""
    parsed: dict[str, str] = {}
    for entry in entries:
        role, sign, column = entry.partition("=")
        role, column = role.strip(), column.strip()
        if not sign or not role or column in ("", ":"):
            raise DialometerError(
                f"--map {entry!r} cannot be read",
                remedy="write role=column, or role=:text for the same text in all rows",
            )
        if parsed.get(role, column) != column:
            raise DialometerError(f"--map gives '{role}' twice", remedy="give each role one column")
        parsed[role] = column
    return parsed


def check_roles(columns: Mapping[str, str], roles: Roles, format_name: str) -> None:
    """Refuse roles that the format does not have, before a long file is read."""
    for role in columns:
        if role not in roles and not role.startswith(FACTOR_PREFIX):
            known = [*roles, f"{FACTOR_PREFIX}NAME"]
            raise DialometerError(f"the format '{format_name}' has no role '{role}'", remedy=did_you_mean(role, known))


@dataclass(slots=True)
class Columns:
    """Roles bound to the columns of one table. A role may have numbered columns, where systems stand side by side."""

    header: Sequence[str]
    prefixes: Sequence[str] = ()
    by_role: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    numbered: dict[str, dict[int, str]] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    _by_plain: dict[str, list[str]] = field(default_factory=dict, repr=False)
    missing: list[tuple[str, str]] = field(default_factory=list)
    """Role, and the column that was asked for and is not there (empty where none was)."""

    @classmethod
    def bind(
        cls, header: Sequence[str], declared: Mapping[str, str], roles: Roles, prefixes: Sequence[str] = ()
    ) -> Columns:
        """Find the columns; what is needed and not there is in ``missing``."""
        columns = cls(header, prefixes)
        for role, wanted in declared.items():
            if wanted.startswith(":"):
                columns.constants[role] = wanted[1:]
            elif not columns._take(role, wanted):
                columns.missing.append((role, wanted))
        for role, about in roles.items():
            is_found = role in declared or any(columns._take(role, name) for name in (role, *about.usual))
            if about.is_needed and not is_found:
                columns.missing.append((role, ""))
        for column in header:
            if column.startswith(FACTOR_PREFIX) and column not in declared:
                columns.by_role[column] = column
        columns.order = (*roles, *columns.by_role, *columns.constants)
        return columns

    def has(self, role: str) -> bool:
        """Whether every row has something for this role."""
        return role in self.by_role or role in self.constants or role in self.numbered

    def text(self, cells: Mapping[str, str], role: str, number: int = 0) -> str:
        """What a row says for a role; empty where it says nothing."""
        if number and role in self.numbered:
            return cells[self.numbered[role][number]].strip() if number in self.numbered[role] else ""
        if role in self.by_role:
            return cells[self.by_role[role]].strip()
        return self.constants.get(role, "")

    def find(self, name: str) -> str | None:
        """The column of that name, with or without the usual prefixes; in other capitals where only one is so called."""
        if not self._by_plain:
            for column in self.header:
                self._by_plain.setdefault(plain_column(column), []).append(column)
        full_names = (name, *(prefix + name for prefix in self.prefixes))
        for full in full_names:
            if full in self._by_plain.get(plain_column(full), ()):
                return full
        alike = [columns for full in full_names if (columns := self._by_plain.get(plain_column(full)))]
        return alike[0][0] if alike and len(alike[0]) == 1 else None

    def find_numbered(self, name: str) -> dict[int, str]:
        """The columns that are that name and a number from 1 on (``team1``, ``team_2``), by number."""
        starts = "|".join(re.escape(prefix) for prefix in ("", *self.prefixes))
        pattern = re.compile(rf"(?:{starts}){re.escape(name)}[_.\- ]?([1-9]\d?)")
        return {int(match[1]): column for column in self.header if (match := pattern.fullmatch(column))}

    def used(self, *, but: Sequence[str] = ()) -> dict[str, str]:
        """Role to column, in words, for showing which column was used for what."""
        used = dict(self.by_role)
        used |= {role: f"“{text}” for all" for role, text in self.constants.items()}
        used |= {role: ", ".join(columns.values()) for role, columns in self.numbered.items()}
        return {role: used[role] for role in dict.fromkeys(self.order) if role in used and role not in but}

    def _take(self, role: str, name: str) -> bool:
        column = self.find(name)
        if column is not None:
            self.by_role[role] = column
            return True
        numbered = self.find_numbered(name) if role in NUMBERED_ROLES else {}
        if len(numbered) > 1:
            self.numbered[role] = dict(sorted(numbered.items()))
        return len(numbered) > 1


NUMBERED_ROLES = ("system", "response")
"""Roles that may occur side by side in one row, in numbered columns."""
