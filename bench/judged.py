"""Human raters corrected by judges beside ppi-python, in one run: ``python -m bench.judged`` (``pip install ppi-python`` first).

The same numbers are compared before anything is timed. The peer's bootstrap would take minutes, so it is timed on a part of the
resamples and scaled up. Processor seconds are counted, so that a busy machine changes little.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dialometer.stats.judged.bootstrap import judged_mean_bootstrap
from dialometer.stats.judged.means import judged_mean

N_SCORES, N_PEOPLE, N_RESAMPLES, N_TIMED = 1_000_000, 1_000, 2_000, 40
FLOOR = 20.0
SEED = 3


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and what came out."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def main() -> None:
    """Prints both bootstraps for continuous scores and for votes, and the ratio."""
    try:
        import ppi_py  # noqa: PLC0415 - the peer is no dependency
    except ImportError:
        sys.exit("the peer is missing: pip install ppi-python")
    rng = np.random.default_rng(SEED)
    quality = rng.normal(size=N_SCORES)
    lots = {"scores of any value": 0.8 * quality + rng.normal(scale=0.5, size=N_SCORES)}
    lots["scores from 1 to 5"] = np.clip(np.round(3 + lots["scores of any value"]), 1, 5)
    people = (quality + rng.normal(scale=0.7, size=N_SCORES))[:N_PEOPLE]
    print("| judge's scores | ppi-python (s) | dialometer (s) | ratio | interval of both |\n|---|---|---|---|---|")
    slowest = np.inf
    for name, scores in lots.items():
        own, rest = scores[:N_PEOPLE], scores[N_PEOPLE:]
        point = float(np.squeeze(ppi_py.ppi_mean_pointestimate(people, own, rest)))
        assert abs(point - judged_mean(people, own, rest).both.value) < 1e-6

        def peer(own: Any = own, rest: Any = rest, n: int = N_TIMED) -> Any:
            return ppi_py.ppboot(np.mean, people, own, rest, n_resamples=n, alpha=0.05, lam=0.8)

        part, (low, high) = seconds(peer)
        theirs = part * N_RESAMPLES / N_TIMED
        ours, estimate = seconds(
            lambda own=own, rest=rest: judged_mean_bootstrap(people, own, rest, n_resamples=N_RESAMPLES)
        )
        slowest = min(slowest, theirs / ours)
        interval = f"{low:.3f} to {high:.3f} ({N_TIMED} resamples), {estimate.low:.3f} to {estimate.high:.3f}"
        print(f"| {name} | {theirs:.1f} | {ours:.2f} | {theirs / ours:.0f} | {interval} |", flush=True)
    print(
        f"\n{N_SCORES:,} scores, {N_PEOPLE:,} human judgments, {N_RESAMPLES:,} resamples; ppi-python's time is that of {N_TIMED} "
        f"resamples, scaled up. Point estimates agree to 1e-6. Floor: {FLOOR:.0f} times as fast."
    )
    if slowest < FLOOR:
        sys.exit(f"only {slowest:.1f} times as fast")


if __name__ == "__main__":
    main()
