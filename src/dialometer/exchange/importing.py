"""Importing files of judgments: all are read and checked first, then stored, each file in one transaction."""

from __future__ import annotations

import gc
import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from dialometer.design.load import check_study, load_study
from dialometer.design.lock import fingerprint, verify
from dialometer.errors import DialometerError, ImportFileError, ReadError, StorageError
from dialometer.exchange.columns import check_roles
from dialometer.exchange.exports.export_folder import read_manifest, sha256_of
from dialometer.exchange.formats import FORMATS, ImportFormat, ImportOptions, Intake
from dialometer.exchange.import_format import unreadable
from dialometer.exchange.import_rules import RulesApplied, apply_rules
from dialometer.exchange.matching import MatchedFile
from dialometer.exchange.records import AnswerRecord, Record
from dialometer.exchange.study_draft import PARTS, StudyDraft, WrittenStudy, write_study
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.study import Study
from dialometer.readers.containers.columnar import is_columnar, parts_of
from dialometer.readers.json_records import first_record
from dialometer.readers.problems import Problems
from dialometer.readers.reader import Head
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import delimiter_of
from dialometer.storage.imports import ImportedSession
from dialometer.storage.store import Store

CHECKS = "answers to checks, which the new study does not have"
Report = Callable[[Path, str, int], None]
"""Called with the file, what is done with it, and the line that was reached."""


@dataclass(frozen=True, slots=True)
class ImportFile:
    """One file to import; ``content`` is the file that identifies it where ``path`` is a folder."""

    path: Path
    format_name: str
    format: ImportFormat
    content: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class ImportedFile:
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
    unread: tuple[str, ...] = ()
    """Columns of the file that play no part."""
    assumed: tuple[str, ...] = ()
    """What had to be assumed to read it."""
    form: tuple[str, ...] = ()
    """How it is written where that is not plain text in UTF-8: gzip, another encoding, semicolons …"""
    n_zeros: int = 0
    """Magnitudes of zero: kept, and used by the study's rule (``zeros``)."""


def open_file(path: Path, format_name: str, options: ImportOptions) -> ImportFile:
    """Find out what a file is; nothing is read but its beginning and its hash."""
    if not path.exists():
        raise ImportFileError([unreadable(path, "there is no such file", "check the path")])
    name = format_name or format_of(path)
    reader = FORMATS.get(name)()
    if path.is_dir() and not reader.takes_folder and not is_columnar(path):
        raise ImportFileError([unreadable(path, "this is a folder", "name the file in it")])
    check_roles(options.columns, reader.roles, name)
    _check_options(options, reader, name)
    content = reader.file_of(path)
    try:
        return ImportFile(path, name, reader, content, _sha256(content))
    except OSError as error:
        raise _unopened(content, error) from error


def _sha256(content: Path) -> str:
    """The hash of a file, or of the files of a folder together."""
    if not content.is_dir():
        return sha256_of(content)
    several = "".join(sha256_of(part.path) for part in parts_of(content))
    return hashlib.sha256(several.encode()).hexdigest()


def _check_options(options: ImportOptions, reader: ImportFormat, name: str) -> None:
    """Refuse what the format would not use, rather than drop it."""
    options_used = {option for option in ("criteria", "questions", "time_format") if getattr(options, option)}
    for option in sorted(options_used - reader.takes):
        flag = f"--{option.replace('_', '-')}"
        raise DialometerError(
            f"the format '{name}' does not use {flag}", remedy=f"leave {flag} out, or name another --format"
        )


def format_of(path: Path) -> str:
    """The format of a file where one recognises it, else an error that lists the known ones."""
    header = columns_of(path)
    matching = [name for name in FORMATS if FORMATS.get(name)().recognises(path, header)]
    if len(matching) == 1:
        return matching[0]
    remedy = (
        f"name it with --format: {', '.join(FORMATS.names())}; your own table of ratings is 'long'. "
        f"'dialometer look {path.name}' shows what the file is"
    )
    raise ImportFileError([unreadable(path, "the format cannot be recognised from the file", remedy)])


def columns_of(path: Path) -> list[str]:
    """The columns of a table, or the keys of the first object where it is JSON; none for a folder without data files."""
    is_data = path.is_file() or (read_manifest(path) is None and is_columnar(path))
    return _header(SourceFile(path)) if is_data else []


def _header(source: SourceFile) -> list[str]:
    try:
        source.probe()
        text = source.head()
    except OSError as error:
        raise _unopened(source.path, error) from error
    except ReadError as error:
        raise ImportFileError(error.problems) from error
    record = first_record(text)
    if isinstance(record, dict):
        return [str(key) for key in record]
    head = Head(source.suffix, text)
    return head.columns(delimiter_of(head.first_line))


def _unopened(path: Path, error: OSError) -> ImportFileError:
    message = f"cannot be opened: {error.strerror or error}"
    return ImportFileError([unreadable(path, message, "check the path and its permissions")])


def _form(source: SourceFile) -> tuple[str, ...]:
    try:
        return tuple(source.forms())
    except OSError:
        return ()


