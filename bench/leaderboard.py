"""A leaderboard with covariates and its bootstrap beside arena-rank, in one run: ``python -m bench.leaderboard``.

The peer is no dependency: ``pip install arena-rank pandas`` into an environment of its own. Both sides start from the same table
of battles and end with strengths, coefficients and percentile intervals. Values are compared before anything is timed: the
estimate, and resamples that the peer drew, fitted by both. The peer counts no ridge here (``reg=0``), since the model is maximum
likelihood, and its feature for the first place is a column of ones. It is timed on a few resamples, which cost all the same, and
scaled up; ``--peer-resamples`` says on how many.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from typing import Any

import numpy as np
import polars as pl

import dialometer as dm
from dialometer.stats.ranking.covariates import covariate_rows
from dialometer.stats.ranking.votes import code_votes

N_SYSTEMS, N_COVARIATES, TIE_SHARE, SEED = 50, 5, 0.15, 7
FLOOR = 20.0
CLOSE = 1e-6
LOOSE = 1e-3
"""How far the peer's own stopping rule may leave it from the maximum."""


def simulated_battles(n: int) -> pl.DataFrame:
    """Battles with differences of style, in standard deviations, that go with the systems in part."""
    rng = np.random.default_rng(SEED)
    strength, worth = rng.normal(0, 1, N_SYSTEMS), np.linspace(0.3, 0, N_COVARIATES)
    first = rng.integers(0, N_SYSTEMS, n)
    second = (first + rng.integers(1, N_SYSTEMS, n)) % N_SYSTEMS
    gap = strength[first] - strength[second]
    x = rng.normal(size=(n, N_COVARIATES)) + 0.3 * gap[:, None]
    x /= x.std(axis=0)
    won = rng.random(n) < 1 / (1 + np.exp(-(gap + x @ worth)))
    winner = np.where(rng.random(n) < TIE_SHARE, "tie", np.where(won, "model_a", "model_b"))
    names = np.array([f"s{k:02}" for k in range(N_SYSTEMS)])
    columns = {name: x[:, k] for k, name in enumerate(covariate_names())}
    return pl.DataFrame({"model_a": names[first], "model_b": names[second], "winner": winner, **columns})


def covariate_names() -> list[str]:
    return [f"x{k}" for k in range(N_COVARIATES)]


class ArenaRank:
    """The peer on the same table."""

    def __init__(self, battles: pl.DataFrame) -> None:
        import jax  # noqa: PLC0415 - only this bench needs them
        import pandas as pd  # noqa: PLC0415
        from arena_rank.models import contextual_bradley_terry as module  # noqa: PLC0415
        from arena_rank.utils.data_utils import ContextualPairDataset  # noqa: PLC0415

        self.jax, self.module = jax, module
        frame = pd.DataFrame(battles.to_dict(as_series=False))
        frame["first"] = 1.0
        features = ["first", *covariate_names()]
        self.data = ContextualPairDataset.from_pandas(frame, features, reweighted=False, normalize_features=False)

    def model(self, **options: float) -> Any:
        return self.module.ContextualBradleyTerry(N_SYSTEMS, N_COVARIATES + 1, reg=0.0, **options)

    def values(self, parameters: Any) -> Any:
        """Strengths (centred), position and coefficients."""
        strengths = np.asarray(parameters["ratings"])
        return np.concatenate([strengths - strengths.mean(), np.asarray(parameters["coeffs"])])

    def fitted(self, **options: float) -> Any:
        return self.values(self.model(**options).fit(self.data).params)

    def resample(self, number: int, **options: float) -> tuple[Any, Any]:
        """How often each battle was drawn by the peer's own function, and what it made of that."""
        key = self.jax.random.PRNGKey(number)
        n = self.data.n_pairs
        drawn = np.asarray(self.jax.random.randint(key, shape=(n,), minval=0, maxval=n))
        parameters = self.module.fit_single_bootstrap_sample(key, self.model(**options), self.data)
        return np.bincount(drawn, minlength=n).astype(np.float64), self.values(parameters)


def check_values(battles: pl.DataFrame, peer: ArenaRank) -> None:
    """The same battles must give the same strengths and coefficients, or no time is worth comparing."""
    first, second = battles["model_a"].to_numpy(), battles["model_b"].to_numpy()
    said = battles["winner"].to_numpy()
    votes = code_votes(first, second, np.where(said == "model_a", first, np.where(said == "model_b", second, "tie")))
    paired = covariate_rows(votes, battles.select(covariate_names()).to_numpy(), position_effect=True)
    ones = np.ones(votes.n)
    ours = paired.fit(ones)
    exact = {"ftol": 0.0, "gtol": 1e-12, "max_iter": 300}
    if ours is None:
        raise SystemExit("no finite estimate")
    gaps = {"converged": np.abs(peer.fitted(**exact) - ours).max(), "as called": np.abs(peer.fitted() - ours).max()}
    times, theirs = peer.resample(1, **exact)
    again = paired.fit(times[paired.order], ours, tolerance=5e-4)
    gaps["one of its resamples, converged"] = np.abs(theirs - again).max() if again is not None else np.inf
    for what, gap in gaps.items():
        print(f"largest difference of a parameter to the peer's, {what}: {gap:.1e}", flush=True)
        if gap > (LOOSE if what == "as called" else CLOSE):
            raise SystemExit("values differ; timing them would mean nothing")


def timed(work: Any) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def main() -> int:
    """Print the ratio; 1 where it lies below its floor."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--battles", type=int, default=1_000_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    parser.add_argument("--peer-resamples", type=int, default=5)
    given = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    battles = simulated_battles(given.battles)
    dm.leaderboard_with_covariates  # noqa: B018 - imports are no part of the time
    ours = timed(
        lambda: dm.leaderboard_with_covariates(battles, covariate_names(), n_resamples=given.resamples, seed=SEED)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    try:
        peer = ArenaRank(battles)
    except ModuleNotFoundError as error:
        print(
            f"ours: {ours[0]:.1f} s by the clock, {ours[1]:.1f} s of the processor; the peer is not here ({error.name})"
        )
        return 0
    check_values(battles, peer)
    numbers = range(2, 2 + given.peer_resamples)
    one = [part / given.peer_resamples for part in timed(lambda: [peer.resample(number) for number in numbers])]
    print(
        f"{given.battles:,} battles, {N_SYSTEMS} systems, {N_COVARIATES} covariates, {given.resamples:,} resamples; "
        f"load before {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; our side's memory at most {peak:,.0f} MB"
    )
    print(
        f"peer: timed on {given.peer_resamples} resamples, times {given.resamples / given.peer_resamples:g}; reading not counted"
    )
    print(f"{'':18} {'ours':>10} {'peer':>12} {'ratio':>8}")
    ratios = []
    for what, own, theirs in zip(("by the clock", "processor"), ours, one, strict=True):
        ratios.append(theirs * given.resamples / own)
        print(f"{what:18} {own:9.1f}s {theirs * given.resamples:11.0f}s {ratios[-1]:7.1f}x")
    return int(min(ratios) < FLOOR)


if __name__ == "__main__":
    sys.exit(main())
