"""The form of a screen: reading what a browser sent, and placing controls beside the response or turn they are about.

Forms are read by one rule for all scales, so that a new scale needs only its template. A control is named like its field.
Parts of an answer follow a dot (``quality.best``, ``importance.Readability``) and become a mapping; several values under
one name become a list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten

from dialometer.design.pairs import Segment
from dialometer.errors import AnswerError, AnswersRejected
from dialometer.flow.screens import CONSENT_FIELD, MORE_FIELD, Field, ItemView, Option, Screen
from dialometer.flow.submissions import read_values
from dialometer.model.dialogue import Turn
from dialometer.model.scale import Scale

OTHER = "__other__"
"""What a choice sends when the rater's own words are in the control ``<name>.other``."""

RESERVED = frozenset(
    {
        "screen",
        "token",
        "csrf",
        "shown_at_ms",
        "first_input_at_ms",
        "focus_lost_n",
        "focus_lost_s",
        "device",
        "confirmed",
        "opened",
    }
)
"""Names that every form uses for itself; a question of the same name gets another control name."""

_ARABIC_SEPARATORS = str.maketrans({"٫": ".", "٬": ""})

Form = Mapping[str, Sequence[str]]


def control_name(field: str) -> str:
    """The name of a field's control in the form."""
    return f"answer.{field}" if field.split(".", 1)[0] in RESERVED else field


def answers_from_form(screen: Screen, form: Form) -> dict[str, object]:
    """The raw answers of a sent form, by field, as the scales read them."""
    return _read(screen, form, keeps_other=False)


def checked_answers(screen: Screen, form: Form) -> dict[str, object]:
    """The raw answers, once the rater was asked about those that look like slips (:meth:`Scale.doubt`).

    The page that asks carries the answers in question along as ``confirmed``, so it also works without scripts.
    """
    answers = answers_from_form(screen, form)
    confirmed = set(form.get("confirmed", ()))
    questions = {
        field.name: question
        for field in screen.fields
        if (question := doubt(field, answers.get(field.name))) and confirmation(field, answers) not in confirmed
    }
    if questions:
        try:
            read_values(screen.fields, answers)
        except AnswersRejected as rejected:
            questions = {**questions, **rejected.fields}
        raise AnswersRejected(questions)
    return answers


def doubt(field: Field, given: object) -> str:
    """The question about an answer that looks like a slip; empty for all others, also for those that are refused anyway."""
    if type(field.scale).doubt is Scale.doubt or given in (None, "", [], {}):
        return ""
    try:
        return field.scale.doubt(field.scale.parse_about(given, field.alternatives, field.passages), field.anchor)
    except AnswerError:
        return ""


def confirmation(field: Field, answers: Mapping[str, object]) -> str:
    """How a page notes that the rater was asked about this answer."""
    return f"{field.name}={answers.get(field.name)}"


def typed_answers(screen: Screen, typed: Mapping[str, object]) -> dict[str, object]:
    """What a page shows again: takes raw answers, stored values, a form as sent or a draft of one."""
    form: dict[str, list[str]] = {}
    is_form = "csrf" in typed
    for name, value in typed.items():
        if is_form and name in RESERVED:
            continue
        control = control_name(name)
        if isinstance(value, Mapping):
            form.update({f"{control}.{part}": [_as_typed(given)] for part, given in value.items()})
        elif isinstance(value, Sequence) and not isinstance(value, str):
            form[control] = [_as_typed(given) for given in value]
        elif value is not None:
            form[control] = [_as_typed(value)]
    return _read(screen, form, keeps_other=True)


def _as_typed(value: object) -> str:
    if isinstance(value, list | dict):  # parts of an answer that have parts themselves
        return json.dumps(value, ensure_ascii=False)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _read(screen: Screen, form: Form, *, keeps_other: bool) -> dict[str, object]:
    answers: dict[str, object] = {}
    for special in (CONSENT_FIELD, MORE_FIELD):
        if screen.kind == special and form.get(special):
            answers[special] = form[special][-1]
    names = {control_name(field.name) for field in screen.fields}
    for field in screen.fields:
        name = control_name(field.name)
        allows_other = bool(getattr(field.scale, "allow_other", False))
        value: object = _own_words(name, form, keeps_other=keeps_other) if allows_other else None
        if value is None:
            value = _answer(name, form, names)
        if isinstance(value, str) and not value.isascii() and field.scale.input_field().is_number:
            value = value.translate(_ARABIC_SEPARATORS)
        if value not in (None, "", [], {}):
            answers[field.name] = value
    return answers


