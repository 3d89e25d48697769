"""Files on their way in: what each is, what it says, and how that fits a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dialometer.errors import ImportFileError, ReadError
from dialometer.exchange.columns import check_roles
from dialometer.exchange.draft import PARTS, Draft
from dialometer.exchange.fit import Fit
from dialometer.exchange.folder import sha256_of
from dialometer.exchange.formats import FORMATS, Format, Intake, Options
from dialometer.exchange.formats.form import unreadable
from dialometer.exchange.records import Answered, Record
from dialometer.model.study import Study
from dialometer.readers.problems import N_LISTED, Problems
from dialometer.readers.reader import Head
from dialometer.readers.source import Source
from dialometer.readers.table_rows import told

CHECKS = "answers to checks, which the new study does not have"
Report = Callable[[Path, str, int], None]
"""Called with the file, what is done with it, and the line that was reached."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One file to import; ``content`` is the file that identifies it where ``path`` is a folder."""

    path: Path
    format_name: str
    format: Format
    content: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class FileImport:
    """What one file holds, and what was noticed on the way."""

    path: Path
    format: str
    sha256: str
    n_judgments: int
    n_answers: int
    n_raters: int
    n_items: int
    systems: tuple[str, ...]
    criteria: tuple[str, ...]
    used: dict[str, str]
    left_out: dict[str, int]
    n_simulated: int


def open_file(path: Path, format_name: str, options: Options) -> Incoming:
    """Find out what a file is; nothing is read but its beginning and its hash."""
    if not path.exists():
        raise ImportFileError([unreadable(path, "there is no such file", "check the path")])
    name = format_name or format_of(path)
    form = FORMATS.get(name)()
    if path.is_dir() and not form.takes_folder:
        raise ImportFileError([unreadable(path, "this is a folder", "name the file in it")])
    check_roles(options.columns, form.roles, name)
    content = form.file_of(path)
    try:
        return Incoming(path, name, form, content, sha256_of(content))
    except OSError as error:
        raise _unopened(content, error) from error


def format_of(path: Path) -> str:
    """The form of a file where it can be told, else an error that lists the known ones."""
    header: list[str] = []
    if path.is_file() and path.suffix != ".parquet":
        source = Source(path)
        try:
            head = Head(source.suffix, source.head())
        except OSError as error:
            raise _unopened(path, error) from error
        header = head.columns(told(head.first_line))
    found = [name for name in FORMATS if FORMATS.get(name)().recognises(path, header)]
    if len(found) == 1:
        return found[0]
    remedy = f"name it with --format: {', '.join(FORMATS.names())}; your own table of ratings is 'long'"
    raise ImportFileError([unreadable(path, "the format cannot be told from the file", remedy)])


def _unopened(path: Path, error: OSError) -> ImportFileError:
    message = f"cannot be opened: {error.strerror or error}"
    return ImportFileError([unreadable(path, message, "check the path and its permissions")])


def refuse_repeated(files: Sequence[Incoming], known: dict[str, str]) -> None:
    """The same content twice would count every judgment twice; ``known`` holds the files that are in, by hash."""
    seen = {sha256: f"it was imported before, as '{name}'" for sha256, name in known.items()}
    problems = []
    for file in files:
        if file.sha256 in seen:
            problems.append(unreadable(file.path, seen[file.sha256], "leave it out"))
        seen.setdefault(file.sha256, f"it is the same file as '{file.path}'")
    if problems:
        raise ImportFileError(problems)


@dataclass(slots=True)
class Reading:
    """The reading of files with the same options. Each file is read to its end, then all that is wrong is told."""

    options: Options
    report: Report | None = None
    intakes: dict[Path, Intake] = field(default_factory=dict)
    contradictions: dict[Path, Problems] = field(default_factory=dict)
    """What a draft found wrong; told together with what the second reading of the file finds."""

    def draft(self, files: Sequence[Incoming]) -> Draft:
        """What a study must hold to take in the files. Raises only where nothing can be drafted."""
        draft = Draft(files[0].format.declared(files[0].path))
        for file in files:
            found = self.contradictions[file.path] = Problems(str(file.path))
            for record, intake in self._records(file, "Looking at"):
                found.file = intake.problems.file
                draft.add(record, replace(intake, problems=found))
            if not draft.evidence:
                self.finish(file, has_judgments=False)
        return draft

    def fit(self, file: Incoming, study: Study, *, is_new: bool) -> Fit:
        """The records of a file as sessions of the study; a new one has no checks to hold the answers to."""
        fit: Fit | None = None
        for record, intake in self._records(file, "Reading"):
            fit = fit or Fit(study, intake)
            if is_new and isinstance(record, Answered) and (record.part or "post") not in PARTS:
                intake.left_out[CHECKS] += 1
            else:
                fit.add(record)
        fit = fit or Fit(study, self.intakes[file.path])
        fit.finish()
        self.finish(file, has_judgments=fit.n_judgments > 0)
        return fit

    def finish(self, file: Incoming, *, has_judgments: bool = True) -> None:
        """Raise everything that was found wrong in a file."""
        several = [self.intakes[file.path].problems]
        if file.path in self.contradictions:
            several.append(self.contradictions[file.path])
        n_errors = sum(problems.n_errors for problems in several)
        if not has_judgments and not n_errors:
            remedy = f"is it really of the format '{file.format_name}'?"
            raise ImportFileError([unreadable(file.path, "there are no judgments in the file", remedy)])
        if n_errors:
            told = [problem for problems in several for problem in problems.errors]
            told = sorted(told, key=lambda problem: (problem.file, problem.line == 0, problem.line))[:N_LISTED]
            raise ImportFileError(told, n_more=n_errors - len(told))

    def describe(self, file: Incoming, fit: Fit) -> FileImport:
        """What a file holds, in numbers."""
        intake = self.intakes[file.path]
        sittings = fit.sittings.values()
        places = dict.fromkeys(place for sitting in sittings for place in sitting.places)
        systems = {one for place in places for one in ((place.system,) if place.system else place.order)}
        return FileImport(
            path=file.path,
            format=file.format_name,
            sha256=file.sha256,
            n_judgments=fit.n_judgments,
            n_answers=fit.n_answers,
            n_raters=len(fit.raters),
            n_items=len({record.item for sitting in sittings for record in sitting.records}),
            systems=tuple(sorted(systems)),
            criteria=tuple(dict.fromkeys(place.criterion for place in places)),
            used=dict(intake.used),
            left_out=dict(intake.left_out),
            n_simulated=sum(one.facts is not None and one.facts.source == "simulated" for one in sittings),
        )

    def _records(self, file: Incoming, doing: str) -> Iterator[tuple[Record, Intake]]:
        report = self.report
        tell = (lambda line: report(file.path, doing, line)) if report else None
        problems = Problems(str(file.path))
        intake = Intake(file.path, Source(file.content), problems, self.options, tell)
        self.intakes[file.path] = intake
        try:
            for record in file.format.records(intake):
                yield record, intake
        except ReadError as error:
            raise ImportFileError(error.problems) from error
        except OSError as error:
            raise _unopened(file.path, error) from error
