"""Names of systems, criteria and levels: as files write them, and as a study can hold them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from dialometer.registry import did_you_mean

MAX_LENGTH = 64


def plain_name(text: str, fallback: str = "x") -> str:
    """The text as a study's name: letters, digits, ``_`` and ``-``, beginning with a letter."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", ascii_text).strip("_-")[:MAX_LENGTH]
    if not name:
        return fallback
    return name if name[0].isalpha() else f"{fallback}_{name}"[:MAX_LENGTH]


class NewNames:
    """Gives each text of a file a name of its own, always the same one."""

    def __init__(self, fallback: str) -> None:
        self.fallback = fallback
        self.names: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The name for a text; a second text that would get the same one gets a number."""
        if text not in self.names:
            name = wanted = plain_name(text, self.fallback)
            taken = set(self.names.values())
            number = 2
            while name in taken:
                name = f"{wanted[: MAX_LENGTH - 4]}_{number}"
                number += 1
            self.names[text] = name
        return self.names[text]


class KnownNames:
    """The names of one family in a study; a file may use the name or the label."""

    def __init__(self, kind: str, named: Iterable[tuple[str, str]]) -> None:
        self.kind = kind
        pairs = list(named)
        self.listed = [name for name, _ in pairs]
        self._by_text = {label: name for name, label in reversed(pairs) if label} | {name: name for name in self.listed}

    def find(self, text: str) -> str | None:
        """The name behind a text, or None."""
        return self._by_text.get(text)

    def remedy(self, text: str) -> str:
        """What to do about a text that is not known."""
        return did_you_mean(text, self.listed)
