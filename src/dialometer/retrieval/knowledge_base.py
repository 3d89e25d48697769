"""A knowledge base: recorded answers, and the questions that each of them answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError, ReadError
from dialometer.model.dialogue import clean_text
from dialometer.model.media import Recording
from dialometer.readers.json_records import kind_of, line_records
from dialometer.readers.problems import Problems
from dialometer.readers.recordings import recording_of
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import delimiter_of, table_rows
from dialometer.registry import did_you_mean

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Answer:
    """One recorded answer under the id that studies and rating files name it by, with the file that plays it, if any."""

    id: str
    text: str
    recording: Recording | None = None


@dataclass(frozen=True)
class KnowledgeBase:
    """Question-answer pairs. A question may have several answers, an answer several questions or none.

    Answers stand in alphabetical order: equal scores then rank alike however the rows of the file were ordered.
    """

    answers: tuple[Answer, ...]
    questions: tuple[str, ...]
    pair_question: Ints
    pair_answer: Ints
    """The pairs, by answer and then by question: the questions of one answer stand together."""
    name: str = field(default="", compare=False)
    folder: Path | None = field(default=None, compare=False)
    """Where the recordings are."""

    @property
    def recordings(self) -> tuple[Recording, ...]:
        """All recordings of answers."""
        return tuple(answer.recording for answer in self.answers if answer.recording is not None)

    @property
    def n_pairs(self) -> int:
        """Question-answer pairs."""
        return len(self.pair_answer)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The answers' texts in order."""
        return tuple(answer.text for answer in self.answers)

    @cached_property
    def _by_id(self) -> dict[str, int]:
        return {answer.id: number for number, answer in enumerate(self.answers)}

    @cached_property
    def _by_text(self) -> dict[str, int]:
        exact = {answer.text: number for number, answer in enumerate(self.answers)}
        return {**{folded(text): number for text, number in reversed(exact.items())}, **exact}

    def find(self, answer: str) -> int | None:
        """The number of an answer by its id or its text; capitals, quotes and the last stop make no difference."""
        number = self._by_id.get(answer)
        if number is None:
            number = self._by_text.get(answer)
        return self._by_text.get(folded(answer)) if number is None else number

    @cached_property
    def n_questions_of(self) -> Ints:
        """For each answer the number of its questions."""
        return np.bincount(self.pair_answer, minlength=len(self.answers)).astype(np.int64)

    def answers_to(self, question: int) -> Ints:
        """The answers of one question."""
        return np.asarray(self.pair_answer[self.pair_question == question])

    @cached_property
    def fingerprint(self) -> str:
        """Changes when a question, an answer or a pair changes; names what was trained on it."""
        rows = zip(self.pair_answer.tolist(), self.pair_question.tolist(), strict=True)
        pairs = sorted(f"{self.answers[a].text}\x1f{self.questions[q]}" for a, q in rows)
        return hashlib.sha256("\x1e".join([*self.texts, "\x1d", *pairs]).encode()).hexdigest()[:16]

    def without_questions(self, held_out: Iterable[int]) -> KnowledgeBase:
        """The same answers without some questions: what is left to learn from while those are asked."""
        out = set(held_out)
        kept = [number for number in range(len(self.questions)) if number not in out]
        place = {number: new for new, number in enumerate(kept)}
        is_kept = np.array([int(question) in place for question in self.pair_question], dtype=bool)
        renumbered = np.array([place[int(q)] for q in self.pair_question[is_kept]], dtype=np.int64)
        questions = tuple(self.questions[number] for number in kept)
        return KnowledgeBase(self.answers, questions, renumbered, self.pair_answer[is_kept], self.name, self.folder)

    def with_pairs(self, pairs: Iterable[tuple[str, int]]) -> KnowledgeBase:
        """The same answers with further questions (a question and the number of its answer)."""
        own = [(self.questions[q], int(a)) for q, a in zip(self.pair_question, self.pair_answer, strict=True)]
        return assemble(self.answers, [*own, *pairs], self.name, self.folder)


def assemble(
    answers: Sequence[Answer], pairs: Iterable[tuple[str, int]], name: str = "", folder: Path | None = None
) -> KnowledgeBase:
    """A knowledge base of these answers (by number) and their questions; repeated pairs count once."""
    if not answers:
        raise DialometerError("a knowledge base needs at least one answer", remedy="add a row")
    order = sorted(range(len(answers)), key=lambda number: (answers[number].text, answers[number].id))
    place = {old: new for new, old in enumerate(order)}
    distinct = dict.fromkeys((question, place[number]) for question, number in pairs)
    questions = {question: number for number, question in enumerate(dict.fromkeys(q for q, _ in distinct))}
    rows = sorted((answer, questions[question]) for question, answer in distinct)
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return KnowledgeBase(
        tuple(answers[old] for old in order), tuple(questions), table[:, 1].copy(), table[:, 0].copy(), name, folder
    )


_FOLD = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "…": "..."})


def folded(text: str) -> str:
    """A text as it is compared where writing varies: lower case, plain quotes, single spaces, no stop at the end."""
    return " ".join(text.translate(_FOLD).lower().split()).rstrip(" .!")


