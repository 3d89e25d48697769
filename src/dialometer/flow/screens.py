"""What one screen shows and asks, free of how it is drawn: web pages, the JSON API and simulated raters all read this.

System names never appear here: alternatives are numbered by their position on the screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dialometer.design.pairs import Segment, inspect_pair
from dialometer.design.protocol import WORDS_PER_SECOND, announced_minutes, chat_seconds, item_seconds
from dialometer.flow.language import Language
from dialometer.flow.steps import Path, Step, block_of, comprehension_rule
from dialometer.model.design import Presentation
from dialometer.model.dialogue import Turn
from dialometer.model.item import ArenaItem, CandidateItem, ChatItem, DialogueItem, Item, PairItem, ResponsesItem
from dialometer.model.marks import Passage
from dialometer.model.media import Recording
from dialometer.model.rater_text import PLACEHOLDER
from dialometer.model.scale import Scale
from dialometer.model.session import Dispute, Task
from dialometer.model.study import REASON, Criterion, Question, Study
from dialometer.scales.text import Text

CONSENT_FIELD = "consent"
MORE_FIELD = "more"
_REASON = Text(multiline=True, max_length=2000)


@dataclass(frozen=True, slots=True)
class AnswerInWords:
    """What one rater answered, in words, and why; or, of a checklist, what all answered on one point.

    Raters are known to adjudicators by letters.
    """

    who: str
    answer: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """One thing to answer. ``target`` is the place of the response or turn it is about, empty for the whole item."""

    name: str
    question: str
    scale: Scale
    definition: str = ""
    label: str = ""
    help: str = ""
    target: str = ""
    alternatives: tuple[str, ...] = ()
    is_required: bool = True
    anchor: float | None = None
    """The standard's value on this criterion, where the condition shows it."""
    passages: tuple[Passage, ...] = ()
    """What can be marked, on a scale that marks words."""
    said: tuple[AnswerInWords, ...] = ()
    """For adjudicators: what the raters answered who disagree."""


@dataclass(frozen=True, slots=True)
class Option:
    """One response or transcript on the screen, known to the rater only by its place."""

    place: str
    turns: tuple[Turn, ...]
    marks: Mapping[int, tuple[Segment, ...]] | None = None
    system_prompt: str = ""
    """What this system alone was told, where the condition shows it."""


_USUAL = Presentation()


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item as it is shown in this condition."""

    id: str
    kind: str
    context: tuple[Turn, ...] = ()
    options: tuple[Option, ...] = ()
    standard: str | None = None
    anchor_values: Mapping[str, float] = field(default_factory=dict)
    """The standard's value on each criterion that the screen asks for, where the condition shows it."""
    task: str = ""
    rated_turns: tuple[int, ...] = ()
    recording: Recording | None = None
    """What plays the candidate."""
    system_prompt: str = ""
    """What all systems were told, where the condition shows it."""
    shown: Presentation = _USUAL
    """How its texts, tool calls and system prompts are shown."""
    title: str = ""
    text: str = ""
    scenario: str = ""
    min_turns: int = 0
    max_turns: int = 0
    shown_id: str = ""
    """What pages and programs call the item."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Everything a rater sees at one step."""

    kind: Literal[
        "screening",
        "consent",
        "pre",
        "instructions",
        "comprehension",
        "chat",
        "item",
        "attention",
        "more",
        "post",
        "done",
    ]
    key: str
    step: int
    n_steps: int
    fields: tuple[Field, ...] = ()
    text: str = ""
    item: ItemView | None = None
    deadline_s: float | None = None
    is_practice: bool = False
    may_go_back: bool = False
    attempt: int = 0
    position: int = 0
    n_items: int = 0
    state: str = "active"
    shown_key: str = ""
    """What pages and programs call the screen: ids of items, which often name systems, are not in it."""


