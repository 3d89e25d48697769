"""Importing files of judgments: looked at as a whole first, then stored, each file in one transaction."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from dialometer.design.check import check_study
from dialometer.design.load import STUDY_FILE, load_study
from dialometer.design.lock import fingerprint, verify
from dialometer.errors import DialometerError, ImportFileError, StorageError
from dialometer.exchange.fit import Fit
from dialometer.exchange.formats import Options
from dialometer.exchange.formats.form import unreadable
from dialometer.exchange.incoming import FileImport, Incoming, Reading, Report, open_file, refuse_repeated
from dialometer.exchange.study_files import WrittenStudy, write_study
from dialometer.model.study import Study
from dialometer.storage.store import Store


@dataclass(frozen=True, slots=True)
class Import:
    """What an import did, or (as a dry run) would do."""

    files: tuple[FileImport, ...]
    study: Study
    new_study: WrittenStudy | None
    is_dry_run: bool


def import_files(
    folder: Path,
    paths: Sequence[Path],
    database: str | Path,
    *,
    format: str = "",
    options: Options | None = None,
    at_ms: int,
    is_dry_run: bool = False,
    report: Report | None = None,
) -> Import:
    """Import files into the study of a folder, or into a new one that is written from what they hold.

    All files are read and checked before anything is written; :class:`ImportFileError` tells every problem of the first
    file that has some. ``format`` is told from the files where it is not given.
    """
    reading = Reading(options or Options(), report)
    files = [open_file(path, format, reading.options) for path in paths]
    refuse_repeated(files, _known_imports(database))
    with _study_for(folder, files, reading) as found:
        fits = [reading.fit(file, found.study, is_new=found.new is not None) for file in files]
        told = tuple(reading.describe(file, fit) for file, fit in zip(files, fits, strict=True))
        if not is_dry_run:
            with found.put_in_place(), Store.open(database) as store:
                for stored in _store(store, found.study, files, fits, at_ms):
                    found.stored.append(stored)
        return Import(told, found.study, found.new, is_dry_run)


def _known_imports(database: str | Path) -> dict[str, str]:
    """Files that are in already, name by hash; none where there is no database yet."""
    try:
        with Store.open(database, create=False) as store:
            return {entry.sha256: entry.file_name for entry in store.imports()}
    except StorageError:
        return {}  # if it cannot be opened at all, storing will say so


@dataclass(frozen=True, slots=True)
class _Found:
    """The study to import into; a new one stands in a temporary folder until it is put in place."""

    study: Study
    new: WrittenStudy | None = None
    put_in_place: Callable[[], AbstractContextManager[None]] = nullcontext
    stored: list[Incoming] = field(default_factory=list)


@contextmanager
def _study_for(folder: Path, files: Sequence[Incoming], reading: Reading) -> Iterator[_Found]:
    if (folder / STUDY_FILE).exists():
        study = load_study(folder)
        verify(study, folder)
        yield _Found(study)
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
            told = [f"no study can be drafted from it: {error.message}" for error in errors]
            raise ImportFileError([unreadable(files[0].path, message, remedy) for message in told])
        stored: list[Incoming] = []
        yield _Found(drafted, written, lambda: _placed(Path(name), folder, written, stored), stored)


@contextmanager
def _placed(source: Path, folder: Path, written: WrittenStudy, stored: Sequence[Incoming]) -> Iterator[None]:
    """The files of a new study in its folder; taken away again when what follows fails before anything is stored."""
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
    store: Store, study: Study, files: Sequence[Incoming], fits: Sequence[Fit], at_ms: int
) -> Iterator[Incoming]:
    """Store file after file, each whole or not at all; gives each one that is in."""
    version = store.register_study(study.spec.name, fingerprint(study), study.spec.model_dump_json(), at_ms)
    for file, fit in zip(files, fits, strict=True):
        names = {rater: file.format.name_of(rater, file.sha256) for rater in fit.raters}
        try:
            store.import_rows(
                fit.sessions(names),
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
