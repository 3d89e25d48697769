"""Ratings in a table of one's own: long, wide, or systems side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from dialometer.exchange.columns import Roles
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.rating_table import RATING_ROLES, rating_records
from dialometer.exchange.records import Record
from dialometer.readers.table_rows import table_rows


@FORMATS.register("long")
class OwnTable(ImportFormat):
    """A CSV file of which the user says what is what."""

    roles: ClassVar[Roles] = RATING_ROLES
    summary: ClassVar[str] = "your own table of ratings, one row for each (or one column for each criterion)"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """Never surely: any table could be one."""
        return False

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each row, or for each criterion of a row."""
        return rating_records(intake, table_rows(intake.source, intake.problems, ()), self.roles)
