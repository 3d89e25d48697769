"""Signs of care or carelessness of every rater, computed over the whole table at once.

The measures are those of ``stats.rater_agreement``, ``stats.answer_times``, ``stats.straight_lining`` and
``stats.gold_accuracy``, which work rater by rater; tests compare the two. Here they are sums over groups, so that a study
with thousands of raters takes no longer per judgment than one with ten.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import special

from dialometer.analysis.data import StudyData
from dialometer.analysis.measures import Measures
from dialometer.model.item import CandidateItem
from dialometer.model.study import Study
from dialometer.quality.gold import Acceptable, Gold
from dialometer.stats.observations import Floats

_TO_SIGMA = 0.6744897501960817  # the MAD of a normal distribution with standard deviation 1
FEWEST_TARGETS = 4


def robust_z(values: Floats) -> Floats:
    """Distance from the median in robust standard deviations; ``nan`` where there is no measure of spread."""
    known = values[~np.isnan(values)]
    if len(known) < 3:
        return np.full(len(values), np.nan)
    centre = float(np.median(known))
    spread = float(np.median(np.abs(known - centre)))
    return _TO_SIGMA * (values - centre) / spread if spread > 0 else np.full(len(values), np.nan)


def correlation_frame(measures: Measures, confidence: float) -> pl.DataFrame:
    """Each rater's correlation with the mean of the others on the same things, within criteria, with Fisher's interval."""
    n_raters = len(measures.book.raters)
    total = np.zeros((3, n_raters))
    n_targets = np.zeros(n_raters)
    for measure in measures.criteria:
        count = np.bincount(measure.target, minlength=measure.n_targets)
        sums = np.bincount(measure.target, weights=measure.y, minlength=measure.n_targets)
        shared = count[measure.target] > 1
        own, rater, target = measure.y[shared], measure.rater[shared], measure.target[shared]
        rest = (sums[target] - own) / (count[target] - 1)
        size = np.maximum(np.bincount(rater, minlength=n_raters), 1)
        own = own - (np.bincount(rater, weights=own, minlength=n_raters) / size)[rater]
        rest = rest - (np.bincount(rater, weights=rest, minlength=n_raters) / size)[rater]
        for place, product in enumerate((own * rest, own**2, rest**2)):
            total[place] += np.bincount(rater, weights=product, minlength=n_raters)
        n_targets += np.bincount(rater, minlength=n_raters)
    usable = (n_targets >= FEWEST_TARGETS) & (total[1] > 1e-12) & (total[2] > 1e-12)
    scale = np.sqrt(np.where(usable, total[1] * total[2], 1.0))
    value = np.where(usable, np.clip(total[0] / scale, -1.0, 1.0), np.nan)
    half = special.ndtri((1 + confidence) / 2) / np.sqrt(np.maximum(n_targets - 3, 1.0))
    z = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    return pl.DataFrame(
        {
            "rater": list(measures.book.raters),
            "agreement": value,
            "agreement_low": np.tanh(z - half),
            "agreement_high": np.tanh(z + half),
            "n_shared": n_targets.astype(np.int64),
        }
    )


def choice_frame(data: StudyData, confidence: float) -> pl.DataFrame:
    """Share of the others who chose the same, averaged over what each rater judged, with Wilson's interval."""
    rows = data.judgments.filter(pl.col("choice").is_not_null() & pl.col("value").is_null())
    what = ["item", "criterion", "turn"]
    rows = rows.select("rater", *what, "choice").with_columns(pl.col("turn").fill_null(-1))
    rows = rows.with_columns(
        pl.len().over(what).alias("n"), pl.len().over([*what, "choice"]).alias("same"), pl.col("rater")
    ).filter(pl.col("n") > 1)
    share = (pl.col("same") - 1) / (pl.col("n") - 1)
    found = rows.group_by("rater").agg(share.mean().alias("agreement"), pl.len().alias("n_shared"))
    n = found["n_shared"].to_numpy().astype(np.float64)
    p = found["agreement"].to_numpy()
    z = float(special.ndtri((1 + confidence) / 2))
    scale = 1 + z * z / np.maximum(n, 1)
    centre = (p + z * z / (2 * np.maximum(n, 1))) / scale
    half = z / scale * np.sqrt(p * (1 - p) / np.maximum(n, 1) + z * z / (4 * np.maximum(n, 1) ** 2))
    return found.with_columns(
        pl.Series("agreement_low", np.maximum(centre - half, 0.0)),
        pl.Series("agreement_high", np.minimum(centre + half, 1.0)),
        pl.col("n_shared").cast(pl.Int64),
    ).select("rater", "agreement", "agreement_low", "agreement_high", "n_shared")


