"""One study as a process holds it: loaded when first asked for, served when it is open to raters."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from dialometer.agents.access import AgentAccess
from dialometer.design.lock import LOCK_FILE
from dialometer.errors import DialometerError, Problem, StorageError
from dialometer.flow.study_check import check_all, open_study, without_errors
from dialometer.folder_files import is_inside
from dialometer.model.file_names import DATABASE_FILE, SIMULATION_FILE, STUDY_FILE
from dialometer.model.study import Study
from dialometer.storage.safety.start import refuse_foreign_log, refuse_lost_answers
from dialometer.storage.store import Store
from dialometer.web.server.logs import log, log_failure
from dialometer.web.server.settings import Settings
from dialometer.web.server.turns import TurnTakingStore
from dialometer.web.study_app import StudyApp, create_app

# Which studies a server has, and where they lie. The folders on disk are the truth; this only finds them.


ACCOUNTS_FILES = ("dashboard.db", "desk.db")
"""Accounts of several studies; the second is the name of earlier versions, used where it is there."""
ACCOUNTS_NAMES = ("dashboard", "desk")
"""The same for {study} in the address of a database."""
RESERVED = frozenset({"dashboard", "desk", "static", "api", "s", "start", "wizard", "healthz", "metrics"})
"""Addresses that are not studies."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\-]{0,63}")


class NoStudy(DialometerError):
    """There is no study of that name here."""


class IsDraft(NoStudy):
    """The study is here, but not open to raters yet."""


@dataclass(frozen=True, slots=True)
class StudyFolders:
    """Folders of studies named one by one, or a parent folder that holds them and takes new ones.

    ``database`` may name a server's database, with ``{study}`` where there are several studies; ``accounts`` the database
    of the accounts. ``report_command`` writes a study's report; ``{folder}``, ``{database}`` and ``{out}`` are filled in.
    """

    folders: tuple[str, ...] = ()
    parent: str = ""
    database: str = ""
    accounts: str = ""
    report_command: tuple[str, ...] = ()

    @property
    def is_single(self) -> bool:
        """Whether there is one study only, which then needs no name in its address."""
        return not self.parent and len(self.folders) == 1

    @property
    def may_grow(self) -> bool:
        """Whether new studies can be made here."""
        return bool(self.parent)

    def names(self) -> list[str]:
        """All studies by the names of their folders, in alphabetical order."""
        return sorted(self._named() | self._in_parent(), key=str.lower)

    def folder(self, name: str) -> Path:
        """The folder of a study; raises :class:`NoStudy`. Nothing outside these folders can be named."""
        named = next((Path(folder) for folder in self.folders if _name_of(folder) == name), None)
        if named is not None:
            return named
        if self.parent and is_name(name) and (Path(self.parent) / name / STUDY_FILE).is_file():
            return Path(self.parent) / name
        raise NoStudy(f"there is no study '{name[:64]}' here", remedy="go back to the list of studies")

    def is_named(self, name: str) -> bool:
        """Whether the study was named on the command line, and so is open to raters at once."""
        return name in self._named()

    def is_frozen(self, name: str) -> bool:
        """Whether the study has a lock."""
        return (self.folder(name) / LOCK_FILE).is_file()

    def new_folder(self, name: str) -> Path:
        """Where a new study would lie; raises when that is not possible."""
        if not self.may_grow:
            raise DialometerError(
                "this server has no folder for new studies",
                remedy="serve the folder that holds your studies: dialometer serve FOLDER",
            )
        if not is_name(name) or name.lower() in RESERVED:
            raise DialometerError(
                f"'{name[:64]}' cannot be a study's name",
                remedy="a letter first, then letters, digits, - and _; at most 64 in all",
            )
        target = Path(self.parent) / name
        if target.exists() or name.lower() in {known.lower() for known in self.names()}:
            raise DialometerError(f"there is a study '{name}' already", remedy="choose another name")
        return target

    def database_of(self, name: str) -> str | Path:
        """The database of a study."""
        return self.database.replace("{study}", name) if self.database else self.folder(name) / DATABASE_FILE

    def accounts_database(self) -> str | Path:
        """The database of the accounts: the study's own where there is one study, else one for all."""
        if self.accounts:
            return self.accounts
        if self.parent and not self.database:
            files = [Path(self.parent) / name for name in ACCOUNTS_FILES]
            return next((file for file in files if file.exists()), files[0])
        if not self.parent:
            return self.database_of(self.names()[0])
        newer, earlier = (self.database.replace("{study}", name) for name in ACCOUNTS_NAMES)
        return earlier if _has_accounts(earlier) else newer

    def as_json(self) -> str:
        """As text for :meth:`from_json`, so that a server can pass it to its other processes."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What :meth:`as_json` wrote."""
        raw = json.loads(text)
        return cls(tuple(raw["folders"]), raw["parent"], raw["database"], raw["accounts"], tuple(raw["report_command"]))

    def _named(self) -> set[str]:
        return {_name_of(folder) for folder in self.folders}

    def _in_parent(self) -> set[str]:
        if not self.parent:
            return set()
        inside = Path(self.parent).iterdir()
        return {path.name for path in inside if is_name(path.name) and (path / STUDY_FILE).is_file()}


