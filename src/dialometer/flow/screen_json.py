"""A screen as the JSON API shows it: everything a person sees, and no system's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dialometer.design.pairs import Segment
from dialometer.flow.engine import Flow
from dialometer.flow.screens import CONSENT_FIELD, MORE_FIELD, Field, ItemView, Option, Screen, step_seconds
from dialometer.model.dialogue import ToolCall, Turn
from dialometer.model.media import address_of_file
from dialometer.model.session import Session
from dialometer.model.tool_steps import cut
from dialometer.scales.choice import Choice

_CHOICES = {"consent": (CONSENT_FIELD, ["agree", "decline"]), "more": (MORE_FIELD, ["yes", "no"])}
"""Screens that ask by two buttons, which have no scale in the study."""


def screen_json(flow: Flow, session: Session, screen: Screen, chat: Sequence[Turn] | None) -> dict[str, Any]:
    """The screen in the form of :class:`~dialometer.web.api.models.ScreenShown` (what the API documents)."""
    path = flow.path(session)
    is_over = screen.kind == "done"
    shown = screen_content(screen, chat) | {"language": flow.shown_study(session).spec.language}
    return shown | {"estimated_s": 0.0 if is_over else step_seconds(flow.study, path, path.steps[screen.step])}


def screen_content(screen: Screen, chat: Sequence[Turn] | None = None) -> dict[str, Any]:
    """What a screen shows and asks, whoever sees it."""
    return {
        "screen": screen.shown_key or screen.key,
        "kind": screen.kind,
        "state": screen.state,
        "step": screen.step,
        "n_steps": screen.n_steps,
        "text": screen.text,
        "fields": [_field(field) for field in screen.fields] + _buttons(screen.kind),
        "item": _item(screen.item) if screen.item else None,
        "chat": [_turn(turn) for turn in chat] if chat is not None else None,
        "deadline_s": screen.deadline_s,
        "is_practice": screen.is_practice,
        "may_go_back": screen.may_go_back,
        "attempt": screen.attempt,
        "position": screen.position,
        "n_items": screen.n_items,
    }


def _field(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "question": field.question,
        "definition": field.definition,
        "label": field.label,
        "help": field.help,
        "target": field.target,
        "alternatives": list(field.alternatives),
        "passages": [
            {"turn": passage.turn, "text": passage.text, "is_markable": passage.is_markable}
            for passage in field.passages
        ],
        "is_required": field.is_required,
        "scale": field.scale.model_dump(mode="json"),
        "option_words": field.scale.other_words,
    }


def _buttons(kind: str) -> list[dict[str, Any]]:
    if kind not in _CHOICES:
        return []
    name, options = _CHOICES[kind]
    blank = dict.fromkeys(("question", "definition", "label", "help", "target"), "")
    scale = Choice(options=options).model_dump(include={"type", "options"})
    return [
        {
            "name": name,
            **blank,
            "alternatives": [],
            "passages": [],
            "is_required": True,
            "scale": scale,
            "option_words": {},
        }
    ]


def _item(item: ItemView) -> dict[str, Any]:
    return {
        "id": item.shown_id or item.id,
        "kind": item.kind,
        "title": item.title,
        "text": item.text,
        "context": [_turn(turn) for turn in item.context],
        "options": [_option(option) for option in item.options],
        "standard": item.standard,
        "anchor_values": dict(item.anchor_values),
        "task": item.task,
        "rated_turns": list(item.rated_turns),
        "recording": address_of_file(item.recording.file) if item.recording else None,
        "system_prompt": item.system_prompt,
        "text_form": item.shown.text,
        "scenario": item.scenario,
        "min_turns": item.min_turns,
        "max_turns": item.max_turns,
    }


def _option(option: Option) -> dict[str, Any]:
    shown: dict[str, Any] = {"place": option.place, "turns": [_turn(turn) for turn in option.turns], "marks": None}
    shown["system_prompt"] = option.system_prompt
    if option.marks is not None:
        shown["marks"] = _marks(option.turns, option.marks)
    return shown


def _marks(turns: Sequence[Turn], marks: Mapping[int, tuple[Segment, ...]]) -> dict[str, list[dict[str, Any]]]:
    """Each segment holds both sides; the turn's own text tells which side this is."""
    own: dict[str, list[dict[str, Any]]] = {}
    for number, segments in marks.items():
        is_first = "".join(segment.a for segment in segments) == turns[number].text
        halves = [(segment.a if is_first else segment.b, segment.kind != "equal") for segment in segments]
        own[str(number)] = [{"text": text, "is_changed": is_changed} for text, is_changed in halves if text]
    return own


def _turn(turn: Turn) -> dict[str, Any]:
    """A turn with its tool calls, cut as on a page, and its media by the names under which they are served."""
    shown: dict[str, Any] = {"speaker": turn.speaker, "text": turn.text, "role": turn.role}
    if turn.tool_calls:
        shown["tool_calls"] = [_call(call) for call in turn.tool_calls]
    if turn.media:
        shown["media"] = [
            {"kind": entry.kind, "file": address_of_file(entry.path), "alt": entry.alt} for entry in turn.media
        ]
    return shown


def _call(call: ToolCall) -> dict[str, Any]:
    arguments, result = cut(call.arguments), cut(call.result or "")
    return {
        "name": call.name,
        "arguments": arguments.text,
        "result": None if call.result is None else result.text,
        "is_cut": arguments.is_cut or result.is_cut,
    }
