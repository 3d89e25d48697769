"""A study drafted from files of judgments: systems, criteria, scales and items as far as the files tell them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dialometer.design.edit_yaml import yaml_text
from dialometer.errors import DialometerError
from dialometer.exchange.candidates.draft import CRITERION, CandidateDrafts, gold_rule
from dialometer.exchange.dictionary_beside import DataDictionary
from dialometer.exchange.import_format import Intake
from dialometer.exchange.records import (
    AnswerRecord,
    CandidateRecord,
    Condition,
    JudgmentRecord,
    NewNames,
    Record,
    SessionFacts,
    TextRecord,
    plain_name,
)
from dialometer.exchange.scale_guess import Scale, guess_scales
from dialometer.model.dialogue import NO_TEXT, Turn
from dialometer.model.file_names import STUDY_FILE
from dialometer.model.values import ObservedValues
from dialometer.readers.turn_parts import turn_as_json
from dialometer.scales import SCALES
from dialometer.scales.text import Text

MAX_ID_LENGTH = 128
MAX_CRITERIA = 50
PARTS = ("screening", "pre", "post")
PAIRS = ("controlled", "dialogues")
DEFAULT_SYSTEM = "system"
"""The system where the files name none."""
AGES = (18, 25, 35, 50)
"""Where age groups begin, as Guerini, Falcone and Magnini (SCAI 2018) report them."""
AGE_NAMES = ("age", "age_years", "years")


def compares(scale_type: str) -> bool:
    """Whether answers on scales of this type compare systems."""
    return scale_type in SCALES and SCALES.get(scale_type).choice_form is not None


MOST_TURNS = 10_000
"""Turns of a dialogue that is written with placeholders because only ratings of its turns are known."""


@dataclass(slots=True)
class ItemDraft:
    """What is known of an item."""

    id: str
    line: int
    context: str = ""
    responses: dict[str, str] = field(default_factory=dict)
    """System to its text, empty where the file has none."""
    said: dict[str, tuple[Turn, ...]] = field(default_factory=dict)
    """System to the whole conversation with it, where the file has one."""
    about: dict[str, Any] = field(default_factory=dict)
    """What else the file says of the item."""
    block: str = ""
    is_practice: bool = False
    turns: set[int] = field(default_factory=set)


class StudyDraft:
    """Looks at every record once; afterwards its parts say what a study needs to hold them."""

    def __init__(self, declared: Mapping[str, Any] | None = None) -> None:
        self.declared = DataDictionary(declared or {})
        self.systems = NewNames("system")
        self.criteria = NewNames("criterion")
        self.factors = NewNames("factor")
        self.levels: dict[str, NewNames] = {}
        self.blocks: dict[str, None] = {}
        self.items: dict[str, ItemDraft] = {}
        self.candidates = CandidateDrafts()
        self.questions: dict[tuple[str, str], ObservedValues] = {}
        self.question_names: dict[str, str] = {}
        self.raters: set[str] = set()
        self.rated: dict[str, dict[str, int]] = {}
        """For each rater and item the systems that were rated: bits, by the number of the system."""
        self.system_bits: dict[str, int] = {}
        self.evidence: dict[Condition, dict[str, ObservedValues]] = {}
        self.has_judgments_of_no_system = False

    def add(self, record: Record, intake: Intake) -> None:
        """Look at one record; contradictions are reported."""
        match record:
            case JudgmentRecord():
                self._rated(record, intake)
            case TextRecord():
                self._shown(record, intake)
            case CandidateRecord():
                self.candidates.add(record, intake)
            case AnswerRecord():
                self._answered(record, intake)
            case SessionFacts():
                self._condition(record.condition)
                self.raters.add(record.rater)

    def _rated(self, record: JudgmentRecord, intake: Intake) -> None:
        if not record.question:
            self._rated_item(record, intake)
        if record.block:
            self.blocks.setdefault(record.block)
        self.raters.add(record.rater)
        self.has_judgments_of_no_system |= not record.system and record.scale != "" and not compares(record.scale)
        criterion = record.criterion or CRITERION
        if criterion not in self.criteria.names and len(self.criteria.names) == MAX_CRITERIA:
            remedy = "is it the right column? Write study.yaml yourself if there are really so many"
            intake.wrong(record.line, f"there are more than {MAX_CRITERIA} criteria", remedy, "criterion")
        self.criteria.name(criterion)
        of_condition = self.evidence.setdefault(self._condition(record.condition), {})
        evidence = of_condition.setdefault(criterion, ObservedValues())
        evidence.add(record.raw, stated=record.scale, hint=record.hint)

    def _rated_item(self, record: JudgmentRecord, intake: Intake) -> None:
        item = self._item(record.item, record.line, intake)
        is_of_one = not record.shown and not record.scale and not compares(record.hint)
        named = record.system or (DEFAULT_SYSTEM if is_of_one else "")
        for system in (*record.shown, named):
            if system:
                self.systems.name(system)
                item.responses.setdefault(system, "")
        of_rater = self.rated.setdefault(record.rater, {})
        of_rater[record.item] = of_rater.get(record.item, 0) | self._bit(named)
        item.block = item.block or record.block
        item.is_practice |= record.is_practice
        if record.turn is not None:
            item.turns.add(record.turn)

    def _bit(self, system: str) -> int:
        return self.system_bits.setdefault(system, 1 << len(self.system_bits)) if system else 0

    @property
    def items_per_rater(self) -> int | None:
        """How many items half of the raters judged at least, where that is not all of them: what a plan should assume."""
        numbers = [len(items) for items in self.rated.values()]
        usual = round(statistics.median(numbers)) if numbers else 0
        return usual if 0 < usual < len(self.items) else None

    @property
    def systems_per_item(self) -> int | None:
        """How many systems of an item a rater judged at most, where that is never all of them."""
        most = max((bits.bit_count() for of_rater in self.rated.values() for bits in of_rater.values()), default=0)
        return most if 0 < most < len(self.systems.names) else None

    def _answered(self, record: AnswerRecord, intake: Intake) -> None:
        part = record.part or "post"
        if part not in PARTS:
            return
        name = plain_name(record.question, "question")
        if self.question_names.setdefault(name, record.question) != record.question:
            message = f"the questions '{record.question}' and '{self.question_names[name]}' are too much alike"
            intake.wrong(record.line, message, "rename one with --questions NAME=COLUMN", record.column)
        self.questions.setdefault((part, record.question), ObservedValues()).add(record.raw)
        self.raters.add(record.rater)

    def _shown(self, record: TextRecord, intake: Intake) -> None:
        item = self._item(record.item, record.line, intake)
        system = record.system or DEFAULT_SYSTEM
        self.systems.name(system)
        known = item.responses.get(system, "")
        remedy = "an item has one text for each system; map another column to the item, or leave the texts out"
        if known and record.response and known != record.response:
            message = f"the response of '{system}' to '{record.item}' is another text than before"
            intake.wrong(record.line, message, remedy, "response")
        if item.context and record.context and item.context != record.context:
            message = f"the context of '{record.item}' is another text than on line {item.line}"
            intake.wrong(record.line, message, remedy, "context")
        if item.said.get(system, record.turns) != record.turns:
            message = f"the conversation of '{system}' in '{record.item}' is another one than before"
            intake.wrong(record.line, message, remedy, "response")
        if record.turns:
            item.said[system] = record.turns
        item.responses[system] = known or record.response
        item.context = item.context or record.context
        item.about |= record.about

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
        joined: dict[str, ObservedValues] = {}
        for seen in self.evidence.values():
            for name, evidence in seen.items():
                joined.setdefault(name, ObservedValues()).join(evidence)
        together = guess_scales(joined)
        apart = {condition: guess_scales(seen) for condition, seen in self.evidence.items()}
        for name, evidence in joined.items():
            types = {guessed[name]["type"] for guessed in apart.values() if name in guessed}
            for condition, guessed in apart.items():
                if name not in guessed:
                    continue
                if len(types) == 1:
                    guessed[name] = together[name]
                declared = self.declared.scale(name, condition)
                if declared is not None and declared["type"] == (evidence.stated or declared["type"]):
                    guessed[name] = declared
        return apart

    def question_scales(self) -> dict[tuple[str, str], Scale]:
        """The scale of each question."""
        scales = {}
        for key, evidence in self.questions.items():
            guessed = guess_scales({key[1]: evidence})[key[1]]
            entered = SCALES.get(guessed["type"]).model_validate(guessed).input_field()
            if entered.kind in ("range", "number"):  # a number about oneself, such as an age, is typed in
                guessed = Text(format="number").model_dump(include={"type", "format"})
            scales[key] = self.declared.question_scale(*key) or guessed
        return scales


_TEXTS = {
    "consent.md": """# {title}

