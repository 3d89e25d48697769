"""Arguments and results of tools are cut to what a person reads: a result can have megabytes."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SHOWN = 4_000
"""Characters of arguments or of a result on a screen; the items keep all of it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The beginning of a text, and how long all of it is."""

    text: str
    n_chars: int

    @property
    def is_cut(self) -> bool:
        """Whether something is missing."""
        return self.n_chars > len(self.text)


def cut(text: str) -> Cut:
    """A text as it is shown."""
    return Cut(text[:MAX_SHOWN], len(text))
