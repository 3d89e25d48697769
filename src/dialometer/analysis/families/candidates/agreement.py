"""How far raters of one candidate agree: kappa of two ratings chosen in four ways, each beside what the choice alone makes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.scale_units import alpha_level
from dialometer.analysis.base.wording import listed, n_of, number, p_words, percent, with_interval
from dialometer.analysis.families.candidates.pool import MOST_COLUMNS, Marks, Pool
from dialometer.analysis.shared.correlation import clustered_spearman
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import COEFFICIENT, Dot, dot_interval
from dialometer.stats.agreement.fleiss import percent_agreement
from dialometer.stats.agreement.kappa import CONFIGURATIONS, PairChoice, PairKappa, kappa_of_pairs
from dialometer.stats.agreement.krippendorff_alpha import krippendorff_alpha
from dialometer.stats.bootstrap.means import bootstrap_mean
from dialometer.stats.observations import Floats, stack

MOST_SHUFFLED = 10_000_000
FEWEST_SHUFFLES = 99
"""Cells shuffled for one null distribution; the spread of many candidates shows in fewer shuffles."""
COUNT_WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}


@dataclass(frozen=True)
class Agreement:
    """Kappas by configuration (empty where the scale has no points), and alpha."""

    linear: dict[PairChoice, PairKappa]
    quadratic: dict[PairChoice, PairKappa]
    unweighted: dict[PairChoice, float]
    """What the program of Chierici and Habash computes: its weighted kappa counts every disagreement alike."""
    percent: Estimate | None
    alpha: Estimate
    n_columns: int
    n_candidates: int
    n_whole: int
    """Candidates with at least three ratings, where there is a choice."""


def rating_columns(pool: Pool, per_item: int | None) -> Floats:
    """Ratings as candidates by first, second, third rating; nan where there is none. Columns are not persons."""
    width = max(MOST_COLUMNS, per_item or 0)
    matrix = np.full((len(pool.items), width), np.nan)
    stacked = stack(pool.value, pool.candidate, n_columns=width)
    matrix[np.array(stacked.items, dtype=np.int64)] = stacked.ratings
    return matrix


def agreement_of(
    pool: Pool, columns: Floats, options: Options, *, chosen: Marks | None = None, has_null: bool = True
) -> Agreement:
    """Agreement on all candidates or on the chosen ones; without the null where nothing is tested."""
    ratings = columns if chosen is None else columns[chosen]
    ratings = ratings[(~np.isnan(ratings)).any(axis=1)]
    counts = (~np.isnan(ratings)).sum(axis=1)
    if counts.max(initial=0) < 2:
        raise NotEnoughData(
            "no candidate has ratings of two raters, so nothing can be said about agreement",
            remedy="set judgments_per_item to 2 or more (three is usual) and collect more ratings",
        )
    labels = pool.scale.categories()
    n_permutations = int(np.clip(MOST_SHUFFLED // max(ratings.size, 1), FEWEST_SHUFFLES, 500)) if has_null else 0
    choices = CONFIGURATIONS if counts.max() > 2 else ("random",)

    def kappas(weights: str, n_shuffles: int) -> dict[PairChoice, PairKappa]:
        return {
            choice: kappa_of_pairs(
                ratings,
                labels or (),
                choice,
                weights=weights,  # type: ignore[arg-type]
                n_resamples=options.n_resamples,
                n_permutations=n_shuffles,
                seed=options.seed,
                confidence=options.confidence,
            )
            for choice in choices
        }

    settings = {"n_resamples": options.n_resamples, "seed": options.seed, "confidence": options.confidence}
    return Agreement(
        linear=kappas("linear", n_permutations) if labels else {},
        quadratic=kappas("quadratic", min(n_permutations, FEWEST_SHUFFLES)) if labels else {},
        unweighted={choice: pair.kappa.value for choice, pair in kappas("none", 0).items()} if labels else {},
        percent=percent_agreement(ratings, labels, **settings) if labels else None,  # type: ignore[arg-type]
        alpha=krippendorff_alpha(ratings, alpha_level([pool.scale]), **settings),  # type: ignore[arg-type]
        n_columns=ratings.shape[1],
        n_candidates=int((counts >= 2).sum()),
        n_whole=int((counts >= 3).sum()),
    )


def agreement_section(name: str, pool: Pool, columns: Floats, options: Options) -> Section:
    """Table 1 of the paper, with the null that it needs beside it."""
    agreement = agreement_of(pool, columns, options)
    notes = []
    n_more = int((pool.n_ratings > agreement.n_columns).sum())
    if n_more:
        many = COUNT_WORDS.get(agreement.n_columns, str(agreement.n_columns))
        notes.append(f"Of {n_of(n_more, 'candidate')} with more ratings the first {many} are used here.")
    parts: list[Table | Figure] = []
    if agreement.linear:
        parts.append(_kappa_table(name, agreement, tuple(notes)))
        if len(agreement.linear) > 1:
            parts.append(_figure(name, agreement))
    parts.append(_other_table(name, agreement))
    return Section(name, "How far raters agree", tuple(_words(agreement)), tuple(parts))


def _counted(agreement: Agreement) -> str:
    if agreement.n_whole == agreement.n_candidates:
        return f"{n_of(agreement.n_candidates, 'candidate')} have three ratings or more"
    return f"{n_of(agreement.n_candidates, 'candidate')} have two ratings or more, {agreement.n_whole:,} of them three or more"


def _words(agreement: Agreement) -> list[str]:
    if not agreement.linear:
        return ["Kappa needs a scale with points; on this scale agreement is measured by Krippendorff's alpha."]
    random = agreement.linear["random"]
    if len(agreement.linear) == 1:
        return [
            "No candidate has three ratings, so there is nothing to choose from: the closest, the lowest, the highest "
            "and two random ratings are the same two. "
            f"Their weighted kappa is {with_interval(random.kappa)}."
        ]
    paragraphs = [
        f"{_counted(agreement)}. As in "
        "the published study, weighted kappa is computed on two ratings of each candidate, chosen in four ways."
    ]
    closest, null = agreement.linear["closest"].kappa, agreement.linear["closest"].null
    if closest.is_known and null.is_known:
        paragraphs.append(
            "The closest two ratings agree by construction: raters who answer without reading would agree too, because "
            f"among three numbers two are always close. The same ratings shuffled over the candidates reach "
            f"{number(null.value)} in this way, so the {number(closest.value)} found here must be read against that and not "
            "against zero. The lowest two and the highest two are chosen by their values as well; each is shown beside its "
            "own shuffled value."
        )
    if random.kappa.is_known:
        is_real = random.kappa.p_value <= 1 - random.kappa.confidence
        verdict = "more than chance" if is_real else "not more than chance"
        paragraphs.append(
            "The random two show the agreement of two raters in the usual sense: "
            f"{with_interval(random.kappa)}, {verdict} ({p_words(random.kappa.p_value)})."
        )
    else:
        paragraphs.append(f"Kappa cannot be computed: {'; '.join(random.kappa.notes)}.")
    return paragraphs


def _kappa_table(name: str, agreement: Agreement, notes: tuple[str, ...]) -> Table:
    columns = (
        Column("choice", "Two ratings of each candidate"),
        Column("kappa", "Weighted kappa (linear)", "estimate"),
        Column("null", "Same choice, shuffled", "estimate"),
        Column("p", "p against shuffled", "p_value"),
        Column("quadratic", "Quadratic weights", "estimate"),
        Column("quadratic_null", "Quadratic, shuffled", "number"),
        Column("unweighted", "Unweighted", "number"),
        Column("n", "Candidates", "count"),
    )
    words = {"closest": "closest two", "lowest": "lowest two", "highest": "highest two", "random": "random two"}
    rows: list[tuple[Cell, ...]] = []
    for choice, pair in agreement.linear.items():
        other = agreement.quadratic[choice]
        p = pair.kappa.p_value
        rows.append(
            (
                words[choice],
                _of_two(pair.kappa, "linear"),
                pair.null,
                None if math.isnan(p) else p,
                _of_two(other.kappa, "quadratic"),
                other.null.value if other.null.is_known else None,
                None if math.isnan(agreement.unweighted[choice]) else agreement.unweighted[choice],
                pair.kappa.n,
            )
        )
    n_two = agreement.n_candidates - agreement.n_whole
    if n_two and len(agreement.linear) > 1:
        notes = (*notes, f"{n_of(n_two, 'candidate')} with two ratings only leave no choice and count with those two.")
    ambiguous = agreement.linear.get("closest")
    if ambiguous is not None and ambiguous.n_ambiguous:
        n = n_of(ambiguous.n_ambiguous, "candidate")
        notes = (*notes, f"For {n} two different pairs were equally close; one was drawn at random.")
    return Table(
        name,
        "Weighted kappa in four configurations",
        columns,
        tuple(rows),
        caption=(
            "Shuffled: mean kappa of the same choice when ratings are shuffled over the candidates, with the middle of "
            "the shuffles. p: share of shuffles that reach the kappa found, which counts as one of them."
        ),
        notes=(
            *notes,
            "Which of the two counts as first rater is drawn at random.",
            "Unweighted: every disagreement counts alike, as in the program of the published study.",
        ),
    )


def bare(estimate: Estimate) -> Estimate:
    """A known estimate without remarks that its table makes once for all; what has no interval keeps its reason."""
    if estimate.is_known and not estimate.has_interval and estimate.value == 1:
        return replace(estimate, notes=("all pairs are equal: no confidence interval",))
    return replace(estimate, notes=()) if estimate.has_interval else estimate


def _of_two(kappa: Estimate, weights: str) -> Estimate:
    """A kappa whose row says how the two ratings were chosen, so that its column has one method."""
    return replace(bare(kappa), method=f"Cohen's kappa of two ratings, {weights} weights")


def _other_table(name: str, agreement: Agreement) -> Table:
    rows: list[tuple[Cell, ...]] = [(agreement.alpha.method, agreement.alpha, agreement.alpha.n)]
    if agreement.percent is not None:
        rows.append(("Pairs of raters who gave the same point", agreement.percent, agreement.percent.n))
    return Table(
        f"{name}_alpha",
        "Agreement of all raters of a candidate",
        (Column("measure", "Statistic"), Column("value", "Value", "estimate"), Column("n", "Candidates", "count")),
        tuple(rows),
        caption="Alpha uses all ratings at once and needs no choice of two; 1 is full agreement, 0 what chance gives.",
    )


def _figure(name: str, agreement: Agreement) -> Figure:
    dots = []
    for choice, pair in agreement.linear.items():
        dots += [Dot(f"{choice} two", pair.kappa, "found"), Dot(f"{choice} two", pair.null, "shuffled")]
    details = "; ".join(
        f"{choice} two {number(pair.kappa.value)} against {number(pair.null.value)} when shuffled"
        for choice, pair in agreement.linear.items()
        if pair.kappa.is_known and pair.null.is_known
    )
    return Figure(
        f"{name}_figure",
        "Kappa found, and what the choice of two ratings alone gives",
        dot_interval(dots, value_title="weighted kappa", reference=0.0, limits=COEFFICIENT),
        alt=f"Weighted kappa by choice of two ratings: {details}.",
    )


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
    estimate = bootstrap_mean(
        scored["agrees"].to_numpy(),
        scored["question"].to_numpy(),
        **options.resampling,
    )
    notes = tuple(note.replace("rater", "question") for note in estimate.notes)
    return replace(estimate, method=method, interval_method="percentile bootstrap over questions", notes=notes)


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
        "as published; pairs are compared within a question only. Confidence intervals draw questions.",
        notes=(
            "Only pooled candidates count. Deep ranks are in the pool because another system liked them, so these are "
            "not correlations over whole lists.",
        ),
    )
    shown = (table, _order_figure(name, rhos)) if any(rho.is_known for rho in rhos.values()) else ()
    return Section(name, "Do systems rank as the crowd would?", _order_words(rhos, orders), shown)


def _order_words(rhos: dict[str, Estimate], orders: dict[str, Estimate]) -> tuple[str, ...]:
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
        text += f"). The confidence interval lies above zero for {listed(sure)}."
    return (
        text,
        "A system can be right at the top and still order the rest differently from the crowd, so this says less about what "
        "users meet than the ratings of first answers do.",
    )


def _order_figure(name: str, rhos: dict[str, Estimate]) -> Figure:
    details = listed(f"{label} {number(rho.value)}" for label, rho in rhos.items() if rho.is_known)
    return Figure(
        f"{name}_figure",
        "Spearman's rho between system and crowd",
        dot_interval(
            [Dot(label, rho) for label, rho in rhos.items()],
            value_title="Spearman's rho",
            reference=0.0,
            limits=COEFFICIENT,
        ),
        alt=f"Spearman's rho by system: {details}.",
    )