# Knowledge bases from files: tables, JSON Lines and the Margarita corpus, every problem with its line.
#
# ========  ==========================================================================================
# table     columns ``question`` and ``answer``, maybe ``id`` (of the answer); one pair per row
# JSONL     ``{"id": …, "answer": …, "questions": […]}``; one answer per line
# MDC       columns ``Context`` and ``Utterance`` (Chierici, Habash and Bicec, LREC 2020)
# ========  ==========================================================================================
#
# Each may also name the recording of an answer: ``media`` (a video or audio file) and ``captions`` (WebVTT), by their paths inside
# the folder of the file.

KEYS = ["id", "answer", "questions", "media", "captions"]
TEXT_KEYS = ("answer", "id", "media", "captions")
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
    media: str = ""
    captions: str = ""


def read_knowledge_base(path: str | Path, *, keep_duplicates: bool = False) -> KnowledgeBase:
    """The knowledge base in a file (``.gz`` too). Everything wrong is collected into one error with lines.

    A pair that stands twice is an error, since it is mostly a slip; ``keep_duplicates`` counts it once instead.
    """
    source = SourceFile(path)
    problems = Problems(source.name)
    try:
        source.probe()
    except ReadError as error:
        raise KnowledgeBaseError(error.problems) from error
    rows = list(_rows(source, problems))
    folder = source.path.resolve().parent
    builder = _Builder(problems, folder, keep_duplicates=keep_duplicates)
    for row in rows:
        builder.add(row)
    if not rows and not problems.n_errors:
        problems.of_file(problems.problem("there are no answers in the file", remedy="add a row for each pair"))
    if problems.n_errors:
        raise KnowledgeBaseError(
            problems.errors, n_more=problems.n_errors - len(problems.errors), counts=problems.counts
        )
    return assemble(builder.answers, builder.pairs, source.stem, folder)


def _rows(source: SourceFile, problems: Problems) -> Iterator[_Row]:
    head = source.head().lstrip()
    if head.startswith("{") or source.suffix in (".jsonl", ".ndjson"):
        yield from _json_rows(source, problems)
        return
    header = head.splitlines()[0] if head else ""
    delimiter = delimiter_of(header)
    columns = [name.strip().strip('"') for name in header.split(delimiter)]
    question, answer = MDC_COLUMNS if set(MDC_COLUMNS) <= set(columns) else OUR_COLUMNS
    # The corpus marks an answer given before as "REPEAT" in its column of ids: the text tells which one it is.
    for row in table_rows(_Indexed(source.path), problems, (question, answer), delimiter):
        asked = row.cells[question]
        yield _Row(
            row.cells[answer],
            (asked,) if asked.strip() else (),
            row.line,
            row.cells.get("id", "").strip(),
            row.cells.get("media", ""),
            row.cells.get("captions", ""),
        )


class _Indexed(SourceFile):
    """A table whose first column may have no name, as data frames write their index."""

    def lines(self, problems: Problems) -> Iterator[tuple[int, str]]:
        is_header = True
        for number, line in super().lines(problems):
            if is_header and line.strip():
                is_header = False
                yield number, f"row{line}" if line.startswith((",", ";", "\t")) else line
            else:
                yield number, line


def _json_rows(source: SourceFile, problems: Problems) -> Iterator[_Row]:
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
    texts = {key: value.get(key, "") for key in TEXT_KEYS}
    return _Row(**texts, questions=tuple(value.get("questions", [])), line=line)


def _fault(value: object) -> tuple[str, str, str] | None:
    """What is wrong in the shape of a line: message, remedy and field."""
    if not isinstance(value, dict):
        return f"an answer must be an object, not {kind_of(value)}", 'write {"answer": …, "questions": […]}', ""
    for key in value:
        if key not in KEYS:
            return f"unknown key '{key}'", did_you_mean(key, KEYS), key
    for key in TEXT_KEYS:
        if not isinstance(value.get(key, ""), str):
            return f"'{key}' must be a string, not {kind_of(value[key])}", "put it in quotes", key
    questions = value.get("questions", [])
    if not isinstance(questions, list) or not all(isinstance(question, str) for question in questions):
        return "'questions' must be a list of strings", 'write ["…", "…"]', "questions"
    return None


class _Builder:
    """Answers and pairs from rows, with what is wrong in them."""

    def __init__(self, problems: Problems, folder: Path, *, keep_duplicates: bool) -> None:
        self.problems = problems
        self.folder = folder
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
        self._record(number, row)
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

    def _record(self, number: int, row: _Row) -> None:
        """The recording of an answer; rows of the same answer may repeat it or leave it out."""
        recording = recording_of(row.media, row.captions, self.folder)
        known = self.answers[number]
        if isinstance(recording, tuple):
            message, remedy, field = recording
            self._refuse(message, remedy, row.line, field)
        elif recording is not None and known.recording not in (None, recording):
            self._refuse("this answer already has another recording", "give it one recording", row.line, "media")
        elif recording is not None:
            self.answers[number] = replace(known, recording=recording)

    def _pair(self, question: str, number: int, line: int) -> None:
        if (question, number) in self._pair_line:
            if not self.keep_duplicates:
                first = self._pair_line[question, number]
                message = f"the pair '{question[:40]}' - '{self.answers[number].text[:40]}' is already on line {first}"
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
