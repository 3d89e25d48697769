"""Spans: a rater marks words or whole turns, each mark with a category and a severity, as in MQM.

Multidimensional Quality Metrics (Lommel, Uszkoreit and Burchardt 2014; weights 1, 5 and 25 as in Freitag et al. 2021) count errors
by what is wrong and how badly. The number of an answer is the MQM score: 100 minus the weighted errors per 100 words, so that
more is better, as on other scales. That nothing is marked is an answer only where the rater says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from dialometer.errors import AnswerError
from dialometer.model.dialogue import clean_text
from dialometer.model.marks import Passage, SpanMark, count_words, find_words, word_places
from dialometer.model.part import Name, Part
from dialometer.model.rater_text import RaterText
from dialometer.model.scale import DetailTable, Floats, InputField, Level, NumberUse, Scale, Value
from dialometer.model.values import ObservedValues
from dialometer.scales import SCALES

MAX_COMMENT_LENGTH = 1000
MAX_TEXT_LENGTH = 100_000
PER_WORDS = 100
SIMULATED_WORDS = 100
"""Length of a text that is simulated without its words."""
_BLANK_ROWS = 5
_KEYS = ("turn", "start", "end", "quote", "category", "severity", "comment")


class MarkCategory(Part):
    """One kind of thing that is marked."""

    name: Name = Field(description="Short name used in tables and reports.")
    label: str = Field(default="", description="The words raters choose; the name by default.")
    definition: RaterText = Field(default="", description="When to choose it; shown beside the text.")

    @property
    def words(self) -> str:
        """The category as raters read it."""
        return self.label or self.name.replace("_", " ").capitalize()


@SCALES.register("spans")
class Spans(Scale):
    """Words marked in a text, such as errors with their kind and severity.

    Stored as ``{"n_words": 58, "marks": [{turn, start, end, text, category, severity, comment}]}``; no marks means no errors.
    """

    type: Literal["spans"] = "spans"
    mark_categories: list[MarkCategory] = Field(min_length=1, description="What can be marked, in the order shown.")
    severities: dict[Name, float] = Field(
        default={"minor": 1, "major": 5, "critical": 25},
        min_length=1,
        description="How serious a mark can be, from light to serious, with weights.",
    )
    mark: Literal["agent", "all"] = Field(
        default="agent", description="Dialogues: mark what the system says, or what anybody says."
    )
    comments: Literal["none", "optional", "required"] = Field(
        default="optional", description="Whether a mark has a comment."
    )
    max_marks: int = Field(default=50, ge=1, le=500, description="Most marks in one text.")
    level: ClassVar[Level] = "interval"
    marks_text: ClassVar[bool] = True
    no_answer: ClassVar[str] = "Please mark what is wrong, or say that you found nothing."
    scripts: ClassVar[tuple[str, ...]] = ("spans.js",)
    seconds_per_answer: ClassVar[float] = 45.0
    number_words: ClassVar[str] = "100 minus the weighted errors per 100 words: 100 is a text without errors"
    detail_table: ClassVar[DetailTable | None] = DetailTable(
        "marks",
        "one mark in a text a row; an answer without marks has none",
        {
            "mark": (int, "number of the mark in its answer, from 1"),
            "turn": (int, "turn that is marked, counted from 0; 0 for a response"),
            "start": (int, "first character of the mark in the turn's text, counted from 0"),
            "end": (int, "character after the last one"),
            "text": (str, "the marked words"),
            "category": (str, "what is wrong"),
            "severity": (str, "how serious it is"),
            "weight": (float, "weight of the severity in the study file"),
            "comment": (str, "what the rater wrote about it"),
            "n_words": (int, "words of the whole text that could be marked"),
        },
    )

    @field_validator("severities")
    @classmethod
    def _weights_are_positive(cls, weights: dict[str, float]) -> dict[str, float]:
        if wrong := [name for name, weight in weights.items() if not (weight > 0 and math.isfinite(weight))]:
            raise ValueError(f"the weight of a severity must be above zero: {', '.join(wrong)}")
        return weights

    @model_validator(mode="after")
    def _names_differ(self) -> Spans:
        names = [category.name for category in self.mark_categories]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"categories that are given twice: {', '.join(twice)}")
        return self

    # Reading an answer

    def parse(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        """The marks without a look at the text; words that are only quoted get their places in :meth:`parse_about`."""
        answer = _as_object(raw)
        rows = _rows(answer)
        says_none = bool(answer.get("none")) or (isinstance(answer.get("marks"), list) and "n_words" in answer)
        if not rows and not says_none:
            raise AnswerError(self.no_answer)
        if rows and answer.get("none"):
            raise AnswerError(
                "You marked something and also said that you found nothing. Please correct one of the two."
            )
        if len(rows) > self.max_marks:
            raise AnswerError(f"Please mark at most {self.max_marks} places.")
        marks = [self._mark(row) for row in rows]
        _refuse_twice(marks, [(mark.get("turn"), mark.get("start"), mark["text"], mark["category"]) for mark in marks])
        return {"n_words": _whole(answer.get("n_words")) or 0, "marks": marks}

    def _mark(self, row: Mapping[str, Any]) -> dict[str, Any]:
        words = str(row.get("text") or row.get("quote") or "").strip("\r\n") if _is_text(row) else ""
        category, severity = (str(row.get(key) or "").strip() for key in ("category", "severity"))
        by_words = {one.words.casefold(): one.name for one in self.mark_categories}
        category = category if category in self.category_words else by_words.get(category.casefold(), "")
        severity = severity if severity in self.severities else severity.casefold()
        if not category or severity not in self.severities:
            raise AnswerError(f"Please choose what is wrong with “{_short(words)}” and how serious it is.")
        comment = row.get("comment") if self.comments != "none" else ""
        try:
            comment = clean_text(comment) if isinstance(comment, str) else ""
            clean_text(words)
        except ValueError as error:
            raise AnswerError("Please remove characters that cannot be shown.") from error
        if len(comment) > MAX_COMMENT_LENGTH or len(words) > MAX_TEXT_LENGTH:
            raise AnswerError(f"Please keep your answer under {MAX_COMMENT_LENGTH} characters.")
        if not comment and self.comments == "required":
            raise AnswerError(f"Please write a comment on “{_short(words)}”.")
        start, end, turn = (_whole(row.get(key)) for key in ("start", "end", "turn"))
        has_place = start is not None and end is not None and 0 <= start < end
        mark: dict[str, Any] = {} if turn is None or turn < 0 else {"turn": turn}
        mark |= {"start": start, "end": end} if has_place else {}
        return {**mark, "text": words, "category": category, "severity": severity, "comment": comment}

    def parse_about(self, raw: object, alternatives: Sequence[str], passages: Sequence[Passage]) -> Value:
        """The marks with their places, checked against the exact texts."""
        value = self.parse(raw, alternatives)
        assert isinstance(value, dict)
        shown = [passage for passage in passages if passage.is_markable]
        marks = [_placed(mark, shown) for mark in value["marks"]]
        places = [(mark["turn"], mark["start"], mark["end"], mark["category"]) for mark in marks]
        _refuse_twice(marks, places)
        order = sorted(range(len(marks)), key=lambda place: places[place])
        n_words = sum(count_words(passage.text) for passage in shown)
        return {"n_words": n_words, "marks": [marks[place] for place in order]}

    def parse_collected(self, raw: object, alternatives: Sequence[str] = ()) -> Value:
        """What was collected elsewhere must say how long the text was, since it is not looked up."""
        value = self.parse(raw, alternatives)
        assert isinstance(value, dict)
        if not value["n_words"]:
            raise AnswerError("Please say how many words the text has (n_words).")
        if any("start" not in mark for mark in value["marks"]):
            raise AnswerError("Please give start and end of every mark.")
        return value

    # What an answer says

    @property
    def category_words(self) -> dict[str, str]:
        """The categories by name, as raters read them."""
        return {category.name: self.option_words(category.name) for category in self.mark_categories}

    def severity_words(self) -> dict[str, str]:
        """The severities by name, as raters read them."""
        return {name: self.option_words(name) for name in self.severities}

    def value_words(self) -> dict[str, str]:
        severities = {name: name.replace("_", " ").capitalize() for name in self.severities}
        return severities | {category.name: category.words for category in self.mark_categories}

    def marks(self, value: Value) -> list[SpanMark]:
        marks = value.get("marks", []) if isinstance(value, dict) else []
        return [
            SpanMark(
                turn=int(mark.get("turn", 0)),
                start=int(mark.get("start", 0)),
                end=int(mark.get("end", 0)),
                text=str(mark.get("text", "")),
                category=str(mark["category"]),
                severity=str(mark["severity"]),
                weight=float(self.severities.get(mark["severity"], math.nan)),
                comment=str(mark.get("comment", "")),
            )
            for mark in marks
        ]

    def n_words(self, value: Value) -> int:
        """How many words could be marked."""
        return int(value.get("n_words") or 0) if isinstance(value, dict) else 0

    def differ(self, values: Sequence[Value], distance: float = 0) -> bool:
        """Whether other words are marked, or marked otherwise; what is said in comments does not matter."""
        marked = [{(m.turn, m.start, m.end, m.category, m.severity) for m in self.marks(value)} for value in values]
        return any(other != marked[0] for other in marked)

    def number(self, value: Value) -> float | None:
        """The MQM score; None where the length of the text is not known."""
        n_words = self.n_words(value)
        penalty = sum(mark.weight for mark in self.marks(value))
        return PER_WORDS - PER_WORDS * penalty / n_words if n_words and math.isfinite(penalty) else None

    def bounds(self) -> tuple[float, float]:
        return -math.inf, float(PER_WORDS)

    def details(self, value: Value) -> list[tuple[Any, ...]]:
        n_words = self.n_words(value)
        return [
            (k, m.turn, m.start, m.end, m.text, m.category, m.severity, m.weight, m.comment, n_words)
            for k, m in enumerate(self.marks(value), start=1)
        ]

    # How it is shown and described

    def markable(self, turns: Sequence[tuple[str, str, str]]) -> tuple[Passage, ...]:
        """The passages of a dialogue from speaker, role and text of its turns; where no turn is a system's, all can be marked."""
        has_agent = any(role == "agent" and text for _, role, text in turns)
        is_open = self.mark == "all" or not has_agent
        return tuple(
            Passage(k, text, speaker, bool(text) and (is_open or role == "agent"))
            for k, (speaker, role, text) in enumerate(turns)
        )

    def form_rows(self, value: object) -> list[dict[str, str]]:
        """What was entered so far as rows of the plain form, with some empty rows behind them."""
        rows = [
            {key: str(row.get(key, row.get("text", "") if key == "quote" else "")) for key in _KEYS}
            for row in _rows(_as_object(value))
        ]
        blank = dict.fromkeys(_KEYS, "")
        return [*rows, *(blank for _ in range(min(_BLANK_ROWS, self.max_marks - len(rows))))]

    def says_none(self, value: object) -> bool:
        """Whether it was said that nothing is wrong."""
        answer = _as_object(value)
        return bool(answer.get("none")) or ("n_words" in answer and not _rows(answer))

    def input_field(self, alternatives: Sequence[str] = ()) -> InputField:
        return InputField("parts", tuple(self.category_words))

    def in_words(self, value: Value) -> str:
        severities = self.severity_words()
        words = [
            f"“{mark.text}” ({self.category_words.get(mark.category, mark.category)}, "
            f"{severities.get(mark.severity, mark.severity)}{f': {mark.comment}' if mark.comment else ''})"
            for mark in self.marks(value)
        ]
        return "; ".join(words)

    def answer_format(self, alternatives: Sequence[str] = ()) -> str:
        categories = "; ".join(
            f'"{category.name}" = {category.words}' + (f", {category.definition}" if category.definition else "")
            for category in self.mark_categories
        )
        severities = ", ".join(f'"{name}"' for name in self.severities)
        return (
            '{"marks": [{"quote": the exact words, "category": name, "severity": name, "comment": text}]} with one entry for '
            f'each error, or {{"none": true}} where there is none. Categories: {categories}. Severities: {severities}. Quote '
            "words that occur once, and as few as show the error"
        )

    def names(self, systems: Sequence[str]) -> list[str]:
        return []

    def describe(self) -> str:
        n = len(self.mark_categories)
        weights = ", ".join(f"{name} {weight:g}" for name, weight in self.severities.items())
        return (
            f"marked spans in {n} categor{'ies' if n > 1 else 'y'} ({weights}), 100 minus weighted errors per 100 words"
        )

    # What a simulated rater answers

    def simulate(self, quality: Floats, use: NumberUse) -> NDArray[Any]:
        """As many errors in 100 words as the quality lets expect, without places."""
        shape, flat = np.shape(quality), np.ravel(quality)
        answers = np.empty(len(flat), dtype=object)
        severities, category = list(self.severities), self.mark_categories[0].name
        for row, seen in enumerate(flat.tolist()):
            severity = severities[min(len(severities) - 1, 1 if seen < -1 else 0)]
            mark = {"text": "", "category": category, "severity": severity, "comment": ""}
            answers[row] = {"n_words": SIMULATED_WORDS, "marks": [mark] * _n_errors(seen)}
        return answers.reshape(shape)

    def simulate_about(self, quality: float, passages: Sequence[Passage], rng: np.random.Generator) -> Any:
        """Marks of one to four words; worse texts get more marks and more serious ones, at places that most raters see."""
        shown = [passage for passage in passages if passage.is_markable and count_words(passage.text)]
        marks: dict[tuple[int, int], dict[str, Any]] = {}
        severities, names = list(self.severities), list(self.category_words)
        for k in range(_n_errors(quality) if shown else 0):
            passage = shown[k % len(shown)]
            words = word_places(passage.text)
            # Where the error is follows from the text, so that raters find the same one; some look elsewhere.
            first = (len(words) * (k + 1) // 5 + len(passage.text)) % len(words)
            if rng.random() < 0.25:
                first = int(rng.integers(len(words)))
            last = min(len(words) - 1, first + int(rng.integers(0, 3)))
            start, end = words[first][0], words[last][1]
            category = (
                names[(k + len(passage.text)) % len(names)]
                if rng.random() < 0.8
                else names[int(rng.integers(len(names)))]
            )
            serious = min(len(severities) - 1, int(rng.random() < 0.25 - 0.15 * quality))
            marks[passage.turn, start] = {
                "turn": passage.turn, "start": start, "end": end, "text": passage.text[start:end],
                "category": category, "severity": severities[serious], "comment": "Simulated." if self.comments == "required" else "",
            }  # fmt: skip
        return {"marks": list(marks.values())} if marks else {"none": True}

    @classmethod
    def guess(cls, seen: ObservedValues) -> dict[str, Any]:
        return {**super().guess(seen), "mark_categories": [{"name": "error"}]}


def _n_errors(quality: float) -> int:
    """0 in a very good text, about 3 in a middling one, at most 8."""
    return int(np.clip(round(3 - 1.6 * quality), 0, 8))


def _as_object(raw: object) -> dict[str, Any]:
    """What was sent as a mapping: a program's own, its JSON, or a form with the marks as JSON."""
    if isinstance(raw, str):
        raw = _from_json(raw)
    if isinstance(raw, list):
        raw = {"marks": raw}
    if not isinstance(raw, Mapping):
        return {}
    content = {str(key): value for key, value in raw.items()}
    if isinstance(content.get("marks"), str):
        marks = _from_json(content["marks"])
        content["marks"] = marks if isinstance(marks, list) else []
        if not content["marks"] and "n_words" not in content:
            del content["marks"]
    return content


def _from_json(text: str) -> object:
    try:
        return json.loads(text) if len(text) <= 1_000_000 else None
    except (ValueError, RecursionError):
        return None


def _rows(form: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The marks of an answer; of the plain form, the rows with words in them."""
    marks = form.get("marks")
    if isinstance(marks, list):
        return [dict(mark) for mark in marks if isinstance(mark, Mapping)]
    rows: dict[int, dict[str, Any]] = {}
    for key, value in form.items():
        number, dot, part = key.partition(".")
        if dot and number.isascii() and number.isdigit() and len(number) < 5 and part in _KEYS:
            rows.setdefault(int(number), {})[part] = value
    return [rows[number] for number in sorted(rows) if str(rows[number].get("quote", "")).strip()]


def _refuse_twice(marks: Sequence[Mapping[str, Any]], places: Sequence[tuple[Any, ...]]) -> None:
    for number, mark in enumerate(marks):
        if places[number] in places[:number]:
            words = _short(mark["text"])
            raise AnswerError(f"“{words}” is marked twice in the same way. Please remove one of the marks.")


def _is_text(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("text") or row.get("quote") or "", str)


def _whole(raw: object) -> int | None:
    if isinstance(raw, str) and raw.strip().isascii() and raw.strip().isdigit() and len(raw.strip()) < 10:
        return int(raw)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and abs(raw) < 10**9 else None


def _placed(mark: Mapping[str, Any], shown: Sequence[Passage]) -> dict[str, Any]:
    """The mark with its turn and its place in the turn's text."""
    words = _short(mark["text"])
    passages = [passage for passage in shown if "turn" not in mark or passage.turn == mark["turn"]]
    places = [
        (passage, start, end)
        for passage in passages
        for start, end in (
            [(mark["start"], mark["end"])] if "start" in mark else find_words(passage.text, mark["text"])
        )
        if "start" not in mark or (end <= len(passage.text) and mark["text"] in ("", passage.text[start:end]))
    ]
    if not places:
        raise AnswerError(f"The words “{words}” are not in this text. Please copy them exactly.")
    if len(places) > 1:
        raise AnswerError(f"The words “{words}” occur more than once. Please copy a few words more.")
    passage, start, end = places[0]
    fields = {key: mark[key] for key in ("category", "severity", "comment")}
    return {"turn": passage.turn, "start": start, "end": end, "text": passage.text[start:end], **fields}


def _short(words: str) -> str:
    return words if len(words) <= 60 else words[:57] + "…"
