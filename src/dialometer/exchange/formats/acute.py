"""Results of ACUTE-Eval: which of two dialogues raters preferred, as ParlAI's analysis script tabulates them.

One row is one choice: ``worker``, ``question``, ``winner``, ``loser``, ``pairing_id``. The dialogues are in the row
(``winner_dialogue``, ``loser_dialogue``) or in the file of pairings beside the table, whose line ``pairing_id`` counts.
Reference: Li, Weston and Roller, "ACUTE-EVAL: Improved Dialogue Evaluation with Optimized Questions and Multi-turn Comparisons", 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from dialometer.exchange.cell_reader import CellReader, Cells
from dialometer.exchange.columns import Columns, Role, Roles
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.rating_table import HEADER_LINE, RATING_ROLES
from dialometer.exchange.records import JudgmentRecord, Record, SessionFacts, TextRecord
from dialometer.model.dialogue import Turn
from dialometer.readers.chats import in_cell
from dialometer.readers.draft_check import DraftChecker
from dialometer.readers.formats.parlai import ParlaiReader, pairing_drafts
from dialometer.readers.json_records import JsonRecord, first_record, json_records
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import TableRow, table_rows

NEEDED = ("winner", "loser", "eval_choice_0", "eval_choice_1")
FAILED = "failed the onboarding of ACUTE-Eval"
ONBOARDING = "answers of the onboarding"
AGAIN = "later answers of a rater to the same question about a pairing"
_MOST_BESIDE = 50


@FORMATS.register("acute")
class AcuteEval(ImportFormat):
    """One choice a row. Raters who failed the onboarding are excluded, as ParlAI's analysis excludes them."""

    roles: ClassVar[Roles] = {
        "rater": Role("who chose", ("worker", "worker_name", *RATING_ROLES["rater"].usual), is_needed=True),
        "winner": Role("the system whose dialogue was chosen", is_needed=True),
        "loser": Role("the other one", is_needed=True),
        "item": Role("the pairing: its line in the file of pairings, from 0", ("pairing_id",), is_needed=True),
        "criterion": Role("what was asked", ("question",)),
        "time": Role("when the rater began", ("task_start",)),
    }
    takes: ClassVar[frozenset[str]] = frozenset({"time_format"})
    summary: ClassVar[str] = "results of ACUTE-Eval, with the file of pairings beside them"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """The columns of the analysis script."""
        return set(NEEDED) <= set(header)

    def records(self, intake: Intake) -> Iterator[Record]:
        """Excluded raters, then both sides and the choice of each row."""
        rows = table_rows(intake.source, intake.problems, ())
        first = next(rows, None)
        if first is None:
            return
        columns = Columns.bind(list(first.cells), intake.options.columns, self.roles)
        n_before = intake.problems.n_errors
        table = _AcuteTable(intake, columns)
        table.cell.check_roles(HEADER_LINE)
        if intake.problems.n_errors > n_before:
            return
        intake.used |= columns.used()
        yield from table.failed()
        for row in chain([first], rows):
            yield from table.records(row)
            intake.has_read(row.line)


class _AcuteTable:
    """Turns rows into choices."""

    def __init__(self, intake: Intake, columns: Columns) -> None:
        self.intake = intake
        self.columns = columns
        self.cell = CellReader(intake, columns)
        self.pairings = _pairings_beside(intake)
        self._checker = DraftChecker(intake.problems, known=ParlaiReader.speakers, declared={}, empty_turns="leave_out")
        self._turns: dict[str, dict[str, tuple[Turn, ...]]] = {}
        self._answered: set[tuple[str, str, str]] = set()

    def failed(self) -> Iterator[SessionFacts]:
        """Raters who gave a wrong answer in the onboarding and answered afterwards all the same."""
        wrong: dict[str, int] = {}
        kept: set[str] = set()
        for row in table_rows(self.intake.source, Problems(str(self.intake.path)), ()):
            rater = self.columns.text(row.cells, "rater")
            if not _is_true(row.cells.get("is_onboarding")):
                kept.add(rater)
            elif not _is_true(row.cells.get("correct")):
                wrong.setdefault(rater, row.line)
        for rater, line in wrong.items():
            if rater in kept:
                yield SessionFacts(line=line, rater=rater, exclusion_reason=FAILED)

    def records(self, row: TableRow) -> Iterator[Record]:
        """The two dialogues and the choice."""
        cells, line = row.cells, row.line
        if _is_true(cells.get("is_onboarding")):
            self.intake.left_out[ONBOARDING] += 1
            return
        rater, winner, loser, item = (
            self.cell.needed(cells, role, line) for role in ("rater", "winner", "loser", "item")
        )
        criterion = self.cell.text(cells, "criterion", line) or "preference"
        if not all((rater, winner, loser, item)):
            return
        if (rater, item, criterion) in self._answered:
            self.intake.left_out[AGAIN] += 1
            return
        self._answered.add((rater, item, criterion))
        dialogues = self._said(cells, item, (winner, loser), line)
        name = f"pairing-{item}"
        order = [system for system in dialogues if system in (winner, loser)] or sorted((winner, loser))
        for system in order:
            yield TextRecord(line=line, item=name, system=system, turns=dialogues.get(system, ()))
        shown_at_ms, answered_at_ms = self.cell.times(cells, line)
        yield JudgmentRecord(
            line=line,
            rater=rater,
            item=name,
            criterion=criterion,
            raw=winner,
            shown=tuple(order),
            answered_at_ms=answered_at_ms or shown_at_ms,
            hint="pairwise",
            column=self.cell.column("winner"),
        )

    def _said(self, cells: Cells, item: str, systems: tuple[str, str], line: int) -> dict[str, tuple[Turn, ...]]:
        """The dialogue of each system, in the order of the pairing; empty where the files have none."""
        if item not in self._turns:
            in_row = [in_cell(cells.get(f"{which}_dialogue", "")) for which in ("winner", "loser")]
            pairing: Mapping[str, Any] | None = self.pairings.get(item)
            if pairing is None and all(isinstance(side, dict) for side in in_row):
                pairing = {"dialogue_dicts": in_row, "speakers_to_eval": list(systems)}
            self._turns[item] = self._both(pairing, item, line) if pairing is not None else {}
        return self._turns[item]

    def _both(self, pairing: Mapping[str, Any], item: str, line: int) -> dict[str, tuple[Turn, ...]]:
        sides: dict[str, tuple[Turn, ...]] = {}
        for draft in pairing_drafts(JsonRecord(dict(pairing), line), f"pairing-{item}", self.intake.problems):
            dialogue = self._checker.dialogue(draft)
            if dialogue is not None:
                sides[str(draft.metadata.get("system"))] = dialogue.turns
        return sides


def _pairings_beside(intake: Intake) -> dict[str, Mapping[str, Any]]:
    """The pairings by their number as a text, from the file beside the results that holds some."""
    beside = sorted(file for file in intake.path.parent.iterdir() if file.is_file() and file != intake.path)
    for file in beside[:_MOST_BESIDE]:
        if file.suffix.lower() not in (".jsonl", ".json", ".gz", ""):
            continue
        source = SourceFile(file)
        record = first_record(source.head()[:1_000_000])
        if isinstance(record, dict) and {"dialogue_dicts", "speakers_to_eval"} <= set(record):
            intake.problems.assume(f"the dialogues are those of '{file.name}'")
            records = json_records(source, intake.problems)
            return {str(number): found.value for number, found in enumerate(records) if isinstance(found.value, dict)}
    return {}


def _is_true(cell: object) -> bool:
    return str(cell).strip().casefold() in ("true", "1", "1.0")
