"""Knowledge bases from files: tables, JSON Lines and the Margarita corpus, every problem with its line.

========  ==========================================================================================
table     columns ``question`` and ``answer``, maybe ``id`` (of the answer); one pair per row
JSONL     ``{"id": …, "answer": …, "questions": […]}``; one answer per line
MDC       columns ``Context`` and ``Utterance`` (Chierici, Habash and Bicec, LREC 2020)
========  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dialometer.errors import ReadError
from dialometer.model.dialogue import clean_text
from dialometer.readers.json_records import kind_of, line_records
from dialometer.readers.problems import Problems
from dialometer.readers.source import Source
from dialometer.readers.table_rows import table_rows, told
from dialometer.registry import did_you_mean
from dialometer.retrieval.knowledge_base import Answer, KnowledgeBase, assemble

KEYS = ["id", "answer", "questions"]
OUR_COLUMNS = ("question", "answer")
MDC_COLUMNS = ("Context", "Utterance")


class KnowledgeBaseError(ReadError):
    """A file of questions and answers could not be read."""

    noun = "the knowledge base"


@dataclass(frozen=True, slots=True)
class _Row:
    """An answer with its questions as found, and the line."""

    answer: str
    questions: tuple[str, ...]
    line: int
    id: str = ""


def read_knowledge_base(path: str | Path, *, keep_duplicates: bool = False) -> KnowledgeBase:
    """The knowledge base in a file (``.gz`` too). Everything wrong is collected into one error with lines.

    A pair that stands twice is an error, since it is mostly a slip; ``keep_duplicates`` counts it once instead.
    """
    source = Source(path)
    problems = Problems(source.name)
    try:
        source.probe()
    except ReadError as error:
        raise KnowledgeBaseError(error.problems) from error
    rows = list(_rows(source, problems))
    builder = _Builder(problems, keep_duplicates=keep_duplicates)
    for row in rows:
        builder.add(row)
    if not rows and not problems.n_errors:
        problems.of_file(problems.problem("there are no answers in the file", remedy="add a row for each pair"))
    if problems.n_errors:
        raise KnowledgeBaseError(problems.errors, n_more=problems.n_errors - len(problems.errors))
    return assemble(builder.answers, builder.pairs, source.stem)


def _rows(source: Source, problems: Problems) -> Iterator[_Row]:
    head = source.head().lstrip()
    if head.startswith("{") or source.suffix in (".jsonl", ".ndjson"):
        yield from _json_rows(source, problems)
        return
    header = head.splitlines()[0] if head else ""
    delimiter = told(header)
    columns = [name.strip().strip('"') for name in header.split(delimiter)]
    question, answer = MDC_COLUMNS if set(MDC_COLUMNS) <= set(columns) else OUR_COLUMNS
    # The corpus marks an answer given before as "REPEAT" in its column of ids: the text tells which one it is.
    has_id = "id" in columns
    for row in table_rows(_Indexed(source.path), problems, (question, answer), delimiter):
        asked = row.cells[question]
        yield _Row(
            row.cells[answer], (asked,) if asked.strip() else (), row.line, row.cells["id"].strip() if has_id else ""
        )


class _Indexed(Source):
    """A table whose first column may have no name, as data frames write their index."""

    def lines(self, problems: Problems) -> Iterator[tuple[int, str]]:
        is_header = True
        for number, line in super().lines(problems):
            if is_header and line.strip():
                is_header = False
                yield number, f"row{line}" if line.startswith((",", ";", "\t")) else line
            else:
                yield number, line


def _json_rows(source: Source, problems: Problems) -> Iterator[_Row]:
    for record in line_records(source, problems):
        row = _json_row(record.value, record.line, problems)
        if row is not None:
            yield row


def _json_row(value: object, line: int, problems: Problems) -> _Row | None:
    fault = _fault(value)
    if fault is not None or not isinstance(value, dict):
        message, remedy, field = fault or ("", "", "")
        problems.of_file(problems.problem(message, remedy=remedy, line=line, field=field))
        return None
    return _Row(value.get("answer", ""), tuple(value.get("questions", [])), line, value.get("id", ""))


def _fault(value: object) -> tuple[str, str, str] | None:
    """What is wrong in the shape of a line: message, remedy and field."""
    if not isinstance(value, dict):
        return f"an answer must be an object, not {kind_of(value)}", 'write {"answer": …, "questions": […]}', ""
    for key in value:
        if key not in KEYS:
            return f"unknown key '{key}'", did_you_mean(key, KEYS), key
    for key in ("answer", "id"):
        if not isinstance(value.get(key, ""), str):
            return f"'{key}' must be a string, not {kind_of(value[key])}", "put it in quotes", key
    questions = value.get("questions", [])
    if not isinstance(questions, list) or not all(isinstance(question, str) for question in questions):
        return "'questions' must be a list of strings", 'write ["…", "…"]', "questions"
    return None


class _Builder:
    """Answers and pairs from rows, with what is wrong in them."""

    def __init__(self, problems: Problems, *, keep_duplicates: bool) -> None:
        self.problems = problems
        self.keep_duplicates = keep_duplicates
        self.answers: list[Answer] = []
        self.pairs: list[tuple[str, int]] = []
        self._number: dict[str, int] = {}
        self._id_line: dict[str, tuple[str, int]] = {}
        self._pair_line: dict[tuple[str, int], int] = {}

    def add(self, row: _Row) -> None:
        """One row: a new answer or further questions of a known one."""
        answer = self._clean(row.answer, row.line, "answer")
        if answer is None:
            return
        if not answer:
            self._refuse("the row has no answer", "write the answer, or remove the row", row.line, "answer")
            return
        number = self._number.get(answer)
        if number is None:
            number = self._new(answer, row)
        elif row.id and row.id != self.answers[number].id:
            first = self.answers[number].id
            self._refuse(f"this answer already has the id '{first}'", "give it one id", row.line, "id")
        for question in row.questions:
            asked = self._clean(question, row.line, "question")
            if asked == "":
                self._refuse("a question is empty", "write it, or remove it", row.line, "questions")
            elif asked is not None:
                self._pair(asked, number, row.line)

    def _new(self, answer: str, row: _Row) -> int:
        number = len(self.answers)
        own_id = row.id or f"a{number + 1:04d}"
        if own_id in self._id_line:
            other, line = self._id_line[own_id]
            message = f"the id '{own_id}' already means another answer (line {line}: '{other[:40]}')"
            self._refuse(message, "give every answer an id of its own", row.line, "id")
        self._id_line[own_id] = (answer, row.line)
        self.answers.append(Answer(own_id, answer))
        self._number[answer] = number
        return number

    def _pair(self, question: str, number: int, line: int) -> None:
        if (question, number) in self._pair_line:
            if not self.keep_duplicates:
                first = self._pair_line[question, number]
                message = (
                    f"the pair '{question[:40]}' - '{self.answers[number].text[:40]}' already stands on line {first}"
                )
                self._refuse(message, "remove one of them", line)
            return
        self._pair_line[question, number] = line
        self.pairs.append((question, number))

    def _clean(self, text: str, line: int, field: str) -> str | None:
        try:
            return clean_text(text)
        except ValueError as error:
            self._refuse(str(error), "remove the character", line, field)
            return None

    def _refuse(self, message: str, remedy: str, line: int, field: str = "") -> None:
        self.problems.of_file(self.problems.problem(message, remedy=remedy, line=line, field=field))
