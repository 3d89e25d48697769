"""One study as a process holds it: loaded when first asked for, served when it is open to raters."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from dialometer.design.lock import verify
from dialometer.errors import DialometerError, Problem, StudyError
from dialometer.model.places import SIMULATION_FILE
from dialometer.model.study import Study
from dialometer.storage.store import Store
from dialometer.web.app import StudyApp, create_app
from dialometer.web.desk.shelf import IsDraft, Shelf
from dialometer.web.settings import Settings
from dialometer.web.study_check import check_all
from dialometer.web.turns import TurnTakingStore
from dialometer.web.wizard import has_wizard

FAILED_FOR_S = 3.0
"""A study that cannot be opened is not tried again at once, however many ask for it."""


@dataclass(frozen=True)
class Running:
    """A study that collects data: what it declares, where answers go, and the pages raters see."""

    name: str
    folder: Path
    database: str | Path
    study: Study
    store: Store
    app: StudyApp


class Held:
    """The studies of a server in this process. Safe to use from many threads."""

    def __init__(self, shelf: Shelf, settings: Settings) -> None:
        self.shelf = shelf
        self.settings = settings
        self._running: dict[str, Running] = {}
        self._drafts: dict[str, tuple[object, Study | None, list[Problem]]] = {}
        self._failed: dict[str, tuple[float, DialometerError]] = {}
        self._lock = threading.Lock()

    def address_of(self, name: str) -> str:
        """The path under which raters reach a study."""
        return self.settings.root_path if self.shelf.is_single else f"{self.settings.root_path}/{name}"

    def is_open(self, name: str) -> bool:
        """Whether a study can have raters: it was named on the command line, or it is frozen."""
        return self.shelf.is_named(name) or self.shelf.is_frozen(name)

    def running(self, name: str) -> Running:
        """The study with its store and pages; raises when it is a draft or not in order."""
        found = self._running.get(name)
        if found is not None:
            return found
        folder = self.shelf.folder(name)
        if not self.is_open(name):
            raise IsDraft(f"the study '{name}' is a draft", remedy="freeze and start it first")
        with self._lock:
            if name not in self._running:
                until, error = self._failed.get(name, (0.0, None))
                if error is not None and time.monotonic() < until:
                    raise error
                try:
                    self._running[name] = self._open(name, folder)
                except DialometerError as error:
                    self._failed[name] = (time.monotonic() + FAILED_FOR_S, error)
                    raise
            return self._running[name]

    def known(self, name: str) -> Running | None:
        """The study if it has been opened in this process already; never waits."""
        return self._running.get(name)

    def checked(self, name: str) -> tuple[Study | None, list[Problem]]:
        """A study as it stands on disk with all its problems; read again when a file has changed."""
        folder = self.shelf.folder(name)
        stamp = tuple(sorted((p.name, p.stat().st_mtime_ns, p.stat().st_size) for p in study_files(folder)))
        held = self._drafts.get(name)
        if held is None or held[0] != stamp:
            study, problems = check_all(folder)
            held = self._drafts[name] = (stamp, study, problems)
        return held[1], held[2]

    def loaded(self, name: str) -> Study:
        """The study, running or draft; raises :class:`StudyError` when it is not in order."""
        found = self._running.get(name)
        if found is not None:
            return found.study
        study, problems = self.checked(name)
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors or study is None:
            raise StudyError(errors)
        return study

    def _open(self, name: str, folder: Path) -> Running:
        study, problems = check_all(folder)
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors or study is None:
            raise StudyError(errors)
        verify(study, folder)
        if self.settings.runtime_folder and has_wizard(study):
            raise DialometerError(
                "a study with a wizard is served by one process", remedy="start the server without --workers"
            )
        runtime = self.settings.runtime_folder
        if runtime and not self.shelf.is_single:
            runtime = str(Path(runtime) / name)
            Path(runtime).mkdir(exist_ok=True)
        database = self.shelf.database_of(name)
        store = TurnTakingStore.open(database)
        try:
            settings = replace(self.settings, root_path=self.address_of(name), runtime_folder=runtime)
            app = create_app(study, store, settings=settings)
        except BaseException:
            store.close()
            raise
        return Running(name, folder, database, study, store, app)

    def holds(self, store: Store) -> bool:
        """Whether a store is that of a study here."""
        return any(running.store is store for running in self._running.values())

    def close(self) -> None:
        """Stores what waits and closes all databases."""
        with self._lock:
            for running in self._running.values():
                running.app.close()
                running.store.close()
            self._running.clear()


def study_files(folder: Path) -> list[Path]:
    """The files that make up a study: texts beside each other, nothing hidden, no data that were collected."""
    kinds = (".yaml", ".yml", ".jsonl", ".json", ".md", ".txt", ".csv")
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and path.suffix in kinds and not path.name.startswith(".") and path.name not in NOT_STUDY
    )


NOT_STUDY = frozenset({SIMULATION_FILE})
"""Files beside a study that others have left there."""
