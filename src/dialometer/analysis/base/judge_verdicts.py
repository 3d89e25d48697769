"""A judge is one rater, however often it was asked: its calls under its name, and one verdict on each thing.

Sessions of a model are repeated calls of one judge, not independent raters. Its ratings of a thing are averaged; its choices are
one choice where both orders and all samples agree on it, and a tie where they do not, unless the study keeps them as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from dialometer.storage.table import FACTOR_PREFIX

_KEY = ("rater", "block", "item", "system", "criterion", "turn", "scale")
TIE = "tie"


def named_judges(calls: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """The calls under the names of the judges, from the pseudonyms of their sessions."""
    renamed = pl.col("rater").replace(names) if names else pl.col("rater")
    return calls.with_columns(renamed.alias("rater"))


def one_verdict_each(calls: pl.DataFrame, *, kept: Collection[str] = ()) -> pl.DataFrame:
    """One row for each judge and thing it judged. Judges in ``kept`` keep one row for each order of the responses."""
    if calls.is_empty():
        return calls
    factors = [name for name in calls.columns if name.startswith(FACTOR_PREFIX)]
    key = [*_KEY, *factors, "_pair"]
    is_kept = pl.col("rater").is_in(list(kept))
    shown = pl.when(is_kept).then(pl.col("order")).otherwise(pl.lit("")).alias("_shown")
    # A choice is about the systems shown together, in whatever order: one item may show several sets of them.
    systems = pl.col("order").fill_null("").str.split("|").list.sort().list.join("|")
    pair = pl.when(pl.col("system").fill_null("") == "").then(systems).otherwise(pl.lit("")).alias("_pair")
    calls = calls.with_columns(shown, pair, pl.col("order").alias("_order"))
    by_order = _most_chosen(calls, [*key, "_shown", "_order"])
    verdicts = by_order.group_by(*key, "_shown", maintain_order=True).agg(
        pl.when(pl.col("choice").n_unique() == 1).then(pl.col("choice").first()).otherwise(pl.lit(TIE)).alias("choice"),
        pl.when(pl.col("worst").n_unique() == 1).then(pl.col("worst").first()).otherwise(None).alias("worst"),
    )
    rest = [
        name for name in calls.columns if name not in (*key, "choice", "worst", "value", "side", "_shown", "_order")
    ]
    several = pl.col("_order").n_unique() > 1
    merged = calls.group_by(*key, "_shown", maintain_order=True).agg(
        pl.col("value").mean(),
        pl.when(several).then(0).otherwise(pl.col("side").first()).cast(pl.Int32).alias("side"),
        pl.col("duration_s").mean().alias("_seconds"),
        *(pl.col(name).first() for name in rest),
    )
    joined = merged.with_columns(pl.col("_seconds").alias("duration_s")).join(
        verdicts, on=[*key, "_shown"], how="left", nulls_equal=True, maintain_order="left"
    )
    columns = [name for name in calls.columns if not name.startswith("_")]
    return joined.select(columns)


def _most_chosen(calls: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """For each thing in each order the choice of most samples; a tie where two are chosen equally often."""
    if calls.select(pl.struct(key).is_duplicated().any()).item():
        counts = calls.group_by(*key, "choice", maintain_order=True).agg(pl.len().alias("_n"), pl.col("worst").first())
        most = counts.filter(pl.col("_n") == pl.col("_n").max().over(key))
        return most.group_by(key, maintain_order=True).agg(
            pl.when(pl.len() == 1).then(pl.col("choice").first()).otherwise(pl.lit(TIE)).alias("choice"),
            pl.col("worst").first(),
        )
    return calls.select(*key, "choice", "worst")
