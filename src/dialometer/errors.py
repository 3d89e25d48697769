"""One tree of errors. Every message says what is wrong, where, and how to put it right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "AgentError",
    "AnswerError",
    "AnswersRejected",
    "AssignmentError",
    "DialometerError",
    "FlowError",
    "ImportFileError",
    "LockError",
    "NotEnoughData",
    "Problem",
    "ReadError",
    "StorageError",
    "StudyError",
    "UnknownName",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong at one place of a file; problems are collected and shown together."""

    message: str
    remedy: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    field: str = ""
    severity: Literal["error", "warning"] = "error"

    @property
    def where(self) -> str:
        """``file:line:column`` as far as it is known, the notation that editors can jump to."""
        parts = [self.file or "study"]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)

    @property
    def noun(self) -> str:
        """What there are many of where there are many problems of this kind."""
        if self.message.removeprefix("left out: ").startswith("turn "):
            return "turns"
        return "rows" if self.line else "problems"

    def __str__(self) -> str:
        field = f" [{self.field}]" if self.field else ""
        remedy = f" — {self.remedy}" if self.remedy else ""
        return f"{self.where}: {self.message}{field}{remedy}"


class DialometerError(Exception):
    """Base of everything this package raises on purpose; its text is meant for people."""

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        self.message = message
        self.where = where
        self.remedy = remedy
        super().__init__(message)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} — {self.remedy}" if self.remedy else text

    def _render_traceback_(self) -> list[str]:
        """What notebooks show: the message alone, since a traceback through this package does not help to fix the input."""
        return [f"{type(self).__name__}: {self}"]


MAX_SHOWN = 10
"""Lines about problems that one error shows."""
FEW_ALIKE = 3
"""So many problems of one kind are shown one by one; more are shown as one, with their number."""
MAX_ON_PAGE = 30
"""Problems that one page shows."""
_PARTICULAR = re.compile(r"'[^']*'|“[^”]*”|\d+")


def kind_of_problem(problem: Problem) -> str:
    """What problems of one kind have in common: field and message, whatever names and numbers are in it."""
    return f"{problem.field}\n{_PARTICULAR.sub('…', problem.message[:300])}"


def few_of_each_kind(problems: Sequence[Problem]) -> Sequence[Problem]:
    """All problems of a page, or the first of each kind where there are many: one correction may remove thousands."""
    if len(problems) <= MAX_ON_PAGE:
        return problems
    counts: Counter[str] = Counter()
    few = []
    for problem in problems:
        kind = kind_of_problem(problem)
        counts[kind] += 1
        if counts[kind] <= FEW_ALIKE:
            few.append(problem)
    return few[:MAX_ON_PAGE]


def shown_problems(problems: Iterable[Problem], counts: Mapping[str, int] | None = None) -> list[str]:
    """A line for each problem, those of one kind together where they are many, and how many are not shown.

    ``counts`` is how many there are of each kind, where only the first of them were kept.
    """
    by_kind: dict[str, list[Problem]] = {}
    for problem in problems:
        by_kind.setdefault(kind_of_problem(problem), []).append(problem)
    n_of = {kind: max((counts or {}).get(kind, 0), len(alike)) for kind, alike in by_kind.items()}
    lines: list[str] = []
    n_told = 0
    for kind, alike in by_kind.items():
        n, first = n_of[kind], alike[0]
        if n <= FEW_ALIKE and len(lines) + n <= MAX_SHOWN:
            lines += [f"  {problem}" for problem in alike]
        elif len(lines) < MAX_SHOWN and n > 1:
            lines.append(f"  {n:,} {first.noun}, the first of them {first}")
        else:
            continue
        n_told += n
    n_all = max(sum(n_of.values()), sum((counts or {}).values()))
    return [*lines, f"  … and {n_all - n_told:,} more"] if n_all > n_told else lines


class ProblemsError(DialometerError):
    """An error that carries the problems found, so that a file can be fixed in one go; many of one kind are shown as one."""

    noun = "the input"

    def __init__(
        self, problems: Iterable[Problem], *, n_more: int = 0, counts: Mapping[str, int] | None = None
    ) -> None:
        self.problems = tuple(problems)
        self.n_problems = len(self.problems) + n_more
        counted = Counter(counts or {}) or Counter({"": n_more} if n_more else {})
        if not counts:
            counted.update(map(kind_of_problem, self.problems))
        head = f"{self.n_problems:,} problem{'' if self.n_problems == 1 else 's'} in {self.noun}"
        super().__init__("\n".join([head, *shown_problems(self.problems, counted)]))


class StudyError(ProblemsError):
    """A study file, its items or its texts are invalid."""

    noun = "the study"


class ReadError(ProblemsError):
    """A file of dialogues could not be read."""

    noun = "the dialogues"


class ImportFileError(ProblemsError):
    """A file of judgments collected elsewhere was refused; nothing of it was stored."""

    noun = "the imported file (nothing was stored)"


class UnknownName(DialometerError):
    """A name that is not registered; the known names are listed."""


class AnswerError(DialometerError):
    """A rater's answer does not fit its scale; shown at the field that caused it."""

    def __init__(self, message: str, *, field: str = "") -> None:
        self.field = field
        super().__init__(message)


class AssignmentError(DialometerError):
    """No place is left, or the arriving rater may not take one."""


class FlowError(DialometerError):
    """A rater's step does not fit the current state of the session."""


class AnswersRejected(FlowError):
    """One or more fields of a submitted screen are invalid; nothing was stored, what was typed is kept."""

    def __init__(self, fields: dict[str, str]) -> None:
        self.fields = fields
        super().__init__("; ".join(f"{name}: {message}" for name, message in fields.items()))


class AgentError(DialometerError):
    """A system under test did not answer, or answered with something that cannot be shown."""


class LockError(DialometerError):
    """A frozen study was changed."""


class StorageError(DialometerError):
    """The database refused, or holds something this version cannot read."""


class NotEnoughData(DialometerError):
    """A statistic cannot be computed from what there is; never replaced by zero."""
