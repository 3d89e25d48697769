"""The avatar maker's labels: which recorded answers fit which question of a dialogue.

Every mark is a line of a file that only grows and is on disk before the page shows it as stored; taking one back is a further
line. Opening the file again goes on where the maker stopped. From it come the labelled dialogues: the same dialogues with the right
answers of each question, in the form that :func:`~dialometer.retrieval.queries.read_queries` reads.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import IO, Any

from dialometer.errors import DialometerError
from dialometer.model.dialogue import Dialogue
from dialometer.readers import read_dialogues, write_dialogues
from dialometer.retrieval.knowledge_base import KnowledgeBase, folded
from dialometer.retrieval.queries import Query, queries_in, user_turns
from dialometer.retrieval.retriever import NO_ANSWER, FittedRetriever

N_SUGGESTED = 10
MOST_FOUND = 20


@dataclass(frozen=True)
class Mark:
    """One thing the maker did: an answer marked or unmarked, or (without an answer) a question done or opened again."""

    question: int
    answer: int | None
    value: bool


class MakerLabels:
    """Marks of all questions. ``begin_again`` leaves out what the dialogues already hold. Safe to use from several threads."""

    def __init__(
        self, kb: KnowledgeBase, dialogues: Sequence[Dialogue], out: Path, *, begin_again: bool = False
    ) -> None:
        self.kb = kb
        self.dialogues = tuple(dialogues)
        self.out = out
        self.file = out.with_name(f"{out.name.partition('.')[0]}.marks.jsonl")
        if out.exists() and not self.file.exists():
            remedy = "name another file with --out; to continue with these labels, give it as DIALOGUES"
            raise DialometerError("the file exists and was not written by labelling", where=str(out), remedy=remedy)
        given = queries_in(_open_questions(self.dialogues), kb, unknown_gold="error")
        self.queries: tuple[Query, ...] = given.queries
        self.replies = given.replies
        before = _labels_before(self.dialogues) if not begin_again else {}
        self.right: list[set[int]] = [
            set(right) if query.id in before else set() for query, right in zip(given.queries, given.right, strict=True)
        ]
        self.is_done: list[bool] = [query.id in before for query in given.queries]
        self._number = {query.id: number for number, query in enumerate(given.queries)}
        self._history: list[Mark] = []
        self._lock = RLock()
        self._replay()
        self._log = _opened(self.file)

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def n_done(self) -> int:
        """Questions the maker has finished."""
        return sum(self.is_done)

    def mark(self, question: int, answer: int, *, fits: bool) -> None:
        """Stores whether an answer fits; nothing where that is already so."""
        with self._lock:
            if (answer in self.right[question]) != fits:
                self._do(Mark(question, answer, fits))

    def finish(self, question: int, *, is_done: bool = True) -> None:
        """Stores that a question is labelled: what is not marked does not fit."""
        with self._lock:
            if self.is_done[question] != is_done:
                self._do(Mark(question, None, is_done))
            self.write()

    def undo(self) -> int | None:
        """Takes the last thing back and returns its question; None where there is nothing to take back."""
        with self._lock:
            if not self._history:
                return None
            last = self._history.pop()
            self._store({**self._record(replace(last, value=not last.value)), "is_undo": True})
            self._apply(replace(last, value=not last.value))
            self.write()
            return last.question

    def next_open(self, after: int) -> int | None:
        """The next question that is not done, from the beginning again after the last; None where all are."""
        order = [*range(after + 1, len(self)), *range(min(after + 1, len(self)))]
        return next((number for number in order if not self.is_done[number]), None)

    def labelled(self) -> Iterator[Dialogue]:
        """The dialogues with the labels so far; questions that are not done have none, not even an empty list."""
        for dialogue in self.dialogues:
            before = dialogue.metadata.get("exchanges")
            turns = list(user_turns(dialogue))
            n_exchanges = max([number + 1 for number, _, _ in turns] + [len(before) if isinstance(before, list) else 0])
            exchanges: list[dict[str, Any]] = [{} for _ in range(n_exchanges)]
            for number, exchange in enumerate(before if isinstance(before, list) else ()):
                exchanges[number] = dict(exchange) if isinstance(exchange, dict) else {}
            for number, _, _ in turns:
                row = self._number[f"{dialogue.id}-{number + 1}"]
                texts = [self.kb.answers[answer].text for answer in sorted(self.right[row])]
                exchanges[number]["answers"] = texts if self.is_done[row] else None
            yield replace(dialogue, metadata={**dialogue.metadata, "exchanges": exchanges})

    def write(self) -> Path:
        """Writes the labelled dialogues; the file before is replaced by a complete one."""
        with self._lock:
            write_dialogues(self.out, self.labelled())
        return self.out

    def close(self) -> None:
        """Writes the labelled dialogues and gives the file of marks free."""
        self.write()
        self._log.close()

    def _do(self, mark: Mark) -> None:
        self._store(self._record(mark))
        self._history.append(mark)
        self._apply(mark)

    def _apply(self, mark: Mark) -> None:
        if mark.answer is None:
            self.is_done[mark.question] = mark.value
        elif mark.value:
            self.right[mark.question].add(mark.answer)
        else:
            self.right[mark.question].discard(mark.answer)

    def _record(self, mark: Mark) -> dict[str, Any]:
        what: dict[str, Any] = {"is_done": mark.value}
        if mark.answer is not None:
            what = {"answer": self.kb.answers[mark.answer].text, "fits": mark.value}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return {"at": now, "question": self.queries[mark.question].id, **what}

    def _store(self, record: dict[str, Any]) -> None:
        """On disk when this returns."""
        self._log.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._log.flush()
        os.fsync(self._log.fileno())

    def _replay(self) -> None:
        """What the file of marks holds; a last line that was cut off by a crash is dropped."""
        if not self.file.exists():
            return
        lines = self.file.read_text(encoding="utf-8").split("\n")
        if lines.pop():
            self.file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for line, text in enumerate(lines, start=1):
            mark, is_undo = self._read(text, line)
            if is_undo and self._history:
                self._history.pop()
            elif not is_undo:
                self._history.append(mark)
            self._apply(mark)

    def _read(self, text: str, line: int) -> tuple[Mark, bool]:
        where = f"{self.file}:{line}"
        try:
            record = json.loads(text)
            question = self._number.get(record["question"])
            answer = self.kb.find(record["answer"]) if "answer" in record else None
            value = record["fits" if "answer" in record else "is_done"]
        except (ValueError, KeyError, TypeError) as error:
            raise DialometerError("not a mark", where=where, remedy="remove the line") from error
        if question is None or ("answer" in record and answer is None):
            what = f"question '{record['question']}'" if question is None else f"answer '{record['answer'][:60]}'"
            remedy = "open it with the knowledge base and dialogues it was made with, or name another file with --out"
            raise DialometerError(f"the marks mention the {what}, which is not there", where=where, remedy=remedy)
        return Mark(question, answer, bool(value)), bool(record.get("is_undo"))


def open_labels(kb: KnowledgeBase, dialogues: Path, out: Path, *, begin_again: bool = False) -> MakerLabels:
    """The labels of a file of dialogues, as far as they have come."""
    if out.resolve() == dialogues.resolve():
        raise DialometerError(
            "labels cannot be written over the dialogues", where=str(out), remedy="name another file with --out"
        )
    return MakerLabels(kb, list(read_dialogues(dialogues)), out, begin_again=begin_again)


def _open_questions(dialogues: Iterable[Dialogue]) -> Iterator[Dialogue]:
    """Dialogues in which a question that is not labelled yet has no marks, so that it is asked for all the same."""
    for dialogue in dialogues:
        exchanges = dialogue.metadata.get("exchanges")
        if isinstance(exchanges, list):
            filled = [
                {**e, "answers": e.get("answers") or []} if isinstance(e, dict) and "answers" in e else e
                for e in exchanges
            ]
            yield replace(dialogue, metadata={**dialogue.metadata, "exchanges": filled})
        else:
            yield dialogue


def _labels_before(dialogues: Iterable[Dialogue]) -> set[str]:
    """Ids of questions that the dialogues bring labels for. Empty lists count only where anything is marked at all."""
    labelled, has_marks = set(), False
    for dialogue in dialogues:
        exchanges: Any = dialogue.metadata.get("exchanges")
        for number, _, _ in user_turns(dialogue) if isinstance(exchanges, list) else ():
            exchange = exchanges[number] if number < len(exchanges) else None
            answers = exchange.get("answers") if isinstance(exchange, dict) else None
            if answers is not None:
                labelled.add(f"{dialogue.id}-{number + 1}")
                has_marks |= bool(answers)
    return labelled if has_marks else set()


def _opened(path: Path) -> IO[str]:
    """The file of marks, ours alone: two pages that mark in one file would not see each other's marks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a", encoding="utf-8")
    with contextlib.suppress(ImportError):  # Windows has no such locks
        import fcntl  # noqa: PLC0415

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            remedy = "close the other page's command first, or name another file with --out"
            raise DialometerError("these labels are open elsewhere", where=str(path), remedy=remedy) from error
    return file


