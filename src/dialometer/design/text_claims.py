"""What the texts for raters say about the study that the study does not bear out: speakers, systems, numbers.

Texts are often left over from a template or an earlier study. These are warnings, since a text may mean something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dialometer.errors import Problem
from dialometer.model.study import Study

_WORDS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBERS = {word: n for n, word in enumerate(_WORDS, start=2)} | {"dozen": 12, "twenty": 20, "thirty": 30, "fifty": 50}
_NUMBER = rf"(?P<n>\b(?:{'|'.join(NUMBERS)}|\d{{1,4}}))"
_RESPONSES = re.compile(rf"{_NUMBER}[\s*]+(?:different |possible )?responses\b", re.IGNORECASE)
_ITEMS = re.compile(
    rf"{_NUMBER}[\s*]+(?:short |pairs of |written )*(?:conversations|messages|dialogues|transcripts|pairs)\b",
    re.IGNORECASE,
)
_NO_PERSON = re.compile(
    r"\bare (?:all |both )?computer programs\b|\bno (?:human being|person)\b[^.]*\b(?:answers|responds)\b",
    re.IGNORECASE,
)
_NUMBERED_SPEAKER = re.compile(r"\bSpeakers? (\d+)\b")
MOST_OFF = 1.5
"""Texts say "about ten"; only a number this many times too large or too small is a fault."""
LEAST_ITEMS = 5
"""Smaller numbers are mostly about what one screen shows."""


def text_warnings(study: Study) -> list[Problem]:
    """One warning for each name or number, where it is first found."""
    warnings: dict[str, Problem] = {}
    before = {study.spec.texts.consent, study.spec.texts.instructions}
    shown = {len(item.systems) for item in study.rated_items if item.kind == "responses"}
    counts = (min(shown) if len(shown) == 1 else 0, _items_per_rater(study))
    for file, text in study.texts.items():
        for number, line in enumerate(text.splitlines(), start=1):
            for column, message, remedy in _faults(study, line, counts, may_name_systems=file not in before):
                warnings.setdefault(message, Problem(message, remedy, file, number, column, severity="warning"))
    return list(warnings.values())


def _faults(
    study: Study, line: str, counts: tuple[int, int], *, may_name_systems: bool
) -> Iterator[tuple[int, str, str]]:
    yield from _speakers(study, line)
    yield from _people(study, line)
    if not may_name_systems:
        yield from _systems(study, line)
    yield from _numbers(line, *counts)


def _speakers(study: Study, line: str) -> Iterator[tuple[int, str, str]]:
    if not study.spec.speakers:
        return
    for match in _NUMBERED_SPEAKER.finditer(line):
        name = f"Speaker {match[1]}"
        if name not in study.spec.speakers:
            known = ", ".join(study.spec.speakers)
            yield (
                match.start() + 1,
                f"the text mentions '{name}', who is not a speaker of this study",
                f"known: {known}",
            )


def _people(study: Study, line: str) -> Iterator[tuple[int, str, str]]:
    """Raters must not be told that they talk with programs alone where a wizard answers."""
    wizard = next((s for s in study.spec.systems if s.agent is not None and s.agent.type == "wizard"), None)
    match = _NO_PERSON.search(line) if wizard else None
    if match and wizard:
        remedy = "say that a member of the research team may check, change or write the responses"
        message = f"the text says '{match[0]}', but a wizard answers as '{wizard.label or wizard.name}'"
        yield match.start() + 1, message, remedy


def _systems(study: Study, line: str) -> Iterator[tuple[int, str, str]]:
    """Names that are ordinary words in small letters may mean something else; they are not looked for."""
    for system in study.spec.systems:
        for name in dict.fromkeys((system.label or system.name, system.name)):
            if name.islower() and name.isalpha():
                continue
            match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line)
            if match:
                remedy = "leave it out: raters who know which system they see are not blind"
                yield match.start() + 1, f"the text names the system '{name}'", remedy
                break


def _numbers(line: str, shown: int, n_items: int) -> Iterator[tuple[int, str, str]]:
    """Numbers beside those of the study: how many responses an item shows, how many items a rater gets; 0 where it varies."""
    for match in _RESPONSES.finditer(line) if shown else ():
        stated = _number(match["n"])
        if stated > shown or (stated != shown and stated > 2):  # "if two responses seem equal" fits any number
            yield (
                match.start() + 1,
                f"the text says {match['n']} responses, but items show {shown}",
                "correct one of them",
            )
    for match in _ITEMS.finditer(line) if n_items else ():
        stated = _number(match["n"])
        if stated >= LEAST_ITEMS and not n_items / MOST_OFF <= stated <= n_items * MOST_OFF:
            claim = " ".join(match[0].replace("*", "").split())
            yield match.start() + 1, f"the text says '{claim}', but a rater gets {n_items} items", "correct one of them"


def _number(word: str) -> int:
    return NUMBERS.get(word.lower()) or int(word)


def _items_per_rater(study: Study) -> int:
    """How many items a rater gets, practice included; 0 where the design leaves it open."""
    design = study.spec.design
    if design.items_per_rater == "unlimited" or design.blocks or study.spec.items.kind == "chat":
        return 0
    n_rated = len(study.people_items) if design.items_per_rater == "all" else design.items_per_rater
    return n_rated + design.n_practice_items
