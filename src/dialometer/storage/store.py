"""The store: one object for everything a study writes down and reads back."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from dialometer.storage.accounts import Accounts
from dialometer.storage.arrivals import Arrivals
from dialometer.storage.columns import Columnar
from dialometer.storage.controls import Steering
from dialometer.storage.conversations import Conversations
from dialometer.storage.database import open_database
from dialometer.storage.exclusions import Excluding
from dialometer.storage.imports import Imports
from dialometer.storage.migrate import bring_up_to_date
from dialometer.storage.reading import Reading
from dialometer.storage.recording import Recording
from dialometer.storage.sessions import Sessions
from dialometer.storage.studies import Studies
from dialometer.storage.watching import Watching


class Store(
    Studies,
    Arrivals,
    Sessions,
    Recording,
    Reading,
    Columnar,
    Steering,
    Excluding,
    Conversations,
    Imports,
    Accounts,
    Watching,
):
    """A study's database. Safe to use from many threads and processes at once; each concern has its own file."""

    @classmethod
    def open(cls, target: str | Path, *, create: bool = True) -> Self:
        """Open the SQLite file at a path, or the database at a URL; create or upgrade its tables where needed.

        With ``create=False`` a database that is not there, or is empty, is an error.
        """
        database = open_database(target, create=create)
        try:
            bring_up_to_date(database, create=create)
        except BaseException:
            database.close()
            raise
        return cls(database._engine, database.where)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> list[str]:
        """What SQLite finds wrong with its file, each in a sentence; empty when all is well.

        Reads the whole file. PostgreSQL checks its pages by itself, so there is nothing to ask.
        """
        if not self.is_sqlite:
            return []
        with self.reading() as connection:
            told = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
            loose = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
        problems = [line for line in told if line != "ok"]
        return problems + [f"row {row[1]} of {row[0]} refers to a missing row of {row[2]}" for row in loose]
