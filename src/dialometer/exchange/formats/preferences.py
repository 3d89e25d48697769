"""Preference pairs as reward models are trained on: each row a judgment that the chosen conversation is the better one.

Where the file names the models behind both, they are the study's systems. Most files do not: then a study of pairs of dialogues is
written (``pairs: dialogues``), whose two systems only name the sides, and the chosen one is on either side by chance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from dialometer.exchange.cell_reader import CellReader, Cells
from dialometer.exchange.columns import Columns, Role, Roles
from dialometer.exchange.formats.votes import EACH_ITS_OWN, about_item
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.rating_table import HEADER_LINE, RATING_ROLES
from dialometer.exchange.records import JudgmentRecord, Record, TextRecord
from dialometer.exchange.side_turns import SideTurns
from dialometer.readers.chats import as_messages
from dialometer.readers.paired_chats import CHOSEN, PROMPT, REJECTED
from dialometer.readers.problems import Problems
from dialometer.readers.reader import Head
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import TableRow, some_columns, table_rows

CRITERION = "preference"
FIRST, SECOND = "first", "second"
_MODELS = {which: (f"{which}_model", f"{which}-model", f"model_{which}") for which in (CHOSEN, REJECTED)}
SAME_MODEL = "pairs of one system with itself"
NO_TEXT_LEFT = "pairs with an empty side"


@FORMATS.register("preferences")
class Preferences(ImportFormat):
    """One pair a row; every column that plays no other part is kept with the item."""

    roles: ClassVar[Roles] = {
        "chosen": Role("the better conversation or response", is_needed=True),
        "rejected": Role("the other one", is_needed=True),
        "context": Role("what came before both", PROMPT),
        "item": Role("the pair; every row for itself if there is none, or it repeats", ("id", "item_id", "prompt_id")),
        "rater": Role("who preferred it; every row for itself if there is none", RATING_ROLES["rater"].usual),
        "chosen_model": Role("the system behind the chosen one", _MODELS[CHOSEN][1:]),
        "rejected_model": Role("the system behind the other one", _MODELS[REJECTED][1:]),
        "time": RATING_ROLES["time"],
    }
    takes: ClassVar[frozenset[str]] = frozenset({"time_format"})
    summary: ClassVar[str] = "preference pairs: a chosen and a rejected response in each row"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """The two columns."""
        return {CHOSEN, REJECTED} <= set(header)

    def declared(self, path: Path) -> Mapping[str, Any]:
        """Without names of systems, the study is one of pairs of dialogues."""
        if _names_systems(_header(path)):
            return {}
        systems = [{"name": name, "label": f"{name.capitalize()} conversation"} for name in (FIRST, SECOND)]
        return {"study": {"pairs": "dialogues"}, "systems": systems}

    def records(self, intake: Intake) -> Iterator[Record]:
        """Both sides and the judgment."""
        rows = table_rows(intake.source, intake.problems, ())
        first = next(rows, None)
        if first is None:
            return
        columns = Columns.bind(list(first.cells), intake.options.columns, self.roles)
        n_before = intake.problems.n_errors
        table = _PairTable(intake, columns)
        table.cell.check_roles(HEADER_LINE)
        if intake.problems.n_errors > n_before:
            return
        for number, row in enumerate(chain([first], rows), start=1):
            yield from table.records(row, number)
            intake.has_read(row.line)


def _header(path: Path) -> list[str]:
    source = SourceFile(path)
    source.probe()
    row = next(table_rows(source, Problems(str(path)), ()), None)
    return list(row.cells) if row else Head(source.suffix, source.head()).columns()


def _names_systems(header: Sequence[str]) -> bool:
    return all(set(names) & set(header) for names in _MODELS.values())


class _PairTable:
    """Turns rows into judgments."""

    def __init__(self, intake: Intake, columns: Columns) -> None:
        self.intake = intake
        self.columns = columns
        self.cell = CellReader(intake, columns)
        self.sides = SideTurns(intake)
        self.has_systems = columns.has("chosen_model") and columns.has("rejected_model")
        self.has_items = self._items_are_unique()
        if not self.has_items:
            columns.by_role.pop("item", None)
        if not columns.has("rater"):
            intake.problems.assume(EACH_ITS_OWN)
        intake.used |= columns.used()
        read = {*columns.by_role.values(), "messages"}
        self.about = [name for name in columns.header if name not in read]
        if self.about:
            intake.used["kept with the item"] = some_columns(self.about)

    def _items_are_unique(self) -> bool:
        if not self.columns.has("item"):
            return False
        seen: set[str] = set()
        for row in table_rows(self.intake.source, Problems(str(self.intake.path)), ()):
            item = self.columns.text(row.cells, "item")
            if not item or item in seen:
                return False
            seen.add(item)
        return True

    def records(self, row: TableRow, number: int) -> Iterator[Record]:
        """The two sides, in an order that the item's id decides, and the judgment."""
        cells, line = row.cells, row.line
        item = self.cell.text(cells, "item", line) if self.has_items else f"{self.intake.source.stem}-{number:04d}"
        rater = self.cell.needed(cells, "rater", line) if self.columns.has("rater") else f"pair-{number}"
        context = self.columns.text(cells, "context")
        responses = {
            which: self.sides.turns(as_messages(self.columns.text(cells, which), context), line, which)
            for which in (CHOSEN, REJECTED)
        }
        if not item or not rater:
            return
        if not all(responses.values()):
            self.intake.left_out[NO_TEXT_LEFT] += 1
            return
        order = (CHOSEN, REJECTED) if _is_even(item) else (REJECTED, CHOSEN)
        systems = self._systems(cells, order, line)
        if systems is None:
            return
        about = about_item(cells, self.about)
        if not self.has_systems:
            about |= {side: f"{item}.{which}" for side, which in zip((FIRST, SECOND), order, strict=True)}
        for which in order:
            yield TextRecord(line=line, item=item, system=systems[which], turns=responses[which], about=about)
        _, answered_at_ms = self.cell.times(cells, line)
        yield JudgmentRecord(
            line=line,
            rater=rater,
            item=item,
            criterion=CRITERION,
            raw=systems[CHOSEN],
            shown=tuple(systems[which] for which in order),
            answered_at_ms=answered_at_ms,
            hint="pairwise",
            column=self.cell.column("chosen"),
        )

    def _systems(self, cells: Cells, order: tuple[str, str], line: int) -> dict[str, str] | None:
        """The system behind the chosen and behind the rejected one; None where they are the same."""
        if not self.has_systems:
            return dict(zip(order, (FIRST, SECOND), strict=True))
        systems = {which: self.cell.needed(cells, f"{which}_model", line) for which in order}
        if systems[CHOSEN] == systems[REJECTED]:
            self.intake.left_out[SAME_MODEL] += 1
            return None
        return systems if all(systems.values()) else None


def _is_even(item: str) -> bool:
    """A toss of a coin that always falls the same for one item."""
    return hashlib.sha256(item.encode()).digest()[0] % 2 == 0
