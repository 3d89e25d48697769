"""Marks in texts as arrays: weighted errors of each answer by category and severity, and who marked which characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.families.annotations.answers import PartedAnswers
from dialometer.model.estimate import Estimate
from dialometer.model.item import CandidateItem, DialogueItem, Item, PairItem, ResponsesItem
from dialometer.model.marks import Passage, SpanMark
from dialometer.model.scale import Scale
from dialometer.model.study import Study
from dialometer.stats.agreement.spans import MarkedText
from dialometer.stats.clustered.ratio import two_way_ratio
from dialometer.stats.observations import Floats

PER_WORDS = 100


def marks_text(scale: Scale) -> bool:
    """Whether raters mark words."""
    return scale.marks_text


@dataclass(frozen=True, eq=False)
class Marked:
    """The marks on one criterion."""

    study: Study
    answers: PartedAnswers
    options: Options

    @cached_property
    def marks(self) -> list[list[SpanMark]]:
        """The marks of each answer."""
        return [self.answers.scale.marks(value) for value in self.answers.values]

    @cached_property
    def words(self) -> Floats:
        """How many words could be marked, for each answer."""
        return np.array([float(value.get("n_words") or np.nan) for value in self.answers.values])

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The systems as the report calls them."""
        return self.answers.systems(self.study)

    @cached_property
    def categories(self) -> dict[str, str]:
        """The categories of the study, and those that only the data have, by name; with words."""
        own: dict[str, str] = getattr(self.answers.scale, "category_words", {})
        return own | {
            mark.category: mark.category for marks in self.marks for mark in marks if mark.category not in own
        }

    @cached_property
    def severities(self) -> dict[str, float]:
        """The severities with their weights, from light to serious."""
        own: dict[str, float] = getattr(self.answers.scale, "severities", {})
        return own

    def counted(self, *, category: str = "", severity: str = "", is_weighted: bool = True) -> Floats:
        """For each answer the sum of its marks, of one category or severity where one is named."""
        return np.array(
            [
                sum(
                    mark.weight if is_weighted else 1.0
                    for mark in marks
                    if category in ("", mark.category) and severity in ("", mark.severity)
                )
                for marks in self.marks
            ],
            dtype=np.float64,
        )

    def density(self, system: int, *, category: str = "", severity: str = "", is_weighted: bool = True) -> Estimate:
        """Errors per 100 words in what one system says."""
        inside = self.answers.of_system(system)
        return two_way_ratio(
            self.counted(category=category, severity=severity, is_weighted=is_weighted)[inside],
            self.words[inside],
            self.answers.rater[inside],
            None if self.options.has_fixed_items else self.answers.item[inside],
            per=PER_WORDS,
            confidence=self.options.confidence,
        )

    def places(self, row: int) -> tuple[str, str, int | None]:
        """What an answer is about: item, system and turn."""
        answers = self.answers
        return answers.items[answers.item[row]], answers.system_names[answers.system[row]], answers.turns[row]

    @cached_property
    def rows_by_thing(self) -> dict[tuple[str, str, int | None], list[int]]:
        """The answers on each thing that was judged."""
        rows: dict[tuple[str, str, int | None], list[int]] = {}
        for row in range(len(self.answers.values)):
            rows.setdefault(self.places(row), []).append(row)
        return rows

    def passages(self, thing: tuple[str, str, int | None]) -> tuple[Passage, ...]:
        """The texts that could be marked, as the study's items have them now; none where an item is gone."""
        item, system, turn = thing
        known = self.study.items_by_id.get(item)
        return () if known is None else passages_of(self.answers.scale, known, system, turn)

    @cached_property
    def texts(self) -> list[MarkedText]:
        """Every thing judged as one text, with its raters' marks; marks that do not fit the items' texts are left out."""
        made = []
        for thing, rows in self.rows_by_thing.items():
            begins, length = _offsets(self.passages(thing))
            by_rater = {
                self.answers.raters[self.answers.rater[row]]: [
                    (begins[mark.turn] + mark.start, begins[mark.turn] + mark.end, mark.category)
                    for mark in self.marks[row]
                    if mark.turn in begins
                ]
                for row in rows
            }
            made.append(MarkedText(length, by_rater))
        return made


def passages_of(scale: Scale, item: Item, system: str, turn: int | None) -> tuple[Passage, ...]:
    """What can be marked of an item, as its page shows it."""
    match item:
        case ResponsesItem():
            text = item.responses.get(system, "")
            return (Passage(0, text),) if text else ()
        case PairItem():
            turns = next((side.turns for side in (item.a, item.b) if side.system == system), ())
        case DialogueItem():
            turns = item.turns
        case CandidateItem():
            turns = (item.candidate,)
        case _:
            return ()
    if turn is not None:
        return (Passage(turn, turns[turn].text, turns[turn].speaker),) if turn < len(turns) else ()
    return scale.markable([(one.speaker, one.role, one.text) for one in turns])


def _offsets(passages: Sequence[Passage]) -> tuple[dict[int, int], int]:
    """Where each passage that can be marked begins when all are put behind each other, and how long they are together."""
    begins, at = {}, 0
    for passage in passages:
        if passage.is_markable:
            begins[passage.turn] = at
            at += len(passage.text)
    return begins, at
