"""Choices between a control transcript and its experimental version, as studies of interaction strategies keep them.

One row is one answer: who chose, for which strategy, on which question, and which version. Guerini, Falcone and Magnini (SCAI 2018)
report such data by strategy and question (Table 2) and by gender (Table 3), so gender and age are read where the file has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from dialometer.exchange.cell_reader import CellReader, Cells
from dialometer.exchange.columns import Columns, Role, Roles
from dialometer.exchange.formats.votes import VOTE_WORDS
from dialometer.exchange.import_format import FORMATS, ImportFormat, Intake
from dialometer.exchange.rating_table import (
    HEADER_LINE,
    NO_ANSWER,
    RATING_ROLES,
    CriterionColumn,
    answer_records,
    find_columns,
)
from dialometer.exchange.records import JudgmentRecord, Record, TextRecord
from dialometer.model.values import is_missing
from dialometer.readers.table_rows import TableRow, some_columns, table_rows

CONTROL, EXPERIMENTAL = "control", "experimental"
_VERSION = {
    EXPERIMENTAL: ("experimental", "experiment", "exp", "treatment", "strategy", "with", "e", "true", "yes", "1"),
    CONTROL: ("control", "ctrl", "con", "baseline", "without", "c", "false", "no", "0"),
}
VERSION_WORDS = {word: version for version, words in _VERSION.items() for word in words}
SIDES = ("a", "b", "left", "right", "first", "second", "1", "2")
_GENDER = {"female": ("f", "female", "woman", "women", "w"), "male": ("m", "male", "man", "men")}
GENDER_WORDS = {word: gender for gender, words in _GENDER.items() for word in words}
NEEDED = ("rater", "strategy", "question", "choice")


@FORMATS.register("choices")
class Choices(ImportFormat):
    """One choice a row, or one column for each question (``--criteria``). Names of columns may be in upper or lower case."""

    roles: ClassVar[Roles] = {
        "rater": Role(
            "who chose",
            (
                *RATING_ROLES["rater"].usual,
                "subject",
                "subject_id",
                "participant",
                "participant_id",
                "contributor",
                "id",
            ),
            is_needed=True,
        ),
        "strategy": Role(
            "the interaction strategy", ("block", "variable", "independent_variable", "modality"), is_needed=True
        ),
        "question": Role("what was asked", ("criterion", "dimension", "dependent_variable", "measure")),
        "choice": Role(
            "the version that was chosen: experimental or control, or as --map experimental says",
            ("chosen", "preferred", "preference", "answer", "winner", "vote"),
        ),
        "experimental": Role(
            "how the choice names the experimental version: =:TEXT for all rows, or a column", ("experimental_side",)
        ),
        "control": Role(
            "how the choice names the control version: =:TEXT for all rows, or a column", ("control_side",)
        ),
        "first": Role("the version that was shown first (left)", ("shown_first", "first_shown")),
        "item": Role(
            "which transcript pair was read; one for each strategy if there is none",
            ("item_id", "pair", "pair_id", "transcript", "stimulus"),
        ),
        "gender": Role("the rater's gender, a question", ("sex",)),
        "age": Role("the rater's age in years or an age group, a question", ("age_group", "age_band", "age_range")),
        **{role: RATING_ROLES[role] for role in ("time", "shown_at", "duration_s", "position")},
    }
    summary: ClassVar[str] = "choices between control and experimental transcripts (rater, strategy, question, choice)"

    def recognises(self, path: Path, header: Sequence[str]) -> bool:
        """A column for rater, strategy, question and choice each, and none for two systems."""
        roles = _usual_columns(header, self.roles)
        sides = {"system_a", "system_b", "model_a", "model_b", "crs1", "crs2", "value"}
        return set(NEEDED) <= set(roles) and not sides & {name.strip().lower() for name in header}

    def declared(self, path: Path) -> Mapping[str, Any]:
        """The two versions, and that a study with these data is one of controlled pairs."""
        systems = [{"name": name, "label": name.capitalize()} for name in (CONTROL, EXPERIMENTAL)]
        return {"study": {"pairs": "controlled"}, "systems": systems}

    def records(self, intake: Intake) -> Iterator[Record]:
        """One judgment for each answer, and what each row says about the rater."""
        rows = table_rows(intake.source, intake.problems, ())
        first = next(rows, None)
        if first is None:
            return
        table = _ChoiceTable(intake, list(first.cells), self.roles)
        if not table.ok:
            return
        for row in chain([first], rows):
            yield from table.records(row)
            intake.has_read(row.line)


def _usual_columns(header: Sequence[str], roles: Roles) -> dict[str, str]:
    """Role to column by their usual names, whatever their case and with spaces for underscores."""
    plain = {"_".join(name.lower().split()): name for name in header}
    return {
        role: plain[name] for role, about in roles.items() for name in reversed((role, *about.usual)) if name in plain
    }


@dataclass(slots=True)
class _Choice:
    """One cell that holds a choice."""

    question: str
    text: str
    column: str


class _ChoiceTable:
    """Turns rows into choices and answers; ``ok`` is False where the table lacks what it needs."""

    def __init__(self, intake: Intake, header: Sequence[str], roles: Roles) -> None:
        self.intake = intake
        usual = _usual_columns(header, roles)
        taken = set(intake.options.columns.values())
        columns = {role: column for role, column in usual.items() if column not in taken} | dict(intake.options.columns)
        if intake.options.criteria:
            columns = {role: column for role, column in columns.items() if role not in ("question", "choice")}
        self.columns = Columns.bind(header, columns, roles)
        self.cell = CellReader(intake, self.columns)
        n_before = intake.problems.n_errors
        self.cell.check_roles(HEADER_LINE)
        self.criteria = find_columns(intake, self.columns, intake.options.criteria, HEADER_LINE)
        self._check_choices()
        self.questions = self._questions()
        self.ok = intake.problems.n_errors == n_before
        intake.used |= self.columns.used()
        self._list_unread()

    def records(self, row: TableRow) -> Iterator[Record]:
        """The choices of a row, and the rater's answers."""
        cells, line, cell = row.cells, row.line, self.cell
        rater, strategy = cell.needed(cells, "rater", line), cell.needed(cells, "strategy", line)
        if not rater or not strategy:
            return
        item = cell.text(cells, "item", line) or strategy
        shown_at_ms, answered_at_ms = cell.times(cells, line)
        for version in (CONTROL, EXPERIMENTAL):
            yield TextRecord(line=line, item=item, system=version)
        shown = self._shown(cells, line)
        for choice in self._choices(cells, line):
            raw = self._version(choice.text, cells, choice.column, line)
            if raw:
                yield JudgmentRecord(
                    line=line,
                    rater=rater,
                    item=item,
                    criterion=choice.question,
                    raw=raw,
                    shown=shown,
                    position=cell.whole(cells, "position", line, least=1) or 0,
                    block=strategy,
                    shown_at_ms=shown_at_ms,
                    answered_at_ms=answered_at_ms,
                    condition=cell.condition(cells, line),
                    hint="pairwise",
                    column=choice.column,
                )
        times = (shown_at_ms, answered_at_ms)
        for answer in answer_records(self.questions, cells, line=line, rater=rater, times=times):
            value = _same_word(answer.raw) if answer.question == "gender" else answer.raw
            yield replace(answer, raw=value, is_unasked=answer.question not in self.named)

    def _choices(self, cells: Cells, line: int) -> Iterator[_Choice]:
        if not self.criteria:
            question = self.cell.needed(cells, "question", line)
            text = self.cell.text(cells, "choice", line)
            questions = [_Choice(question, text, self.cell.column("choice"))] if question else []
        else:
            questions = [_Choice(own.name, cells[own.column].strip(), own.column) for own in self.criteria]
        for choice in questions:
            if not is_missing(choice.text):
                yield choice
            else:
                self.intake.left_out[NO_ANSWER] += 1

    def _version(self, text: str, cells: Cells, column: str, line: int) -> str:
        """The version that a word means; empty, and reported, where it means none."""
        word = text.lower()
        roles_by_label = {self.columns.text(cells, role).lower(): role for role in (EXPERIMENTAL, CONTROL)}
        if word in roles_by_label:
            return roles_by_label[word]
        if word in VOTE_WORDS:
            return VOTE_WORDS[word]
        if self.columns.has(EXPERIMENTAL) and not self.columns.has(CONTROL) and word in SIDES:
            return CONTROL
        if word in VERSION_WORDS:
            return VERSION_WORDS[word]
        remedy = (
            "write experimental or control, or say what is which: --map experimental=:B --map control=:A, or a column"
        )
        self.intake.wrong(line, f"'{text}' is neither version", remedy, column)
        return ""

    def _shown(self, cells: Cells, line: int) -> tuple[str, ...]:
        """The versions in the order on the screen, where the file tells it."""
        text = self.cell.text(cells, "first", line)
        if not text:
            return ()
        first = self._version(text, cells, self.cell.column("first"), line)
        return {CONTROL: (CONTROL, EXPERIMENTAL), EXPERIMENTAL: (EXPERIMENTAL, CONTROL)}.get(first, ())

    def _questions(self) -> list[CriterionColumn]:
        """What is known about raters: the columns given, and gender and age where they are."""
        columns = find_columns(self.intake, self.columns, self.intake.options.questions, HEADER_LINE)
        taken = {question.column for question in columns}
        self.named = {question.name for question in columns}
        usual = [
            CriterionColumn(role, self.columns.by_role[role])
            for role in ("gender", "age")
            if self.columns.by_role.get(role, "") not in ("", *taken)
        ]
        return [*usual, *columns]

    def _check_choices(self) -> None:
        for role in () if self.criteria or self.intake.options.criteria else ("question", "choice"):
            if not self.columns.has(role):
                header = some_columns(self.columns.header)
                remedy = f"name it with --map {role}=COLUMN, or one column for each question with --criteria; the file has {header}"
                self.intake.wrong(HEADER_LINE, f"no column is known to hold the {role}", remedy)

    def _list_unread(self) -> None:
        read = {*self.columns.by_role.values(), *(own.column for own in (*self.criteria, *self.questions))}
        self.intake.unread += [column for column in self.columns.header if column not in read]


def _same_word(raw: object) -> object:
    """Women and men under one word each, however the file writes them."""
    return GENDER_WORDS.get(str(raw).strip().lower(), raw)
