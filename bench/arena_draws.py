"""Drawing uncertain pairs: is the weighted estimate right, do its intervals hold, and how many votes does the rule save?

Simulated arenas of six systems, votes one after the other, each rater four votes; every pair is drawn by what the votes so far
say. Truths: strengths that follow Bradley-Terry, and win rates that no strengths can follow. ``python -m bench arena_draws``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from dialometer.design.arena_pairs import pair_chances
from scipy.special import expit

from dialometer.analysis.base.family import Options
from dialometer.analysis.families.votes.vote_model import vote_model
from dialometer.model.item import ArenaItem
from dialometer.model.session import PairVotes
from dialometer.model.study import Arena
from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.votes import Votes, WinMatrix

NAMES = tuple("abcdef")
ITEM = ArenaItem(id="x", systems=NAMES)
PER_RATER = 4
STRENGTHS = np.array([1.2, 0.9, 0.3, -0.2, -0.7, -1.5])


def truths() -> dict[str, np.ndarray]:
    """Win rates of the row over the column: by strengths, and with a circle among the first three."""
    fair = expit(STRENGTHS[:, None] - STRENGTHS)
    circle = fair.copy()
    for a, b, share in ((0, 1, 0.75), (1, 2, 0.8), (2, 0, 0.6), (3, 5, 0.5)):
        circle[a, b], circle[b, a] = share, 1 - share
    return {"Bradley-Terry holds": fair, "it does not": circle}


def target(rates: np.ndarray) -> np.ndarray:
    """The strengths that votes on all pairs alike would lead to."""
    won = rates.copy()
    np.fill_diagonal(won, 0)
    fit = bradley_terry(WinMatrix(NAMES, won, 0 * won, 0 * won, has_order=False))
    return np.array([fit.strengths[name].value for name in NAMES])


def collected(rng: np.random.Generator, rates: np.ndarray, n_votes: int, arena: Arena, n_before: int = 0) -> Votes:
    """Votes one after the other; with ``n_before`` the last system joins only after so many of them."""
    votes = dict.fromkeys(ITEM.pairs, PairVotes())
    rows = np.empty((n_votes, 4))
    earlier = ArenaItem(id="x", systems=NAMES[:-1])
    item, chances = ITEM, pair_chances(arena, ITEM, votes)
    for k in range(n_votes):
        if k % PER_RATER == 0:  # what a rater gets is drawn on arrival
            item = earlier if k < n_before else ITEM
            chances = pair_chances(arena, item, votes)
        number = int(rng.choice(len(item.pairs), p=list(chances.values())))
        pair = item.pairs[number]
        a, b = NAMES.index(pair[0]), NAMES.index(pair[1])
        won = rng.random() < rates[a, b]
        old = votes[pair]
        votes[pair] = replace(old, first=old.first + 1) if won else replace(old, second=old.second + 1)
        rows[k] = a, b, 1 if won else -1, 1 / len(ITEM.pairs) / chances[pair]
    rater = np.arange(n_votes) // PER_RATER
    first, second, outcome = rows[:, :3].T.astype(np.intp)
    names = tuple(f"r{k}" for k in range(int(rater.max()) + 1))
    return Votes(NAMES, first, second, outcome, np.arange(n_votes), names, rater, weight=rows[:, 3])


def measured(
    rates: np.ndarray, n_votes: int, n_runs: int, arena: Arena, *, is_weighted: bool, n_before: int = 0
) -> dict[str, float]:
    """Errors over all pairs, coverage, and the width of intervals: of close pairs, or of those with the system that joined."""
    wanted = target(rates)
    truth = {(a, b): wanted[i] - wanted[j] for i, a in enumerate(NAMES) for j, b in enumerate(NAMES) if i < j}
    close = [pair for pair in truth if (NAMES[-1] in pair if n_before else abs(truth[pair]) < 0.4)]
    errors, holds, widths = [], [], []
    for run in range(n_runs):
        votes = collected(np.random.default_rng([11, run]), rates, n_votes, arena, n_before)
        votes = votes if is_weighted else replace(votes, weight=None)
        model = vote_model(
            votes, Options(confidence=0.95, n_resamples=100, seed=1, correction="none"), is_order_drawn=False
        )
        gaps = {pair: model.contrasts[pair] for pair in truth}
        errors.append([gaps[pair].value - truth[pair] for pair in truth])
        holds += [gaps[pair].low <= truth[pair] <= gaps[pair].high for pair in truth]
        widths.append(np.mean([gaps[pair].high - gaps[pair].low for pair in close]))
    error = np.array(errors)
    return {
        "bias": float(np.abs(error.mean(axis=0)).max()),
        "noise": float(error.std(axis=0).max() / np.sqrt(n_runs)),
        "rmse": float(np.sqrt((error**2).mean())),
        "coverage": float(np.mean(holds)),
        "width": float(np.mean(widths)),
    }


def main(arguments: Sequence[str] = ()) -> None:
    """Prints one line for each truth and rule."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--votes", type=int, default=1200)
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args(list(arguments))
    began = time.process_time()
    for label, rates in truths().items():
        for rule, is_weighted in (("balanced", False), ("uncertain", True), ("uncertain", False)):
            arena = Arena(pairs=rule, floor=0.2)
            found = measured(rates, given.votes, given.runs, arena, is_weighted=is_weighted)
            how = f"{rule}{', weighted' if is_weighted else ', unweighted' if rule == 'uncertain' else ''}"
            print(f"{label:20} {how:24} " + "  ".join(f"{name} {value:.3f}" for name, value in found.items()))
    rates = truths()["Bradley-Terry holds"]
    for rule, is_weighted in (("balanced", True), ("uncertain", True)):
        arena = Arena(pairs=rule, floor=0.2)
        found = measured(rates, given.votes, given.runs, arena, is_weighted=is_weighted, n_before=given.votes * 3 // 4)
        words = "  ".join(f"{name} {value:.3f}" for name, value in found.items())
        print(f"{'one joins late':20} {rule + ', weighted':24} {words}")
    print(f"{time.process_time() - began:.0f} s of one processor")


if __name__ == "__main__":
    main(sys.argv[1:])
