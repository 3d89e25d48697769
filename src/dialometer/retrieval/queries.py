"""Questions as people asked them in dialogues: read with their right answers, and put into words for a retriever."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError, Problem, ReadError
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.readers import DialogueFile, read_dialogues
from dialometer.readers.formats.mdc import NEEDED
from dialometer.readers.json_records import json_records, objects
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows
from dialometer.registry import did_you_mean
from dialometer.retrieval.knowledge_base import Ints, KnowledgeBase
from dialometer.retrieval.question_table import is_question_table, read_question_table

if TYPE_CHECKING:
    from dialometer.neural.encoder import TextEncoder


Marks = NDArray[np.bool_]
UnknownGold = Literal["error", "leave_out"]


@dataclass(frozen=True, slots=True)
class Query:
    """What a retriever is asked: the last utterance, and the turns before it where they are known (oldest first)."""

    text: str
    context: tuple[Turn, ...] = ()
    id: str = ""
    coreference: bool | None = None
    """Whether it can be understood only with the turns before it; None where nobody has said so."""


@dataclass(frozen=True)
class QuerySet:
    """The questions of some dialogues. ``right`` holds for each the numbers of its right answers, by the maker's labels."""

    queries: tuple[Query, ...]
    dialogues: tuple[str, ...]
    """For each question the dialogue it comes from: questions of one dialogue are not independent."""
    right: tuple[tuple[int, ...], ...]
    replies: tuple[str, ...]
    """What the person really said next; empty where the dialogue ends."""
    left_out: tuple[Problem, ...] = ()
    """Marked answers that the knowledge base does not hold, where they were to be left out."""
    n_unlabelled: int = 0
    """Questions that were excluded because nobody has labelled them yet."""

    def __len__(self) -> int:
        return len(self.queries)

    def relevance(self, n_answers: int) -> Marks:
        """The maker's labels, questions by answers."""
        marks = np.zeros((len(self), n_answers), dtype=bool)
        for row, answers in enumerate(self.right):
            marks[row, list(answers)] = True
        return marks

    def subset(self, rows: Iterable[int]) -> QuerySet:
        """Some of the questions."""
        kept = list(rows)

        def pick(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[row] for row in kept)

        return QuerySet(pick(self.queries), pick(self.dialogues), pick(self.right), pick(self.replies))


def read_queries(
    path: str | Path, kb: KnowledgeBase, format: str | None = None, *, unknown_gold: UnknownGold = "error"
) -> QuerySet:
    """The questions in a file of dialogues; every marked answer must be one of the knowledge base.

    Right answers stand in the dialogue's metadata under ``exchanges``: for each turn of the user an object with
    ``answers`` (ids or texts), as the Margarita corpus is read. Dialogues without them have no labels. Where ``answers`` is
    null, the maker has not come to the question yet (:mod:`dialometer.retrieval.labels.labelling`), and it is excluded: asked with
    no right answer, it would count as one that has none.
    ``coreference`` in the same object (true or false) marks a question that needs the turns before it.
    A table of questions and expected answers is read too (:mod:`dialometer.retrieval.question_table`).
    """
    if format is None and is_question_table(path):
        asked, lines = read_question_table(path)
        return queries_in(asked, kb, unknown_gold=unknown_gold, file=str(path), lines=lines)
    reading = read_dialogues(path, format)
    dialogues = list(reading)
    return queries_in(dialogues, kb, unknown_gold=unknown_gold, file=str(path), lines=_lines(path, reading))


