"""Where in a study a judgment or answer of a file belongs: item, system, criterion, scale, question."""

from __future__ import annotations

from dataclasses import dataclass

from dialometer.exchange.names import KnownNames, plain_name
from dialometer.exchange.records import Answered, Condition, Rated
from dialometer.model.item import DialogueItem, Item, PairItem, ResponsesItem
from dialometer.model.scale import Scale, Value
from dialometer.model.study import Block, Study
from dialometer.quality.checks import Attention, Comprehension
from dialometer.registry import did_you_mean


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something has no place, and what to do about it."""

    message: str
    remedy: str = ""
    column: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A judgment's place; ``order`` holds the systems that were on the screen.

    ``spot`` numbers what can be judged once by a rater: a criterion of an item, system and turn.
    """

    spot: int
    criterion: str
    scale_name: str
    scale: Scale
    system: str
    order: tuple[str, ...]
    block: str

    def side(self, value: Value) -> int:
        """The place on the screen of the system judged or chosen, from 1; 0 where there is none or it is not known."""
        about = value if self.scale.compares else self.system
        return self.order.index(about) + 1 if isinstance(about, str) and about in self.order else 0


class Places:
    """Looks up places; the same question is answered once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.systems = KnownNames("system", [(system.name, system.label) for system in study.spec.systems])
        self.criteria = KnownNames("criterion", [(one.name, one.label) for one in study.spec.criteria])
        self.blocks = {block.name: block for block in study.blocks}
        self._known: dict[tuple[object, ...], Place | Refusal] = {}
        self._spots: dict[tuple[object, ...], int] = {}
        self._questions = _questions_of(study)

    def find(self, record: Rated, condition: Condition) -> Place | Refusal:
        """The place of a judgment made in a condition, or why it has none."""
        shape = (record.item, record.system, record.criterion, record.shown, record.block, record.scale, record.turn)
        key = (shape, condition)
        if key not in self._known:
            self._known[key] = self._find(record, condition)
        return self._known[key]

    def named(self, raw: object, place: Place) -> object:
        """A comparing answer with the study's names for the systems in it."""
        if not place.scale.compares:
            return raw
        if isinstance(raw, str):
            return self.systems.find(raw) or raw
        if isinstance(raw, list):
            return [self.systems.find(str(one)) or one for one in raw]
        if isinstance(raw, dict):
            return {role: self.systems.find(str(one)) or one for role, one in raw.items()}
        return raw

    def question(self, record: Answered) -> tuple[str, str, Scale] | Refusal:
        """Part, name and scale of the question that was answered."""
        name = record.question if record.question in self._questions else plain_name(record.question, "question")
        parts = self._questions.get(name, {})
        if record.part in parts:
            return record.part, name, parts[record.part]
        if parts and not record.part:
            part, scale = next(iter(parts.items()))
            return part, name, scale
        if parts:
            return Refusal(
                f"'{record.question}' is not asked in '{record.part}'", did_you_mean(record.part, list(parts))
            )
        remedy = did_you_mean(record.question, sorted(self._questions))
        return Refusal(f"the study has no question '{record.question}'", remedy, "question")

    def _find(self, record: Rated, condition: Condition) -> Place | Refusal:
        item = self.study.items_by_id.get(record.item)
        if item is None:
            return Refusal(f"the study has no item '{record.item}'", did_you_mean(record.item, self._ids()), "item")
        criterion_name = self.criteria.find(record.criterion)
        if criterion_name is None:
            remedy = self.criteria.remedy(record.criterion)
            return Refusal(f"the study has no criterion '{record.criterion}'", remedy, "criterion")
        block = self._block(record, item)
        if isinstance(block, Refusal):
            return block
        criterion = self.study.criteria_by_name[criterion_name]
        presentation = self.study.presentation(dict(condition), block)
        scale_name = presentation.scales.get(criterion.name, criterion.scale)
        scale = self.study.spec.scales[scale_name]
        if record.scale and record.scale != scale.type:
            message = f"it was answered on a scale of type {record.scale}, but the study asks for {scale.type}"
            return Refusal(message, "import into the study that it was collected with", "scale")
        order = self._order(record, item)
        if isinstance(order, Refusal):
            return order
        system = self._system(record, item, scale)
        if isinstance(system, Refusal):
            return system
        spot = self._spots.setdefault((item.id, criterion.name, system, record.turn), len(self._spots))
        return self._turn(record, item) or Place(spot, criterion.name, scale_name, scale, system, order, block.name)

    def _ids(self) -> list[str]:
        return [item.id for item in self.study.items[:200]]

    def _block(self, record: Rated, item: Item) -> Block | Refusal:
        name = record.block or item.block or next(iter(self.blocks))
        if name not in self.blocks:
            return Refusal(f"the study has no block '{name}'", did_you_mean(name, list(self.blocks)), "block")
        return self.blocks[name]

    def _order(self, record: Rated, item: Item) -> tuple[str, ...] | Refusal:
        """The systems on the screen: those the file lists, in its order, else those of the item."""
        if not record.shown:
            return item.systems
        names = []
        for text in record.shown:
            name = self.systems.find(text)
            if name is None:
                return Refusal(f"the study has no system '{text}'", self.systems.remedy(text), "system")
            if name not in item.systems:
                return Refusal(f"the item '{item.id}' does not show '{name}'", did_you_mean(name, list(item.systems)))
            names.append(name)
        return tuple(names)

    def _system(self, record: Rated, item: Item, scale: Scale) -> str | Refusal:
        """The system judged; empty where an answer is about all of them, or about none in particular."""
        if scale.compares:
            return ""
        if not record.system:
            if isinstance(item, ResponsesItem | PairItem):
                return Refusal("nothing says which system was judged", "--map system=COLUMN", "system")
            return item.systems[0] if len(item.systems) == 1 else ""
        name = self.systems.find(record.system)
        if name is None:
            return Refusal(f"the study has no system '{record.system}'", self.systems.remedy(record.system), "system")
        if name not in item.systems:
            return Refusal(
                f"the item '{item.id}' does not show '{name}'", did_you_mean(name, list(item.systems)), "system"
            )
        return name

    def _turn(self, record: Rated, item: Item) -> Refusal | None:
        """Turns are rated where the study asks for it, and only turns of the agent."""
        rated: list[int] = []
        if isinstance(item, DialogueItem) and self.study.spec.items.rate == "turns":
            rated = [number for number, turn in enumerate(item.turns) if turn.role == "agent"]
        if record.turn is None and not rated:
            return None
        if record.turn is None:
            return Refusal("nothing says which turn was judged", "--map turn=COLUMN, counted from 0", "turn")
        if record.turn not in rated:
            told = f"turns {', '.join(map(str, rated))}" if rated else "whole items, no turns"
            return Refusal(f"turn {record.turn} is not rated in '{item.id}'", f"the study rates {told}", "turn")
        return None


def _questions_of(study: Study) -> dict[str, dict[str, Scale]]:
    """Scale by part, for every question and check of a study."""
    spec, scales = study.spec, study.spec.scales
    found: dict[str, dict[str, Scale]] = {}
    asked = [("screening", spec.screening), ("pre", spec.pre_questionnaire), ("post", spec.post_questionnaire)]
    for part, questions in asked:
        for question in questions:
            found.setdefault(question.name, {})[part] = scales[question.scale]
    for rule in spec.quality:
        if isinstance(rule, Attention):
            for check in rule.checks:
                found.setdefault(check.name, {})["attention"] = scales[check.scale]
        elif isinstance(rule, Comprehension):
            for asked_again in rule.questions:
                of_part = {f"comprehension/{n}": scales[asked_again.scale] for n in range(1, rule.attempts + 1)}
                found.setdefault(asked_again.name, {}).update(of_part)
    return found
