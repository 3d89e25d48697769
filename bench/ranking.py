"""Rankings beside evalica, in one run: ``python -m bench.ranking``.

Values are compared before anything is timed. A peer that would take minutes is timed on a few resamples and scaled up; the
table says so. Floors are what this project promises: the ratios below which a change counts as a step back.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dialometer.stats.ranking.bradley_terry import bradley_terry
from dialometer.stats.ranking.bradley_terry_bootstrap import bradley_terry_bootstrap, draw_votes
from dialometer.stats.ranking.elo import elo
from dialometer.stats.ranking.paired_newton import PairCells, cells_of
from dialometer.stats.ranking.votes import Votes, win_matrix

N_SYSTEMS = 50
N_VOTES = 1_000_000
N_RESAMPLES = 1000
N_RAW_RESAMPLES = 5
TIE_SHARE = 0.15
SEED = 7


def simulated_votes() -> Votes:
    rng = np.random.default_rng(SEED)
    strength = rng.normal(0, 1, N_SYSTEMS)
    first = rng.integers(0, N_SYSTEMS, N_VOTES)
    second = (first + rng.integers(1, N_SYSTEMS, N_VOTES)) % N_SYSTEMS
    won = rng.random(N_VOTES) < 1 / (1 + np.exp(strength[second] - strength[first]))
    outcome = np.where(rng.random(N_VOTES) < TIE_SHARE, 0, np.where(won, 1, -1))
    names = tuple(f"s{k:02}" for k in range(N_SYSTEMS))
    return Votes(names, first, second, outcome, np.arange(N_VOTES))


def best_of(repeats: int, work: Callable[[], Any]) -> float:
    """Seconds of the fastest of some runs: the one least disturbed by other programs."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def log_centred(scores: Any) -> npt.NDArray[np.float64]:
    log = np.log(scores.sort_index().to_numpy())
    return np.asarray(log - log.mean())


class Evalica:
    """The peer, called in its quickest way: numbers for systems, a fixed index, plain lists."""

    def __init__(self, votes: Votes) -> None:
        import evalica  # noqa: PLC0415 - only this bench needs it
        import pandas as pd  # noqa: PLC0415

        self.evalica = evalica
        self.index = pd.Index(range(N_SYSTEMS))
        self.first, self.second = votes.first, votes.second
        self.winner = np.array([2, 0, 1], dtype=np.uint8)[votes.outcome + 1]  # -1, 0, 1 to Y, draw, X
        self.kinds = [evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw]

    def raw_resamples(self, n_resamples: int, seed: int) -> None:
        """Draw votes one by one and fit them, the way votes are usually resampled."""
        rng = np.random.default_rng(seed)
        for _ in range(n_resamples):
            drawn = rng.integers(0, N_VOTES, N_VOTES)
            self.evalica.bradley_terry(
                self.first[drawn], self.second[drawn], self.winner[drawn].tolist(), index=self.index
            )

    def own_bootstrap(self, n_resamples: int, seed: int) -> None:
        """The peer's own function, with percentile intervals (its default, BCa, would fit a million times more)."""
        self.evalica.bootstrap(
            self.evalica.bradley_terry,
            self.first,
            self.second,
            self.winner.tolist(),
            index=self.index,
            n_resamples=n_resamples,
            bootstrap_method="percentile",
            random_state=seed,
        )

    def counted_resamples(self, cells: PairCells, n_resamples: int, seed: int) -> None:
        """Resamples as counts, as here, each fitted by the peer with the counts as weights."""
        rng = np.random.default_rng(seed)
        flat = np.concatenate([cells.first_won, cells.second_won, cells.tied])[:, 0]
        seen = np.flatnonzero(flat)
        first, second = (np.tile(side, 3)[seen].tolist() for side in (cells.first, cells.second))
        winners = [kind for kind in self.kinds for _ in range(len(cells.first))]
        winners = [winners[k] for k in seen.tolist()]
        counts = rng.multinomial(N_VOTES, flat[seen] / N_VOTES, size=n_resamples).astype(np.float64)
        for weights in counts:
            self.evalica.bradley_terry(first, second, winners, index=self.index, weights=weights.tolist())


