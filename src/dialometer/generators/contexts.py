"""Contexts that bots are asked to answer, and the items of a rating study that come of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.generators.bot import Bot, BotResponse
from dialometer.generators.corpus import is_corpus, load_corpus
from dialometer.generators.decoding import Decoding
from dialometer.generators.filters import matcher, words_of
from dialometer.model.dialogue import Turn
from dialometer.readers import read_dialogues

_MIN_WORDS_OF_STANDARD = 3


@dataclass(frozen=True)
class ResponseContext:
    """A context with what is known beside it: the response of a person (the standard) and responses of other systems."""

    id: str
    turns: tuple[Turn, ...]
    standard: str | None = None
    responses: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_contexts(path: Path, *, n_contexts: int = 50, n_turns: int = 2, seed: int = 0) -> list[ResponseContext]:
    """Contexts from the items of a study, from the test split of a prepared corpus, or from a file of dialogues.

    Items are taken as they are. From dialogues, ``n_contexts`` are drawn: ``n_turns`` turns each, and the turn after them as
    the standard; no dialogue gives more than one.
    """
    if is_corpus(path):
        return _of_corpus(path, n_contexts, n_turns, seed)
    items = _items(path)
    return _of_dialogues(path, n_contexts, n_turns, seed) if items is None else items


def _items(path: Path) -> list[ResponseContext] | None:
    """The items of a study's file; None where the file is something else."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else []
    except (OSError, UnicodeDecodeError) as error:
        raise DialometerError(f"cannot be read: {error}", where=str(path), remedy="check the file") from error
    contexts: list[ResponseContext] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DialometerError(f"not JSON: {error}", where=where, remedy="fix the line") from error
        if not isinstance(row, dict) or "context" not in row:
            if contexts:
                raise DialometerError("an item without a context", where=where, remedy="give every item a context")
            return None
        contexts.append(_item(row, where))
    return contexts or None


def _item(row: Mapping[str, Any], where: str) -> ResponseContext:
    try:
        turns = tuple(Turn(turn["speaker"], turn["text"], turn.get("role", "person")) for turn in row["context"])
        return ResponseContext(
            id=str(row["id"]),
            turns=turns,
            standard=row.get("standard"),
            responses=dict(row.get("responses") or {}),
            metadata=dict(row.get("metadata") or {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        remedy = 'write {"id": …, "context": [{"speaker": "A", "text": …}, …]}'
        raise DialometerError(f"not an item with a context ({error!r})", where=where, remedy=remedy) from error


def _of_corpus(path: Path, n_contexts: int, n_turns: int, seed: int) -> list[ResponseContext]:
    corpus = load_corpus(path)
    split = corpus.split("test")
    rows = split.examples[np.asarray(split.places[split.examples]) >= n_turns]
    contexts: list[ResponseContext] = []
    taken: set[int] = set()
    for row in np.random.default_rng([seed, 23]).permutation(rows).tolist():
        dialogue = int(split.dialogues[row])
        standard = corpus.vocabulary.decode(split.turn(row).tolist())
        if dialogue in taken or len(words_of(standard)) < _MIN_WORDS_OF_STANDARD:
            continue
        taken.add(dialogue)
        texts = [corpus.vocabulary.decode(turn.tolist()) for turn in split.context(row, n_turns)]
        turns = tuple(Turn("AB"[k % 2], text) for k, text in enumerate(texts))
        about = {"dialogue": split.ids[dialogue], "corpus": corpus.fingerprint}
        contexts.append(ResponseContext(f"c{len(contexts) + 1:03}", turns, standard, metadata=about))
        if len(contexts) == n_contexts:
            return contexts
    raise _too_few(len(contexts), n_contexts, n_turns, path)


def _of_dialogues(path: Path, n_contexts: int, n_turns: int, seed: int) -> list[ResponseContext]:
    rng = np.random.default_rng([seed, 23])
    kept: list[tuple[float, ResponseContext]] = []
    for dialogue in read_dialogues(path):
        places = [
            k
            for k in range(n_turns, len(dialogue.turns))
            if len(words_of(dialogue.turns[k].text)) >= _MIN_WORDS_OF_STANDARD
        ]
        draw, place = rng.random(2)
        if places:
            k = places[int(place * len(places))]
            asked = ResponseContext(
                "", dialogue.turns[k - n_turns : k], dialogue.turns[k].text, metadata={"dialogue": dialogue.id}
            )
            kept = sorted([*kept, (draw, asked)], key=lambda pair: pair[0])[:n_contexts]
    if len(kept) < n_contexts:
        raise _too_few(len(kept), n_contexts, n_turns, path)
    return [
        ResponseContext(f"c{k + 1:03}", asked.turns, asked.standard, metadata=asked.metadata)
        for k, (_, asked) in enumerate(kept)
    ]


def _too_few(n_found: int, n_contexts: int, n_turns: int, path: Path) -> NotEnoughData:
    return NotEnoughData(
        f"only {n_found} of {n_contexts} contexts of {n_turns} turns with a response could be drawn",
        where=str(path),
        remedy="ask for fewer contexts or shorter ones",
    )


def answer_items(
    asked: Sequence[ResponseContext],
    bots: Mapping[str, Bot],
    decoding: Decoding,
    *,
    seed: int = 0,
    is_cut: bool = False,
    n_practice: int = 0,
    unwanted: frozenset[str] = frozenset(),
) -> list[dict[str, Any]]:
    """The items of a rating study: each context with the response of every bot, and how each response came to be."""
    histories = [[turn.text for turn in context.turns] for context in asked]
    names = [f"item {context.id}" for context in asked]
    seeds = [seed * 1_000_003 + number for number in range(len(asked))]
    responses = {
        name: bot.respond(histories, decoding, seeds=seeds, is_cut=is_cut, names=names) for name, bot in bots.items()
    }
    rows = []
    for number, context in enumerate(asked):
        made = {name: spoken[number] for name, spoken in responses.items()}
        rows.append(_row(context, made, bots, decoding, seeds[number], unwanted, is_practice=number < n_practice))
    return rows


def _row(
    context: ResponseContext,
    made: Mapping[str, BotResponse],
    bots: Mapping[str, Bot],
    decoding: Decoding,
    seed: int,
    unwanted: frozenset[str],
    *,
    is_practice: bool,
) -> dict[str, Any]:
    pattern = matcher(unwanted)
    generated = {
        name: {
            "model": bots[name].checkpoint.name,
            "sha256": bots[name].checkpoint.sha256,
            "decoding": decoding.as_json(),
            "seed": seed,
            "log_prob": round(spoken.log_prob, 4),
            "n_turns_read": spoken.n_turns_read,
        }
        for name, spoken in made.items()
    }
    refused = [
        name for name, spoken in made.items() if pattern is not None and pattern.search(" ".join(words_of(spoken.text)))
    ]
    metadata = {**context.metadata, "generated": {**context.metadata.get("generated", {}), **generated}}
    if is_practice:
        metadata["practice"] = True
    if refused:
        metadata["unwanted_words_in"] = refused
    row: dict[str, Any] = {
        "id": context.id,
        "context": [{"speaker": turn.speaker, "text": turn.text} for turn in context.turns],
    }
    if context.standard is not None:
        row["standard"] = context.standard
    row["responses"] = {**context.responses, **{name: spoken.text for name, spoken in made.items()}}
    row["metadata"] = metadata
    return row
