"""A study drafted from files of judgments: systems, criteria, scales and items as far as the files tell them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from dialometer.exchange.formats.form import Intake
from dialometer.exchange.guess import Evidence, Scale, guess_scales
from dialometer.exchange.records import Answered, Condition, NewNames, Rated, Record, Shown, TookPart, plain_name
from dialometer.scales import SCALES

# What a data dictionary beside the data says about criteria, questions and systems.


_NOT_OF_SCALE = ("in_words", "values", "conditions")


class Declared:
    """Reads a data dictionary without trusting it: what is not in its form is as if it were not there."""

    def __init__(self, dictionary: Mapping[str, Any]) -> None:
        self._criteria = {str(one.get("name")): one for one in _objects(dictionary.get("criteria"))}
        self._systems = {str(one.get("name")): one for one in _objects(dictionary.get("systems"))}
        self._questions = {
            (str(one.get("part")), str(one.get("name"))): one for one in _objects(dictionary.get("questions"))
        }
        about = dictionary.get("study")
        self.title = _text(about, "title") if isinstance(about, dict) else ""

    def criterion(self, name: str, key: str) -> str:
        """The question, label or definition of a criterion; empty where it is not known."""
        return _text(self._criteria.get(name, {}), key)

    def system(self, name: str, key: str) -> str:
        """The label or description of a system."""
        return _text(self._systems.get(name, {}), key)

    def question(self, part: str, name: str) -> str:
        """The text of a question."""
        return _text(self._questions.get((part, name), {}), "text")

    def scale(self, criterion: str, condition: Condition) -> dict[str, Any] | None:
        """The scale of a criterion in a condition."""
        scales = list(_objects(self._criteria.get(criterion, {}).get("scales")))
        label = ", ".join(f"{factor}={level}" for factor, level in condition)
        fitting = [one for one in scales if len(scales) == 1 or label in (one.get("conditions") or ())]
        return _valid(fitting[0]) if len(fitting) == 1 else None

    def question_scale(self, part: str, name: str) -> dict[str, Any] | None:
        """The scale of a question."""
        scale = self._questions.get((part, name), {}).get("scale")
        return _valid(scale) if isinstance(scale, dict) else None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())


def _text(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return value if isinstance(value, str) else ""


def _valid(scale: Mapping[str, Any]) -> dict[str, Any] | None:
    """The scale as a study file declares it, None where it would be refused."""
    kind = scale.get("type")
    if not isinstance(kind, str) or kind not in SCALES:
        return None
    config = {key: value for key, value in scale.items() if key not in _NOT_OF_SCALE}
    try:
        valid = SCALES.get(kind).model_validate(config)
    except ValidationError:
        return None
    return valid.model_dump(mode="json", exclude_defaults=True) | {"type": kind}


MAX_ID_LENGTH = 128
MAX_CRITERIA = 50
PARTS = ("screening", "pre", "post")
COMPARING = ("pairwise", "best_worst", "ranking")


@dataclass(slots=True)
class ItemDraft:
    """What is known of an item."""

    id: str
    line: int
    context: str = ""
    responses: dict[str, str] = field(default_factory=dict)
    """System to its text, empty where the file has none."""
    block: str = ""
    is_practice: bool = False
    turns: set[int] = field(default_factory=set)


class Draft:
    """Looks at every record once; afterwards its parts say what a study needs to hold them."""

    def __init__(self, declared: Mapping[str, Any] | None = None) -> None:
        self.declared = Declared(declared or {})
        self.systems = NewNames("system")
        self.criteria = NewNames("criterion")
        self.factors = NewNames("factor")
        self.levels: dict[str, NewNames] = {}
        self.blocks: dict[str, None] = {}
        self.items: dict[str, ItemDraft] = {}
        self.questions: dict[tuple[str, str], Evidence] = {}
        self.question_names: dict[str, str] = {}
        self.raters: set[str] = set()
        self.evidence: dict[Condition, dict[str, Evidence]] = {}
        self.has_judgments_of_no_system = False

    def add(self, record: Record, intake: Intake) -> None:
        """Look at one record; contradictions are filed."""
        match record:
            case Rated():
                self._rated(record, intake)
            case Shown():
                self._shown(record, intake)
            case Answered():
                self._answered(record, intake)
            case TookPart():
                self._condition(record.condition)
                self.raters.add(record.rater)

    def _rated(self, record: Rated, intake: Intake) -> None:
        item = self._item(record.item, record.line, intake)
        for system in (*record.shown, record.system):
            if system:
                self.systems.name(system)
                item.responses.setdefault(system, "")
        item.block = item.block or record.block
        item.is_practice |= record.is_practice
        if record.turn is not None:
            item.turns.add(record.turn)
        if record.block:
            self.blocks.setdefault(record.block)
        self.raters.add(record.rater)
        self.has_judgments_of_no_system |= not record.system and record.scale not in ("", *COMPARING)
        if record.criterion not in self.criteria.names and len(self.criteria.names) == MAX_CRITERIA:
            remedy = "is it the right column? Write study.yaml yourself if there are really so many"
            intake.wrong(record.line, f"there are more than {MAX_CRITERIA} criteria", remedy, "criterion")
        self.criteria.name(record.criterion)
        of_condition = self.evidence.setdefault(self._condition(record.condition), {})
        evidence = of_condition.setdefault(record.criterion, Evidence())
        evidence.add(record.raw, told=record.scale, hint=record.hint)

    def _answered(self, record: Answered, intake: Intake) -> None:
        part = record.part or "post"
        if part not in PARTS:
            return
        name = plain_name(record.question, "question")
        if self.question_names.setdefault(name, record.question) != record.question:
            message = f"the questions '{record.question}' and '{self.question_names[name]}' are too much alike"
            intake.wrong(record.line, message, "rename one with --questions NAME=COLUMN", record.column)
        self.questions.setdefault((part, record.question), Evidence()).add(record.raw)
        self.raters.add(record.rater)

    def _shown(self, record: Shown, intake: Intake) -> None:
        item = self._item(record.item, record.line, intake)
        self.systems.name(record.system)
        known = item.responses.get(record.system, "")
        remedy = "an item has one text for each system; map another column to the item, or leave the texts out"
        if known and record.response and known != record.response:
            message = f"the response of '{record.system}' to '{record.item}' is another text than before"
            intake.wrong(record.line, message, remedy, "response")
        if item.context and record.context and item.context != record.context:
            message = f"the context of '{record.item}' is another text than on line {item.line}"
            intake.wrong(record.line, message, remedy, "context")
        item.responses[record.system] = known or record.response
        item.context = item.context or record.context

    def _item(self, item_id: str, line: int, intake: Intake) -> ItemDraft:
        if item_id not in self.items:
            if len(item_id) > MAX_ID_LENGTH:
                remedy = "map a column with short ids; texts can be mapped to context and response"
                intake.wrong(line, f"the item's id is longer than {MAX_ID_LENGTH} characters", remedy, "item")
            self.items[item_id] = ItemDraft(item_id, line)
        return self.items[item_id]

    def _condition(self, condition: Condition) -> Condition:
        for factor, level in condition:
            self.factors.name(factor)
            self.levels.setdefault(factor, NewNames("level")).name(level)
        return condition

    def scales(self) -> dict[Condition, dict[str, Scale]]:
        """By condition and criterion, the scale that was used: as declared beside the data, else a guess.

        Conditions get scales of their own only where the type differs; otherwise all values count together.
        """
        joined: dict[str, Evidence] = {}
        for seen in self.evidence.values():
            for name, evidence in seen.items():
                joined.setdefault(name, Evidence()).join(evidence)
        together = guess_scales(joined)
        apart = {condition: guess_scales(seen) for condition, seen in self.evidence.items()}
        for name, evidence in joined.items():
            types = {guessed[name]["type"] for guessed in apart.values() if name in guessed}
            for condition, guessed in apart.items():
                if name not in guessed:
                    continue
                if len(types) == 1:
                    guessed[name] = together[name]
                told = self.declared.scale(name, condition)
                if told is not None and told["type"] == (evidence.told or told["type"]):
                    guessed[name] = told
        return apart

    def question_scales(self) -> dict[tuple[str, str], Scale]:
        """The scale of each question."""
        scales = {}
        for key, evidence in self.questions.items():
            guessed = guess_scales({key[1]: evidence})[key[1]]
            if guessed["type"] in ("magnitude", "slider"):  # a number about oneself, such as an age, is typed in
                guessed = {"type": "text", "format": "number"}
            scales[key] = self.declared.question_scale(*key) or guessed
        return scales
