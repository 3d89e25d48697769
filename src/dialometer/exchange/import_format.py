"""What every import format declares, and what it works with while one file is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dialometer.errors import Problem
from dialometer.exchange.columns import Roles
from dialometer.exchange.records import Record
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.registry import Registry

N_PER_REPORT = 5_000


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user says about a file."""

    columns: Mapping[str, str] = field(default_factory=dict)
    criteria: Sequence[str] = ()
    questions: Sequence[str] = ()
    time_format: str = ""


@dataclass(slots=True)
class Intake:
    """One reading of one file: where problems go, and what is noticed on the way."""

    path: Path
    source: SourceFile
    problems: Problems
    options: ImportOptions = field(default_factory=ImportOptions)
    report: Callable[[int], None] | None = None
    needs_texts: bool = True
    """Whether texts of items are wanted: they are where a study is written, and cost most of the time."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What was left out on purpose, in words, and how often."""
    used: dict[str, str] = field(default_factory=dict)
    """Which column was taken for what."""
    unread: list[str] = field(default_factory=list)
    """Columns of the file that play no part, so that they can be listed."""

    def wrong(self, line: int, message: str, remedy: str = "", column: str = "") -> None:
        """Report a problem; the file will be refused, reading goes on to find the others."""
        self.problems.of_file(self.problems.problem(message, remedy=remedy, line=line, field=column))

    def has_read(self, line: int) -> None:
        """Report how far the reading has come."""
        if self.report is not None and line % N_PER_REPORT == 0:
            self.report(line)


class ImportFormat(ABC):
    """One format of files with judgments."""

    roles: ClassVar[Roles] = {}
    """What a column can be, for ``--map``."""
    summary: ClassVar[str] = ""
    """One line for lists of formats."""
    takes: ClassVar[frozenset[str]] = frozenset({"criteria", "questions", "time_format"})
    """The options beside ``--map`` that the format uses; others are refused, so that nothing is dropped without a word."""
    takes_folder: ClassVar[bool] = False
    """Whether a folder can be given instead of a file."""

    @abstractmethod
    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """Whether a file with this name and these columns is surely of this format."""

    @abstractmethod
    def records(self, intake: Intake) -> Iterator[Record]:
        """What the file says, in its order; problems are reported to the intake."""

    def file_of(self, path: Path) -> Path:
        """The file that identifies what is imported, where ``path`` is a folder."""
        return path

    def declared(self, path: Path) -> Mapping[str, Any]:
        """What a file beside the data says about scales and questions (as a data dictionary), where there is one."""
        return {}

    def name_of(self, rater: str, sha256: str) -> str:
        """Under which name a rater is known; raters of one name are one person, also across files."""
        return rater


FORMATS: Registry[type[ImportFormat]] = Registry("import format", "dialometer.exchange.formats")


def unreadable(path: Path, message: str, remedy: str = "") -> Problem:
    """A problem of a whole file."""
    return Problem(message, remedy=remedy, file=str(path))
