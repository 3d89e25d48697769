"""A study as a form of another annotation tool: what maps, what does not, and the key that leads answers back.

Such a form has one screen per item with all criteria. It has no conditions, no questionnaires, no practice and no live
rules; for those, serve the study itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dialometer.errors import DialometerError
from dialometer.exchange.import_format import Intake
from dialometer.exchange.records import UNKNOWN_MS, Condition, JudgmentRecord
from dialometer.model.dialogue import Turn
from dialometer.model.item import CandidateItem, DialogueItem, Item, PairItem, ResponsesItem, turns_of
from dialometer.model.scale import Scale
from dialometer.model.study import Study
from dialometer.storage.table import FACTOR_PREFIX

KEY_FILE = "dialometer-key.json"
"""Says which system stands where, so it is not for raters; the import looks for it beside the answers."""
MARK = "dialometer_form"
PLACES = "ABCDEFGHIJ"


@dataclass(frozen=True, slots=True)
class FormField:
    """One thing to answer. ``name`` is its name in the tool; ``place`` the alternative it is about, from 1, 0 for all.

    ``part`` is best or worst where one answer is asked in two fields.
    """

    name: str
    criterion: str
    place: int = 0
    part: str = ""


@dataclass(frozen=True, slots=True)
class WorstControl:
    """Where the worst is asked after ``letter`` was chosen in the field ``best``: all options but that one."""

    name: str
    best: str
    letter: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FormItem:
    """One item in the form: systems in the order of their places, texts as turns.

    ``id`` is what raters may see in the tool and names nothing; ``item`` is the item's id in the study.
    """

    id: str
    item: str
    systems: tuple[str, ...]
    context: tuple[Turn, ...]
    options: tuple[tuple[Turn, ...], ...]


@dataclass(frozen=True, slots=True)
class ToolForm:
    """Everything a tool needs, and the study's scales by field."""

    study: Study
    fields: tuple[FormField, ...]
    items: tuple[FormItem, ...]
    left_out: tuple[str, ...]

    def scale(self, field: FormField) -> Scale:
        """The scale on which a field is answered."""
        return self.study.scale_for(self.study.criteria_by_name[field.criterion], self.study.spec.presentation)

    def question(self, field: FormField) -> str:
        """What a rater is asked in a field."""
        question = self.study.criteria_by_name[field.criterion].question
        about = f" ({PLACES[field.place - 1]})" if field.place else ""
        part = f" ({field.part})" if field.part else ""
        return f"{question}{about}{part}"

    def worst_controls(self, field: FormField) -> Iterator[WorstControl]:
        """One control for each choice of the best, to be shown after it, so that best is never worst."""
        letters = tuple(PLACES[: self.n_places])
        for letter in letters:
            rest = tuple(other for other in letters if other != letter)
            yield WorstControl(f"{field.name}__{letter}", f"{field.criterion}__best", letter, rest)

    @property
    def n_places(self) -> int:
        """How many alternatives stand on a screen."""
        return len(self.items[0].options)

    def key(self) -> dict[str, Any]:
        """What the import needs to read answers back."""
        return {
            MARK: 2,
            "study": self.study.spec.name,
            "fields": [asdict(field) for field in self.fields],
            "items": {item.id: {"item": item.item, "systems": list(item.systems)} for item in self.items},
        }

    def write_key(self, folder: Path) -> Path:
        """Write the key."""
        file = folder / KEY_FILE
        file.write_text(json.dumps(self.key(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return file


def tool_form(study: Study) -> ToolForm:
    """The study as a form; raises where its items do not fit into one. Sides are drawn from the study's seed."""
    spec = study.spec
    if spec.items.kind in ("chat", "arena") or spec.items.rate == "turns":
        noun = "live conversations" if spec.items.kind in ("chat", "arena") else "ratings turn by turn"
        raise DialometerError(f"{noun} have no place in such a form", remedy="serve the study with 'dialometer serve'")
    items = tuple(
        _item(item, study.neutral_ids[item.id], spec.seed, number) for number, item in enumerate(study.rated_items)
    )
    if spec.presentation.tools == "hidden":
        items = tuple(_without_tools(item) for item in items)
    sizes = {len(item.options) for item in items}
    if len(sizes) > 1:
        raise DialometerError(
            "items show different numbers of systems, and such a form is the same for all items",
            remedy="split the items into studies of one size",
        )
    fields: list[FormField] = []
    left_out: list[str] = []
    for criterion in spec.criteria:
        scale = study.scale_for(criterion, spec.presentation)
        if scale.choice_form == "order":
            left_out.append(f"{criterion.name}: rankings have no place in such a form")
        elif scale.input_field().kind == "parts":
            left_out.append(
                f"{criterion.name}: answers of several parts ({scale.describe()}) have no place in such a form"
            )
        elif scale.choice_form == "ends":
            fields += [FormField(f"{criterion.name}__{part}", criterion.name, part=part) for part in ("best", "worst")]
        elif scale.compares or max(sizes) == 1:
            fields.append(FormField(criterion.name, criterion.name))
        else:
            fields += [
                FormField(f"{criterion.name}__{place}", criterion.name, place) for place in range(1, max(sizes) + 1)
            ]
    if not fields:
        raise DialometerError("nothing of this study maps to such a form", remedy="; ".join(left_out))
    for label, there in (
        ("between-rater factors: everybody sees the study's base presentation", spec.design.factors),
        ("questionnaires", [*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire]),
        ("quality rules", spec.quality),
        ("practice items", study.practice_items),
        ("media files: the form has their alternative texts", [t for i in study.items for t in turns_of(i) if t.media]),
        ("system prompts", spec.presentation.system_prompt == "shown"),
    ):
        if there:
            left_out.append(label)
    return ToolForm(study, tuple(fields), items, tuple(left_out))


def _item(item: Item, neutral: str, seed: int, number: int) -> FormItem:
    """An item as the form shows it."""
    texts: dict[str, tuple[Turn, ...]]
    match item:
        case ResponsesItem():
            texts = {system: (replace(item.response_turn(system, "Agent"), role="agent"),) for system in item.responses}
            context = item.context
        case PairItem():
            texts = {side.system: side.turns for side in (item.a, item.b)}
            context = ()
        case DialogueItem():
            return FormItem(neutral, item.id, item.systems, (), (item.turns,))
        case CandidateItem():
            return FormItem(neutral, item.id, (), item.context, ((item.candidate,),))
        case _:
            raise AssertionError("chat items were refused before")
    names = list(texts)
    order = [names[i] for i in np.random.default_rng([seed, 6, number]).permutation(len(names))]
    return FormItem(neutral, item.id, tuple(order), context, tuple(texts[name] for name in order))


def _without_tools(item: FormItem) -> FormItem:
    context, *options = (
        tuple(replace(turn, tool_calls=()) for turn in turns) for turns in (item.context, *item.options)
    )
    return replace(item, context=context, options=tuple(options))


def read_key(path: Path) -> dict[str, Any] | None:
    """The key beside a file of answers, or in a folder above it; None where there is none."""
    start = path if path.is_dir() else path.parent
    for folder in (start, *list(start.resolve().parents)[:3]):
        file = folder / KEY_FILE
        if file.is_file():
            try:
                key = json.loads(file.read_text(encoding="utf-8"))
            except (ValueError, RecursionError):
                return None
            return key if _is_key(key) else None
    return None


def _is_key(key: Any) -> bool:
    """Whether a file's content is a key as :meth:`ToolForm.write_key` writes it."""
    if not isinstance(key, dict) or MARK not in key:
        return False
    fields, items = key.get("fields", []), key.get("items", {})
    return (
        isinstance(fields, list)
        and isinstance(items, dict)
        and all(
            isinstance(field, dict)
            and all(isinstance(field.get(name), str) for name in ("name", "criterion", "part"))
            and isinstance(field.get("place"), int)
            for field in fields
        )
        and all(_is_item(item) for item in items.values())
    )


def _is_item(item: Any) -> bool:
    """Whether an item of a key says which systems stand where; keys of the first form (``MARK`` 1) list them alone."""
    systems = item.get("systems") if isinstance(item, dict) and isinstance(item.get("item"), str) else item
    return isinstance(systems, list) and all(isinstance(name, str) for name in systems)


# answers from such a form, read back by the key

NOT_IN_KEY = "answers to fields that the study's form does not have"
HALF = "best-worst answers of which one half is missing"
SAME = "best-worst answers with the same response as best and worst"
_LEFT, _RIGHT = ("left", "right")


class FormAnswers:
    """Turns the answers of one rater to one item into judgments. Without a key, fields are criteria as they are called."""

    def __init__(self, intake: Intake, key: Mapping[str, Any] | None) -> None:
        self.intake = intake
        self.fields = {field["name"]: field for field in (key or {}).get("fields", [])}
        listed = (key or {}).get("items", {})
        self.items: dict[str, tuple[str, tuple[str, ...]]] = {
            name: (item["item"], tuple(item["systems"])) if isinstance(item, dict) else (name, tuple(item))
            for name, item in listed.items()
        }
        self.has_key = key is not None
        self.condition = _condition(intake)

    def knows(self, name: str) -> bool:
        """Whether the form has a field of this name."""
        return _without_letter(name)[0] in self.fields

    def records(
        self,
        rater: str,
        item: str,
        answers: Mapping[str, object],
        *,
        line: int,
        shown_at_ms: int = UNKNOWN_MS,
        answered_at_ms: int = UNKNOWN_MS,
    ) -> Iterator[JudgmentRecord]:
        """The judgments; what the key does not know is left out and counted."""
        if self.has_key and item not in self.items:
            self.intake.wrong(line, f"the form has no item '{item}'", "give the answers to the form of this study")
            return
        item, systems = self.items.get(item, (item, ()))
        halves: dict[str, dict[str, object]] = {}
        judgment = partial(
            JudgmentRecord,
            line=line,
            rater=rater,
            item=item,
            shown=systems,
            shown_at_ms=shown_at_ms,
            answered_at_ms=answered_at_ms,
            condition=self.condition,
        )
        for control, raw in answers.items():
            name, letter = _without_letter(control)
            field = self.fields.get(name)
            if field is None and self.has_key:
                self.intake.left_out[NOT_IN_KEY] += 1
                continue
            field = field or {"criterion": name, "place": 0, "part": ""}
            if letter and answers.get(f"{field['criterion']}__best") != letter:
                continue  # asked after another choice of the best, which was changed since
            if field["part"]:
                halves.setdefault(field["criterion"], {})[field["part"]] = _system(raw, systems)
                continue
            place = int(field["place"])
            system = systems[place - 1] if 0 < place <= len(systems) else ""
            yield judgment(criterion=field["criterion"], raw=_system(raw, systems), system=system, column=name)
        for criterion, both in halves.items():
            if set(both) != {"best", "worst"}:
                self.intake.left_out[HALF] += 1
            elif both["best"] == both["worst"]:
                self.intake.left_out[SAME] += 1
            else:
                yield judgment(criterion=criterion, raw=both, column=criterion)


def _without_letter(name: str) -> tuple[str, str]:
    """The field of a control and, where it asks for the worst, the choice of the best after which it is shown."""
    base, _, letter = name.rpartition("__")
    return (base, letter) if base.endswith("__worst") and letter in PLACES else (name, "")


def _system(raw: object, systems: tuple[str, ...]) -> object:
    """The system behind a place (``A``, ``left``); anything else is an answer as it is."""
    if not isinstance(raw, str):
        return raw
    if raw in (_LEFT, _RIGHT) and len(systems) == 2:
        return systems[(_LEFT, _RIGHT).index(raw)]
    is_place = len(raw) == 1 and raw in PLACES[: len(systems)]
    return systems[PLACES.index(raw)] if is_place else raw


def _condition(intake: Intake) -> Condition:
    """Levels that ``--map factor_NAME=:LEVEL`` gives all answers; a form has no conditions of its own."""
    columns = intake.options.columns.items()
    return tuple(
        (role.removeprefix(FACTOR_PREFIX), level[1:])
        for role, level in columns
        if role.startswith(FACTOR_PREFIX) and level.startswith(":")
    )
