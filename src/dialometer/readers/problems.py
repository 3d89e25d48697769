"""What is wrong in one file of dialogues, collected so that everything can be fixed in one go."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from dialometer.errors import Problem, ReadError, kind_of_problem

N_LISTED = 50
"""How many problems are kept word for word; of the rest only the number is known, so that a bad file costs no memory."""
_N_KINDS = 100
"""How many kinds of problems are counted; the first of each is kept, so that no kind is hidden behind many of another."""

_MOST_ERRORS = 10_000
"""After so many errors the rest of a file is not read: it is another kind of file, or has one mistake throughout."""

_log = logging.getLogger("dialometer.readers")


class Problems:
    """Problems of one file by weight: those of a record cost that record, those of the file cost the whole reading.

    With ``is_lenient`` a spoilt record is left out with a warning instead. A warning is never silent: it is kept here
    and logged at the end of the reading.
    """

    def __init__(self, file: str, *, is_lenient: bool = False) -> None:
        self.file = file
        self.is_lenient = is_lenient
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self.n_errors = 0
        self.n_warnings = 0
        self.counts: Counter[str] = Counter()
        """How many errors there are of each kind."""
        self.warning_counts: Counter[str] = Counter()
        """How many warnings there are of each kind."""
        self.assumed: dict[str, None] = {}
        """What was assumed to read the file at all, each said once."""

    def problem(self, message: str, *, remedy: str = "", line: int = 0, column: int = 0, field: str = "") -> Problem:
        """A problem in this file, not yet reported."""
        return Problem(message, remedy=remedy, file=self.file, line=line, column=column, field=field)

    def of_record(self, faults: Iterable[Problem]) -> None:
        """Report what is wrong in one record, which then yields no dialogue."""
        for fault in faults:
            if self.is_lenient:
                self._warn(replace(fault, message=f"left out: {fault.message}"))
            else:
                self.of_file(fault)

    def of_file(self, fault: Problem) -> None:
        """Report what makes the whole file unusable, however lenient the reading."""
        self.n_errors += 1
        kind = kind_of_problem(fault)
        is_new = kind not in self.counts and len(self.counts) < _N_KINDS
        self.counts[kind if is_new or kind in self.counts else ""] += 1
        if len(self.errors) < N_LISTED or is_new:
            self.errors.append(fault)

    @property
    def is_hopeless(self) -> bool:
        """Whether there are so many errors that reading on would tell nothing new."""
        return self.n_errors >= _MOST_ERRORS

    def assume(self, message: str) -> None:
        """Say once what had to be assumed; the file is read all the same."""
        if message not in self.assumed:
            self.assumed[message] = None
            self._warn(self.problem(message))

    def remark(self, fault: Problem) -> None:
        """Report what the reader corrected by itself."""
        self._warn(fault)

    def finish(self) -> None:
        """Log the warnings and raise one error that lists everything; call it when the file is read."""
        for message in self.assumed:
            _log.warning("%s: %s", self.file, message)
        if self.n_warnings > len(self.assumed):
            _log.warning(
                "%s: %d warnings while reading, the first: %s", self.file, self.n_warnings, self._first_warning()
            )
        if self.n_errors:
            raise ReadError(self.errors, n_more=self.n_errors - len(self.errors), counts=self.counts)

    def _first_warning(self) -> Problem:
        return next((known for known in self.warnings if known.message not in self.assumed), self.warnings[0])

    def _warn(self, fault: Problem) -> None:
        self.n_warnings += 1
        kind = kind_of_problem(fault)
        is_new = kind not in self.warning_counts and len(self.warning_counts) < _N_KINDS
        self.warning_counts[kind if is_new or kind in self.warning_counts else ""] += 1
        if len(self.warnings) < N_LISTED or is_new:
            self.warnings.append(replace(fault, severity="warning"))

    @property
    def kinds_of_errors(self) -> list[tuple[Problem, int]]:
        """The first error of each kind, and how many there are of it."""
        return _kinds(self.errors, self.counts)

    @property
    def kinds_of_warnings(self) -> list[tuple[Problem, int]]:
        """The first warning of each kind, and how many there are of it."""
        return _kinds(self.warnings, self.warning_counts)


def _kinds(problems: Iterable[Problem], counts: Counter[str]) -> list[tuple[Problem, int]]:
    first: dict[str, Problem] = {}
    for problem in problems:
        first.setdefault(kind_of_problem(problem), problem)
    return [(problem, max(counts[kind], 1)) for kind, problem in first.items()]
