"""The files of RankME: sentences rated by three methods on a crowd platform.

Novikova, Dušek and Rieser, RankME: Reliable Human Ratings for Natural Language Generation, NAACL 2018. The ratings by Likert
scale and by plain magnitude estimation have one system per row; RankME's own rows have three side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from dialometer.exchange.columns import Role, Roles
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.rating_table import RATING_ROLES, rating_records
from dialometer.exchange.records import JudgmentRecord, Record
from dialometer.model.values import to_number
from dialometer.readers.table_rows import TableRow, plain_column, table_rows

CRITERIA = ("informativeness", "naturalness", "quality")
METHOD = "method"
MAX_LIKERT = 7
_COLUMNS = {
    "rater": "_worker_id",
    "item": "mr_id",
    "system": "team",
    "context": "mr",
    "response": "ref",
    "time": "_created_at",
}


@FORMATS.register("rankme")
class RankMe(ImportFormat):
    """Everything is known but the method, which the columns and values tell."""

    roles: ClassVar[Roles] = RATING_ROLES | {
        role: Role(RATING_ROLES[role].meaning, (column,), RATING_ROLES[role].is_needed)
        for role, column in _COLUMNS.items()
    }
    summary: ClassVar[str] = "files of the RankME study (setup1_likert.csv, setup1_plainME.csv, setup1_rankME.csv)"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """The platform's column for the rater beside those of the study."""
        return {"_worker_id", "mr", "mr_id"} <= set(header) and bool({"team", "team1"} & set(header))

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each criterion and system of a row, all with the method as their condition."""
        rows = list(table_rows(intake.source, intake.problems, ()))
        intake.options = replace(
            intake.options,
            criteria=intake.options.criteria or _criteria(rows),
            time_format=intake.options.time_format or "%m/%d/%Y %H:%M:%S",
        )
        condition = ((METHOD, _method(rows)),)
        for record in rating_records(intake, iter(rows), self.roles, hint="magnitude"):
            yield replace(record, condition=condition) if isinstance(record, JudgmentRecord) else record


def _criteria(rows: Sequence[TableRow]) -> Sequence[str]:
    """Those of the study's criteria that the file has; all where it has none, so that the message names them."""
    header = {plain_column(name) for name in rows[0].cells} if rows else set()
    return [name for name in CRITERIA if {name, f"{name}1"} & header] or CRITERIA


def _method(rows: Sequence[TableRow]) -> str:
    """How the ratings of a file were asked for; magnitude estimates go beyond the points of any Likert scale."""
    if rows and "team1" in rows[0].cells:
        return "rank_me"
    numbers = (to_number(row.cells[name]) for row in rows for name in CRITERIA if name in row.cells)
    highest = max((number for number in numbers if number is not None), default=0)
    return "likert" if highest <= MAX_LIKERT else "plain_me"
