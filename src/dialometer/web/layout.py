"""How a screen's parts stand on the page: who speaks on which side, which control belongs to which response or turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten

from dialometer.design.pairs import Segment
from dialometer.flow.screens import Field, ItemView, Option, Screen
from dialometer.model.dialogue import Turn
from dialometer.web.forms import control_name

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
    pieces: tuple[Piece, ...]
    controls: tuple[Control, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """A response or transcript with its place, its words and the controls that are about it alone."""

    place: str
    label: str
    bubbles: tuple[Bubble, ...]
    controls: tuple[Control, ...] = ()


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
    """Puts controls to the response, transcript or turn they are about; the rest stands below the item."""
    context = tuple(chat) if chat is not None else item.context
    sides = _sides([*context, *(turn for option in item.options for turn in option.turns)])
    by_target: dict[str, list[Control]] = {}
    for control in controls:
        by_target.setdefault(control.field.target, []).append(control)
    alternatives = []
    ordered: list[Control] = []
    for option in item.options:
        label = option_label.replace("{place}", option.place)
        own = tuple(replace(control, about=label) for control in by_target.pop(option.place, ()))
        bubbles = []
        for i, bubble in enumerate(_bubbles(option, sides)):
            words = shorten(option.turns[i].text, EXCERPT_LENGTH, placeholder=" …")
            about_turn = tuple(replace(control, about=f"“{words}”") for control in by_target.pop(f"t{i}", ()))
            ordered += about_turn
            bubbles.append(replace(bubble, controls=about_turn))
        ordered += own
        alternatives.append(Alternative(option.place, label, tuple(bubbles), own))
    rest = tuple(control for about in by_target.values() for control in about)
    bubbles_before = tuple(Bubble(turn.speaker, sides[turn.speaker], (Piece(turn.text),)) for turn in context)
    return Arranged(bubbles_before, tuple(alternatives), rest, (*ordered, *rest))


def _sides(turns: Sequence[Turn]) -> dict[str, str]:
    """Users stand at the end of the line and agents at its start, as in chats; others alternate as they appear."""
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
        Bubble(turn.speaker, sides[turn.speaker], _pieces(turn.text, marks.get(i)))
        for i, turn in enumerate(option.turns)
    ]


def _pieces(text: str, segments: Sequence[Segment] | None) -> tuple[Piece, ...]:
    """The turn's own half of the comparison; segments hold both halves, and the text tells which one it is."""
    if not segments:
        return (Piece(text),)
    is_first = "".join(segment.a for segment in segments) == text
    halves = [(segment.a if is_first else segment.b, segment.kind != "equal") for segment in segments]
    return tuple(Piece(half, is_marked) for half, is_marked in halves if half)