The judgments in this study were collected elsewhere and imported from {files}. Whether and to what the raters agreed is
documented where the data come from, not here.

This page is a placeholder. Replace it before you ask anyone to take part.
""",
    "instructions.md": """# {title}

The judgments in this study were collected elsewhere. The instructions that raters read there are not part of the imported
data.
""",
    "debriefing.md": """# {title}

The judgments in this study were collected elsewhere; there was no debriefing here.
""",
}


@dataclass(frozen=True, slots=True)
class WrittenStudy:
    """What a drafted study holds, for telling the user."""

    name: str
    files: tuple[str, ...]
    kind: str
    systems: tuple[str, ...]
    n_items: int
    n_items_without_text: int
    scales: dict[str, str]
    """Criterion to its scale in words."""
    has_guessed_scales: bool


def write_study(draft: StudyDraft, folder: Path, name: str, sources: Sequence[str]) -> WrittenStudy:
    """Write the files of a drafted study into an existing folder."""
    writer = _StudyWriter(draft, name, sources)
    spec = writer.spec()
    head = (
        "# Written by 'dialometer import' from judgments that were collected elsewhere.\n"
        "# Scales are guessed from the values unless the data came with a dictionary: correct them where you know better.\n"
    )
    try:
        text = head + yaml_text(spec)
    except UnicodeEncodeError as error:
        raise DialometerError(
            "a name holds half of a surrogate pair, which is not a character",
            where=", ".join(sources),
            remedy="correct the names of criteria, scales and systems",
        ) from error
    (folder / STUDY_FILE).write_text(text, encoding="utf-8")
    lines = [json.dumps(item, ensure_ascii=False) for item in writer.items()]
    (folder / "items.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = {"title": spec["title"], "files": ", ".join(sources)}
    for file, template in _TEXTS.items():
        (folder / file).write_text(template.format(**words), encoding="utf-8")
    has_text = [any(item.responses.values()) or bool(item.said) for item in draft.items.values()] or [True] * len(
        draft.candidates
    )
    return WrittenStudy(
        name=spec["name"],
        files=(STUDY_FILE, "items.jsonl", *_TEXTS),
        kind=writer.kind,
        systems=tuple(system["name"] for system in spec["systems"]),
        n_items=len(has_text),
        n_items_without_text=has_text.count(False),
        scales=writer.scales_in_words(),
        has_guessed_scales=writer.has_guessed_scales(),
    )


class _StudyWriter:
    """Builds the parts of the study file."""

    def __init__(self, draft: StudyDraft, name: str, sources: Sequence[str]) -> None:
        self.draft = draft
        self.name = plain_name(name, "study")
        self.sources = sources
        self.by_condition = draft.scales()
        self.scale_names: dict[str, str] = {}
        self.scales: dict[str, Scale] = {}
        self.kind = self._kind()

    def spec(self) -> dict[str, Any]:
        """The whole study file."""
        draft, declared = self.draft, self.draft.declared
        for name in draft.candidates.systems or ([DEFAULT_SYSTEM] if draft.candidates else ()):
            draft.systems.name(name)
        criteria = [self._criterion(text, name) for text, name in draft.criteria.names.items()]
        questions = self._questions()
        systems = [
            _without_empty(
                {
                    "name": name,
                    "label": declared.system(text, "label") or (text if text != name else ""),
                    "description": declared.system(text, "description"),
                }
            )
            for text, name in draft.systems.names.items()
        ]
        rate = {"rate": "turns"} if self.kind == "dialogue" and any(item.turns for item in draft.items.values()) else {}
        design: dict[str, Any] = {"factors": self._factors()}
        if set(draft.blocks) - {"main"}:
            design["blocks"] = [{"name": name} for name in draft.blocks]
        elif not draft.candidates:
            design["items_per_rater"] = draft.items_per_rater
        if self.kind == "responses" and not self._has_choices():
            design["systems_per_item"] = draft.systems_per_item
        return {
            "dialometer": 1,
            "name": self.name,
            "title": declared.title or f"Imported judgments: {self.name}",
            "description": f"Judgments collected elsewhere, imported from {', '.join(self.sources)}.",
            "seed": 1,
            "systems": systems,
            "items": {"kind": self.kind, **rate, **({"pairs": declared.pairs} if declared.pairs in PAIRS else {})},
            "scales": self.scales,
            "criteria": criteria,
            **questions,
            **self._gold_rule(criteria),
            "design": {key: value for key, value in design.items() if value},
            "recruitment": {"quota": max(1, len(draft.raters))},
            **self._analysis(questions),
        }

    def _analysis(self, questions: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """Controlled pairs are reported by groups of raters; where the file names no pairs, claims are about those read."""
        if not self.draft.declared.is_controlled:
            return {}
        scales = [
            (question["name"], self.scales[question["scale"]]) for part in questions.values() for question in part
        ]
        numbers = [name for name, scale in scales if scale.get("format") == "number"]
        analysis = {
            "subgroups": [name for name, scale in scales if "options" in scale or name in numbers],
            "bins": {name: list(AGES) for name in numbers if name.lower() in AGE_NAMES},
            "items": "fixed" if set(self.draft.items) <= set(self.draft.blocks) else "",
        }
        return {"analysis": kept} if (kept := _without_empty(analysis)) else {}

    def _gold_rule(self, criteria: list[dict[str, Any]]) -> dict[str, Any]:
        """Where the file marks right answers: the rule by which they show who answers without reading."""
        if not self.draft.candidates.has_gold:
            return {}
        rule = gold_rule(criteria[0]["name"], self.scales[criteria[0]["scale"]])
        return {"quality": [rule]} if rule else {}

    def _kind(self) -> str:
        """The kind of item that can hold what was judged."""
        items = list(self.draft.items.values())
        if self.draft.candidates:
            return "candidate"
        if self._has_choices():
            return "transcript_pair" if all(len(item.responses) == 2 for item in items) else "responses"
        if self.draft.has_judgments_of_no_system:
            return "candidate"
        has_turns = any(item.turns for item in items)
        return "dialogue" if has_turns or all(len(item.responses) == 1 for item in items) else "responses"

    def _has_choices(self) -> bool:
        return any(compares(scale["type"]) for of in self.by_condition.values() for scale in of.values())

    def _scale(self, scale: Scale, about: str) -> str:
        """The name of a scale, declared once however many criteria use it."""
        key = json.dumps(scale, sort_keys=True)
        if key not in self.scale_names:
            size = scale.get("points") or scale.get("high")
            name = f"{scale['type']}_{size}" if size else scale["type"]
            if "options" in scale or name in self.scales:
                name = f"{scale['type']}_{about}"
            self.scale_names[key] = plain_name(name, "scale")
            self.scales[self.scale_names[key]] = scale
        return self.scale_names[key]

    def _criterion(self, text: str, name: str) -> dict[str, Any]:
        declared = self.draft.declared
        scale = next(of_condition[text] for of_condition in self.by_condition.values() if text in of_condition)
        label = declared.criterion(text, "label") or (text if text != name else name.replace("_", " ").capitalize())
        criterion = {
            "name": name,
            "label": label,
            "question": declared.criterion(text, "question")
            or f"{label} (as asked where the judgments were collected)",
            "definition": declared.criterion(text, "definition"),
            "scale": self._scale(scale, name),
        }
        return {**_without_empty(criterion), "is_required": False}

    def _factors(self) -> list[dict[str, Any]]:
        """Factors with at least two levels; each level sets its scales, or only carries its name."""
        factors = []
        for text, name in self.draft.factors.names.items():
            levels = self.draft.levels[text].names
            if len(levels) < 2:
                continue
            entries: list[dict[str, Any]] = []
            for level_text, level in levels.items():
                scales = self._scales_at((text, level_text))
                change = {"scales": scales} if scales else {"variables": {name: level_text}}
                entries.append(_without_empty({"name": level, "label": level_text, "set": change}))
            factors.append({"name": name, "label": text if text != name else "", "levels": entries})
        return [_without_empty(factor) for factor in factors]

    def _scales_at(self, level: tuple[str, str]) -> dict[str, str]:
        """The scales that a level uses, where that is not the same for all levels."""
        result = {}
        for text, name in self.draft.criteria.names.items():
            used: dict[str, list[Condition]] = {}
            for condition, of_condition in self.by_condition.items():
                if text in of_condition:
                    used.setdefault(json.dumps(of_condition[text], sort_keys=True), []).append(condition)
            here = [key for key, conditions in used.items() if any(level in condition for condition in conditions)]
            if len(used) > 1 and len(here) == 1:
                result[name] = self._scale(json.loads(here[0]), f"{name}_{plain_name(level[1], 'level')}")
        return result

    def _questions(self) -> dict[str, list[dict[str, Any]]]:
        keys = {"screening": "screening", "pre": "pre_questionnaire", "post": "post_questionnaire"}
        result: dict[str, list[dict[str, Any]]] = {}
        for (part, name), scale in self.draft.question_scales().items():
            text = self.draft.declared.question(part, name) or f"{name} (as asked where the judgments were collected)"
            question = {"name": plain_name(name, "question"), "text": text, "scale": self._scale(scale, name)}
            result.setdefault(keys[part], []).append({**question, "is_required": False})
        return result

    def items(self) -> list[dict[str, Any]]:
        """The items, with a placeholder for every text that the files do not have."""
        if self.draft.candidates:
            return self.draft.candidates.items(self.draft.systems.name)
        return [self._item(item) for item in self.draft.items.values()]

    def _item(self, item: ItemDraft) -> dict[str, Any]:
        names = self.draft.systems.names
        common: dict[str, Any] = {"id": item.id}
        if set(self.draft.blocks) - {"main"}:
            common["block"] = item.block or next(iter(self.draft.blocks))
        metadata = {**item.about, **({"practice": True} if item.is_practice else {})}
        if metadata:
            common["metadata"] = metadata
        context = [{"speaker": "User", "text": item.context or NO_TEXT}]
        responses = {names[system]: text or NO_TEXT for system, text in item.responses.items()}
        before = context if item.context else []
        match self.kind:
            case "transcript_pair":
                said = {names[system]: [_as_written(turn) for turn in turns] for system, turns in item.said.items()}
                sides = [
                    {"system": system, "turns": said.get(system) or [*before, {"speaker": "Agent", "text": text}]}
                    for system, text in responses.items()
                ]
                if self.draft.declared.is_controlled and sides[0]["turns"] == sides[1]["turns"]:
                    common["breaches"] = {"difference": "the transcripts are not part of the imported data"}
                return {**common, "a": sides[0], "b": sides[1]}
            case "responses":
                shown = {name: responses.get(name, NO_TEXT) for name in names.values()}
                return {**common, "context": context, "responses": shown}
            case "candidate":
                candidate = {"speaker": "Agent", "text": next(iter(responses.values()), NO_TEXT)}
                return {**common, "context": context, "candidate": candidate, "ranks": dict.fromkeys(responses, 1)}
            case _:
                system, text = next(iter(responses.items()))
                if item.said:
                    turns = [_as_written(turn) for turn in next(iter(item.said.values()))]
                    return {**common, "system": system, "turns": turns}
                if item.turns:  # any turn that was rated must be one of the agent's
                    if max(item.turns) > MOST_TURNS:
                        raise DialometerError(
                            f"turn {max(item.turns):,} of the item '{item.id}' is rated; dialogues have up to {MOST_TURNS:,}",
                            remedy="correct the column with the turns",
                        )
                    before = [{"speaker": "Agent", "text": NO_TEXT}] * max(item.turns)
                return {**common, "system": system, "turns": [*before, {"speaker": "Agent", "text": text}]}

    def scales_in_words(self) -> dict[str, str]:
        """Criterion to its scale or scales, in words."""
        words: dict[str, list[str]] = {}
        for of_condition in self.by_condition.values():
            for text, scale in of_condition.items():
                try:
                    described = SCALES.get(scale["type"]).model_validate(scale).describe()
                except ValidationError as error:
                    why = error.errors()[0]["msg"]
                    raise DialometerError(
                        f"the values of '{text}' make no scale: {why}", remedy="correct them in the file"
                    ) from error
                words.setdefault(self.draft.criteria.names[text], []).append(described)
        return {name: " or ".join(dict.fromkeys(several)) for name, several in words.items()}

    def has_guessed_scales(self) -> bool:
        """Whether a scale is not as a dictionary beside the data says."""
        declared = self.draft.declared
        return any(
            scale != declared.scale(text, condition)
            for condition, of_condition in self.by_condition.items()
            for text, scale in of_condition.items()
        )


def _as_written(turn: Turn) -> dict[str, Any]:
    """A turn as items hold it; speakers are called by their roles, which every study knows."""
    speaker = {"user": "User", "agent": "Agent"}.get(turn.role, turn.speaker)
    return {**turn_as_json(turn), "speaker": speaker}


def _without_empty(entries: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value not in ("", None, [], {})}
