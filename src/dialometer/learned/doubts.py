"""Ratings that an evaluator does not believe, to be read by people; where a simulation knows the truth, whether it was right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dialometer.learned.noise import auc
from dialometer.learned.pairs import NumberedPairs, numbered_gap_pairs
from dialometer.learned.rated import Rated
from dialometer.learned.verdicts import Verdict
from dialometer.model.report import Cell, Column, Part, Section, Table, Turns

N_LISTED = 20
N_SHOWN = 3
_N_CHARACTERS = 90
_QUALITY, _CARELESS = "quality", "is_careless"


def truth_of(one: Rated) -> Mapping[str, Any]:
    """What a simulation wrote down about a conversation; nothing for real ones."""
    truth = one.dialogue.metadata.get("truth")
    return truth if isinstance(truth, Mapping) else {}


def is_simulated(rated: Sequence[Rated]) -> bool:
    """Whether the truth of every conversation is known."""
    return all(_QUALITY in truth_of(one) and _CARELESS in truth_of(one) for one in rated)


def truth_pairs(tests: Sequence[Sequence[Rated]]) -> list[NumberedPairs] | None:
    """Pairs whose true quality differs by a point or more; None unless every conversation is simulated."""
    if not all(is_simulated(test) for test in tests):
        return None
    return [
        numbered_gap_pairs([replace(one, rating=float(truth_of(one)[_QUALITY])) for one in test], 1.0) for test in tests
    ]


def doubts_section(rated: Sequence[Rated], verdicts: Sequence[Verdict]) -> Section:
    """The ratings furthest from what others let expect: a list, and the first conversations as they were held."""
    by_id = {one.id: one for one in rated}
    doubted = sorted((one for one in verdicts if one.is_believed is False), key=_distance, reverse=True)
    share = len(doubted) / len(verdicts) if verdicts else 0.0
    n, total = len(doubted), len(verdicts)
    told = (
        f"{n} of {total:,} ratings ({share:.1%}) lie further from what other users' ratings let expect than "
        "chance explains. They still count in training, softly as all do: read them before you leave any out."
    )
    words = [
        told if n else f"None of the {total:,} ratings lies further from what others let expect than chance explains."
    ]
    if (against := _against_truth(by_id, verdicts, doubted)) is not None:
        words.append(against)
    knows = is_simulated(rated)
    columns = [
        Column("dialogue", "Conversation"),
        Column("system", "System"),
        Column("rating", "Rated", "number", 0),
        Column("expected", "Expected", "number", 1),
        Column("end", "How it ended"),
    ]
    rows: list[tuple[Cell, ...]] = []
    for one in doubted[:N_LISTED]:
        known = by_id[one.id]
        row: tuple[Cell, ...] = (one.id, known.bot or "", one.rating, one.smoothed, _end(known))
        rows.append((*row, "without care" if truth_of(known)[_CARELESS] else "honestly") if knows else row)
    if knows:
        columns.append(Column("truth", "In truth rated"))
    table = Table(
        "doubts",
        "The ratings it believes least",
        tuple(columns),
        tuple(rows),
        caption="Expected: by evaluators that had not seen this user's ratings.",
    )
    parts: tuple[Part, ...] = (table, *(_turns(by_id[one.id], one) for one in doubted[:N_SHOWN])) if rows else ()
    return Section("doubts", "Ratings it does not believe", tuple(words), parts)


def _distance(one: Verdict) -> float:
    return 0.0 if one.smoothed is None else abs(one.rating - one.smoothed)


def _against_truth(by_id: Mapping[str, Rated], verdicts: Sequence[Verdict], doubted: Sequence[Verdict]) -> str | None:
    """What a simulation can say: how many of the doubted ratings were given without care, beside how many of all."""
    if not is_simulated(list(by_id.values())):
        return None
    careless = np.array([bool(truth_of(by_id[one.id])[_CARELESS]) for one in verdicts], dtype=np.bool_)
    if not careless.any() or careless.all() or not doubted:
        return None
    right = sum(bool(truth_of(by_id[one.id])[_CARELESS]) for one in doubted)
    chance = auc(np.array([_distance(one) for one in verdicts]), careless)
    return (
        f"The simulation knows who rated without care: {right} of these {len(doubted)} ({right / len(doubted):.0%}), beside "
        f"{int(careless.sum())} of all {len(careless):,} ({careless.mean():.0%}). A careless rating is further from what was "
        f"expected than an honest one in {chance:.0%} of cases; many careless ratings happen to be right, and cannot be found."
    )


def _end(one: Rated) -> str:
    """The last thing the user said."""
    said = one.dialogue.said_by("user")
    text = said[-1].text if said else ""
    return text if len(text) <= _N_CHARACTERS else text[: _N_CHARACTERS - 1].rstrip() + "…"


def _turns(one: Rated, verdict: Verdict) -> Turns:
    rows = tuple((turn.speaker, (("equal", turn.text, turn.text),)) for turn in one.dialogue.turns)
    expected = "unknown" if verdict.smoothed is None else f"{verdict.smoothed:.1f}"
    return Turns(f"doubt-{one.id}", f"{one.id}: rated {one.rating:g}, expected {expected}", rows)