class AnswerFinder:
    """Answers for a question: what a retriever suggests, and what holds the words somebody searches for."""

    def __init__(self, fitted: FittedRetriever) -> None:
        self.fitted = fitted
        self.kb = fitted.kb
        self._answers = [folded(text) for text in self.kb.texts]
        asked: list[list[str]] = [[] for _ in self.kb.answers]
        for question, answer in zip(self.kb.pair_question.tolist(), self.kb.pair_answer.tolist(), strict=True):
            asked[answer].append(folded(self.kb.questions[question]))
        self._questions = ["\n".join(texts) for texts in asked]
        self._suggested: dict[Query, tuple[int, ...]] = {}
        self._lock = RLock()

    def suggested(self, query: Query, k: int = N_SUGGESTED) -> tuple[int, ...]:
        """The retriever's first answers."""
        with self._lock:
            if query not in self._suggested:
                ranked = self.fitted.rank([query], k).answers[0].tolist()
                self._suggested[query] = tuple(answer for answer in ranked if answer != NO_ANSWER)
            return self._suggested[query]

    def search(self, text: str, k: int = MOST_FOUND) -> tuple[tuple[int, ...], int]:
        """Answers that hold all words, in their own text first, then with the questions recorded for them; and how many there are."""
        words = folded(text).split()
        if not words:
            return (), 0
        own = [n for n, answer in enumerate(self._answers) if all(word in answer for word in words)]
        known = set(own)
        by_question = [
            n
            for n, (answer, questions) in enumerate(zip(self._answers, self._questions, strict=True))
            if n not in known and all(word in answer or word in questions for word in words)
        ]
        both = own + by_question
        return tuple(both[:k]), len(both)
