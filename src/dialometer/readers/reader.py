"""What every format declares: how it is recognised, which speakers it knows, and how its records become drafts."""

from __future__ import annotations

import csv
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from dialometer.errors import Problem
from dialometer.model.dialogue import Role
from dialometer.model.part import Part
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.registry import Registry


@dataclass(slots=True)
class TurnDraft:
    """One turn as in the file. Values are ``object`` because their types are checked later, in one place for all formats.

    ``place`` and the two keys say where it is in the record, for messages; ``others`` holds what else the file says about
    this turn.
    """

    speaker: object
    text: object
    role: object = None
    line: int = 0
    place: str = ""
    speaker_key: str = "speaker"
    text_key: str = "text"
    others: Mapping[str, Any] = field(default_factory=dict)
    tool_calls: object = None
    media: object = None
    """As ``turn_parts`` reads them: lists of objects."""


@dataclass(slots=True)
class DialogueDraft:
    """One dialogue as in the file, unchecked. ``faults`` are what the format already knows to be wrong."""

    id: object
    turns: list[TurnDraft]
    line: int = 0
    column: int = 0
    speakers: Mapping[str, Role] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    system_prompt: object = ""
    faults: list[Problem] = field(default_factory=list)


EmptyTurns = Literal["error", "leave_out"]

KNOWN_SPEAKERS: Mapping[str, Role] = {"User": "user", "user": "user", "Agent": "agent", "agent": "agent"}
"""Speakers whose role needs no declaration in any format."""

DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file: its suffix (without ``.gz``), its text and, where it is JSON, its first record."""

    suffix: str
    text: str
    record: Any = None

    @property
    def first_line(self) -> str:
        """The first line with anything on it."""
        return next((line for line in self.text.splitlines() if line.strip()), "")

    def columns(self, delimiter: str = ",") -> list[str]:
        """The first line read as the header of a table."""
        try:
            return [name.strip() for name in next(csv.reader([self.first_line], delimiter=delimiter), [])]
        except csv.Error:
            return []

    def has_keys(self, *keys: str) -> bool:
        """Whether the first JSON record is an object with all these keys."""
        return isinstance(self.record, dict) and all(key in self.record for key in keys)


class Reader(Part):
    """One format of files. Its fields are the options that :func:`read_dialogues` takes for it."""

    speakers: ClassVar[Mapping[str, Role]] = KNOWN_SPEAKERS
    """Speakers whose role the format itself gives."""
    empty_turns: ClassVar[EmptyTurns] = "error"
    """What becomes of a turn without text unless the caller says otherwise."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """Endings of file names that mean this format where the content does not decide."""
    how_to_declare: ClassVar[str] = ""
    """How the file itself can give a speaker's role, for messages."""

    @classmethod
    @abstractmethod
    def recognises(cls, head: Head) -> bool:
        """Whether a file that begins like this is of this format."""

    @abstractmethod
    def drafts(self, source: SourceFile, problems: Problems) -> Iterator[DialogueDraft]:
        """The dialogues in file order, unchecked; what yields no draft at all is reported to ``problems``."""


READERS: Registry[type[Reader]] = Registry("dialogue format", "dialometer.readers.formats")