def _has_accounts(database: str) -> bool:
    """Whether there is such a database of ours."""
    try:
        Store.open(database, create=False).close()
    except StorageError:
        return False
    return True


def is_name(text: str) -> bool:
    """Whether a text can name a study in an address and on disk."""
    return bool(_NAME.fullmatch(text))


def _name_of(folder: str) -> str:
    return Path(folder).resolve().name


FAILED_FOR_S = 3.0
"""How long a study that could not be opened is not tried again."""


@dataclass(frozen=True)
class RunningStudy:
    """A study that collects data: what it declares, where answers go, and the pages raters see."""

    name: str
    folder: Path
    database: str | Path
    study: Study
    store: Store
    app: StudyApp


class RunningStudies:
    """The studies of a server in this process. Safe to use from many threads."""

    def __init__(self, folders: StudyFolders, settings: Settings) -> None:
        self.folders = folders
        if settings.agents is None:
            settings = replace(settings, agents=AgentAccess.of_environment(is_editable=folders.may_grow))
        self.settings = settings
        self._running: dict[str, RunningStudy] = {}
        self._drafts: dict[str, tuple[object, Study | None, list[Problem]]] = {}
        self._failed: dict[str, tuple[float, DialometerError]] = {}
        self._lock = threading.Lock()
        self._is_closing = threading.Event()

    def address_of(self, name: str) -> str:
        """The path under which raters reach a study."""
        return self.settings.root_path if self.folders.is_single else f"{self.settings.root_path}/{name}"

    def is_open(self, name: str) -> bool:
        """Whether a study can have raters: it was named on the command line, or it is frozen."""
        return self.folders.is_named(name) or self.folders.is_frozen(name)

    def running(self, name: str) -> RunningStudy:
        """The study with its store and pages; raises when it is a draft or not in order."""
        if name in self._running:
            return self._running[name]
        folder = self.folders.folder(name)
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

    def known(self, name: str) -> RunningStudy | None:
        """The study if it has been opened in this process already; never waits."""
        return self._running.get(name)

    def opened(self) -> list[RunningStudy]:
        """The studies that have been opened in this process."""
        return list(self._running.values())

    def checked(self, name: str) -> tuple[Study | None, list[Problem]]:
        """A study as it is on disk, with all its problems; read again when a file has changed."""
        folder = self.folders.folder(name)
        stats = [(path.name, path.stat()) for path in study_files(folder)]
        stamp = [(file, stat.st_ino, stat.st_mtime_ns, stat.st_size) for file, stat in stats]
        if self._drafts.get(name, (None,))[0] != stamp:
            self._drafts[name] = (stamp, *_checked(folder, self.settings.agents))
        return self._drafts[name][1:]

    def shared_files(self, name: str) -> list[Path]:
        """The files of a study that viewers may have: what it declares and its lock, no lists of raters and no secrets.

        Other files beside the study can be invitations, names of people or what a platform has answered, so only files that
        are known to be harmless are given out.
        """
        study, _ = self.checked(name)
        files = study_files(self.folders.folder(name))
        if study is None:
            return [path for path in files if path.name in (STUDY_FILE, LOCK_FILE) or path.suffix == ".md"]
        lists = study.spec.recruitment.qualifications
        withheld = {lists.allow_list, lists.block_list, *(getattr(rule, "file", "") for rule in study.spec.quality)}
        shared = {STUDY_FILE, LOCK_FILE, study.spec.items.file, *study.texts, *study.translation_files} - withheld
        return [path for path in files if path.name in shared]

    def loaded(self, name: str) -> Study:
        """The study, running or draft; raises :class:`StudyError` when it is not in order."""
        if name in self._running:
            return self._running[name].study
        return without_errors(*self.checked(name))

    def _open(self, name: str, folder: Path) -> RunningStudy:
        study = open_study(folder, self.settings.agents)
        runtime = self.settings.runtime_folder
        if runtime and not self.folders.is_single:
            runtime = str(Path(runtime) / name)
            Path(runtime).mkdir(exist_ok=True)
        database = self.folders.database_of(name)
        if isinstance(database, Path) and not runtime:  # of several processes, another may be writing by now
            refuse_foreign_log(database)
        store = TurnTakingStore.open(database)
        try:
            refuse_lost_answers(folder, store.database)
            if store.slot_counts.repair():
                log("slot_counts_repaired", study=name)
            store.log_acknowledged(folder)
            settings = replace(
                self.settings,
                root_path=self.address_of(name),
                is_among_studies=not self.folders.is_single,
                runtime_folder=runtime,
            )
            app = create_app(study, store, settings=settings)
        except BaseException:
            store.close()
            raise
        threading.Thread(target=self._count_ahead, args=(store,), name=f"count-{name}", daemon=True).start()
        return RunningStudy(name, folder, database, study, store, app)

    def _count_ahead(self, store: Store) -> None:
        """The first look at a large study would otherwise read all of it."""
        try:
            store.counts.read_ahead(self._is_closing.is_set)
        except Exception as error:  # a database that fails now is seen by the look itself, and by /healthz
            if not self._is_closing.is_set():
                log_failure(error)

    def holds(self, store: Store) -> bool:
        """Whether a store belongs to one of these studies."""
        return any(running.store is store for running in self._running.values())

    def close(self) -> None:
        """Stores waiting screens and closes all databases."""
        self._is_closing.set()
        with self._lock:
            for running in self._running.values():
                running.app.close()
                running.store.close()
            self._running.clear()


def _checked(folder: Path, access: AgentAccess | None) -> tuple[Study | None, list[Problem]]:
    """The check of a draft. Where the check itself fails, that is a problem of this draft, and no other page fails with it."""
    try:
        return check_all(folder, access)
    except Exception as error:
        message = f"the study cannot be checked (reference {log_failure(error)})"
        return None, [Problem(message, "undo your last change; the server's log says more", STUDY_FILE, 1, 1)]


def study_files(folder: Path) -> list[Path]:
    """The files that make up a study: text files, nothing hidden, no collected data, no links that lead elsewhere."""
    kinds = (".yaml", ".yml", ".jsonl", ".json", ".md", ".txt", ".csv")
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and path.suffix in kinds and not path.name.startswith(".") and path.name not in NOT_STUDY
        if is_inside(path, folder)
    )


NOT_STUDY = frozenset({SIMULATION_FILE})
"""Text files in a study's folder that are not part of the study."""
