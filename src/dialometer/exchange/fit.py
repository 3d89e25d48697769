"""Fitting what a file says to a study: every name must be known and every value must lie on its scale."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dialometer.errors import AnswerError
from dialometer.exchange.formats.form import Intake
from dialometer.exchange.names import KnownNames
from dialometer.exchange.places import Place, Places, Refusal
from dialometer.exchange.records import UNKNOWN_MS, Answered, Condition, Rated, Record, TookPart
from dialometer.model.scale import Scale, Value
from dialometer.model.session import Answer, Judgment
from dialometer.model.study import Study
from dialometer.storage.imports import ImportedSession


@dataclass(slots=True)
class _Sitting:
    """One rater's session while the file is read."""

    rater: str
    condition: Condition = ()
    condition_line: int = 0
    is_misplaced: bool = False
    facts: TookPart | None = None
    records: list[Rated] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    lines: dict[int, int] = field(default_factory=dict)
    """Line by spot, to notice what is judged twice."""
    answered: dict[tuple[str, str], tuple[Answered, Value]] = field(default_factory=dict)

    @property
    def judged(self) -> Iterator[tuple[Rated, Place, Value]]:
        """The judgments with their places and values."""
        return zip(self.records, self.places, self.values, strict=True)


class Fit:
    """Takes the records of one file; what does not fit is filed with its line, the rest becomes sessions."""

    def __init__(self, study: Study, intake: Intake) -> None:
        self.study = study
        self.intake = intake
        self.places = Places(study)
        self.factors = KnownNames("factor", [(f.name, f.label) for f in study.spec.design.factors])
        self.levels = {
            factor.name: KnownNames("level", [(level.name, level.label) for level in factor.levels])
            for factor in study.spec.design.factors
        }
        self.sittings: dict[str, _Sitting] = {}
        """By session where the file tells sessions, else by rater."""
        self.n_judgments = 0
        self.n_answers = 0
        self._conditions: dict[Condition, Condition | Refusal] = {}
        self._constant: dict[str, tuple[str, int]] = {}
        self._values: dict[tuple[object, ...], Value | AnswerError] = {}

    def add(self, record: Record) -> None:
        """Take one record."""
        match record:
            case Rated():
                self._rated(record)
            case Answered():
                self._answered(record)
            case TookPart():
                sitting = self._sitting(record)
                if sitting.facts is not None:
                    self.intake.wrong(record.line, f"the rater '{record.rater}' has two sessions", "give each one row")
                sitting.facts = record
                self._place_in_condition(sitting, record.condition, record.line)

    def _rated(self, record: Rated) -> None:
        sitting = self._sitting(record)
        if not self._place_in_condition(sitting, record.condition, record.line):
            return
        place = self.places.find(record, sitting.condition)
        if isinstance(place, Refusal):
            self.intake.wrong(record.line, place.message, place.remedy, place.column or record.column)
            return
        value = self._value(record, place)
        if value is None:
            return
        if not record.is_practice:
            first = sitting.lines.setdefault(place.spot, record.line)
            if first != record.line:
                what = f"'{record.item}'" + (f" by '{place.system}'" if place.system else "")
                self.intake.wrong(
                    record.line,
                    f"the rater '{record.rater}' has judged {what} for {place.criterion} on line {first} already",
                    "keep one of the two",
                )
                return
        sitting.records.append(record)
        sitting.places.append(place)
        sitting.values.append(value)
        self.n_judgments += 1

    def _value(self, record: Rated, place: Place) -> Value | None:
        raw = record.raw
        key = (place.scale_name, place.order, type(raw), raw) if isinstance(raw, str | int | float) else None
        read = self._values.get(key) if key else None
        if read is None:
            read = _parsed(place.scale, self.places.named(raw, place), place.order)
            if key and len(self._values) < 100_000:
                self._values[key] = read
        if isinstance(read, AnswerError):
            message = f"'{_shown(raw)}' does not fit the scale of {place.criterion} ({place.scale.describe()})"
            self.intake.wrong(record.line, message, _remedy(read.message), record.column)
            return None
        return read

    def _answered(self, record: Answered) -> None:
        sitting = self._sitting(record)
        question = self.places.question(record)
        if isinstance(question, Refusal):
            self.intake.wrong(record.line, question.message, question.remedy, question.column or record.column)
            return
        part, name, scale = question
        value = _parsed(scale, record.raw)
        if isinstance(value, AnswerError):
            message = f"'{_shown(record.raw)}' is no answer to {name} ({scale.describe()})"
            self.intake.wrong(record.line, message, _remedy(value.message), record.column)
            return
        earlier = sitting.answered.setdefault((part, name), (record, value))
        if earlier[1] != value:
            self.intake.wrong(
                record.line,
                f"the rater '{record.rater}' answered {name} differently on line {earlier[0].line}",
                "a question has one answer for each rater; what differs between rows is a criterion (--criteria)",
                record.column,
            )
        self.n_answers = self.n_answers + (earlier[0] is record)

    def _sitting(self, record: Rated | Answered | TookPart) -> _Sitting:
        """The session that a record belongs to; where the file tells no sessions, a rater has one."""
        key = record.session or record.rater
        if key not in self.sittings:
            self.sittings[key] = _Sitting(record.rater)
        sitting = self.sittings[key]
        if sitting.rater != record.rater:
            self.intake.wrong(record.line, f"the session '{key}' belongs to two raters", "correct one of them")
        return sitting

    def _place_in_condition(self, sitting: _Sitting, given: Condition, line: int) -> bool:
        """Whether the condition is known and the same as before for this rater; what is wrong is filed."""
        if given not in self._conditions:
            self._conditions[given] = self._read_condition(given, line)
        condition = self._conditions[given]
        if isinstance(condition, Refusal):
            self.intake.wrong(line, condition.message, condition.remedy, condition.column)
            sitting.is_misplaced = True
            return False
        if not sitting.condition_line:
            sitting.condition, sitting.condition_line = condition, line
        elif sitting.condition != condition:
            self.intake.wrong(
                line,
                f"the rater '{sitting.rater}' is in another condition than on line {sitting.condition_line}",
                "a condition is the same for all of a rater's judgments; what changes within a rater is a block",
            )
            return False
        return True

    def _read_condition(self, given: Condition, line: int) -> Condition | Refusal:
        """The condition in the study's words. A factor that the study does not have may be there if it never changes."""
        told: dict[str, str] = {}
        for text, level_text in given:
            factor = self.factors.find(text)
            if factor is None:
                level, first = self._constant.setdefault(text, (level_text, line))
                if level != level_text:
                    message = f"the study has no factor '{text}', but its level changes ('{level}' on line {first})"
                    return Refusal(message, self.factors.remedy(text), f"factor_{text}")
                continue
            level_name = self.levels[factor].find(level_text)
            if level_name is None:
                message = f"the factor '{factor}' has no level '{level_text}'"
                return Refusal(message, self.levels[factor].remedy(level_text), f"factor_{text}")
            told[factor] = level_name
        for factor in self.levels:
            if factor not in told:
                remedy = f"--map factor_{factor}=COLUMN, or --map factor_{factor}=:LEVEL for all"
                return Refusal(f"nothing says at which level of '{factor}' the rater was", remedy)
        return tuple((factor, told[factor]) for factor in self.levels)

    @property
    def raters(self) -> set[str]:
        """All raters of the file, under the names it has for them."""
        return {sitting.rater for sitting in self.sittings.values()}

    def finish(self) -> None:
        """File what only shows when all is read."""
        for sitting in self.sittings.values():
            if self.levels and not sitting.condition_line and not sitting.is_misplaced:
                self.intake.wrong(0, f"nothing says in which condition the rater '{sitting.rater}' was")

    def sessions(self, name_of: Mapping[str, str]) -> Iterator[ImportedSession]:
        """The sessions in the order in which raters appear; ``name_of`` says under which name each rater is kept."""
        cells = {tuple(cell.items()): number for number, cell in enumerate(self.study.cells)}
        for sitting in self.sittings.values():
            yield _session(sitting, name_of[sitting.rater], cells[sitting.condition])


