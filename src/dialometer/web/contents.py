"""What each kind of screen shows, ready for its template: headings, texts, an item with its controls, the time left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dialometer.flow.engine import Flow
from dialometer.flow.screens import Screen, fill
from dialometer.flow.steps import comprehension_rule
from dialometer.model.dialogue import Turn
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.web.language import Language
from dialometer.web.layout import Control, arrange
from dialometer.web.prose import render_prose

_QUESTION_KINDS = ("screening", "pre", "post", "comprehension", "attention")
_ITEM_TITLES = {
    "transcript_pair": "item.title_pair",
    "dialogue": "item.title_dialogue",
    "candidate": "item.title_candidate",
    "chat": "item.title_chat",
}


class Contents:
    """The contents of one study's screens in one language."""

    def __init__(self, study: Study, language: Language) -> None:
        self.study = study
        self.language = language

    def of(
        self, flow: Flow, session: Session, screen: Screen, controls: Sequence[Control], chat: Sequence[Turn] | None
    ) -> tuple[str, dict[str, Any]]:
        """The template of a screen and what it needs beyond the frame."""
        if screen.kind in _QUESTION_KINDS:
            more = self._instructions(session) if screen.kind == "comprehension" else {}
            rule = comprehension_rule(self.study)
            is_last = rule is not None and 1 < screen.attempt == rule.attempts
            heading = self.language.text(f"{screen.kind}.title")
            return "questions.html", {
                "heading": heading,
                "ordered": controls,
                "is_last_attempt": is_last,
                "instructions": None,
                **more,
            }
        if screen.kind == "consent":
            prose = render_prose(screen.text)
            heading = prose.heading or self.language.text("consent.title")
            return "consent.html", {
                "heading": heading,
                "text": prose.body,
                "version": flow.consent_version,
                "ordered": (),
            }
        if screen.kind == "instructions":
            prose = render_prose(screen.text)
            heading = prose.heading or self.language.text("instructions.title")
            more = {"criteria": self._criteria(session), "n_practice": self._n_practice(flow, session)}
            return "instructions.html", {"heading": heading, "text": prose.body, "ordered": (), **more}
        if screen.kind == "more":
            return "more.html", {"heading": self.language.text("more.title"), "ordered": ()}
        return self._item(screen, controls, chat)

    def _item(
        self, screen: Screen, controls: Sequence[Control], chat: Sequence[Turn] | None
    ) -> tuple[str, dict[str, Any]]:
        item = screen.item
        assert item is not None
        is_pair = item.kind == "transcript_pair"
        label = self.language.text("item.option_conversation" if is_pair else "item.option_response")
        said = [self._named(turn) for turn in chat] if chat is not None else None
        if item.kind == "chat" and said is None:
            said = [self._named(turn) for turn in item.context]
        arranged = arrange(item, controls, label, said)
        default = "item.title" if arranged.rates_each else "item.title_choose"
        heading = item.title or self.language.text(_ITEM_TITLES.get(item.kind, default))
        common: dict[str, Any] = {"item": item, "arranged": arranged, "heading": heading, "ordered": arranged.ordered}
        if screen.kind == "chat":
            n_said = sum(turn.role == "user" for turn in chat or ())
            common["heading"] = item.title or self.language.text("chat.title")
            common |= {"n_said": n_said, "is_waiting": bool(chat) and (chat or ())[-1].role == "user"}
            common |= {"names": {role: self._named(Turn("", "", role)).speaker for role in ("user", "agent")}}
            return "chat.html", common
        common["has_marks"] = any(option.marks for option in item.options)
        common["definitions"] = list(
            {c.field.label: c.field.definition for c in controls if c.field.definition}.items()
        )
        return "item.html", common

    def _named(self, turn: Turn) -> Turn:
        """Who speaks in a live conversation, in the study's words or else in the language's."""
        names = {role: name for name, role in self.study.spec.speakers.items()}
        own = names.get(turn.role, "")
        if own in ("", "User", "Agent"):
            own = self.language.text("chat.you" if turn.role == "user" else "chat.partner")
        return Turn(own, turn.text, turn.role)

    def _instructions(self, session: Session) -> dict[str, Any]:
        shown = self.study.presentation(session.condition)
        text = self.study.texts[shown.instructions or self.study.spec.texts.instructions]
        return {"instructions": render_prose(fill(self.study, shown, text)), "criteria": self._criteria(session)}

    def _criteria(self, session: Session) -> list[tuple[str, str]]:
        shown = self.study.presentation(session.condition)
        return [
            (
                criterion.label or criterion.name.replace("_", " ").capitalize(),
                fill(self.study, shown, criterion.definition),
            )
            for criterion in self.study.spec.criteria
            if criterion.definition
        ]

    def _n_practice(self, flow: Flow, session: Session) -> int:
        return sum(task.is_practice for task in flow.path(session).plan.tasks)

    def progress(self, flow: Flow, session: Session, screen: Screen) -> dict[str, Any]:
        """How far the session is, and how long it still takes at the rater's own pace, rounded up."""
        minutes = flow.remaining_s(session, flow.clock()) / 60
        rounded = math.ceil(minutes) if minutes < 10 else 5 * math.ceil(minutes / 5)
        is_counted = screen.kind in ("item", "chat") and not screen.is_practice
        return {
            "done": screen.step,
            "all": screen.n_steps,
            "percent": round(100 * screen.step / screen.n_steps),
            "left": self.language.count("progress.minutes", rounded)
            if minutes >= 1
            else self.language.text("progress.last_minute"),
            "item": self.language.text("progress.item", position=screen.position, n_items=screen.n_items)
            if is_counted
            else "",
        }


def back_step(flow: Flow, session: Session, screen: Screen) -> int | None:
    """The nearest earlier item that may be opened again; checks between items stay closed."""
    if not screen.may_go_back:
        return None
    steps = flow.path(session).steps
    return next((i for i in range(screen.step - 1, -1, -1) if steps[i].kind == "item"), None)
