"""Screens that were drawn before: raters who see the same item in the same order get the same page but for a few values."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Mapping
from threading import Lock

from markupsafe import escape

MOST_CHARACTERS = 32_000_000
"""Of all pages that are kept; those drawn first are dropped first."""


class DrawnScreens:
    """The screens of one study in one language, with gaps where raters differ. Safe to use from several threads."""

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        # Drawn by lot, so that no text of a study can be taken for a gap.
        self._mark = secrets.token_hex(12)
        self._most = most_characters
        self._kept: dict[Hashable, list[str]] = {}
        self._n_characters = 0
        self._lock = Lock()

    def gap(self, name: str) -> str:
        """What is drawn in place of a value."""
        return f"{self._mark}{name}{self._mark}"

    def filled(self, key: Hashable, values: Mapping[str, object]) -> str | None:
        """The page with these values in its gaps; None where it was not drawn yet."""
        pieces = self._kept.get(key)
        return None if pieces is None else _fill(pieces, values)

    def keep(self, key: Hashable, drawn: str, values: Mapping[str, object]) -> str:
        """Note a page that was drawn with gaps, and give it back with these values in them."""
        pieces = drawn.split(self._mark)
        with self._lock:
            while self._kept and self._n_characters + len(drawn) > self._most:
                self._n_characters -= sum(map(len, self._kept.pop(next(iter(self._kept)))))
            if key not in self._kept:
                self._kept[key] = pieces
                self._n_characters += sum(map(len, pieces))
        return _fill(pieces, values)


def _fill(pieces: list[str], values: Mapping[str, object]) -> str:
    """Every second piece is the name of a gap."""
    whole = pieces.copy()
    whole[1::2] = [escape(values[name]) for name in pieces[1::2]]
    return "".join(whole)