def build_screen(study: Study, path: Path, index: int, *, is_shown: bool = True) -> Screen:
    """The screen at a step of a session's path; one that is only read back can do without what the item looks like."""
    step = path.steps[index]
    common: dict[str, Any] = {"kind": step.kind, "key": step.key, "step": index, "n_steps": len(path.steps)}
    common["may_go_back"] = (
        study.spec.design.may_go_back and index > 0 and path.steps[index - 1].kind in ("item", "attention")
    )
    common |= {"n_items": path.n_items, "shown_key": step.shown or step.key}
    base = study.presentation(path.plan.condition)
    match step.kind:
        case "screening" | "pre" | "post":
            questions = _questions(study, step.kind)
            return Screen(**common, fields=tuple(_question_field(study, base, q) for q in questions))
        case "consent":
            return Screen(**common, text=fill(study, base, study.texts[study.spec.texts.consent]))
        case "instructions":
            text = study.texts[base.instructions or study.spec.texts.instructions]
            return Screen(**common, text=fill(study, base, text))
        case "comprehension":
            rule = comprehension_rule(study)
            checks = rule.questions if rule else ()
            fields = tuple(Field(c.name, fill(study, base, c.question), study.spec.scales[c.scale]) for c in checks)
            return Screen(**common, fields=fields, attempt=step.attempt)
        case "attention":
            assert step.check is not None
            field = Field(step.check.name, fill(study, base, step.check.question), study.spec.scales[step.check.scale])
            return Screen(**common, fields=(field,))
        case "more":
            return Screen(**common)
        case "item" | "chat":
            return _item_screen(study, path, step, common, is_shown=is_shown)


def _item_screen(study: Study, path: Path, step: Step, common: dict[str, Any], *, is_shown: bool) -> Screen:
    task = step.task
    assert task is not None
    block = block_of(study, task)
    presentation = study.presentation(path.plan.condition, block)
    item = study.items_by_id[task.item_id]
    if is_shown or not isinstance(item, ResponsesItem | PairItem):
        view = _view(study, item, task.systems, presentation)
        asked = [study.criteria_by_name[name] for name in step.criteria]
        anchors = study.shown_anchors(presentation, asked)
        view = replace(
            _as_shown(view, item, presentation),
            title=block.title,
            shown_id=study.shown_ids[item.id],
            text=fill(study, presentation, block.text),
            anchor_values=anchors,
            task=_task(study, presentation, asked, anchors),
        )
    else:
        view = ItemView(item.id, item.kind)
    fields: list[Field] = []
    for name in step.criteria:
        fields += _criterion_fields(study, item, name, presentation, task.systems)
    if task.disputes:
        fields = [field for field in fields if dispute_about(field, task) is not None]
    return Screen(
        **common,
        fields=tuple(fields),
        item=view,
        deadline_s=presentation.deadline_s if step.kind == "item" else None,
        is_practice=task.is_practice,
        position=task.position,
    )


def _view(study: Study, item: Item, systems: tuple[str, ...], shown: Presentation) -> ItemView:
    match item:
        case ResponsesItem():
            last = item.context[-1].speaker
            speaker = next((turn.speaker for turn in reversed(item.context) if turn.speaker != last), last)
            options = tuple(
                Option(
                    str(i), (item.response_turn(system, speaker),), system_prompt=item.system_prompts.get(system, "")
                )
                for i, system in enumerate(systems, start=1)
            )
            return ItemView(
                item.id,
                item.kind,
                context=item.context,
                options=options,
                standard=item.standard if shown.anchor in ("text", "both") else None,
            )
        case PairItem():
            transcripts = {side.system: side for side in (item.a, item.b)}
            marks = _marks(item) if shown.highlight_differences else {}
            options = tuple(
                Option(str(i), transcripts[system].turns, marks.get(system), transcripts[system].system_prompt)
                for i, system in enumerate(systems, start=1)
            )
            return ItemView(item.id, item.kind, options=options)
        case DialogueItem():
            turns = tuple(i for i, turn in enumerate(item.turns) if turn.role == "agent")
            rated = turns if study.spec.items.rate == "turns" else ()
            return ItemView(item.id, item.kind, options=(Option("1", item.turns),), rated_turns=rated)
        case CandidateItem():
            shown_candidate = (Option("1", (item.candidate,)),)
            return ItemView(item.id, item.kind, context=item.context, options=shown_candidate, recording=item.recording)
        case ChatItem() | ArenaItem():
            opening = (Turn("Agent", item.opening, "agent"),) if item.opening else ()
            is_arena = isinstance(item, ArenaItem)
            return ItemView(
                item.id,
                item.kind,
                context=() if is_arena else opening,
                options=(Option("1", opening), Option("2", opening)) if is_arena else (),
                scenario=item.scenario,
                min_turns=item.min_turns,
                max_turns=item.max_turns,
            )