def check_values(votes: Votes, cells: PairCells, peer: Evalica) -> None:
    """The same counts must give the same strengths, or no time is worth comparing."""
    exact = {"tolerance": 1e-12, "limit": 10_000}
    fit = peer.evalica.bradley_terry(peer.first, peer.second, peer.winner.tolist(), index=peer.index, **exact)
    ours = np.array([estimate.value for estimate in bradley_terry(win_matrix(votes)).strengths.values()])
    difference = np.abs(ours - log_centred(fit.scores)).max()
    rng = np.random.default_rng(np.random.SeedSequence(SEED).spawn(1)[0])
    drawn = draw_votes(cells)(3, rng)
    replicates = bradley_terry_bootstrap(votes, n_resamples=3, seed=SEED).replicates
    outcomes = np.concatenate([drawn.first_won, drawn.second_won, drawn.tied])
    for k in range(3):
        theirs = peer.evalica.bradley_terry(
            np.tile(cells.first, 3),
            np.tile(cells.second, 3),
            [kind for kind in peer.kinds for _ in range(len(cells.first))],
            index=peer.index,
            weights=outcomes[:, k].tolist(),
            **exact,
        )
        difference = max(difference, np.abs(replicates[k] - log_centred(theirs.scores)).max())
    rating = np.array([estimate.value for estimate in elo(votes).ratings.values()])
    theirs = peer.evalica.elo(peer.first, peer.second, peer.winner.tolist(), index=peer.index, k=16.0)
    if difference > 1e-6 or np.abs(rating - theirs.scores.sort_index().to_numpy()).max() > 1e-6:
        raise SystemExit(f"values differ from evalica's by {difference:.2g}; timing them would mean nothing")


def row(work: str, peer: str, ours_s: float, peer_s: float, floor: float, note: str = "") -> dict[str, Any]:
    return {
        "work": work,
        "peer": peer,
        "ours_s": ours_s,
        "peer_s": peer_s,
        "ratio": peer_s / ours_s,
        "floor": floor,
        "note": note,
    }


def rows() -> list[dict[str, Any]]:
    """What was timed: seconds here and there, their ratio, and the floor it must not fall below (0 where none is set)."""
    warnings.simplefilter("ignore")
    votes = simulated_votes()
    peer = Evalica(votes)
    cells = cells_of(win_matrix(votes), keep_order=False, all_pairs=False)
    check_values(votes, cells, peer)
    # Ours and theirs take turns, so that a busy moment of the machine does not fall on one of them alone.
    ours, counted, raw, own = [], [], [], []
    for turn in range(3):
        ours.append(best_of(2, lambda: bradley_terry_bootstrap(votes, n_resamples=N_RESAMPLES, seed=SEED)))
        counted.append(best_of(2, lambda: peer.counted_resamples(cells, N_RESAMPLES, SEED)))
        raw.append(best_of(2, lambda: peer.raw_resamples(N_RAW_RESAMPLES, SEED)))
        if turn == 0:
            own.append(best_of(1, lambda: peer.own_bootstrap(N_RAW_RESAMPLES, SEED)))
    scale = N_RESAMPLES / N_RAW_RESAMPLES
    scaled = f"peer timed on {N_RAW_RESAMPLES} resamples, times {scale:g}"
    title = f"Bradley-Terry, {N_RESAMPLES:,} resamples of {N_VOTES:,} votes, {N_SYSTEMS} systems"
    return [
        row(title, "evalica.bradley_terry on drawn votes", min(ours), min(raw) * scale, 300, scaled),
        row(title, "evalica.bootstrap", min(ours), min(own) * scale, 300, scaled),
        row(title, "evalica.bradley_terry on counts", min(ours), min(counted), 1.5),
        row(
            f"Bradley-Terry, one fit of {N_VOTES:,} votes",
            "evalica.bradley_terry",
            best_of(3, lambda: bradley_terry(win_matrix(votes))),
            best_of(
                3, lambda: peer.evalica.bradley_terry(peer.first, peer.second, peer.winner.tolist(), index=peer.index)
            ),
            0,
        ),
        row(
            f"Elo, {N_VOTES:,} votes in order",
            "evalica.elo",
            best_of(2, lambda: elo(votes)),
            best_of(
                2, lambda: peer.evalica.elo(peer.first, peer.second, peer.winner.tolist(), index=peer.index, k=16.0)
            ),
            0,
            "plain Python beside compiled Rust",
        ),
    ]


def main() -> int:
    """Print the table; 1 where a ratio lies below its floor."""
    table = rows()
    print(f"{'work':62} {'peer':38} {'ours':>9} {'peer':>9} {'ratio':>8} {'floor':>6}  note")
    for line in table:
        floor = f"{line['floor']:g}" if line["floor"] else "-"
        print(
            f"{line['work']:62} {line['peer']:38} {line['ours_s']:8.3f}s {line['peer_s']:8.2f}s "
            f"{line['ratio']:7.1f}x {floor:>6}  {line['note']}"
        )
    return int(any(line["ratio"] < line["floor"] for line in table))


if __name__ == "__main__":
    sys.exit(main())
