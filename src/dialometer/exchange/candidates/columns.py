"""Tables in which answers to questions were judged: the question, the answer, and at which rank systems retrieved it.

Ranks stand in columns ``rank_NAME``, one for each system. Where only scores are known, they stand in ``score_NAME`` (higher is
better, empty or 0 means not retrieved). A column for the system says whose first answer the row is about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dialometer.exchange.cell_reader import CellReader, Cells
from dialometer.exchange.columns import Columns
from dialometer.exchange.records import CandidateRecord

RANK_PREFIX = "rank_"
SCORE_PREFIX = "score_"


def names_candidates(columns: Columns, columns_of_roles: Mapping[str, str]) -> bool:
    """Whether a table says what was judged by question and answer: because the user says so, or because it has no item."""
    is_meant = {"question", "answer"} <= set(columns_of_roles) or not columns.has("item")
    return is_meant and columns.has("question") and columns.has("answer")


class CandidateColumns:
    """Reads what a row says about the candidate that was judged."""

    def __init__(self, cell: CellReader) -> None:
        self.cell = cell
        header = cell.columns.header
        self.ranks = {name.removeprefix(RANK_PREFIX): name for name in header if name.startswith(RANK_PREFIX)}
        self.scores = {name.removeprefix(SCORE_PREFIX): name for name in header if name.startswith(SCORE_PREFIX)}
        self._known: set[tuple[object, ...]] = set()

    def read(self, cells: Cells, line: int) -> CandidateRecord | None:
        """The candidate of a row; None where the question or the answer is missing, which is reported."""
        question, answer = (self.cell.needed(cells, role, line) for role in ("question", "answer"))
        if not question or not answer:
            return None
        ranks = {name: rank for name, column in self.ranks.items() if (rank := self._rank(cells, column, line))}
        system = self.cell.text(cells, "system", line)
        if system:
            ranks.setdefault(system, 1)
        return CandidateRecord(
            line=line,
            question=question,
            answer=answer,
            context=self.cell.text(cells, "context", line),
            response=self.cell.text(cells, "response", line),
            is_gold=self.cell.yes_or_no(cells, "gold", line),
            ranks=ranks,
            scores={name: score for name, column in self.scores.items() if (score := self._score(cells, column, line))},
        )

    @property
    def used(self) -> dict[str, str]:
        """Which column was taken for which system's ranks or scores."""
        ranks = {f"rank by {name}": column for name, column in self.ranks.items()}
        return ranks | {f"score by {name}": column for name, column in self.scores.items()}

    def is_new(self, record: CandidateRecord) -> bool:
        """Whether the row says something that no row before said; most rows only add a rater."""
        key = (
            record.question,
            record.answer,
            record.context,
            record.response,
            record.is_gold,
            tuple(record.ranks.items()),
            tuple(record.scores.items()),
        )
        is_new = key not in self._known
        self._known.add(key)
        return is_new

    def _rank(self, cells: Cells, column: str, line: int) -> int:
        number = self._number(cells, column, line)
        if number and (number != int(number) or number < 1):
            self.cell.intake.wrong(
                line, f"'{cells[column]}' is not a rank", "ranks are whole numbers, 1 or more", column
            )
            return 0
        return int(number)

    def _score(self, cells: Cells, column: str, line: int) -> float:
        return self._number(cells, column, line)

    def _number(self, cells: Cells, column: str, line: int) -> float:
        """A number; 0 where the cell is empty, which means not retrieved."""
        text = cells[column].strip()
        try:
            number = float(text or 0)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
        self.cell.intake.wrong(line, f"'{text}' is not a number", "give a number, or leave the cell empty", column)
        return 0.0
