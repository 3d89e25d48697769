"""python -m bench.calibrate.few_levels: from how many raters and items on can a mixed model be trusted with their variance?

Balanced studies in which every rater judged two systems on every item, drawn as mean squares of the differences, which is all that
a test uses: the mixed model with Satterthwaite's degrees of freedom beside the two-way jackknife. Nothing differs.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

ERROR_SD = 0.7
N_STUDIES = 200_000
SPREADS = ((0.4, 0.6), (0.56, 0.3), (0.2, 0.2), (0.0, 0.1))
"""Standard deviations of raters and of items in the differences."""


def false_claims(n_raters: int, n_items: int, spread: tuple[float, float], seed: int) -> tuple[float, ...]:
    """Share of p-values below .05 and, three times, below .05 / 3: by the mixed model, then by the jackknife."""
    rng = np.random.default_rng([seed, n_raters, n_items])
    df_rater, df_item = n_raters - 1, n_items - 1
    df_rest, n = df_rater * df_item, n_raters * n_items
    rest_variance = ERROR_SD**2
    of_rater, of_item = n_items * spread[0] ** 2 + rest_variance, n_raters * spread[1] ** 2 + rest_variance
    rater, item, rest = (
        variance * rng.chisquare(df, N_STUDIES) / df
        for variance, df in ((of_rater, df_rater), (of_item, df_item), (rest_variance, df_rest))
    )
    mean = rng.normal(0, np.sqrt((of_rater + of_item - rest_variance) / n), N_STUDIES)
    total = rater + item - rest
    df = total**2 / (rater**2 / df_rater + item**2 / df_item + rest**2 / df_rest)
    # Restricted maximum likelihood leaves out a component that would be negative.
    no_rater, no_item = rater < rest, item < rest
    total, df = np.where(no_item, rater, total), np.where(no_item, df_rater, df)
    total, df = np.where(no_rater, item, total), np.where(no_rater, df_item, df)
    both, df_all = no_rater & no_item, df_rater + df_item + df_rest
    pooled = (rater * df_rater + item * df_item + rest * df_rest) / df_all
    total, df = np.where(both, pooled, total), np.where(both, df_all, df)
    jackknife = np.maximum(np.maximum(rater, item), rater + item - rest)
    ends = [(total, df), (jackknife, np.full(N_STUDIES, min(df_rater, df_item)))]
    p = [2 * stats.t.sf(abs(mean) / np.sqrt(variance / n), own) for variance, own in ends]
    return tuple(float(k * np.mean(values < 0.05 / k)) for values in p for k in (1, 3))


def main() -> None:
    """The command."""
    print("| raters | items | mixed model | three corrected | jackknife | three corrected |\n|---|---|---|---|---|---|")
    for n_raters in (30, 60, 150):
        for n_items in (4, 5, 6, 7, 8, 10, 12):
            made = np.array([false_claims(n_raters, n_items, spread, seed) for seed, spread in enumerate(SPREADS)])
            shown = [
                f"{100 * low:.1f} to {100 * high:.1f}%" for low, high in zip(made.min(0), made.max(0), strict=True)
            ]
            print(f"| {n_raters} | {n_items} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