def _parsed(scale: Scale, raw: object, alternatives: Sequence[str] = ()) -> Value | AnswerError:
    """The value of a raw answer, or why it is none; a file may hold what no form can send."""
    try:
        return scale.parse(raw, alternatives)
    except AnswerError as error:
        return error
    except (ArithmeticError, ValueError, TypeError) as error:
        return AnswerError(f"correct the value ({error})")


def _shown(raw: object) -> str:
    text = repr(raw) if isinstance(raw, int | float) and abs(raw) > 1e300 else str(raw)
    return text if len(text) <= 40 else text[:37] + "…"


def _remedy(sentence: str) -> str:
    """A scale's sentence for raters as a remedy: without "Please" and full stop."""
    return sentence.removeprefix("Please ").rstrip(".")


def _session(sitting: _Sitting, rater: str, cell: int) -> ImportedSession:
    session_id = secrets.token_urlsafe(12)
    facts = sitting.facts or TookPart(line=0, rater=sitting.rater)
    positions = _positions(sitting.records)
    judgments = [
        Judgment(
            session_id=session_id,
            item_id=record.item,
            criterion=place.criterion,
            value=value,
            scale=place.scale.type,
            system=place.system,
            turn=record.turn,
            block=place.block,
            position=record.position or positions.get(record.item, 0),
            side=_side(record, place, value),
            order=place.order if record.shown else (),
            shown_at_ms=record.shown_at_ms,
            answered_at_ms=record.answered_at_ms,
            is_late=record.is_late,
            is_practice=record.is_practice,
        )
        for record, place, value in sitting.judged
    ]
    answers = [
        Answer(
            session_id=session_id,
            part=part,
            question=name,
            value=value,
            shown_at_ms=record.shown_at_ms,
            answered_at_ms=record.answered_at_ms,
        )
        for (part, name), (record, value) in sitting.answered.items()
    ]
    entries: list[Judgment | Answer] = [*judgments, *answers]
    known = [time for entry in entries for time in (entry.shown_at_ms, entry.answered_at_ms) if time != UNKNOWN_MS]
    return ImportedSession(
        id=session_id,
        rater=rater,
        condition=dict(sitting.condition),
        cell=cell,
        judgments=judgments,
        answers=answers,
        started_at_ms=facts.started_at_ms or min(known, default=UNKNOWN_MS),
        finished_at_ms=(facts.finished_at_ms or None) if sitting.facts else max(known, default=None),
        last_seen_at_ms=facts.last_seen_at_ms or max(known, default=UNKNOWN_MS),
        state=facts.state,
        source=facts.source,
        consent_version=facts.consent_version,
        exclusion_reason=facts.exclusion_reason,
    )


def _side(record: Rated, place: Place, value: Value) -> int:
    if record.side is not None:
        return record.side
    return place.side(value) if record.shown else 0


def _positions(records: list[Rated]) -> dict[str, int]:
    """Places of items in a session, where the file tells none but its times leave no doubt; empty otherwise."""
    if not records or any(record.position or record.is_practice for record in records):
        return {}
    times: dict[str, int] = {}
    for record in records:
        if record.answered_at_ms == UNKNOWN_MS:
            return {}
        times[record.item] = min(record.answered_at_ms, times.get(record.item, record.answered_at_ms))
    if len(set(times.values())) < len(times):
        return {}
    return {item: place for place, item in enumerate(sorted(times, key=times.__getitem__), start=1)}
