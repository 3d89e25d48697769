"""A knowledge base: recorded answers, and the questions that each of them answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Answer:
    """One recorded answer under the id that studies and rating files name it by."""

    id: str
    text: str


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
        found = self._by_id.get(answer)
        if found is None:
            found = self._by_text.get(answer)
        return self._by_text.get(folded(answer)) if found is None else found

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
        return KnowledgeBase(self.answers, questions, renumbered, self.pair_answer[is_kept], self.name)

    def with_pairs(self, pairs: Iterable[tuple[str, int]]) -> KnowledgeBase:
        """The same answers with further questions (a question and the number of its answer)."""
        own = [(self.questions[q], int(a)) for q, a in zip(self.pair_question, self.pair_answer, strict=True)]
        return assemble(self.answers, [*own, *pairs], self.name)


def assemble(answers: Sequence[Answer], pairs: Iterable[tuple[str, int]], name: str = "") -> KnowledgeBase:
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
        tuple(answers[old] for old in order), tuple(questions), table[:, 1].copy(), table[:, 0].copy(), name
    )


_FOLD = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "…": "..."})


def folded(text: str) -> str:
    """A text as it is compared where writing varies: lower case, plain quotes, single spaces, no stop at the end."""
    return " ".join(text.translate(_FOLD).lower().split()).rstrip(" .!")
