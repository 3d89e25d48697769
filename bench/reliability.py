"""Intervals for agreement statistics: ours beside the usual packages called in a loop, in one run on one machine.

Before anything is timed, values of both are compared on the same resamples. Peers are timed on a few resamples and scaled to
the full number; the table says from how many.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dialometer.stats.agreement.kappa import cohen_kappa, confusion, disagreement_weights, kappa_of_tables
from dialometer.stats.agreement.krippendorff_alpha import krippendorff_alpha
from dialometer.stats.icc.forms import icc_of_counts
from dialometer.stats.icc.icc import icc
from dialometer.stats.icc.variance_components import variance_components

N_RESAMPLES = 2000
LABELS = [1, 2, 3, 4, 5]
Row = dict[str, Any]


def best_of(work: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest run, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def loop(one: Callable[[int], float], n: int) -> tuple[float, list[float]]:
    """Seconds per resample of a peer, and what it found; one more to warm up."""
    one(0)
    start = time.perf_counter()
    found = [one(index) for index in range(n)]
    return (time.perf_counter() - start) / n, found


def row(work: str, ours_s: float, peer: str, peer_s: float, timed_on: int, floor: float) -> Row:
    note = f"peer timed on {timed_on} of {N_RESAMPLES} resamples, scaled" if timed_on else "peer timed in full"
    return {
        "work": work,
        "ours_s": ours_s,
        "peer": peer,
        "peer_s": peer_s,
        "ratio": peer_s / ours_s,
        "floor": floor,
        "note": note,
    }


def ratings(rng: np.random.Generator) -> np.ndarray:
    return 3 + rng.normal(size=(500, 1)) + 0.3 * rng.normal(size=(1, 20)) + rng.normal(size=(500, 20))


def icc_row() -> Row:
    import pandas as pd  # noqa: PLC0415
    import pingouin  # noqa: PLC0415

    rng = np.random.default_rng(1)
    data = ratings(rng)
    n, k = data.shape
    n_timed = 8
    draws = rng.integers(0, n, size=(n_timed, n))
    item, rater = np.repeat(np.arange(n), k), np.tile(np.arange(k), n)

    def one(index: int) -> float:
        frame = pd.DataFrame({"item": item, "rater": rater, "y": data[draws[index]].ravel()})
        table = pingouin.intraclass_corr(frame, targets="item", raters="rater", ratings="y").set_index("Type")
        return float(table.loc["ICC(A,1)", "ICC"])

    seconds, found = loop(one, n_timed)
    counts = np.stack([np.bincount(draw, minlength=n) for draw in draws]).astype(np.float64)
    np.testing.assert_allclose(icc_of_counts(data, counts, None)["ICC(2,1)"], found, atol=1e-9)
    ours = best_of(lambda: icc(data, "ICC(2,1)", interval="percentile", n_resamples=N_RESAMPLES))
    return row(
        "ICC(2,1), 500 items x 20 raters, 2,000 resamples", ours, "pingouin", seconds * N_RESAMPLES, n_timed, 1000
    )


def kappa_rows() -> list[Row]:
    from sklearn.metrics import cohen_kappa_score  # noqa: PLC0415

    rng = np.random.default_rng(2)
    n, n_timed = 25_000, 40
    first = rng.integers(1, 6, n)
    second = np.clip(first + rng.integers(-1, 2, n), 1, 5)
    draws = rng.integers(0, n, size=(n_timed, n))
    tables = np.stack([confusion(first[draw] - 1, second[draw] - 1, 5) for draw in draws])
    rows = []
    for weights in ("none", "quadratic"):
        name = None if weights == "none" else weights

        def one(index: int, name: str | None = name) -> float:
            draw = draws[index]
            return float(cohen_kappa_score(first[draw], second[draw], labels=LABELS, weights=name))

        seconds, found = loop(one, n_timed)
        np.testing.assert_allclose(kappa_of_tables(tables, disagreement_weights(5, weights)), found, atol=1e-10)

        def ours(weights: Any = weights) -> object:
            return cohen_kappa(first, second, LABELS, weights=weights, interval="percentile", n_resamples=N_RESAMPLES)

        work = f"Cohen's kappa ({weights} weights), 25,000 pairs, 2,000 resamples"
        rows.append(row(work, best_of(ours), "scikit-learn", seconds * N_RESAMPLES, n_timed, 1000))
    return rows


def alpha_rows() -> list[Row]:
    import krippendorff  # noqa: PLC0415

    rng = np.random.default_rng(3)
    data = np.clip(np.round(ratings(rng)), 1, 5)
    data[rng.random(data.shape) < 0.1] = np.nan
    n, n_timed = len(data), 40
    draws = rng.integers(0, n, size=(n_timed, n))
    rows = []
    for level in ("nominal", "ordinal", "interval", "ratio"):

        def one(index: int, level: Any = level) -> float:
            return float(krippendorff.alpha(reliability_data=data[draws[index]].T, level_of_measurement=level))

        seconds, found = loop(one, n_timed)
        same = [krippendorff_alpha(data[draw], level, n_resamples=0).value for draw in draws]
        np.testing.assert_allclose(same, found, atol=1e-10)
        ours = best_of(lambda level=level: krippendorff_alpha(data, level, n_resamples=N_RESAMPLES))
        work = f"Krippendorff's alpha ({level}), 500 items x 20 raters, 2,000 resamples"
        rows.append(row(work, ours, "krippendorff", seconds * N_RESAMPLES, n_timed, 50))
    return rows


def components_row() -> Row:
    import pandas as pd  # noqa: PLC0415
    import statsmodels.formula.api as smf  # noqa: PLC0415

    rng = np.random.default_rng(4)
    items = np.repeat(np.arange(100), 4)
    raters = np.concatenate([rng.permutation(20)[:4] for _ in range(100)])
    values = rng.normal(size=100)[items] + 0.6 * rng.normal(size=20)[raters] + 0.8 * rng.normal(size=400)
    frame = pd.DataFrame({"y": values, "item": items, "rater": raters, "all": 1})
    parts = {"item": "0 + C(item)", "rater": "0 + C(rater)"}
    start = time.perf_counter()
    peer = smf.mixedlm("y ~ 1", frame, groups="all", vc_formula=parts, re_formula="0").fit(reml=True)
    seconds = time.perf_counter() - start
    found = variance_components(values, items, raters)
    expected = dict(zip(peer.model.exog_vc.names, peer.vcomp, strict=True))
    np.testing.assert_allclose(
        [found.item, found.rater, found.residual], [expected["item"], expected["rater"], peer.scale], rtol=2e-3
    )
    ours = best_of(lambda: variance_components(values, items, raters))
    return row("variance components by REML, 100 items x 4 of 20 raters", ours, "statsmodels MixedLM", seconds, 0, 1)


def rows() -> list[Row]:
    """One row per piece of work: seconds of ours and of the peer, and how many times faster ours is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn about their own use of other packages
        return [icc_row(), *kappa_rows(), *alpha_rows(), components_row()]


def main() -> None:
    table = rows()
    width = max(len(one["work"]) for one in table)
    print(f"{'work':{width}}  {'ours s':>9}  {'peer s':>9}  {'ratio':>9}  peer")
    for one in table:
        times = f"{one['ours_s']:9.4f}  {one['peer_s']:9.2f}  {one['ratio']:8,.0f}x"
        print(f"{one['work']:{width}}  {times}  {one['peer']} ({one['note']})")


if __name__ == "__main__":
    main()
