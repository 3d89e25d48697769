"""Reading a file of dialogues in any known format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dialometer.errors import DialometerError, Problem, ReadError
from dialometer.model.dialogue import ROLES, Dialogue, Role, clean_text
from dialometer.readers.draft_check import DraftChecker
from dialometer.readers.json_records import first_record
from dialometer.readers.problems import Problems
from dialometer.readers.reader import READERS, EmptyTurns, Head, Reader
from dialometer.readers.source import SourceFile
from dialometer.registry import did_you_mean

DECLARED: ContextVar[Mapping[str, Role] | None] = ContextVar("speakers", default=None)
"""Roles of speakers that hold for every file read meanwhile; the command line's ``--speakers`` sets them."""


def recognised_formats(source: SourceFile) -> list[str]:
    """The formats that recognise the file's beginning, whatever its name."""
    text = source.head()
    head = Head(source.suffix, text, first_record(text))
    return [name for name in READERS if READERS.get(name).recognises(head)]


def format_of(source: SourceFile) -> str:
    """The one format that recognises the file's beginning, else its name; an error where none or several do."""
    names = recognised_formats(source)
    names = names or [name for name in READERS if source.suffix in READERS.get(name).suffixes]
    if len(names) == 1:
        return names[0]
    problem = f"the format could be {' or '.join(names)}" if names else "the format cannot be recognised from the file"
    remedy = f"name it, for example format='{names[0] if names else 'jsonl'}'; known: {', '.join(READERS.names())}"
    raise ReadError([Problem(problem, remedy=remedy, file=source.name)])


class DialogueFile(Iterator[Dialogue]):
    """A file being read: iterate over it once. ``warnings`` grows on the way and holds what was left out, and why."""

    def __init__(self, source: SourceFile, format: str, reader: Reader, checker: DraftChecker) -> None:
        self.file = source.name
        self.format = format
        self.n_dialogues = 0
        self._problems = checker.problems
        self._dialogues = self._run(source, reader, checker)

    def __next__(self) -> Dialogue:
        return next(self._dialogues)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The first warnings word for word; ``n_warnings`` counts them all."""
        return tuple(self._problems.warnings)

    @property
    def n_warnings(self) -> int:
        """How many warnings there were so far."""
        return self._problems.n_warnings

    @property
    def kinds_of_warnings(self) -> list[tuple[Problem, int]]:
        """The first warning of each kind, and how many there are of it."""
        return self._problems.kinds_of_warnings

    def _run(self, source: SourceFile, reader: Reader, checker: DraftChecker) -> Iterator[Dialogue]:
        problems = checker.problems
        for draft in reader.drafts(source, problems):
            dialogue = checker.dialogue(draft)
            if dialogue is not None:
                self.n_dialogues += 1
                yield dialogue
        if not self.n_dialogues and not problems.n_errors:
            message, remedy, line = (
                "there are no dialogues in the file",
                f"is it really of the format '{self.format}'?",
                0,
            )
            if why := next((warning for warning in problems.warnings if warning.line), None):
                message, remedy, line = (
                    f"no dialogue could be read: {why.message.removeprefix('left out: ')}",
                    why.remedy or remedy,
                    why.line,
                )
            elif problems.n_warnings:
                message = "no dialogue could be read"
            problems.of_file(problems.problem(message, remedy=remedy, line=line))
        problems.finish()


def read_dialogues(
    path: str | Path,
    format: str | None = None,
    *,
    speakers: Mapping[str, Role] | None = None,
    empty_turns: EmptyTurns | None = None,
    lenient: bool = False,
    **options: Any,
) -> DialogueFile:
    """The dialogues of a file, one after the other, so that large files stream.

    ``format`` is detected where it is not given; ``.gz`` makes no difference. ``speakers`` declares the roles
    of speakers that the format does not know. Everything wrong in the file is collected, and at its end one
    :class:`~dialometer.errors.ReadError` lists it with lines: only an iteration that came to its end read a sound file.

    ``empty_turns`` says what becomes of turns without text (``"error"`` or ``"leave_out"``; each format has its default),
    ``lenient`` leaves out dialogues with faults. What is left out is never silent: it is in ``warnings``, in the log and,
    for turns, in the dialogue's metadata under ``left_out_turns``. ``options`` are those of the format.
    """
    source = SourceFile(path)
    source.probe()
    name = format or format_of(source)
    part = READERS.get(name)
    if empty_turns not in (None, "error", "leave_out"):
        raise DialometerError(f"unknown empty_turns {empty_turns!r}", remedy="use 'error' or 'leave_out'")
    checker = DraftChecker(
        Problems(source.name, is_lenient=lenient),
        known=part.speakers,
        declared=_declared({**(DECLARED.get() or {}), **(speakers or {})}),
        empty_turns=empty_turns or part.empty_turns,
        how_to_declare=part.how_to_declare,
    )
    return DialogueFile(source, name, _configured(name, part, options), checker)


def _declared(speakers: Mapping[str, Role]) -> dict[str, Role]:
    for name, role in speakers.items():
        if role not in ROLES:
            remedy = did_you_mean(str(role), list(ROLES))
            raise DialometerError(f"speaker '{name}' is declared with the unknown role '{role}'", remedy=remedy)
    return {clean_text(name): role for name, role in speakers.items()}


def _configured(name: str, part: type[Reader], options: Mapping[str, Any]) -> Reader:
    for option in options:
        if option not in part.model_fields:
            remedy = did_you_mean(option, list(part.model_fields))
            raise DialometerError(f"the format '{name}' has no option '{option}'", remedy=remedy)
    try:
        return part(**options)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise DialometerError(f"option '{where}' of the format '{name}': {first['msg']}") from error
