"""Pairwise votes as coded arrays: the one input of every ranking method.

Coding once, with all checks in one place, keeps the methods themselves free of names and spellings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dialometer.errors import DialometerError
from dialometer.registry import did_you_mean

Codes = npt.NDArray[np.intp]

FIRST, TIE, SECOND = 1, 0, -1


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Votes between two systems each, in the order they were cast.

    ``first`` and ``second`` are numbers of systems, ``outcome`` is 1 (first won), 0 (tie) or -1 (second won); ``row`` is the
    place of the vote in the input, since votes that set a system against itself are left out (``n_self`` of them).
    ``rater`` and ``item`` are numbers too, in the order of their names; empty where they were not given.
    """

    systems: tuple[str, ...]
    first: Codes
    second: Codes
    outcome: Codes
    row: Codes
    raters: tuple[str, ...] = ()
    rater: Codes | None = None
    items: tuple[str, ...] = ()
    item: Codes | None = None
    n_self: int = 0

    @property
    def n(self) -> int:
        """How many votes count."""
        return len(self.outcome)


def code_votes(
    first: Sequence[str] | npt.NDArray[np.str_],
    second: Sequence[str] | npt.NDArray[np.str_],
    winner: Sequence[str] | npt.NDArray[np.str_],
    *,
    rater: Sequence[str] | npt.NDArray[np.str_] | None = None,
    item: Sequence[str] | npt.NDArray[np.str_] | None = None,
    systems: Sequence[str] | None = None,
    tie: str = "tie",
) -> Votes:
    """Votes from names: who was shown first, who second, and the winner's name (or the word for a tie).

    ``systems`` fixes the order and may hold systems that nobody voted on; left out, the names are sorted.
    """
    names_first, names_second = np.asarray(first, dtype=np.str_), np.asarray(second, dtype=np.str_)
    names_winner = np.asarray(winner, dtype=np.str_)
    for column, values in (("second", second), ("winner", winner), ("rater", rater), ("item", item)):
        if values is not None and len(values) != len(names_first):
            raise DialometerError(
                f"the column '{column}' has {len(values)} entries, 'first' has {len(names_first)}",
                where="votes",
                remedy="give one entry for every vote",
            )
    known = (
        tuple(systems)
        if systems is not None
        else tuple(np.unique(np.concatenate([names_first, names_second])).tolist())
    )
    if len(set(known)) != len(known):
        raise DialometerError("a system is listed twice", where="votes", remedy="list every system once")
    if tie in known:
        raise DialometerError(
            f"'{tie}' is both a system and the word for a tie", where="votes", remedy="pass another word as tie=…"
        )
    code_first, code_second = _codes(names_first, known), _codes(names_second, known)
    won_first, won_second, is_tie = names_winner == names_first, names_winner == names_second, names_winner == tie
    _check_winners(names_first, names_second, names_winner, won_first | won_second | is_tie, tie)
    outcome = np.where(is_tie, TIE, np.where(won_first, FIRST, SECOND)).astype(np.intp)
    keep = code_first != code_second
    raters, rater_codes = _own_codes(rater, keep)
    items, item_codes = _own_codes(item, keep)
    return Votes(
        systems=known,
        first=code_first[keep],
        second=code_second[keep],
        outcome=outcome[keep],
        row=np.flatnonzero(keep),
        raters=raters,
        rater=rater_codes,
        items=items,
        item=item_codes,
        n_self=int((~keep).sum()),
    )


def _check_winners(
    first: npt.NDArray[np.str_],
    second: npt.NDArray[np.str_],
    winner: npt.NDArray[np.str_],
    is_known: npt.NDArray[np.bool_],
    tie: str,
) -> None:
    """A vote for a system that was not shown is an error, never a tie."""
    if is_known.all():
        return
    row = int(np.flatnonzero(~is_known)[0])
    raise DialometerError(
        f"the winner '{winner[row]}' is neither '{first[row]}' nor '{second[row]}' nor '{tie}'",
        where=f"vote {row + 1}",
        remedy="the winner is one of the two systems shown, or a tie",
    )


def _codes(names: npt.NDArray[np.str_], known: tuple[str, ...]) -> Codes:
    """Numbers of names in a given list; a name outside it is an error."""
    if not len(names):
        return np.zeros(0, dtype=np.intp)
    order = np.argsort(known)
    ordered = np.asarray(known, dtype=np.str_)[order]
    if not len(ordered):
        raise DialometerError(f"unknown system '{names[0]}'", where="votes", remedy="known: none")
    place = np.minimum(np.searchsorted(ordered, names), len(ordered) - 1)
    stray = ordered[place] != names
    if stray.any():
        name = str(names[stray][0])
        raise DialometerError(f"unknown system '{name}'", where="votes", remedy=did_you_mean(name, sorted(known)))
    return order[place]


def _own_codes(
    names: Sequence[str] | npt.NDArray[np.str_] | None, keep: npt.NDArray[np.bool_]
) -> tuple[tuple[str, ...], Codes | None]:
    """Distinct names of the votes that count, in order, and each vote's number among them."""
    if names is None:
        return (), None
    distinct, codes = np.unique(np.asarray(names, dtype=np.str_)[keep], return_inverse=True)
    return tuple(distinct.tolist()), codes.astype(np.intp)
