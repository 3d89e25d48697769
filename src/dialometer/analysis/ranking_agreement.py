"""Does a system's order of candidates follow the crowd's ratings (Chierici and Habash 2021, table 3)?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from dialometer.analysis.candidates import Pool
from dialometer.analysis.clustered_spearman import clustered_spearman
from dialometer.analysis.family import Options
from dialometer.analysis.words import listed, number, percent
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.summary import bootstrap_mean


def order_agreement(pool: Pool, system: int, options: Options) -> Estimate:
    """Of two candidates of one question that a system ranks, how often the crowd rates the higher one higher (ties half)."""
    rank = pool.rank[:, system]
    used = ~np.isnan(rank) & pool.is_judged
    table = pl.DataFrame({"question": pool.question[used], "rank": rank[used], "mean": pool.mean[used]})
    pairs = table.join(table, on="question").filter(pl.col("rank") < pl.col("rank_right"))
    agrees = (
        pl.when(pl.col("mean") > pl.col("mean_right")).then(1.0).when(pl.col("mean") < pl.col("mean_right")).then(0.0)
    )
    scored = pairs.select("question", agrees.otherwise(0.5).alias("agrees"))
    method = "share of pairs in the same order"
    if not len(scored):
        return unknown(method, "no question has two rated candidates that this system ranks; pool deeper lists")
    found = bootstrap_mean(
        scored["agrees"].to_numpy(),
        scored["question"].to_numpy(),
        n_resamples=options.n_resamples,
        seed=options.seed,
        confidence=options.confidence,
    )
    notes = tuple(note.replace("rater", "question") for note in found.notes)
    return replace(found, method=method, interval_method="percentile bootstrap over questions", notes=notes)


def ranking_section(name: str, pool: Pool, options: Options) -> Section:
    """Table 3 of the paper with intervals, and the share of pairs that crowd and system put in the same order."""
    rows: list[tuple[Cell, ...]] = []
    rhos: dict[str, Estimate] = {}
    orders: dict[str, Estimate] = {}
    for k, label in enumerate(pool.labels):
        used = ~np.isnan(pool.rank[:, k]) & pool.is_judged
        rhos[label] = clustered_spearman(
            -pool.rank[used, k], pool.mean[used], pool.question[used], options, resampled="questions", label=label
        )
        orders[label] = order_agreement(pool, k, options)
        rows.append((label, rhos[label], orders[label], int(used.sum())))
    table = Table(
        name,
        "Rank given by the system and mean rating given by the crowd",
        (
            Column("system", "System"),
            Column("rho", "Spearman's rho", "estimate"),
            Column("order", "Pairs in the same order", "percent_estimate"),
            Column("n", "Candidates", "count"),
        ),
        tuple(rows),
        caption="Positive: what the system ranks higher is rated higher. Rho is taken over all candidates of all questions, "
        "as published; pairs are compared within a question only. Intervals draw questions.",
        notes=(
            "Only pooled candidates count. Deep ranks are in the pool because another system liked them, so these are "
            "not correlations over whole lists.",
        ),
    )
    return Section(name, "Do systems rank as the crowd would?", _words(rhos, orders), (table, _figure(name, rhos)))


def _words(rhos: dict[str, Estimate], orders: dict[str, Estimate]) -> tuple[str, ...]:
    known = {label: rho for label, rho in rhos.items() if rho.is_known}
    if not known:
        return ("No system ranks enough candidates at different places to be compared with the ratings.",)
    best = max(known, key=lambda label: known[label].value)
    sure = [label for label, rho in known.items() if rho.has_interval and rho.low > 0]
    if not sure:
        text = f"No system's order follows the ratings beyond chance: the highest rho is {number(known[best].value)} ({best})."
    else:
        text = f"The order of {best} follows the ratings most closely (rho {number(known[best].value)}"
        if orders[best].is_known:
            text += f"; of two candidates the crowd prefers the one it ranks higher in {percent(orders[best].value)} of cases"
        text += f"). The interval lies above zero for {listed(sure)}."
    return (
        text,
        "A system can be right at the top and still order the rest differently from the crowd, so this says less about what "
        "users meet than the ratings of first answers do.",
    )


def _figure(name: str, rhos: dict[str, Estimate]) -> Figure:
    told = listed(f"{label} {number(rho.value)}" for label, rho in rhos.items() if rho.is_known)
    return Figure(
        f"{name}_figure",
        "Spearman's rho between system and crowd",
        dot_interval([Dot(label, rho) for label, rho in rhos.items()], value_title="Spearman's rho", reference=0.0),
        alt=f"Spearman's rho by system: {told}.",
    )