def _own_words(name: str, form: Form, *, keeps_other: bool) -> str | None:
    """The rater's own words where "other" is chosen, or where they are written and nothing is chosen."""
    chosen = form.get(name, ())
    words = next((value for value in form.get(f"{name}.other", ()) if value.strip()), "")
    if OTHER in chosen:
        return words or (OTHER if keeps_other else "")
    return words if words and not any(value.strip() for value in chosen) else None


def _answer(name: str, form: Form, names: set[str]) -> object:
    given = [value for value in form.get(name, ()) if value.strip()]
    if given:
        return given[0] if len(given) == 1 else given
    prefix = f"{name}."
    parts = {key[len(prefix) :]: values for key, values in form.items() if key.startswith(prefix) and key not in names}
    return {part: values[-1] for part, values in parts.items() if values and values[-1].strip()}


EXCERPT_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a turn, marked where the two transcripts of a pair differ."""

    text: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class Bubble:
    """A turn as it is drawn; ``side`` keeps every speaker in one place."""

    speaker: str
    side: str
    turn: Turn
    pieces: tuple[Piece, ...]
    controls: tuple[Control, ...] = ()
    cut_lines: int = 0
    """At how many lines a long text is cut until the rater opens it; 0 where it is shown whole."""

    @property
    def text(self) -> str:
        """All of it, marked or not."""
        return self.turn.text

    @property
    def is_marked(self) -> bool:
        """Whether a difference is marked, which is shown in the text as it was written."""
        return any(piece.is_marked for piece in self.pieces)

    @property
    def n_words(self) -> int:
        """Words of the text, apart by white space."""
        return len(self.turn.text.split())


@dataclass(frozen=True, slots=True)
class Alternative:
    """A response or transcript with its place, its words and the controls that are about it alone."""

    place: str
    label: str
    bubbles: tuple[Bubble, ...]
    controls: tuple[Control, ...] = ()
    system_prompt: str = ""

    @property
    def marks_text(self) -> bool:
        """Whether one of its controls shows the text, to be marked."""
        return any(control.field.scale.marks_text for control in self.controls)

    @property
    def has_extras(self) -> bool:
        """Whether turns hold more than text."""
        return any(bubble.turn.tool_calls or bubble.turn.media for bubble in self.bubbles)


@dataclass(frozen=True, slots=True)
class Control:
    """A field with its place in the page: an id for labels and errors, what was typed, what is wrong with it.

    ``about`` names the response or turn in question where several fields ask the same.
    """

    id: str
    name: str
    field: Field
    value: object = None
    error: str = ""
    about: str = ""

    @property
    def described_by(self) -> str:
        """Ids of the help and the error, for screen readers."""
        ids = [f"{self.id}-help"] if self.field.help else []
        return " ".join(ids + ([f"{self.id}-error"] if self.error else []))

    def holds(self, option: object) -> bool:
        """Whether the option is (among) what was typed."""
        if isinstance(self.value, list):
            return str(option) in self.value
        return self.value is not None and str(option) == self.value

    def part(self, name: str) -> str:
        """One part of an answer that has several."""
        if isinstance(self.value, Mapping):
            return str(self.value.get(name, ""))
        if isinstance(self.value, list) and name in self.value:
            return str(self.value.index(name) + 1)
        return ""


@dataclass(frozen=True, slots=True)
class Arranged:
    """An item and its controls, each control at its place; ``ordered`` lists them as the page does."""

    context: tuple[Bubble, ...]
    alternatives: tuple[Alternative, ...]
    controls: tuple[Control, ...]
    ordered: tuple[Control, ...]

    @property
    def rates_each(self) -> bool:
        """Whether some question is asked about each alternative by itself."""
        return any(alternative.controls for alternative in self.alternatives)

    @property
    def marks_text(self) -> bool:
        """Whether a control below the item shows its text, to be marked."""
        return any(control.field.scale.marks_text for control in self.controls)

    @property
    def compares(self) -> bool:
        """Whether some question is asked over all alternatives together."""
        return any(control.field.scale.compares for control in self.controls)


def make_controls(screen: Screen, answers: Mapping[str, object], errors: Mapping[str, str]) -> list[Control]:
    """The controls of a screen in the order of its fields."""
    return [
        Control(f"f{i}", control_name(field.name), field, answers.get(field.name), errors.get(field.name, ""))
        for i, field in enumerate(screen.fields, start=1)
    ]


def arrange(
    item: ItemView, controls: Sequence[Control], option_label: str, chat: Sequence[Turn] | None = None
) -> Arranged:
    """Places controls beside the response, transcript or turn they are about; the rest goes below the item."""
    context = tuple(chat) if chat is not None else item.context
    sides = _sides([*context, *(turn for option in item.options for turn in option.turns)])
    by_target: dict[str, list[Control]] = {}
    for control in controls:
        by_target.setdefault(control.field.target, []).append(control)
    alternatives = []
    ordered: list[Control] = []
    for option in item.options:
        label = option_label.replace("{place}", option.place).replace("{letter}", chr(64 + int(option.place)))
        own = tuple(replace(control, about=label) for control in by_target.pop(option.place, ()))
        bubbles = []
        for i, bubble in enumerate(_bubbles(option, sides)):
            asked = by_target.pop(f"t{i}", ())
            if asked:
                words = shorten(option.turns[i].text, EXCERPT_LENGTH, placeholder=" …")
                about_turn = tuple(replace(control, about=f"“{words}”") for control in asked)
                ordered += about_turn
                bubble = replace(bubble, controls=about_turn)  # noqa: PLW2901
            cut = cut_lines(option.turns[i], item.shown.fold_words)
            bubbles.append(replace(bubble, cut_lines=cut) if cut else bubble)
        ordered += own
        alternatives.append(Alternative(option.place, label, tuple(bubbles), own, option.system_prompt))
    rest = tuple(control for about in by_target.values() for control in about)
    bubbles_before = tuple(Bubble(turn.speaker, sides[turn.speaker], turn, (Piece(turn.text),)) for turn in context)
    return Arranged(bubbles_before, tuple(alternatives), rest, (*ordered, *rest))


def _sides(turns: Sequence[Turn]) -> dict[str, str]:
    """Users at the end of the line and agents at its start, as in chats; other speakers alternate."""
    sides: dict[str, str] = {}
    n_persons = 0
    for turn in turns:
        if turn.speaker in sides:
            continue
        if turn.role == "person":
            sides[turn.speaker] = "end" if n_persons % 2 else "start"
            n_persons += 1
        else:
            sides[turn.speaker] = "end" if turn.role == "user" else "start"
    return sides


def _bubbles(option: Option, sides: Mapping[str, str]) -> list[Bubble]:
    marks = option.marks or {}
    return [
        Bubble(turn.speaker, sides[turn.speaker], turn, _pieces(turn.text, marks.get(i)))
        for i, turn in enumerate(option.turns)
    ]


CUT_HEIGHTS = (5, 8, 10, 12, 15, 18, 21, 25, 30, 35, 42, 50, 60, 80, 100, 150, 200)
"""Heights in lines at which texts are cut; the pages' sheet has a class for each."""
WORDS_PER_LINE = 6
"""On a phone; in the wider columns of a desktop a cut text shows more of its words, on all sides alike."""


def cut_lines(turn: Turn, fold_words: int | None) -> int:
    """At how many lines a turn is cut: the same for every turn that is longer than that, and 0 for all others."""
    if fold_words is None or turn.role == "user":
        return 0
    height = next((lines for lines in CUT_HEIGHTS if lines * WORDS_PER_LINE >= fold_words), CUT_HEIGHTS[-1])
    if len(turn.text.split()) > fold_words:
        return height
    # Code and lists take more lines than words.
    n_lines = sum(1 + len(line.split()) // (2 * WORDS_PER_LINE) for line in turn.text.splitlines())
    return height if n_lines > height else 0


def _pieces(text: str, segments: Sequence[Segment] | None) -> tuple[Piece, ...]:
    """The turn's own half of the comparison; segments hold both halves, and the text tells which one it is."""
    if not segments:
        return (Piece(text),)
    is_first = "".join(segment.a for segment in segments) == text
    halves = [(segment.a if is_first else segment.b, segment.kind != "equal") for segment in segments]
    return tuple(Piece(half, is_marked) for half, is_marked in halves if half)
