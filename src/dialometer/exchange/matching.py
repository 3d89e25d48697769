"""Matching what a file says to a study: every name must be known and every value must be on its scale."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dialometer.errors import AnswerError
from dialometer.exchange.candidates.index import CandidateIndex
from dialometer.exchange.exports.data_dictionary import questions_of
from dialometer.exchange.import_format import Intake
from dialometer.exchange.mismatch import Mismatch
from dialometer.exchange.records import (
    UNKNOWN_MS,
    AnswerRecord,
    Condition,
    JudgmentRecord,
    KnownNames,
    Record,
    SessionFacts,
    plain_name,
)
from dialometer.model.design import Block
from dialometer.model.item import DialogueItem, Item, PairItem, ResponsesItem
from dialometer.model.scale import Scale, Value
from dialometer.model.session import Answer, Judgment
from dialometer.model.study import REASON, Study
from dialometer.model.values import is_missing
from dialometer.registry import did_you_mean
from dialometer.scales.text import Text
from dialometer.storage.imports import ImportedSession

_REASON = Text(max_length=100_000)
MISSING_VALUES = "missing values (NA, n/a, - and the like)"


@dataclass(frozen=True, slots=True, eq=False)
class JudgmentTarget:
    """What a judgment is about, in the study's terms; ``order`` holds the systems that were on the screen.

    ``number`` counts what a rater can judge once: a criterion of an item, system and turn.
    """

    number: int
    criterion: str
    scale_name: str
    scale: Scale
    system: str
    order: tuple[str, ...]
    block: str

    def side(self, value: Value) -> int:
        """The position on the screen of the system judged or chosen, from 1; 0 where there is none or it is not known."""
        about = value if self.scale.compares else self.system
        return self.order.index(about) + 1 if isinstance(about, str) and about in self.order else 0


class TargetFinder:
    """Finds what records are about; each combination is looked up once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.systems = KnownNames("system", [(system.name, system.label) for system in study.spec.systems])
        self.criteria = KnownNames(
            "criterion", [(criterion.name, criterion.label) for criterion in study.spec.criteria]
        )
        self.blocks = {block.name: block for block in study.blocks}
        self._known: dict[tuple[object, ...], JudgmentTarget | Mismatch] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._questions = _question_scales(study)
        self._candidates: CandidateIndex | None = None

    def located(self, record: JudgmentRecord) -> JudgmentRecord | Mismatch:
        """The record with its item, where the file names a question and an answer instead."""
        if not record.question:
            return record
        self._candidates = self._candidates or CandidateIndex(self.study)
        item = self._candidates.find(record.question, record.answer)
        return item if isinstance(item, Mismatch) else replace(record, item=item)

    def find(self, record: JudgmentRecord, condition: Condition) -> JudgmentTarget | Mismatch:
        """What a judgment made in a condition is about, or why it does not match."""
        shape = (record.item, record.system, record.criterion, record.shown, record.block, record.scale, record.turn)
        key = (shape, condition)
        if key not in self._known:
            self._known[key] = self._find(record, condition)
        return self._known[key]

    def named(self, raw: object, target: JudgmentTarget) -> object:
        """A comparing answer with the study's names for the systems in it."""
        if not target.scale.compares:
            return raw
        if isinstance(raw, str):
            return self.systems.find(raw) or raw
        if isinstance(raw, list):
            return [self.systems.find(str(name)) or name for name in raw]
        if isinstance(raw, dict):
            return {role: self.systems.find(str(name)) or name for role, name in raw.items()}
        return raw

    def question(self, record: AnswerRecord) -> tuple[str, str, Scale] | Mismatch:
        """Part, name and scale of the question that was answered."""
        name = record.question if record.question in self._questions else plain_name(record.question, "question")
        parts = self._questions.get(name, {})
        if record.part in parts:
            return record.part, name, parts[record.part]
        if parts and not record.part:
            part, scale = next(iter(parts.items()))
            return part, name, scale
        if parts:
            return Mismatch(
                f"'{record.question}' is not asked in '{record.part}'", did_you_mean(record.part, list(parts))
            )
        remedy = did_you_mean(record.question, sorted(self._questions))
        return Mismatch(f"the study has no question '{record.question}'", remedy, "question")

    def _find(self, record: JudgmentRecord, condition: Condition) -> JudgmentTarget | Mismatch:
        item = self.study.items_by_id.get(record.item)
        if item is None:
            return Mismatch(f"the study has no item '{record.item}'", did_you_mean(record.item, self._ids()), "item")
        named = record.criterion or self._only_criterion()
        is_reason = named.endswith(REASON)
        criterion_name = self.criteria.find(named.removesuffix(REASON))
        if is_reason and criterion_name is not None and not self.study.criteria_by_name[criterion_name].reason:
            remedy = f"add 'reason: optional' to the criterion '{criterion_name}' of the study"
            return Mismatch(f"the study asks for no reasons for '{criterion_name}'", remedy, "criterion")
        if criterion_name is None and not record.criterion:
            remedy = f"--map criterion=COLUMN, or --map criterion=:{self.study.spec.criteria[0].name} for all rows"
            return Mismatch("nothing says which of the study's criteria was judged", remedy)
        if criterion_name is None:
            remedy = self.criteria.remedy(record.criterion)
            return Mismatch(f"the study has no criterion '{record.criterion}'", remedy, "criterion")
        block = self._block(record, item)
        if isinstance(block, Mismatch):
            return block
        criterion = self.study.criteria_by_name[criterion_name]
        presentation = self.study.presentation(dict(condition), block)
        scale_name = presentation.scales.get(criterion.name, criterion.scale)
        scale = self.study.spec.scales[scale_name]
        expected = _REASON if is_reason else scale
        if record.scale and record.scale != expected.type:
            message = f"it was answered on a scale of type {record.scale}, but the study asks for {expected.type}"
            return Mismatch(message, "import into the study that it was collected with", "scale")
        order = self._order(record, item)
        if isinstance(order, Mismatch):
            return order
        system = self._system(record, item, scale)
        if isinstance(system, Mismatch):
            return system
        stored = criterion.reason_name if is_reason else criterion.name
        number = self._numbers.setdefault((item.id, stored, system, record.turn), len(self._numbers))
        return self._turn(record, item) or JudgmentTarget(
            number, stored, scale_name, expected, system, order, block.name
        )

    def _only_criterion(self) -> str:
        return self.study.spec.criteria[0].name if len(self.study.spec.criteria) == 1 else ""

    def _ids(self) -> list[str]:
        return [item.id for item in self.study.items[:200]]

    def _block(self, record: JudgmentRecord, item: Item) -> Block | Mismatch:
        name = record.block or item.block or next(iter(self.blocks))
        if name not in self.blocks:
            return Mismatch(f"the study has no block '{name}'", did_you_mean(name, list(self.blocks)), "block")
        return self.blocks[name]

    def _order(self, record: JudgmentRecord, item: Item) -> tuple[str, ...] | Mismatch:
        """The systems on the screen: those the file lists, in its order, else those of the item."""
        if not record.shown:
            return item.systems
        names = []
        for text in record.shown:
            name = self.systems.find(text)
            if name is None:
                return Mismatch(f"the study has no system '{text}'", self.systems.remedy(text), "system")
            if name not in item.systems:
                return Mismatch(f"the item '{item.id}' does not show '{name}'", did_you_mean(name, list(item.systems)))
            names.append(name)
        return tuple(names)

    def _system(self, record: JudgmentRecord, item: Item, scale: Scale) -> str | Mismatch:
        """The system judged; empty where an answer is about all of them, or about none in particular."""
        if scale.compares:
            return ""
        if not record.system:
            if isinstance(item, ResponsesItem | PairItem):
                return Mismatch("nothing says which system was judged", "--map system=COLUMN", "system")
            return item.systems[0] if len(item.systems) == 1 else ""
        name = self.systems.find(record.system)
        if name is None:
            return Mismatch(f"the study has no system '{record.system}'", self.systems.remedy(record.system), "system")
        if name not in item.systems:
            return Mismatch(
                f"the item '{item.id}' does not show '{name}'", did_you_mean(name, list(item.systems)), "system"
            )
        return name

    def _turn(self, record: JudgmentRecord, item: Item) -> Mismatch | None:
        """Turns are rated where the study asks for it, and only turns of the agent."""
        rated: list[int] = []
        if isinstance(item, DialogueItem) and self.study.spec.items.rate == "turns":
            rated = [number for number, turn in enumerate(item.turns) if turn.role == "agent"]
        if record.turn is None and not rated:
            return None
        if record.turn is None:
            return Mismatch("nothing says which turn was judged", "--map turn=COLUMN, counted from 0", "turn")
        if record.turn not in rated:
            judged_parts = f"turns {', '.join(map(str, rated))}" if rated else "whole items, no turns"
            return Mismatch(
                f"turn {record.turn} is not rated in '{item.id}'", f"the study rates {judged_parts}", "turn"
            )
        return None


