"""The store: one object for everything a study stores and reads back."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from dialometer.errors import NotEnoughData
from dialometer.model.file_names import DATABASE_FILE
from dialometer.storage.access.accounts import Accounts
from dialometer.storage.access.limits import SharedLimits
from dialometer.storage.access.secrets import Secrets
from dialometer.storage.controls import StudyControl
from dialometer.storage.conversations import Conversations
from dialometer.storage.counting.counts import Counts
from dialometer.storage.counting.slot_counts import SlotCounts
from dialometer.storage.database import BUSY_TIMEOUT_S, Database, open_database
from dialometer.storage.exclusions import Exclusions
from dialometer.storage.imports import Imports
from dialometer.storage.looks import LookLog
from dialometer.storage.migrate import bring_up_to_date
from dialometer.storage.records import Records
from dialometer.storage.sessions import Sessions
from dialometer.storage.studies import Studies
from dialometer.storage.submissions import Submissions
from dialometer.storage.withdrawals import Withdrawals
from dialometer.storage.wizards import Wizards


class Store:
    """A study's database, with one attribute for each subject. Safe to use from many threads and processes at once."""

    wait_s: ClassVar[float] = BUSY_TIMEOUT_S
    """How long a transaction waits for another one."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.studies = Studies(database)
        self.sessions = Sessions(database)
        self.slot_counts = SlotCounts(database)
        self.submissions = Submissions(database)
        self.records = Records(database)
        self.counts = Counts(database)
        self.control = StudyControl(database)
        self.exclusions = Exclusions(database)
        self.withdrawals = Withdrawals(database)
        self.conversations = Conversations(database)
        self.imports = Imports(database)
        self.accounts = Accounts(database)
        self.looks = LookLog(database)
        self.secrets = Secrets(database)
        self.wizards = Wizards(database)
        self.limits = SharedLimits(database)

    @classmethod
    def open(cls, target: str | Path, *, create: bool = True) -> Self:
        """Open the SQLite file at a path, or the database at a URL; create or upgrade its tables where needed.

        With ``create=False`` a database that is not there, or is empty, is an error.
        """
        database = open_database(target, create=create, wait_s=cls.wait_s)
        try:
            bring_up_to_date(database, create=create)
            database.remember_file()
        except BaseException:
            database.close()
            raise
        if database.own_copy is not None:  # what is written to a copy would be lost
            database.is_read_only = True
        return cls(database)

    def close(self) -> None:
        """Give all connections back; what was committed is on disk already."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> list[str]:
        """What is wrong with the database, each in a sentence; empty when all is well.

        Reads the whole file. PostgreSQL checks its pages by itself, so there only the counts of slots are looked at.
        """
        problems = self._file_problems() if self.database.is_sqlite else []
        n_wrong = len(self.slot_counts.wrong())
        return problems + (
            [f"{n_wrong} counts of taken slots are wrong; a server repairs them when it starts"] if n_wrong else []
        )

    def _file_problems(self) -> list[str]:
        with self.database.reading() as connection:
            lines = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
            loose = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
        problems = [line for line in lines if line != "ok"]
        return problems + [f"row {row[1]} of {row[0]} refers to a missing row of {row[2]}" for row in loose]


def open_collected(folder: Path, database: str = "") -> Store:
    """The store of a study that is to be read: its own database, or the one that is named. None is created."""
    own = folder / DATABASE_FILE
    if not database and not own.exists():
        raise NotEnoughData(
            "nothing has been collected in this study yet",
            where=str(own),
            remedy=f"collect judgments, try it with 'dialometer simulate {folder}', or name the database",
        )
    return Store.open(database or own, create=False)