def queries_in(
    dialogues: Iterable[Dialogue],
    kb: KnowledgeBase,
    *,
    unknown_gold: UnknownGold = "error",
    file: str = "",
    lines: Mapping[tuple[str, int], int] | None = None,
) -> QuerySet:
    """The questions of dialogues that are already read."""
    queries: list[Query] = []
    groups: list[str] = []
    right: list[tuple[int, ...]] = []
    replies: list[str] = []
    problems: list[Problem] = []
    wrong_marks: list[Problem] = []
    n_unlabelled = 0
    for dialogue in dialogues:
        marked, needs_context = _marked(dialogue), _coreferences(dialogue, wrong_marks, file, lines or {})
        for number, place, turn in user_turns(dialogue):
            if marked.get(number, ()) is None:
                n_unlabelled += 1
                continue
            answers = dict.fromkeys((text, kb.find(text)) for text in marked.get(number) or ())
            line = (lines or {}).get((dialogue.id, number), 0)
            problems += [_unknown(text, kb, file, line, dialogue.id) for text, answer in answers if answer is None]
            following = dialogue.turns[place + 1] if place + 1 < len(dialogue.turns) else None
            name = f"{dialogue.id}-{number + 1}"
            queries.append(Query(turn.text, dialogue.turns[:place], name, needs_context.get(number)))
            groups.append(dialogue.id)
            right.append(tuple(sorted({answer for _, answer in answers if answer is not None})))
            replies.append(following.text if following and following.role != "user" else "")
    if wrong_marks:
        raise ReadError(wrong_marks[:50], n_more=max(0, len(wrong_marks) - 50))
    if problems and unknown_gold == "error":
        raise ReadError(problems[:50], n_more=max(0, len(problems) - 50))
    if not queries and n_unlabelled:
        remedy = "label some with 'dialometer retrieval label'"
        raise DialometerError(f"none of the {n_unlabelled} questions is labelled yet", where=file, remedy=remedy)
    if not queries:
        raise DialometerError("no turn of a user was found", where=file, remedy="declare who the user is")
    return QuerySet(tuple(queries), tuple(groups), tuple(right), tuple(replies), tuple(problems), n_unlabelled)


def _marked(dialogue: Dialogue) -> dict[int, list[str] | None]:
    """For each turn of the user, by number, the answers marked as right; None where it is not labelled yet."""
    exchanges = dialogue.metadata.get("exchanges")
    if not isinstance(exchanges, list):
        return {}
    marked: dict[int, list[str] | None] = {}
    for number, exchange in enumerate(exchanges):
        if isinstance(exchange, Mapping):
            answers = exchange.get("answers", [])
            several = answers if isinstance(answers, list) else [answers]
            marked[number] = None if answers is None else [str(answer) for answer in several]
    return marked


def _coreferences(
    dialogue: Dialogue, problems: list[Problem], file: str, lines: Mapping[tuple[str, int], int]
) -> dict[int, bool]:
    """For each turn of the user, by number, whether it is marked as needing the turns before it, or as not."""
    exchanges = dialogue.metadata.get("exchanges")
    marks: dict[int, bool] = {}
    for number, exchange in enumerate(exchanges if isinstance(exchanges, list) else ()):
        mark = exchange.get("coreference") if isinstance(exchange, Mapping) else None
        if isinstance(mark, bool):
            marks[number] = mark
        elif mark is not None:
            line = lines.get((dialogue.id, number), 0)
            message = f"the coreference mark '{mark}' in '{dialogue.id}' is neither true nor false"
            problems.append(Problem(message, remedy="write true or false", file=file, line=line))
    return marks


def user_turns(dialogue: Dialogue) -> Iterator[tuple[int, int, Turn]]:
    """Turns of the user: the number among the user's turns of the file (empty ones count), the place, the turn."""
    users = {turn.speaker for turn in dialogue.turns if turn.role == "user"} | {"User", "user"}
    noted = dialogue.metadata.get("left_out_turns")
    entries = [entry for entry in noted if isinstance(entry, Mapping)] if isinstance(noted, list) else []
    gone = {entry["turn"]: entry.get("speaker") for entry in entries if isinstance(entry.get("turn"), int)}
    number = position = 0
    for place, turn in enumerate(dialogue.turns):
        position += 1
        while position in gone:
            number += gone[position] in users
            position += 1
        if turn.role == "user":
            yield number, place, turn
            number += 1


def _unknown(text: str, kb: KnowledgeBase, file: str, line: int, dialogue: str) -> Problem:
    shown = text if len(text) <= 60 else f"{text[:59]}…"
    return Problem(
        f"'{shown}' in '{dialogue}' is marked as right but is not an answer of the knowledge base",
        remedy=_nearest(text, kb),
        file=file,
        line=line,
    )


def _nearest(text: str, kb: KnowledgeBase) -> str:
    is_small = len(kb.answers) < 5000 and len(text) < 1000
    if not is_small:
        return "add it to the knowledge base"
    near = did_you_mean(text, [answer.text for answer in kb.answers if len(answer.text) < 1000])
    return f"{near} Otherwise add it to the knowledge base"