def _question_scales(study: Study) -> dict[str, dict[str, Scale]]:
    """Scale by part, for every question and check of a study."""
    by_name: dict[str, dict[str, Scale]] = {}
    for part, question in questions_of(study):
        by_name.setdefault(question.name, {})[part] = study.spec.scales[question.scale]
    return by_name


@dataclass(slots=True)
class _Visit:
    """One rater's session while the file is read."""

    rater: str
    condition: Condition = ()
    condition_line: int = 0
    is_misplaced: bool = False
    facts: SessionFacts | None = None
    records: list[JudgmentRecord] = field(default_factory=list)
    targets: list[JudgmentTarget] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    lines: dict[int, int] = field(default_factory=dict)
    """Line by the target's number, to notice what is judged twice."""
    answered: dict[tuple[str, str], tuple[AnswerRecord, Value]] = field(default_factory=dict)

    @property
    def judged(self) -> Iterator[tuple[JudgmentRecord, JudgmentTarget, Value]]:
        """The judgments with their targets and values."""
        return zip(self.records, self.targets, self.values, strict=True)


class MatchedFile:
    """Takes the records of one file; what does not match is reported with its line, the rest becomes sessions."""

    def __init__(self, study: Study, intake: Intake) -> None:
        self.study = study
        self.intake = intake
        self.finder = TargetFinder(study)
        self.factors = KnownNames("factor", [(f.name, f.label) for f in study.spec.design.factors])
        self.levels = {
            factor.name: KnownNames("level", [(level.name, level.label) for level in factor.levels])
            for factor in study.spec.design.factors
        }
        self.visits: dict[str, _Visit] = {}
        """By session where the file tells sessions, else by rater."""
        self.n_judgments = 0
        self.n_answers = 0
        self.n_zeros = 0
        """Magnitudes of zero, which have no logarithm."""
        self._conditions: dict[Condition, Condition | Mismatch] = {}
        self._constant: dict[str, tuple[str, int]] = {}
        self._values: dict[tuple[object, ...], Value | AnswerError] = {}

    def add(self, record: Record) -> None:
        """Take one record."""
        match record:
            case JudgmentRecord():
                self._rated(record)
            case AnswerRecord():
                self._answered(record)
            case SessionFacts():
                visit = self._visit(record)
                if visit.facts is not None:
                    self.intake.wrong(record.line, f"the rater '{record.rater}' has two sessions", "give each one row")
                visit.facts = record
                self._has_condition(visit, record.condition, record.line)

    def _rated(self, given: JudgmentRecord) -> None:
        visit = self._visit(given)
        if not self._has_condition(visit, given.condition, given.line):
            return
        record = self.finder.located(given)
        if isinstance(record, Mismatch):
            self.intake.wrong(given.line, record.message, record.remedy, record.column)
            return
        target = self.finder.find(record, visit.condition)
        if isinstance(target, Mismatch):
            self.intake.wrong(record.line, target.message, target.remedy, target.column or record.column)
            return
        value = self._value(record, target)
        if value is None:
            return
        if not record.is_practice:
            first = visit.lines.get(target.number)
            if first is not None:
                subject = f"'{record.item}'" + (f" by '{target.system}'" if target.system else "")
                where = f" on line {first}" if first != record.line else ""  # a file of JSON may have one line
                self.intake.wrong(
                    record.line,
                    f"the rater '{record.rater}' has judged {subject} for {target.criterion}{where} already",
                    "keep one of the two",
                )
                return
            visit.lines[target.number] = record.line
        visit.records.append(record)
        visit.targets.append(target)
        visit.values.append(value)
        self.n_judgments += 1
        self.n_zeros += target.scale.unit == "log" and value == 0

    def _value(self, record: JudgmentRecord, target: JudgmentTarget) -> Value | None:
        raw = record.raw
        key = (target.scale_name, target.order, type(raw), raw) if isinstance(raw, str | int | float) else None
        read = self._values.get(key) if key else None
        if read is None:
            read = _parsed(target.scale, self.finder.named(raw, target), target.order)
            if key and len(self._values) < 100_000:
                self._values[key] = read
        if isinstance(read, AnswerError) and is_missing(raw) and not record.scale:
            self.intake.left_out[MISSING_VALUES] += 1
            return None
        if isinstance(read, AnswerError):
            message = f"'{_shown(raw)}' does not fit the scale of {target.criterion} ({target.scale.describe()})"
            self.intake.wrong(record.line, message, _remedy(read.message), record.column)
            return None
        return read

    def _answered(self, record: AnswerRecord) -> None:
        visit = self._visit(record)
        question = self.finder.question(record)
        if isinstance(question, Mismatch) and record.is_unasked:
            self.intake.left_out[f"answers to '{record.question}', which the study does not ask"] += 1
            return
        if isinstance(question, Mismatch):
            self.intake.wrong(record.line, question.message, question.remedy, question.column or record.column)
            return
        part, name, scale = question
        value = _parsed(scale, record.raw)
        if isinstance(value, AnswerError) and is_missing(record.raw):
            self.intake.left_out[MISSING_VALUES] += 1
            return
        if isinstance(value, AnswerError):
            message = f"'{_shown(record.raw)}' is not an answer to {name} ({scale.describe()})"
            self.intake.wrong(record.line, message, _remedy(value.message), record.column)
            return
        earlier = visit.answered.setdefault((part, name), (record, value))
        if earlier[1] != value:
            self.intake.wrong(
                record.line,
                f"the rater '{record.rater}' answered {name} differently on line {earlier[0].line}",
                "a question has one answer for each rater; what differs between rows is a criterion (--criteria)",
                record.column,
            )
        self.n_answers = self.n_answers + (earlier[0] is record)

    def _visit(self, record: JudgmentRecord | AnswerRecord | SessionFacts) -> _Visit:
        """The session that a record belongs to; where the file tells no sessions, a rater has one."""
        key = record.session or record.rater
        if key not in self.visits:
            self.visits[key] = _Visit(record.rater)
        visit = self.visits[key]
        if visit.rater != record.rater:
            self.intake.wrong(record.line, f"the session '{key}' belongs to two raters", "correct one of them")
        return visit

    def _has_condition(self, visit: _Visit, given: Condition, line: int) -> bool:
        """Whether the condition is known and the same as before for this rater; what is wrong is filed."""
        if given not in self._conditions:
            self._conditions[given] = self._read_condition(given, line)
        condition = self._conditions[given]
        if isinstance(condition, Mismatch):
            self.intake.wrong(line, condition.message, condition.remedy, condition.column)
            visit.is_misplaced = True
            return False
        if not visit.condition_line:
            visit.condition, visit.condition_line = condition, line
        elif visit.condition != condition:
            self.intake.wrong(
                line,
                f"the rater '{visit.rater}' is in another condition than on line {visit.condition_line}",
                "a condition is the same for all of a rater's judgments; what changes within a rater is a block",
            )
            return False
        return True

    def _read_condition(self, condition: Condition, line: int) -> Condition | Mismatch:
        """The condition in the study's words. A factor that the study does not have may be there if it never changes."""
        levels: dict[str, str] = {}
        for text, level_text in condition:
            factor = self.factors.find(text)
            if factor is None:
                level, first = self._constant.setdefault(text, (level_text, line))
                if level != level_text:
                    message = f"the study has no factor '{text}', but its level changes ('{level}' on line {first})"
                    return Mismatch(message, self.factors.remedy(text), f"factor_{text}")
                continue
            level_name = self.levels[factor].find(level_text)
            if level_name is None:
                message = f"the factor '{factor}' has no level '{level_text}'"
                return Mismatch(message, self.levels[factor].remedy(level_text), f"factor_{text}")
            levels[factor] = level_name
        for factor in self.levels:
            if factor not in levels:
                remedy = f"--map factor_{factor}=COLUMN, or --map factor_{factor}=:LEVEL for all"
                return Mismatch(f"nothing says at which level of '{factor}' the rater was", remedy)
        return tuple((factor, levels[factor]) for factor in self.levels)

    @property
    def raters(self) -> set[str]:
        """All raters of the file, under the names it has for them."""
        return {visit.rater for visit in self.visits.values()}

    def finish(self) -> None:
        """File what only shows when all is read."""
        for visit in self.visits.values():
            if self.levels and not visit.condition_line and not visit.is_misplaced:
                self.intake.wrong(0, f"nothing says in which condition the rater '{visit.rater}' was")

    def sessions(self, name_of: Mapping[str, str]) -> Iterator[ImportedSession]:
        """The sessions in the order in which raters appear; ``name_of`` says under which name each rater is kept."""
        cells = {tuple(cell.items()): number for number, cell in enumerate(self.study.cells)}
        for visit in self.visits.values():
            yield _session(visit, name_of[visit.rater], cells[visit.condition])


