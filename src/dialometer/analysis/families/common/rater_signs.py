"""The signs of careless raters as numbers: agreement with the others, times, repeated answers, gold answers.

They are sums over groups of the whole table, so that a study with thousands of raters takes no longer per judgment than one
with ten.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection

import numpy as np
import polars as pl
from scipy import special

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.measures import Measures
from dialometer.analysis.base.rater_parts import by_raters
from dialometer.model.item import CandidateItem
from dialometer.model.study import Study
from dialometer.quality.gold import Acceptable, Gold
from dialometer.quality.straight_lining import visible_answer
from dialometer.stats.clustered.proportion import wilson_bounds
from dialometer.stats.observations import Floats

_TO_SIGMA = 0.6744897501960817  # the MAD of a normal distribution with standard deviation 1
FEWEST_TARGETS = 4

FAR = 3.5
"""Robust standard deviations from the other raters beyond which a rater is looked at (Iglewicz and Hoaglin 1993)."""
TIMES_FASTER = 2.0
"""A rater is looked at as fast from so many times the usual pace on, however alike the others are."""


def robust_z(values: Floats, least_spread: float = 0.0) -> Floats:
    """Distance from the median in robust standard deviations; ``nan`` where there is no measure of spread.

    Where values are nearly equal, a spread of ``least_spread`` keeps small differences small.
    """
    known = values[~np.isnan(values)]
    if len(known) < 3:
        return np.full(len(values), np.nan)
    centre = float(np.median(known))
    spread = max(float(np.median(np.abs(known - centre))) / _TO_SIGMA, least_spread)
    return (values - centre) / spread if spread > 0 else np.full(len(values), np.nan)


def correlation_frame(measures: Measures, confidence: float) -> pl.DataFrame:
    """Each rater's correlation with the mean of the others on the same things, within criteria, with Fisher's interval.

    Every criterion is centred on its own mean and takes a degree of freedom, so that the standard error of z is
    1 / sqrt(n - criteria - 2): simulated intervals hold the true value in 95 to 96% of 40,000 samples (three criteria of two,
    three or six things each), those with n - 3 in 81 to 93%. With one criterion it is Fisher's own.
    """
    n_raters = len(measures.book.raters)
    total = np.zeros((3, n_raters))
    n_targets, n_criteria = np.zeros(n_raters), np.zeros(n_raters)
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
        n_shared = np.bincount(rater, minlength=n_raters)
        n_targets += n_shared
        n_criteria += n_shared > 0
    usable = (n_targets >= FEWEST_TARGETS) & (total[1] > 1e-12) & (total[2] > 1e-12)
    scale = np.sqrt(np.where(usable, total[1] * total[2], 1.0))
    value = np.where(usable, np.clip(total[0] / scale, -1.0, 1.0), np.nan)
    n_free = n_targets - n_criteria - 2
    half = special.ndtri((1 + confidence) / 2) / np.sqrt(np.where(n_free >= 1, n_free, np.nan))
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
    """Share of the others who chose the same, averaged over what each rater judged, with Wilson's interval.

    Others are those who chose among the same systems: in an arena raters see different pairs on one item.
    """
    rows = data.rated.filter(pl.col("choice").is_not_null() & pl.col("value").is_null())
    shown_systems = pl.col("order").fill_null("").str.split("|").list.sort().list.join("|")
    rows = rows.with_columns(
        pl.col("turn").fill_null(-1),
        pl.when(pl.col("system").fill_null("") == "").then(shown_systems).otherwise("system").alias("about"),
    )
    what = ["item", "criterion", "turn", "about"]
    # A worst beside the best is a second choice on the same screen: both count half.
    ends = pl.concat(
        [
            rows.select("rater", *what, pl.lit(end).alias("end"), pl.col(end).alias("picked"))
            for end in ("choice", "worst")
        ]
    ).drop_nulls("picked")
    what.append("end")
    ends = ends.with_columns(pl.len().over(what).alias("n"), pl.len().over([*what, "picked"]).alias("same")).filter(
        pl.col("n") > 1
    )
    share = (pl.col("same") - 1) / (pl.col("n") - 1)
    frame = ends.group_by("rater").agg(
        share.mean().alias("agreement"), (pl.col("end") == "choice").sum().alias("n_shared")
    )
    n = frame["n_shared"].to_numpy().astype(np.float64)
    low, high = wilson_bounds(frame["agreement"].to_numpy(), n, confidence)
    return frame.with_columns(
        pl.Series("agreement_low", low),
        pl.Series("agreement_high", high),
        pl.col("n_shared").cast(pl.Int64),
    ).select("rater", "agreement", "agreement_low", "agreement_high", "n_shared")


def pace_frame(judgments: pl.DataFrame) -> pl.DataFrame:
    """Median seconds of each rater's screens, and how far that lies from the other raters on the log scale."""
    frame = by_raters(
        judgments.select("rater", "duration_s"),
        lambda rows: (
            rows.filter(pl.col("duration_s") > 0)
            .group_by("rater")
            .agg(pl.col("duration_s").log().median().exp().alias("median_s"))
        ),
    )
    least = math.log(TIMES_FASTER) / FAR
    return frame.with_columns(pl.Series("pace_z", robust_z(np.log(frame["median_s"].to_numpy()), least)))