def refuse_repeated(files: Sequence[ImportFile], known: dict[str, str]) -> None:
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
class ImportReader:
    """Reads files with the same options. Each file is read to its end, then everything wrong in it is reported."""

    options: ImportOptions
    report: Report | None = None
    intakes: dict[Path, Intake] = field(default_factory=dict)
    contradictions: dict[Path, Problems] = field(default_factory=dict)
    """What a draft found wrong; reported together with what the second reading of the file finds."""

    def draft(self, files: Sequence[ImportFile]) -> StudyDraft:
        """What a study must hold to take in the files. Raises only where nothing can be drafted."""
        draft = StudyDraft(files[0].format.declared(files[0].path))
        for file in files:
            problems = self.contradictions[file.path] = Problems(str(file.path))
            for record, intake in self._records(file, "Looking at"):
                problems.file = intake.problems.file
                draft.add(record, replace(intake, problems=problems))
            if not draft.evidence:
                self.finish(file, has_judgments=False)
        return draft

    def match(self, file: ImportFile, study: Study, *, is_new: bool) -> MatchedFile:
        """The records of a file as sessions of the study; a new one has no checks to hold the answers to."""
        matched: MatchedFile | None = None
        for record, intake in self._records(file, "Reading", needs_texts=is_new):
            matched = matched or MatchedFile(study, intake)
            if is_new and isinstance(record, AnswerRecord) and (record.part or "post") not in PARTS:
                intake.left_out[CHECKS] += 1
            else:
                matched.add(record)
        matched = matched or MatchedFile(study, self.intakes[file.path])
        matched.finish()
        self.finish(file, has_judgments=matched.n_judgments > 0)
        return matched

    def finish(self, file: ImportFile, *, has_judgments: bool = True) -> None:
        """Raise everything that was found wrong in a file."""
        several = [self.intakes[file.path].problems]
        if file.path in self.contradictions:
            several.append(self.contradictions[file.path])
        n_errors = sum(problems.n_errors for problems in several)
        if not has_judgments and not n_errors:
            remedy = f"is it really of the format '{file.format_name}'?"
            raise ImportFileError([unreadable(file.path, "there are no judgments in the file", remedy)])
        if n_errors:
            errors = [problem for problems in several for problem in problems.errors]
            listed = sorted(errors, key=lambda problem: (problem.file, problem.line == 0, problem.line))
            counts = sum((problems.counts for problems in several), Counter[str]())
            raise ImportFileError(listed, n_more=n_errors - len(listed), counts=counts)

    def describe(self, file: ImportFile, matched: MatchedFile) -> ImportedFile:
        """What a file holds, in numbers."""
        intake = self.intakes[file.path]
        visits = matched.visits.values()
        targets = dict.fromkeys(target for visit in visits for target in visit.targets)
        systems = {name for target in targets for name in ((target.system,) if target.system else target.order)}
        return ImportedFile(
            path=file.path,
            format=file.format_name,
            sha256=file.sha256,
            n_judgments=matched.n_judgments,
            n_answers=matched.n_answers,
            n_raters=len(matched.raters),
            n_items=len({record.item for visit in visits for record in visit.records}),
            systems=tuple(sorted(systems)),
            criteria=tuple(dict.fromkeys(target.criterion for target in targets)),
            used=dict(intake.used),
            left_out=dict(intake.left_out),
            unread=tuple(dict.fromkeys(intake.unread)),
            assumed=tuple(intake.problems.assumed),
            form=_form(intake.source),
            n_zeros=matched.n_zeros,
            n_simulated=sum(visit.facts is not None and visit.facts.source == "simulated" for visit in visits),
        )

    def _records(self, file: ImportFile, doing: str, *, needs_texts: bool = True) -> Iterator[tuple[Record, Intake]]:
        report = self.report
        tell = (lambda line: report(file.path, doing, line)) if report else None
        problems = Problems(str(file.path))
        intake = Intake(file.path, SourceFile(file.content), problems, self.options, tell, needs_texts)
        self.intakes[file.path] = intake
        try:
            for record in file.format.records(intake):
                yield record, intake
        except ReadError as error:
            raise ImportFileError(error.problems) from error
        except OSError as error:
            raise _unopened(file.path, error) from error


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did, or (as a dry run) would do."""

    files: tuple[ImportedFile, ...]
    study: Study
    new_study: WrittenStudy | None
    is_dry_run: bool
    rules: RulesApplied | None = None
    """What the study's quality rules found, where they were applied."""