def _parsed(scale: Scale, raw: object, alternatives: Sequence[str] = ()) -> Value | AnswerError:
    """The value of a raw answer, or why it is none; a file may hold what no page can send."""
    try:
        return scale.parse_collected(raw, alternatives)
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


def _session(visit: _Visit, rater: str, cell: int) -> ImportedSession:
    session_id = secrets.token_urlsafe(12)
    facts = visit.facts or SessionFacts(line=0, rater=visit.rater)
    positions = _positions(visit.records)
    judgments = [
        Judgment(
            session_id=session_id,
            item_id=record.item,
            criterion=target.criterion,
            value=value,
            scale=target.scale.type,
            system=target.system,
            turn=record.turn,
            block=target.block,
            position=record.position or positions.get(record.item, 0),
            side=_side(record, target, value),
            order=target.order if record.shown else (),
            shown_at_ms=record.shown_at_ms,
            answered_at_ms=record.answered_at_ms,
            is_late=record.is_late,
            is_practice=record.is_practice,
        )
        for record, target, value in visit.judged
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
        for (part, name), (record, value) in visit.answered.items()
    ]
    entries: list[Judgment | Answer] = [*judgments, *answers]
    known = [time for entry in entries for time in (entry.shown_at_ms, entry.answered_at_ms) if time != UNKNOWN_MS]
    return ImportedSession(
        id=session_id,
        rater=rater,
        condition=dict(visit.condition),
        cell=cell,
        judgments=judgments,
        answers=answers,
        started_at_ms=facts.started_at_ms or min(known, default=UNKNOWN_MS),
        finished_at_ms=(facts.finished_at_ms or None) if visit.facts else max(known, default=None),
        last_seen_at_ms=facts.last_seen_at_ms or max(known, default=UNKNOWN_MS),
        state=facts.state,
        source=facts.source,
        consent_version=facts.consent_version,
        language=facts.language,
        exclusion_reason=facts.exclusion_reason,
    )


def _side(record: JudgmentRecord, target: JudgmentTarget, value: Value) -> int:
    if record.side is not None:
        return record.side
    return target.side(value) if record.shown else 0


def _positions(records: list[JudgmentRecord]) -> dict[str, int]:
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
    return {item: position for position, item in enumerate(sorted(times, key=times.__getitem__), start=1)}
