"""What a simulated rater needs to see of a screen, whether it came from the engine or over HTTP."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from dialometer.model.marks import Passage
from dialometer.model.scale import Scale
from dialometer.model.study import Study


@dataclass(frozen=True, slots=True)
class FieldView:
    """One thing to answer."""

    name: str
    scale: Scale
    target: str = ""
    alternatives: tuple[str, ...] = ()
    is_required: bool = True
    anchor: float | None = None
    """The standard's value that is shown with it."""
    passages: tuple[Passage, ...] = ()
    """What can be marked, on a scale that marks words."""


@dataclass(frozen=True, slots=True)
class ScreenView:
    """A screen as it is read: its fields and the texts shown, in the order of their places."""

    kind: str
    key: str
    step: int
    n_steps: int
    fields: tuple[FieldView, ...] = ()
    item_id: str = ""
    option_texts: tuple[str, ...] = ()
    has_standard: bool = False
    min_turns: int = 0
    said: tuple[str, ...] = ()
    """In a chat: who spoke so far (user or agent), turn by turn; an opening of the agent counts."""
    seconds: float = 10.0
    state: str = "active"
    systems: tuple[str, ...] = ()
    """In an arena: the systems in the order of their places. The texts do not tell them, since they are said live."""
    language: str = ""
    """The language of its texts."""


def with_own_names(study: Study, shown: ScreenView) -> ScreenView:
    """The same screen with the study's own names of it and its item, where a server calls them by names that say nothing.

    What is true of an item and what chance gives a rater on a screen go by the own names, so that raters judge the same
    over a server.
    """
    return replace(shown, key=study.own_key(shown.key), item_id=study.own_id(shown.item_id))


@dataclass(frozen=True, slots=True)
class Visit:
    """What a rater sends with the answers of one screen."""

    session: str
    screen: str
    answers: dict[str, object]
    shown_at_ms: int
    first_input_at_ms: int
    submitted_at_ms: int
    token: str
    device: str = "simulated"


class StudyAccess(Protocol):
    """How simulated raters reach a study: through the engine in this process, or a server by its address."""

    def arrive(self, external_id: str, at_ms: int, language: str = "") -> str | None:
        """The session's handle, or None when the study has no place left."""

    def screen(self, session: str) -> ScreenView:
        """The session's current screen."""

    def submit(self, visits: list[Visit]) -> tuple[int, int]:
        """Sends screens of different sessions; returns how many judgments, and how many practice judgments apart from
        them, were acknowledged as stored."""

    def say(self, session: str, item_id: str, text: str, at_ms: int) -> str:
        """One message in a chat; returns the agent's reply, or nothing in an arena, where there are two."""

    def wait_for_reply(self, session: str, item_id: str, at_ms: int) -> str:
        """Asks for the reply that failed to come in an earlier run."""


class SettlingAccess(StudyAccess, Protocol):
    """The same for adjudicators, which a server lets in only by their own links."""

    def arrive_to_settle(self, name: str, at_ms: int) -> str | None:
        """The session's handle, or None when nothing is waiting to be settled."""
