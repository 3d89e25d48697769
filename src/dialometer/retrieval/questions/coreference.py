"""Questions that cannot be understood alone, because they point to something said before (co-reference, ellipsis).

Chierici and Habash (HumEval 2021, section 7.3) marked them by hand in 100 turns and found them in about 5 %. The rule here only
proposes marks for English questions, with its reason, for a person to correct: it looks for words that point backwards and find
nothing in the same turn to point to, and for questions from which everything else was left out ("Why?", "And you?").
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dialometer.errors import ReadError
from dialometer.formula_cells import escaped_row, restored
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import table_rows
from dialometer.registry import did_you_mean
from dialometer.retrieval.queries import Query, QuerySet, sentences

YES, NO = ("yes", "y", "true", "1", "with"), ("no", "n", "false", "0", "without")
MARK_COLUMNS = ("question", "coreference", "before", "text", "because")

_PERSONS = frozenset({"he", "she", "him", "her", "his", "hers", "they", "them", "their", "theirs"})
_THINGS = frozenset({"it", "its"})
_POINTING = frozenset({"that", "this", "those", "these", "one", "ones"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ASKS = _words(
    "what why how where when who which whose did do does is are was were can could would will have has had",
)
_EMPTY_IT = re.compile(
    r"\b(?:it'?s|is it|was it|it is|it was|it would be|would it be)\s+(?:\w+\s+){0,2}(?:to|that|nice|great|good|cool|interesting|"
    r"amazing|fun|hard|easy|true|okay|ok|fine|possible|important|like)\b|\b(?:how|what)(?:'s| is| was) it (?:like|going)\b"
)
_FEEDBACK = re.compile(
    r"^(?:oh|ah|wow|well|yeah|yes|ok|okay|cool|so|and|but|no|hm+|right|i see|i guess|,|\s)*"
    r"(?:that|this|it)(?:'s|s| is| was| sounds| seems| must be| must have been| makes)\b(?!.*\?)"
)
_SHORT_ASK = re.compile(
    r"^(?:(?:oh|ah|wow|well|yeah|yes|ok|okay|so|and|but|like|really)[\s,]+)*"
    r"(?:why(?: not| so)?|how(?: come| so| long| much| many| often| far)?|where(?: exactly| to)?|when|who|which(?: ones?)?|"
    r"what else|like what|such as|for how long|since when|what kind|what do you mean|"
    r"(?:and|what about|how about) (?:you|yours(?:elf)?)|"
    r"(?:do|did|are|were|have|had|can|could|would|will|is|was)(?:n't)? (?:you|he|she|they|it|we)|"
    r"either|too|any others?|anything else)\s*\?+$"
)
_THE_SAME = re.compile(r"\bthe same (?:way|thing|one|about)\b|\bdoing both\b|\bboth of (?:them|those|these)\b")
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")


def proposed(query: Query) -> str:
    """Why the question seems to need what was said before; empty where it does not, and at the beginning of a dialogue."""
    if not query.context:
        return ""
    turn = query.text.replace("’", "'")
    asked = [part for part in sentences(turn) if part.strip().endswith("?") or _begins_as_question(part)]
    for part in asked:
        text = part.strip().lower()
        if _SHORT_ASK.match(text) and len(asked) == 1:
            return "little is said: the rest is in the turns before"
        if _FEEDBACK.match(text):
            continue
        if _THE_SAME.search(text):
            return "“same” or “both” points to something said before"
        before = turn[: turn.find(part)]
        word = _points_back(part, before)
        if word:
            return f"“{word}” points to something said before"
    return ""


def _begins_as_question(part: str) -> bool:
    words = [word.lower() for word in _WORD.findall(part)]
    return bool(words) and words[0].partition("'")[0] in _ASKS


def _points_back(part: str, before: str) -> str:
    """The first word of a question that points to nothing in the same turn."""
    text = _EMPTY_IT.sub(" ", part.lower())
    words: list[str] = [word.partition("'")[0] for word in _WORD.findall(text)]
    for place, word in enumerate(words):
        rest = words[place + 1 :]
        earlier = [*(each.lower() for each in _WORD.findall(before)), *words[:place]]
        if word in _PERSONS and not any(each in _PEOPLE for each in earlier):
            return word
        if word in _THINGS and not _names_something(earlier):
            return word
        if word in _POINTING and _stands_alone(word, words[:place], rest) and not _names_something(earlier):
            return word
        if (
            word == "there"
            and place
            and words[place - 1] not in _BEFORE_THERE
            and not rest[:1]
            and not _names_place(part)
        ):
            return word
    return ""


_PEOPLE = _words(
    "people parents mother father mom dad brother sister brothers sisters siblings family friend friends boyfriend "
    "girlfriend husband wife professor professors teacher teachers student students kids children grandmother grandfather "
    "grandma grandpa everyone everybody somebody someone roommate roommates they he she"
)
_BEFORE_THERE = _words("is are was were s hi hello hey been")
_CONJUNCTION_AFTER = _words(
    "know think say said mean so guess see feel believe heard read people things something anything"
)
_HERE_AND_NOW = _words(
    "semester year month week time day days morning evening summer winter university school campus city country place person "
    "people study job interview room building moment conversation thing"
)
"""Nouns that "this" and "that" point to in the situation, not in the dialogue."""
_NO_NAMES = _words(
    "a an the i you me my your we our us and or but so oh ah ok okay yes yeah no not well like just really very also then now "
    "here there what why how where when who which whose do does did done is are was were be been being am have has had having "
    "can could would will should may might must if because of to in on at for from with about as by than into over after before "
    "during up out off get got going go think thought know see say said mean want feel guess tell ask nice cool great good "
    "interesting amazing wow hi hello that this those these it its he she him her his they them their one ones too much many "
    "more most some any all both other another s re m ve ll d t don didn doesn isn aren wasn ever never always still even only "
    "again right lot kind sort thing things make made makes come came happen happened take took long big hard difficult prefer "
    "choose chose decide decided enjoy enjoyed start started find found look looks sound sounds work works use used try tried "
    "give gave"
)


def _names_something(earlier: Iterable[str]) -> bool:
    """Whether the words before name anything that the word could point to."""
    return any(word.partition("'")[0] not in _NO_NAMES for word in earlier)


def _names_place(part: str) -> bool:
    return any(word[0].isupper() and word.lower() not in _NO_NAMES for word in _WORD.findall(part)[1:])


def _stands_alone(word: str, earlier: list[str], rest: list[str]) -> bool:
    """Whether a pointing word stands for something said before, rather than for something at hand or as a conjunction."""
    following, after = [*rest, "", ""][:2]
    if word in ("one", "ones"):
        return bool(earlier) and earlier[-1] in ("which", "that", "this", "the", "another", "other", "first", "last")
    if (
        word == "that"
        and following
        and ((earlier and earlier[-1] in _CONJUNCTION_AFTER) or following in ("i", "you", "we"))
    ):
        return False
    if following in _NO_NAMES or not following:
        return following not in ("one", "ones", "kind", "sort", "things") and after != "that"
    return following not in _HERE_AND_NOW and after not in ("that", "which", "who")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A question, whether it needs the turns before it, and why the rule thinks so (empty where a person said it)."""

    query: Query
    is_marked: bool
    because: str = ""