def monotony_frame(judgments: pl.DataFrame, systems: Collection[str] = ()) -> pl.DataFrame:
    """Share of each rater's most frequent answer per criterion (the mean over criteria), and the longest run of one answer.

    As in the rule straight_lining, a choice between systems counts by its position on the screen, and not at all where nobody
    knows it. ``same_system_share`` is the share of the system chosen most often: where it is as high, the rater may prefer a
    system that was always on that side.
    """
    used = judgments.select("rater", "criterion", "system", "position", "side", "order", "value", "choice", "answer")
    return by_raters(used, lambda rows: _monotony(_with_positions(rows, systems)))


def _with_positions(judgments: pl.DataFrame, systems: Collection[str]) -> pl.DataFrame:
    """What each answer repeats (``given``), of choices that count by their position the system (``chosen``), and whether the
    answer compares systems that were shown together (``is_between``), as ties do too.
    """
    answer = pl.coalesce(pl.col("value").cast(pl.String), "choice", "answer")
    rows = judgments.with_columns(answer.alias("given"), pl.lit(None, dtype=pl.String).alias("chosen"))
    compares = pl.col("value").is_null() & (pl.col("system").fill_null("") == "") & pl.col("given").is_not_null()
    rows = rows.with_columns((compares & (pl.col("order").fill_null("") != "")).alias("is_between"))
    key = ["choice", "answer", "side", "order"]
    distinct = rows.filter(compares).select(key).unique()
    if not len(distinct):
        return rows
    placed = distinct.with_columns(
        pl.Series("place", [_place(*cells, systems=systems) for cells in distinct.iter_rows()], dtype=pl.String)
    )
    place = pl.when(compares).then("place")
    return (
        rows.join(placed, on=key, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.when(place.is_not_null()).then("given").alias("chosen"))
        .with_columns(pl.when(place.is_null()).then("given").when(place != "").then(place).alias("given"))
    )


def _place(
    choice: str | None, answer: str | None, side: int | None, order: str | None, *, systems: Collection[str]
) -> str | None:
    """Where on the screen a choice was; empty where nobody knows, None where it is no choice of a system, such as a tie."""
    value = json.loads(answer or "null") if choice is None else choice
    visible = visible_answer(value, side, order.split("|") if order else ())
    if visible != visible_answer(value):
        return f"place {visible}"
    return "" if choice in systems else None


def _monotony(judgments: pl.DataFrame) -> pl.DataFrame:
    # Numbers in place of names: a million texts take long to sort.
    by, named = ["rater", "criterion"], ["rater", "criterion", "given"]
    rows = judgments.select(*by, "position", "side", "given", "chosen", "is_between").drop_nulls("given")
    levels = {name: rows[name].unique().sort() for name in by}
    coded = [pl.col(name).cast(pl.Enum(levels[name])).to_physical().cast(pl.UInt32) for name in by]
    texts = [pl.col(name).cast(pl.Categorical).to_physical() for name in ("given", "chosen")]
    rows = rows.with_columns(*coded, *texts)
    counts = rows.group_by(named).len().group_by(by).agg(pl.max("len").alias("same"), pl.sum("len").alias("n"))
    chosen = rows.drop_nulls("chosen").group_by([*by, "chosen"]).len()
    chosen = chosen.group_by(by).agg(pl.max("len").alias("same_system"))
    kinds = rows.group_by(by).agg(pl.count("chosen").alias("n_placed"), pl.sum("is_between").alias("n_between"))
    counts = counts.join(kinds, on=by).join(chosen, on=by, how="left").with_columns(pl.col("same_system").fill_null(0))
    rows = rows.sort([*by, "position", "side"], nulls_last=True, maintain_order=True)
    is_new = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in named)
    runs = rows.group_by(is_new.fill_null(True).cum_sum().alias("run")).agg(pl.first("rater"), pl.len())
    longest = runs.group_by("rater").agg(pl.col("len").max().cast(pl.Int64).alias("longest_run"))
    shares = (
        counts.sort(by)
        .group_by("rater", maintain_order=True)
        .agg(
            (pl.col("same") / pl.col("n")).mean().alias("same_share"),
            (pl.col("same_system") / pl.col("n")).mean().alias("same_system_share"),
            pl.sum("n").cast(pl.Int64).alias("n_answers"),
            pl.sum("n_placed", "n_between").cast(pl.Int64),
        )
    )
    joined = shares.join(longest, on="rater", how="left", maintain_order="left")
    return joined.with_columns(levels["rater"].gather(joined["rater"]).alias("rater"))


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
        if wanted.point:
            is_right = pl.col("answer").str.json_path_match(f"$['{wanted.point}']").is_in(names).fill_null(False)
    if wanted.at_least is not None:
        is_right = is_right & (pl.col("value") >= wanted.at_least)
    if wanted.at_most is not None:
        is_right = is_right & (pl.col("value") <= wanted.at_most)
    return is_right
