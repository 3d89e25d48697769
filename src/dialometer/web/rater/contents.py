"""What is on each screen: its template, heading, fields in order and progress. ``pages`` draws it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from dialometer.flow.engine import Flow
from dialometer.flow.language import Language
from dialometer.flow.screens import ItemView, Screen, fill, number_words
from dialometer.flow.steps import comprehension_rule
from dialometer.model.dialogue import Turn
from dialometer.model.session import Session
from dialometer.model.study import Study
from dialometer.web.rater.layout import Control, arrange
from dialometer.web.rater.prose import render_prose

_QUESTION_KINDS = ("screening", "pre", "post", "comprehension", "attention")
_ITEM_TITLES = {
    "transcript_pair": "item.title_pair",
    "dialogue": "item.title_dialogue",
    "candidate": "item.title_candidate",
    "chat": "item.title_chat",
    "arena": "arena.vote",
}
_OPTION_LABELS = {"transcript_pair": "item.option_conversation", "arena": "arena.option"}


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
                "version": flow.consent_version(session),
                "ordered": (),
            }
        if screen.kind == "instructions":
            prose = render_prose(screen.text)
            heading = prose.heading or self.language.text("instructions.title")
            more = {
                "criteria": self._criteria(session),
                "n_practice": self._n_practice(flow, session),
                "quiz": comprehension_rule(self.study),
            }
            return "instructions.html", {"heading": heading, "text": prose.body, "ordered": (), **more}
        if screen.kind == "more":
            return "more.html", {"heading": self.language.text("more.title"), "ordered": ()}
        return self._item(screen, controls, chat)

    def _item(
        self, screen: Screen, controls: Sequence[Control], chat: Sequence[Turn] | None
    ) -> tuple[str, dict[str, Any]]:
        item = screen.item
        assert item is not None
        label = self.language.text(_OPTION_LABELS.get(item.kind, "item.option_response"))
        if item.kind == "arena":
            item = self._sides_named(item, label)
        turns = chat if chat is not None else item.context if item.kind == "chat" else None
        named = None if turns is None else [self._named(turn) for turn in turns]
        arranged = arrange(item, controls, label, named)
        is_one = len(arranged.alternatives) == 1
        default = "item.title_candidate" if is_one else "item.title" if arranged.rates_each else "item.title_choose"
        heading = item.title or self.language.text(_ITEM_TITLES.get(item.kind, default))
        common: dict[str, Any] = {
            "item": item,
            "display": item.shown,
            "arranged": arranged,
            "heading": heading,
            "ordered": arranged.ordered,
        }
        if screen.kind == "chat" and item.kind == "arena":
            common["heading"] = item.title or self.language.text("arena.title")
            return "arena.html", {**common, **self._arena(item)}
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
        labels = {c.field.name.split(".", 1)[0]: c.field.label for c in controls}
        common["anchors"] = [(labels[name], number_words(value)) for name, value in item.anchor_values.items()]
        return "item.html", common

    def _sides_named(self, item: ItemView, label: str) -> ItemView:
        """An arena whose systems speak under the names of their places."""
        options = []
        for option in item.options:
            name = label.replace("{letter}", chr(64 + int(option.place)))
            turns = [self._named(t) if t.role == "user" else replace(t, speaker=name) for t in option.turns]
            options.append(replace(option, turns=tuple(turns)))
        return replace(item, options=tuple(options))

    def _arena(self, item: ItemView) -> dict[str, Any]:
        """How both conversations of an arena stand."""
        n_said = [sum(turn.role == "user" for turn in option.turns) for option in item.options]
        waiting = [int(option.place) for option in item.options if option.turns and option.turns[-1].role == "user"]
        return {
            "names": {"user": self._named(Turn("", "", "user")).speaker},
            "arena": {"n_said": n_said, "waiting": waiting, "may_say": min(n_said, default=0) < item.max_turns},
            "has_own_messages": self.study.spec.arena.messages == "own",
        }

    def _named(self, turn: Turn) -> Turn:
        """Who speaks in a live conversation, in the study's words or else in the language's."""
        names = {role: name for name, role in self.study.spec.speakers.items()}
        own = names.get(turn.role, "")
        if own in ("", "User", "Agent"):
            own = self.language.text("chat.you" if turn.role == "user" else "chat.partner")
        return replace(turn, speaker=own)

    def _instructions(self, session: Session) -> dict[str, Any]:
        shown = self.study.presentation(session.condition)
        text = self.study.texts[shown.instructions or self.study.spec.texts.instructions]
        return {"instructions": render_prose(fill(self.study, shown, text)), "criteria": self._criteria(session)}

    def _criteria(self, session: Session) -> list[tuple[str, str]]:
        shown = self.study.presentation(session.condition)
        return [
            (
                criterion.shown_label,
                fill(self.study, shown, criterion.definition),
            )
            for criterion in self.study.spec.criteria
            if criterion.definition
        ]

    def _n_practice(self, flow: Flow, session: Session) -> int:
        return sum(task.is_practice for task in flow.path(session).plan.tasks)

    def progress(self, flow: Flow, session: Session, screen: Screen) -> dict[str, Any]:
        """How far the session is, and how long it still takes at the rater's own pace, rounded up."""
        minutes = flow.remaining_s(session) / 60
        rounded = math.ceil(minutes) if minutes < 10 else 5 * math.ceil(minutes / 5)
        told = self.study.spec.recruitment.minutes
        if (
            told is not None and minutes < told + 0.5 and told < rounded
        ):  # rounding does not make it more than the first page said
            rounded = math.ceil(told)
        is_counted = screen.kind in ("item", "chat") and not screen.is_practice
        return {
            "n_done": screen.step,
            "n_steps": screen.n_steps,
            "percent": round(100 * screen.step / screen.n_steps),
            "time_left": self.language.count("progress.minutes", rounded)
            if minutes >= 1
            else self.language.text("progress.last_minute"),
            "item_count": self.language.text("progress.item", position=screen.position, n_items=screen.n_items)
            if is_counted
            else "",
        }


def back_step(flow: Flow, session: Session, screen: Screen) -> int | None:
    """The nearest earlier item that may be opened again; checks between items stay closed."""
    if not screen.may_go_back:
        return None
    steps = flow.path(session).steps
    return next((i for i in range(screen.step - 1, -1, -1) if steps[i].kind == "item"), None)


def drawn_alike(flow: Flow, session: Session, screen: Screen) -> Hashable | None:
    """What an empty page depends on, but for the values of its rater; None for screens that differ from rater to rater."""
    step = flow.path(session).steps[screen.step]
    is_live = screen.item is not None and screen.item.kind in ("chat", "arena")
    if is_live or screen.kind not in (*_QUESTION_KINDS, "item"):
        return None
    task = step.task
    if task is None:
        shown: Hashable = ()
    elif task.disputes:
        return None
    else:
        shown = (task.block, task.systems, step.criteria, task.is_practice)
    return (session.draw.cell, step.key, shown, bool(session.consent_version))
