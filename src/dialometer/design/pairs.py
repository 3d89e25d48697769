"""Controlled transcript pairs: two transcripts that may differ only in the strategy under test.

The rules follow Guerini, Falcone and Magnini (SCAI 2018), section 3: the second transcript is the first with portions of
the agent's turns substituted or inserted; everything else, the outcome included, stays the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from dialometer.design.differences import differences
from dialometer.errors import Problem
from dialometer.model.item import PairItem
from dialometer.model.study import Study
from dialometer.registry import did_you_mean

RULES = {
    "same_turns": "both transcripts have the same number of turns and the same speakers in the same order",
    "user_turns": "what the user says is the same in both",
    "change_kind": "each difference substitutes or inserts text in an agent's turn of the second transcript",
    "outcome": "both conversations end with the same outcome",
    "difference": "the two transcripts are not identical",
    "length": "the second transcript is not more than half as long again as the first, nor shorter than two thirds",
}
_MERGE_GAP = 3  # changes separated by so few equal words are one change
_WORD = re.compile(r"\s+|\w+(?:['’.,]\w+)*|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of text that is the same, replaced, inserted or deleted going from the first transcript to the second."""

    kind: Literal["equal", "replace", "insert", "delete"]
    a: str
    b: str


def diff_words(a: str, b: str) -> list[Segment]:
    """The difference of two texts in whole words."""
    words_a, words_b = _WORD.findall(a), _WORD.findall(b)
    merged: list[list[int]] = []
    for kind, a0, a1, b0, b1 in differences(words_a, words_b):
        if kind == "equal":
            continue
        if merged and _n_words(words_a[merged[-1][1] : a0]) < _MERGE_GAP:
            merged[-1][1], merged[-1][3] = a1, b1
        else:
            merged.append([a0, a1, b0, b1])
    segments: list[Segment] = []
    done_a = done_b = 0
    for a0, a1, b0, b1 in merged:
        _append(segments, "".join(words_a[done_a:a0]), "".join(words_b[done_b:b0]))
        _append(segments, "".join(words_a[a0:a1]), "".join(words_b[b0:b1]))
        done_a, done_b = a1, b1
    _append(segments, "".join(words_a[done_a:]), "".join(words_b[done_b:]))
    return segments


def _append(segments: list[Segment], a: str, b: str) -> None:
    if not a and not b:
        return
    kind: Literal["equal", "replace", "insert", "delete"]
    if a == b:
        kind = "equal"
    elif not a.strip():
        kind = "insert"
    elif not b.strip():
        kind = "delete"
    else:
        kind = "replace"
    segments.append(Segment(kind, a, b))


def _n_words(words: list[str]) -> int:
    return sum(not word.isspace() for word in words)


@dataclass(frozen=True, slots=True)
class PairReport:
    """What the two transcripts of a pair have apart: the differing turns and the lengths in words."""

    item: PairItem
    differences: tuple[tuple[int, tuple[Segment, ...]], ...]
    n_words_a: int
    n_words_b: int
    breaches: tuple[tuple[str, str], ...]

    @property
    def length_change(self) -> float:
        """Relative change of length from the first to the second transcript."""
        return self.n_words_b / self.n_words_a - 1


def inspect_pair(item: PairItem) -> PairReport:
    """Compares the transcripts of one pair; breaches name the rule and what was found."""
    a, b = item.a.turns, item.b.turns
    breaches: list[tuple[str, str]] = []
    differences: list[tuple[int, tuple[Segment, ...]]] = []
    if [turn.speaker for turn in a] != [turn.speaker for turn in b]:
        breaches.append(("same_turns", f"{len(a)} turns against {len(b)}, or other speakers"))
    else:
        for i, (turn_a, turn_b) in enumerate(zip(a, b, strict=True)):
            if turn_a.text == turn_b.text:
                continue
            segments = tuple(diff_words(turn_a.text, turn_b.text))
            differences.append((i, segments))
            if turn_a.role != "agent":
                breaches.append(("user_turns", f"turn {i + 1} ({turn_a.speaker}) differs"))
            elif any(segment.kind == "delete" for segment in segments):
                gone = next(segment.a.strip() for segment in segments if segment.kind == "delete")
                breaches.append(("change_kind", f"turn {i + 1} only loses text: “{gone}”"))
        if not differences:
            breaches.append(("difference", "the transcripts are identical"))
    if item.a.outcome != item.b.outcome:
        breaches.append(("outcome", f"'{item.a.outcome}' against '{item.b.outcome}'"))
    n_a, n_b = (sum(len(turn.text.split()) for turn in turns) for turns in (a, b))
    if not 2 / 3 <= n_b / n_a <= 1.5:
        breaches.append(("length", f"{n_a} words against {n_b}"))
    return PairReport(item, tuple(differences), n_a, n_b, tuple(breaches))


def pair_problems(study: Study) -> list[Problem]:
    """The breaches of controlled-pair rules that the study does not declare, and declared ones that do not occur."""
    if study.spec.items.pairs != "controlled":
        return []
    problems: list[Problem] = []
    file = study.spec.items.file
    for item in study.items:
        if not isinstance(item, PairItem):
            continue
        report = inspect_pair(item)
        for rule, breach in report.breaches:
            if rule not in item.breaches:
                remedy = f'fix the transcript, or declare it: "breaches": {{"{rule}": "why"}}'
                problems.append(
                    Problem(
                        f"the pair '{item.id}' breaks the rule {rule} ({RULES[rule]}): {breach}",
                        remedy,
                        file,
                        item.line,
                        0,
                        "b",
                    )
                )
        broken = {rule for rule, _ in report.breaches}
        for rule in item.breaches:
            if rule not in RULES:
                problems.append(
                    Problem(f"unknown rule '{rule}'", did_you_mean(rule, list(RULES)), file, item.line, 0, "breaches")
                )
            elif rule not in broken:
                problems.append(
                    Problem(
                        f"the pair '{item.id}' declares a breach of {rule} that does not occur",
                        "remove it",
                        file,
                        item.line,
                        0,
                        "breaches",
                        "warning",
                    )
                )
        is_shown = "difference" not in item.breaches  # two equal texts stand for transcripts that are not at hand
        if not item.a.outcome and is_shown and not item.metadata.get("practice"):
            problems.append(
                Problem(
                    f"the pair '{item.id}' states no outcome",
                    'add "outcome" to both sides',
                    file,
                    item.line,
                    0,
                    "a.outcome",
                    "warning",
                )
            )
    return problems