def _lines(path: str | Path, reading: DialogueFile) -> dict[tuple[str, int], int]:
    """The line of every exchange, for messages, in the formats that can mark answers."""
    source, problems = SourceFile(path), Problems(str(path))
    lines: dict[tuple[str, int], int] = {}
    if reading.format == "mdc":
        counts: dict[str, int] = {}
        for row in table_rows(source, problems, NEEDED, ","):
            name = f"{row.cells['Mode'].strip()}-{row.cells['Conversation'].strip()}"
            lines[name, counts.get(name, 0)] = row.line
            counts[name] = counts.get(name, 0) + 1
    elif reading.format == "jsonl":
        for record in objects(json_records(source, problems), problems):
            metadata = record.value.get("metadata")
            exchanges = metadata.get("exchanges") if isinstance(metadata, dict) else None
            n_exchanges = len(exchanges) if isinstance(exchanges, list) else 0
            lines |= {(str(record.value.get("id", "")).strip(), number): record.line for number in range(n_exchanges)}
    return lines


# Representations of a turn: as it is, sentence by sentence, after the answer before it, or after the same person's turn before.
#
# People in conversation say several things in one turn ("That's nice. Where are you from?") and leave out what the turn before
# made clear ("Which one did you prefer?"). A query scores what the best of its texts scores.

Representation = Literal["turn", "sentences", "context", "asked"]
REPRESENTATIONS: tuple[Representation, ...] = get_args(Representation)

CONTEXT_CHARACTERS = 200
"""How much of the turn before is taken along, from its end: more would drown the question."""
_BREAK = re.compile(r"(?<=[.?!])\s+|\s*(?:\.\.\.|…)\s*|\n+")
_HAS_WORD = re.compile(r"\w")


def sentences(text: str) -> list[str]:
    """The sentences of a turn; the turn itself where it has no words."""
    parts = [part.strip() for part in _BREAK.split(text) if part and _HAS_WORD.search(part)]
    return parts or [text]


def with_context(query: Query, n_turns: int = 1) -> str:
    """The turn after the end of what was said before it."""
    before = " ".join(turn.text for turn in query.context[-n_turns:]) if query.context and n_turns else ""
    return f"{before[-CONTEXT_CHARACTERS:]} {query.text}".strip()


def with_asked(query: Query) -> str:
    """The turn after the end of what the same person said before it: "Where were you born? And your parents?"."""
    before = next((turn.text for turn in reversed(query.context) if turn.role == "user"), "")
    return f"{before[-CONTEXT_CHARACTERS:]} {query.text}".strip()


def texts_of(query: Query, kind: Representation) -> list[str]:
    """The texts of one query in a representation."""
    if kind == "sentences":
        return sentences(query.text)
    return [{"turn": query.text, "context": with_context(query), "asked": with_asked(query)}[kind]]


@dataclass(frozen=True)
class QueryTexts:
    """Texts of many queries one after the other, and where those of each query begin."""

    texts: list[str]
    starts: NDArray[np.int64]

    def of(self, row: int, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What belongs to the texts of one query."""
        return values[self.starts[row] : self.starts[row + 1] if row + 1 < len(self.starts) else None]

    def best(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """From scores of texts to scores of queries."""
        if len(self.starts) == len(self.texts):
            return scores
        return np.asarray(np.maximum.reduceat(scores, self.starts, axis=0))


def represent(queries: Sequence[Query], kind: Representation) -> QueryTexts:
    """All queries in one representation."""
    texts: list[str] = []
    starts = []
    for query in queries:
        starts.append(len(texts))
        texts += texts_of(query, kind)
    return QueryTexts(texts, np.array(starts, dtype=np.int64))


# Recorded questions that a dialogue repeats: a knowledge base is often filled from the very dialogues it is then tried on.
#
# Where that is so, asking those dialogues flatters every retriever that compares questions. Leaving the repeated questions out
# shows how it will do with visitors who ask in their own words.

SAME_TURN = 0.9
SAME_SENTENCE = 0.95
"""Cosines of the packaged encoder from which on two texts say the same; a single sentence must agree more."""


def repeated_questions(kb: KnowledgeBase, queries: Sequence[Query], encoder: TextEncoder) -> Ints:
    """Numbers of the recorded questions that some query, or one of its sentences, says almost word for word."""
    recorded = encoder.encode(kb.questions)
    is_repeated = np.zeros(len(kb.questions), dtype=bool)
    for kind, limit in (("turn", SAME_TURN), ("sentences", SAME_SENTENCE)):
        texts = represent(queries, "turn" if kind == "turn" else "sentences").texts
        for start in range(0, len(texts), 256):
            is_repeated |= (encoder.encode(texts[start : start + 256]) @ recorded.T > limit).any(axis=0)
    return np.flatnonzero(is_repeated).astype(np.int64)