def with_conversations(screen: Screen, conversations: Sequence[Sequence[Turn]]) -> Screen:
    """The screen of an arena with what was said on each side so far."""
    if screen.item is None:
        return screen
    options = tuple(Option(str(place), tuple(turns)) for place, turns in enumerate(conversations, start=1))
    return replace(screen, item=replace(screen.item, options=options))


def _as_shown(view: ItemView, item: Item, shown: Presentation) -> ItemView:
    """The view without what this condition hides: tool calls, system prompts."""
    tells = shown.system_prompt == "shown"
    options = tuple(
        replace(
            option,
            turns=_without_tools(option.turns, shown),
            system_prompt=option.system_prompt if tells else "",
        )
        for option in view.options
    )
    return replace(
        view,
        context=_without_tools(view.context, shown),
        options=options,
        system_prompt=item.system_prompt if tells else "",
        shown=shown,
    )


def _without_tools(turns: tuple[Turn, ...], shown: Presentation) -> tuple[Turn, ...]:
    if shown.tools != "hidden" or not any(turn.tool_calls for turn in turns):
        return turns
    return tuple(replace(turn, tool_calls=()) for turn in turns)


def _task(study: Study, shown: Presentation, criteria: Sequence[Criterion], anchors: Mapping[str, float]) -> str:
    """The task in this condition, with what this screen asks for and the values it shows."""
    if not shown.task:
        return ""
    labels = {criterion.name: criterion.shown_label for criterion in criteria}
    language = _language(study)
    values = [number_words(value) for value in anchors.values()]
    if len(set(values)) > 1:
        values = [f"{labels[name]} {value}" for name, value in zip(anchors, values, strict=True)]
    words = {"criteria": language.listed(list(labels.values())), "anchor": ", ".join(dict.fromkeys(values))}
    return fill(study, shown, shown.task, words)


def number_words(number: float) -> str:
    """A number as people write it, without needless decimals or exponents."""
    return f"{number:.15g}" if abs(number) < 1e15 else f"{number:.0f}"


def _language(study: Study) -> Language:
    key = ("language",)
    if key not in study.remembered:
        study.remembered[key] = Language(study.spec.language, study.spec.wording)
    language: Language = study.remembered[key]
    return language


def _marks(item: PairItem) -> dict[str, dict[int, tuple[Segment, ...]]]:
    """For each side, the differing turns cut into equal and changed stretches."""
    differences = inspect_pair(item).differences
    return {side: dict(differences) for side in (item.a.system, item.b.system)}


def _criterion_fields(
    study: Study, item: Item, name: str, shown: Presentation, systems: tuple[str, ...]
) -> list[Field]:
    """The fields of a criterion; remembered, since they are the same for every rater who sees the item this way."""
    marks_text = study.scale_for(study.criteria_by_name[name], shown).marks_text
    key = (id(shown), item.id, name, systems if marks_text else len(systems))
    if key not in study.remembered:
        made = _make_fields(study, item, name, shown, len(systems))
        if marks_text:
            made = [replace(field, passages=_passages(study, item, systems, shown, field)) for field in made]
        study.remembered[key] = _with_reasons(study, study.criteria_by_name[name], shown, made)
    fields: list[Field] = study.remembered[key]
    return fields


def _passages(
    study: Study, item: Item, systems: tuple[str, ...], shown: Presentation, field: Field
) -> tuple[Passage, ...]:
    """The texts that a field is about, as they are shown."""
    options = _view(study, item, systems, shown).options
    if field.target.startswith("t"):
        turn = options[0].turns[int(field.target[1:])]
        return (Passage(int(field.target[1:]), turn.text, turn.speaker),)
    turns = next((option.turns for option in options if option.place == (field.target or "1")), ())
    return field.scale.markable([(turn.speaker, turn.role, turn.text) for turn in turns])