def pace_frame(judgments: pl.DataFrame) -> pl.DataFrame:
    """Median seconds of each rater's screens, and how far that lies from the other raters on the log scale."""
    found = (
        judgments.filter(pl.col("duration_s") > 0)
        .group_by("rater")
        .agg(pl.col("duration_s").log().median().exp().alias("median_s"))
    )
    return found.with_columns(pl.Series("pace_z", robust_z(np.log(found["median_s"].to_numpy()))))


def monotony_frame(judgments: pl.DataFrame) -> pl.DataFrame:
    """Share of each rater's commonest answer per criterion (the mean over criteria), and the longest run of one answer."""
    # For a choice between systems the place on the screen is the pattern that careless raters leave.
    place = pl.when(pl.col("choice").is_not_null() & (pl.col("side") > 0)).then(pl.format("place {}", pl.col("side")))
    answer = pl.coalesce(pl.col("value").cast(pl.String), place, pl.col("choice"), pl.col("answer"))
    rows = judgments.select("rater", "criterion", "position", "side", answer.alias("given")).drop_nulls("given")
    by = ["rater", "criterion"]
    commonest = (
        rows.group_by([*by, "given"])
        .agg(pl.len().alias("n"))
        .group_by(by)
        .agg(pl.col("n").max().alias("top"), pl.col("n").sum())
        .sort(by)  # groups come in no order, and the last digit of a mean depends on it
        .group_by("rater")
        .agg((pl.col("top") / pl.col("n")).mean().alias("same_share"), pl.col("n").sum().alias("n_answers"))
    )
    ordered = rows.sort([*by, "position", "side"], nulls_last=True, maintain_order=True)
    is_new = (pl.col("given") != pl.col("given").shift(1)).over(by).fill_null(True)
    runs = (
        ordered.with_columns(is_new.cum_sum().over(by).alias("run"))
        .group_by([*by, "run"])
        .agg(pl.len().alias("n"))
        .group_by("rater")
        .agg(pl.col("n").max().alias("longest_run"))
    )
    return commonest.join(runs, on="rater", how="left")


def gold_frame(study: Study, judgments: pl.DataFrame) -> pl.DataFrame:
    """Right and all answers to what the gold rules ask, by rater."""
    parts = []
    for rule in study.spec.quality:
        if not isinstance(rule, Gold):
            continue
        ids = rule.gold_ids(study)
        has_candidates = any(isinstance(study.items_by_id[item], CandidateItem) for item in ids)
        for wanted in rule.acceptable:
            rows = judgments.filter(pl.col("item").is_in(ids) & (pl.col("criterion") == wanted.criterion))
            if wanted.system and not has_candidates:
                rows = rows.filter(pl.col("system").fill_null("").is_in(["", wanted.system]))
            parts.append(rows.select("rater", _passes(wanted).alias("is_right")))
    if not parts:
        return pl.DataFrame(schema={"rater": pl.String, "n_right": pl.Int64, "n_gold": pl.Int64})
    return (
        pl.concat(parts)
        .group_by("rater")
        .agg(
            pl.col("is_right").fill_null(False).sum().cast(pl.Int64).alias("n_right"),
            pl.len().cast(pl.Int64).alias("n_gold"),
        )
    )


def _passes(wanted: Acceptable) -> pl.Expr:
    """``Acceptable.passes`` as an expression over the long table."""
    is_right = pl.lit(True)
    if wanted.one_of is not None:
        names = [str(option) for option in wanted.one_of]
        numbers = [float(option) for option in wanted.one_of if isinstance(option, int | float)]
        is_right = pl.col("choice").is_in(names).fill_null(False) | pl.col("value").is_in(numbers).fill_null(False)
    if wanted.at_least is not None:
        is_right = is_right & (pl.col("value") >= wanted.at_least)
    if wanted.at_most is not None:
        is_right = is_right & (pl.col("value") <= wanted.at_most)
    return is_right
