"""Whole dialogues of two systems, one file each, put side by side as items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dialometer.errors import DialometerError
from dialometer.exchange.own_systems.system_outputs import CONTEXT, RESPONSE, SystemOutputs, plain_name, system_labels
from dialometer.model.dialogue import Dialogue, Role, Turn
from dialometer.readers import read_dialogues
from dialometer.readers.json_records import first_record
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import delimiter_of
from dialometer.readers.turn_parts import turn_as_json

SPEAKERS: Mapping[Role, str] = {"user": "User", "agent": "Assistant"}
"""Names that give no system away; other speakers keep their own."""


WHOLE = frozenset({"messages", "conversation", "conversations", "dialogue", "user"})
"""Columns that may hold a context as well as a whole dialogue."""


def holds_responses(path: Path) -> bool:
    """Whether a file has contexts beside responses; a file of whole dialogues has one or neither."""
    plain = _columns(path)
    return bool(plain & set(CONTEXT)) and bool(plain & set(RESPONSE))


def holds_systems(path: Path) -> bool:
    """Whether a file has contexts and what several systems answered to each."""
    plain = _columns(path)
    return "responses" in plain or bool(plain & (set(CONTEXT) - WHOLE))


def _columns(path: Path) -> set[str]:
    head = SourceFile(path).head()
    record = first_record(head)
    line = next((line for line in head.splitlines() if line.strip()), "")
    names = list(record) if isinstance(record, dict) else line.split(delimiter_of(line))
    return {plain_name(str(name).strip('"')) for name in names}


def read_pairs(files: Sequence[Path], *, n_items: int | None = None, seed: int = 1) -> SystemOutputs:
    """Pairs of the two files' dialogues: those with the same id, else with the same first turn, else drawn at random."""
    labels = system_labels(files)
    first, second = ([d for d in read_dialogues(path) if d.turns] for path in files)
    rng = np.random.default_rng(seed)
    pairs, notes = _matched(first, second, rng)
    if n_items is not None and n_items < len(pairs):
        drawn = np.sort(rng.choice(len(pairs), n_items, replace=False))
        notes.append(f"{n_items:,} of {len(pairs):,} pairs are drawn at random (seed {seed})")
        pairs = [pairs[number] for number in drawn]
    width = len(str(len(pairs)))
    systems = list(labels)
    items = [
        {
            "id": f"pair-{number:0{width}d}",
            "a": _side(systems[0], a),
            "b": _side(systems[1], b),
            "metadata": {"first": a.id, "second": b.id},
        }
        for number, (a, b) in enumerate(pairs, start=1)
    ]
    shown = {_speaker(turn): turn.role for pair in pairs for dialogue in pair for turn in dialogue.turns}
    return SystemOutputs(items, labels, shown, notes, kind="transcript_pair")


def read_rated_dialogues(files: Sequence[Path], *, n_items: int | None = None, seed: int = 1) -> SystemOutputs:
    """The dialogues of one file for each system, to be rated one by one; with ``n_items`` so many of each are drawn."""
    labels = system_labels(files)
    rng = np.random.default_rng(seed)
    items: list[dict[str, Any]] = []
    notes: list[str] = []
    shown: dict[str, Role] = {}
    for system, path in zip(labels, files, strict=True):
        dialogues = [dialogue for dialogue in read_dialogues(path) if dialogue.turns]
        if not dialogues:
            raise DialometerError("there are no dialogues", where=str(path), remedy="give a file that holds dialogues")
        if n_items is not None and n_items < len(dialogues):
            notes.append(
                f"{n_items:,} of {len(dialogues):,} dialogues of {path.name} are drawn at random (seed {seed})"
            )
            drawn = np.sort(rng.choice(len(dialogues), n_items, replace=False))
            dialogues = [dialogues[number] for number in drawn]
        items += [{**_side(system, dialogue), "metadata": {"dialogue": dialogue.id}} for dialogue in dialogues]
        shown |= {_speaker(turn): turn.role for dialogue in dialogues for turn in dialogue.turns}
    width = len(str(len(items)))
    numbered = [{"id": f"dialogue-{number:0{width}d}", **item} for number, item in enumerate(items, start=1)]
    return SystemOutputs(numbered, labels, shown, notes, kind="dialogue")


def _matched(
    first: Sequence[Dialogue], second: Sequence[Dialogue], rng: np.random.Generator
) -> tuple[list[tuple[Dialogue, Dialogue]], list[str]]:
    n = min(len(first), len(second))
    if not n:
        raise DialometerError("there is nothing to compare", remedy="give two files that hold dialogues")
    by, pairs = "first turn", _with_same(_first_turn, first, second)
    if len(pairs) < n / 2:  # ids that are only line numbers would match anything, so they come second
        by, pairs = "id", _with_same(lambda dialogue: dialogue.id, first, second)
    if pairs:
        n_alone = len(first) + len(second) - 2 * len(pairs)
        without = [f"dialogues without a counterpart are excluded: {n_alone:,}"] if n_alone else []
        return pairs, [f"dialogues are matched by their {by}", *without]
    order = rng.permutation(len(second))
    drawn = [(dialogue, second[place]) for dialogue, place in zip(first, order, strict=False)]
    return drawn, ["no id and no first turn is in both files, so dialogues are paired at random"]


def _with_same(
    key_of: Callable[[Dialogue], str], first: Sequence[Dialogue], second: Sequence[Dialogue]
) -> list[tuple[Dialogue, Dialogue]]:
    """Pairs with the same key; of several dialogues with one key, the first of each file."""
    one, other = ({key_of(dialogue): dialogue for dialogue in reversed(file)} for file in (first, second))
    return [(dialogue, other[key]) for key, dialogue in reversed(one.items()) if key in other]


def _first_turn(dialogue: Dialogue) -> str:
    return " ".join(dialogue.turns[0].text.casefold().split())


def _side(system: str, dialogue: Dialogue) -> dict[str, Any]:
    prompt = {"system_prompt": dialogue.system_prompt} if dialogue.system_prompt else {}
    return {"system": system, "turns": [_turn(turn) for turn in dialogue.turns], **prompt}


def _speaker(turn: Turn) -> str:
    return SPEAKERS.get(turn.role, turn.speaker)


def _turn(turn: Turn) -> dict[str, Any]:
    return {**turn_as_json(turn), "speaker": _speaker(turn)}