def _make_fields(study: Study, item: Item, name: str, shown: Presentation, n_systems: int) -> list[Field]:
    criterion = study.criteria_by_name[name]
    scale = study.scale_for(criterion, shown)
    common: dict[str, Any] = {
        "question": fill(study, shown, criterion.question),
        "definition": fill(study, shown, criterion.definition),
        "label": criterion.shown_label,
        "scale": scale,
        "is_required": criterion.is_required,
        "anchor": study.shown_anchors(shown, [criterion]).get(name),
    }
    places = tuple(str(i) for i in range(1, n_systems + 1))
    if scale.compares:
        return [Field(name=name, alternatives=places, **common)]
    if isinstance(item, ResponsesItem | PairItem | ArenaItem):
        return [Field(name=f"{name}.{place}", target=place, **common) for place in places]
    if isinstance(item, DialogueItem) and study.spec.items.rate == "turns":
        turns = [i for i, turn in enumerate(item.turns) if turn.role == "agent"]
        return [Field(name=f"{name}.t{i}", target=f"t{i}", **common) for i in turns]
    return [Field(name=name, **common)]


def _with_reasons(study: Study, criterion: Criterion, shown: Presentation, fields: list[Field]) -> list[Field]:
    """Each field followed by the one for its reason, where the criterion asks for reasons."""
    if criterion.reason is None:
        return fields
    asked = fill(study, shown, criterion.reason_question) or _language(study).text("reason.question")
    is_required = criterion.reason == "required" and criterion.is_required
    return [
        one
        for field in fields
        for one in (
            field,
            Field(field.name + REASON, asked, _REASON, label=field.label, target=field.target, is_required=is_required),
        )
    ]


def dispute_about(field: Field, task: Task) -> Dispute | None:
    """What a field would settle, or give the reason for; None for a field about which nobody disagrees."""
    criterion = criterion_of(field).removesuffix(REASON)
    for dispute in task.disputes:
        if field.target.startswith("t"):
            is_same = field.target == f"t{dispute.turn}"
        else:
            is_same = not field.target or task.systems[int(field.target) - 1] == dispute.system
        if dispute.criterion == criterion and is_same:
            return dispute
    return None


def criterion_of(field: Field) -> str:
    """The name under which the answer of a field is stored."""
    return field.name.split(".", 1)[0] + (REASON if field.name.endswith(REASON) else "")


def _questions(study: Study, part: str) -> list[Question]:
    spec = study.spec
    return {"screening": spec.screening, "pre": spec.pre_questionnaire, "post": spec.post_questionnaire}[part]


def _question_field(study: Study, shown: Presentation, question: Question) -> Field:
    return Field(
        question.name,
        fill(study, shown, question.text),
        study.spec.scales[question.scale],
        help=question.help,
        is_required=question.is_required,
    )


def fill(study: Study, shown: Presentation, text: str, words: Mapping[str, str] | None = None) -> str:
    """The text with its placeholders filled in; unknown ones were refused when the study was loaded."""
    if "{{" not in text:
        return text
    values = {
        "title": study.spec.title,
        "contact": study.spec.contact,
        "minutes": str(announced_minutes(study)),
        "pay": study.spec.recruitment.pay,
        **(words or {}),
        **shown.variables,
    }
    return PLACEHOLDER.sub(lambda match: values.get(match[1].strip(), match[0]), text)


def step_seconds(study: Study, path: Path, step: Step) -> float:
    """Estimated seconds for one step, for the remaining time told to raters."""
    if step.task is not None:
        item, block = study.items_by_id[step.task.item_id], block_of(study, step.task)
        whole_s = item_seconds(study, item, block, path.plan.condition)
        talking_s = chat_seconds(item)
        if step.kind == "chat":
            return talking_s
        return (whole_s - talking_s) * len(step.criteria) / max(1, len(step.task.criteria))
    if step.kind in ("screening", "pre", "post"):
        return sum(
            study.spec.scales[q.scale].seconds_per_answer + len(q.text.split()) / WORDS_PER_SECOND
            for q in _questions(study, step.kind)
        )
    if step.kind in ("consent", "instructions"):
        name = study.spec.texts.consent if step.kind == "consent" else study.spec.texts.instructions
        return len(study.texts.get(name, "").split()) / WORDS_PER_SECOND
    return 8.0