def proposals(query_set: QuerySet) -> list[Proposal]:
    """A mark for every question: as the dialogues have it, else as the rule proposes."""
    found = []
    for query in query_set.queries:
        reason = proposed(query)
        if query.coreference is not None:
            found.append(Proposal(query, query.coreference))
        else:
            found.append(Proposal(query, bool(reason), reason))
    return found


class MarksError(ReadError):
    """A file of marks could not be read."""

    noun = "the marks"


def write_marks(path: Path, marks: Iterable[Proposal]) -> None:
    """A table to correct by hand: a spreadsheet opens it, and only ``question`` and ``coreference`` are read again."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(MARK_COLUMNS)
        for mark in marks:
            before = mark.query.context[-1].text if mark.query.context else ""
            row = [mark.query.id, "yes" if mark.is_marked else "no", before, mark.query.text, mark.because]
            writer.writerow(escaped_row(row))


def read_marks(path: str | Path, query_set: QuerySet) -> QuerySet:
    """The questions with the marks of a table (``question``, ``coreference``: yes, no, or empty for not marked)."""
    source = SourceFile(path)
    problems = Problems(source.name)
    source.probe()
    known = {query.id for query in query_set.queries}
    marks: dict[str, bool | None] = {}
    for row in table_rows(source, problems, MARK_COLUMNS[:2]):
        name, text = restored(row.cells["question"].strip()), row.cells["coreference"].strip().lower()
        if name not in known:
            remedy = did_you_mean(name, sorted(known))
            problems.of_file(
                problems.problem(f"unknown question '{name}'", remedy=remedy, line=row.line, field="question")
            )
        if text and text not in (*YES, *NO):
            message = f"'{text}' is neither yes nor no"
            problems.of_file(problems.problem(message, remedy="write yes or no", line=row.line, field="coreference"))
        marks[name] = text in YES if text else None
    if problems.n_errors:
        raise MarksError(problems.errors, n_more=problems.n_errors - len(problems.errors), counts=problems.counts)
    return marked(query_set, marks)


def marked(query_set: QuerySet, marks: Mapping[str, bool | None]) -> QuerySet:
    """The questions with these marks; others keep what they had."""
    queries = tuple(replace(query, coreference=marks.get(query.id, query.coreference)) for query in query_set.queries)
    return replace(query_set, queries=queries)