def import_files(
    folder: Path,
    paths: Sequence[Path],
    database: str | Path,
    *,
    format: str = "",
    options: ImportOptions | None = None,
    at_ms: int,
    is_dry_run: bool = False,
    with_rules: bool = False,
    report: Report | None = None,
) -> ImportResult:
    """Import files into the study of a folder, or into a new one that is written from what they hold.

    All files are read and checked before anything is written; :class:`ImportFileError` lists every problem of the first
    file that has any. ``format`` is detected where it is not given. ``with_rules`` applies the study's quality rules to the
    imported raters.
    """
    with _without_collector():
        return _import(folder, paths, database, format, options, at_ms, is_dry_run, with_rules, report)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Records of a long file stay in memory and hold no cycles; looking for cycles among them takes a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _import(
    folder: Path,
    paths: Sequence[Path],
    database: str | Path,
    format: str,
    options: ImportOptions | None,
    at_ms: int,
    is_dry_run: bool,
    with_rules: bool,
    report: Report | None,
) -> ImportResult:
    reading = ImportReader(options or ImportOptions(), report)
    files = [open_file(path, format, reading.options) for path in paths]
    refuse_repeated(files, _known_imports(database))
    with _study_for(folder, files, reading) as target:
        matches = [reading.match(file, target.study, is_new=target.new is not None) for file in files]
        summaries = tuple(reading.describe(file, match) for file, match in zip(files, matches, strict=True))
        rules: RulesApplied | None = None
        if not is_dry_run:
            with target.put_in_place(), Store.open(database) as store:
                sessions: list[str] = []
                for stored in _store(store, target.study, files, matches, at_ms, sessions):
                    target.stored.append(stored)
                if with_rules:
                    rules = apply_rules(target.study, store, sessions, at_ms)
        return ImportResult(summaries, target.study, target.new, is_dry_run, rules)


def _known_imports(database: str | Path) -> dict[str, str]:
    """Files that are in already, name by hash; none where there is no database yet."""
    try:
        with Store.open(database, create=False) as store:
            return {entry.sha256: entry.file_name for entry in store.imports.all()}
    except StorageError:
        return {}  # if it cannot be opened at all, storing will say so


@dataclass(frozen=True, slots=True)
class _StudyToFill:
    """The study to import into; a new one is in a temporary folder until it is put in place."""

    study: Study
    new: WrittenStudy | None = None
    put_in_place: Callable[[], AbstractContextManager[None]] = nullcontext
    stored: list[ImportFile] = field(default_factory=list)


@contextmanager
def _study_for(folder: Path, files: Sequence[ImportFile], reading: ImportReader) -> Iterator[_StudyToFill]:
    if (folder / STUDY_FILE).exists():
        study = load_study(folder)
        verify(study, folder)
        yield _StudyToFill(study)
        return
    draft = reading.draft(files)
    with tempfile.TemporaryDirectory(prefix="dialometer-import-") as name:
        written = write_study(draft, Path(name), folder.resolve().name, [file.path.name for file in files])
        drafted, problems = check_study(Path(name))
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors or drafted is None:
            for file in files:
                reading.finish(file)
            remedy = "write study.yaml and its items yourself, then import again"
            messages = [f"no study can be drafted from it: {error.message}" for error in errors]
            raise ImportFileError([unreadable(files[0].path, message, remedy) for message in messages])
        stored: list[ImportFile] = []
        yield _StudyToFill(drafted, written, lambda: _placed(Path(name), folder, written, stored), stored)


@contextmanager
def _placed(source: Path, folder: Path, written: WrittenStudy, stored: Sequence[ImportFile]) -> Iterator[None]:
    """The files of a new study in its folder; removed again when what follows fails before anything is stored."""
    taken = [name for name in written.files if (folder / name).exists()]
    if taken:
        raise DialometerError(
            f"{', '.join(taken)} is there, but no {STUDY_FILE}", where=str(folder), remedy="choose another folder"
        )
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in written.files:
            shutil.copyfile(source / name, folder / name)
        yield
    except BaseException as error:
        if not stored:
            for name in written.files:
                (folder / name).unlink(missing_ok=True)
            if is_new and folder.exists() and not any(folder.iterdir()):
                folder.rmdir()
        if isinstance(error, OSError):
            raise DialometerError(f"the study cannot be written: {error.strerror}", where=str(folder)) from error
        raise


def _store(
    store: Store,
    study: Study,
    files: Sequence[ImportFile],
    matches: Sequence[MatchedFile],
    at_ms: int,
    stored_ids: list[str],
) -> Iterator[ImportFile]:
    """Store file after file, each whole or not at all; gives each one that is in, and the ids of its sessions."""

    def noted(sessions: Iterator[ImportedSession]) -> Iterator[ImportedSession]:
        for session in sessions:
            stored_ids.append(session.id)
            yield session

    version = store.studies.register(study.spec.name, fingerprint(study), study.spec.model_dump_json(), at_ms)
    for file, match in zip(files, matches, strict=True):
        names = {rater: file.format.name_of(rater, file.sha256) for rater in match.raters}
        try:
            store.imports.add(
                noted(match.sessions(names)),
                file_name=file.path.name,
                sha256=file.sha256,
                format=file.format_name,
                study_version=version,
                at_ms=at_ms,
                platform=f"imported:{file.format_name}",
            )
        except StorageError as error:
            raise ImportFileError([unreadable(file.path, error.message, error.remedy)]) from error
        yield file
