"""Plug-ins, found by their folder: a new file is a new part, without a list to edit.

A family (scales, quality rules, readers, recruiting platforms …) owns a :class:`Registry`. Each file in the family's folder,
folders inside it included, registers what it defines; the folder is imported on the first look-up. Other packages add parts
by an entry point whose group is the family's folder, such as ``dialometer.scales``.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from dialometer.errors import DialometerError, UnknownName

T = TypeVar("T")


def did_you_mean(name: str, known: list[str]) -> str:
    """A remedy for a misspelt name: the nearest known one, else all of them."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known) or 'none'}"


class Registry(Generic[T]):
    """Names to parts of one family, filled by importing every module of ``package``."""

    def __init__(self, kind: str, package: str, *, group: str = "") -> None:
        """``group`` names the entry points where they are not called after the package."""
        self.kind = kind
        self.package = package
        self.group = group or package
        self._parts: dict[str, T] = {}
        self._is_loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that registers a part under its name; a name is given once."""

        def add(part: T) -> T:
            if self._parts.get(name, part) is not part:
                raise UnknownName(f"two {self.kind}s are called '{name}'", remedy="rename one of them")
            self._parts[name] = part
            return part

        return add

    def names(self) -> list[str]:
        """All known names in alphabetical order."""
        self._load()
        return sorted(self._parts)

    def get(self, name: str) -> T:
        """The part of that name; an unknown one is an error that lists the known ones."""
        self._load()
        if name not in self._parts:
            raise UnknownName(f"unknown {self.kind} '{name}'", remedy=did_you_mean(name, self.names()))
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _load(self) -> None:
        if self._is_loaded:
            return
        folder = importlib.import_module(self.package)
        for module in pkgutil.walk_packages(folder.__path__, f"{self.package}."):
            importlib.import_module(module.name)
        self._is_loaded = True
        for entry in entry_points(group=self.group):
            try:
                entry.load()
            except Exception as error:
                self._is_loaded = False
                raise DialometerError(
                    f"the {self.kind} '{entry.name}' of another package cannot be loaded: {error}",
                    where=entry.value,
                    remedy="repair that package or uninstall it",
                ) from error
