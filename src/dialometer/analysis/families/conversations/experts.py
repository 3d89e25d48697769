"""Self-ratings beside experts who compared two dialogues: how often do the two disagree, by the gap between ratings?

Liang, Zou and Yu (ACL 2020, table 2): the larger the gap between two self-ratings, the rarer the disagreement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from scipy import stats

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import n_of, p_words, percent, sentence, with_interval
from dialometer.analysis.families.conversations.conversations import SelfRatings
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import PERCENTAGE_POINTS, Cell, Column, Figure, Section, Table
from dialometer.readers.problems import Problems
from dialometer.readers.source import SourceFile
from dialometer.readers.table_rows import plain_column, table_rows
from dialometer.report.charts import Dot, dot_interval
from dialometer.stats.agreement.kappa import cohen_kappa
from dialometer.stats.agreement.krippendorff_alpha import krippendorff_alpha
from dialometer.stats.bootstrap.bootstrap import bootstrap
from dialometer.stats.clustered.proportion import proportion
from dialometer.stats.observations import Floats

Better = Literal["first", "second", "cannot_tell"]
PAIRS_FILE = "expert_pairs.csv"


@dataclass(frozen=True, slots=True)
class ExpertPair:
    """One expert's verdict on two dialogues."""

    first: str
    second: str
    better: Better
    expert: str = ""


@dataclass(frozen=True)
class Gap:
    """Pairs whose ratings lie ``gap`` apart, and the share on which experts prefer the one with the lower rating."""

    gap: float
    n_disagree: int
    share: Estimate


@dataclass(frozen=True)
class GapTable:
    """Disagreement by gap, in all, and its trend, with what could not be used."""

    gaps: tuple[Gap, ...]
    overall: Estimate
    trend: Estimate
    """Change of the share for one more point of gap, with the Cochran-Armitage test."""
    n_equal: int
    """Pairs with equal ratings, which say nothing."""
    n_undecided: int
    """Pairs on which experts could not tell or were divided."""
    n_unrated: int
    """Pairs with a dialogue that has no rating here."""


def disagreement_by_gap(
    ratings: Mapping[str, float],
    pairs: Iterable[ExpertPair],
    *,
    width: float = 1.0,
    n_resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> GapTable:
    """How often experts prefer the dialogue with the lower self-rating, by the gap between the two ratings.

    Several verdicts on one pair are settled by majority. Gaps are gathered in steps of ``width`` points (the upper end
    names the step). Intervals are Wilson's over pairs. The trend test is that of R ``prop.trend.test`` and, up to a factor
    (n - 1) / n of its variance, ``statsmodels.stats.contingency_tables.Table.test_ordinal_association``.
    """
    votes: dict[tuple[str, str], int] = {}
    for pair in pairs:
        key = (pair.first, pair.second) if pair.first <= pair.second else (pair.second, pair.first)
        vote = {"first": 1, "second": -1, "cannot_tell": 0}[pair.better]
        votes[key] = votes.get(key, 0) + (vote if key == (pair.first, pair.second) else -vote)
    gap, disagrees = [], []
    n_equal = n_undecided = n_unrated = 0
    for (first, second), vote in votes.items():
        if first not in ratings or second not in ratings:
            n_unrated += 1
            continue
        difference = ratings[first] - ratings[second]
        if vote == 0:
            n_undecided += 1
        elif difference == 0:
            n_equal += 1
        else:
            gap.append(abs(difference))
            disagrees.append(float((difference > 0) != (vote > 0)))
    sizes = np.ceil(np.array(gap) / width - 1e-9) * width
    wrong = np.array(disagrees)
    rows = tuple(
        Gap(
            float(size),
            int(wrong[sizes == size].sum()),
            proportion(int(wrong[sizes == size].sum()), int(np.sum(sizes == size)), confidence=confidence),
        )
        for size in np.unique(sizes)
    )
    return GapTable(
        gaps=rows,
        overall=proportion(int(wrong.sum()), len(wrong), confidence=confidence, label="all gaps"),
        trend=_trend(sizes, wrong, n_resamples, seed, confidence),
        n_equal=n_equal,
        n_undecided=n_undecided,
        n_unrated=n_unrated,
    )


def _trend(gap: Floats, wrong: Floats, n_resamples: int, seed: int, confidence: float) -> Estimate:
    """Slope of disagreement on the gap; bootstrap over pairs for its interval, Cochran-Armitage for the test."""
    method = "change of the share per point of gap, Cochran-Armitage test"
    n = len(gap)
    if n < 3 or np.ptp(gap) == 0:
        return unknown(method, "pairs of at least two different gaps are needed", n=n)
    share = float(wrong.mean())
    if share in (0.0, 1.0):
        return unknown(method, "experts and ratings always agree, or never: there is no trend to test", n=n)
    parts = np.column_stack([np.ones(n), gap, wrong, gap * wrong, gap**2])

    def slope(counts: Floats) -> Floats:
        total, x, y, xy, xx = (counts @ parts).T
        below = total * xx - x**2
        return np.asarray(np.divide(total * xy - x * y, below, out=np.full(len(total), np.nan), where=below > 1e-9))

    slope_estimate = bootstrap(
        slope, n, method=method, resampled="pairs", n_resamples=n_resamples, seed=seed, confidence=confidence
    )
    centred = gap - gap.mean()
    z = float(centred @ wrong) / math.sqrt(share * (1 - share) * float(centred @ centred))
    return Estimate(
        value=slope_estimate.value,
        n=n,
        method=method,
        low=slope_estimate.low,
        high=slope_estimate.high,
        confidence=confidence,
        interval_method=slope_estimate.interval_method,
        statistic=z,
        p_value=float(2 * stats.norm.sf(abs(z))),
        seed=seed,
        n_resamples=n_resamples,
        notes=slope_estimate.notes,
    )


def expert_agreement(pairs: Iterable[ExpertPair], *, seed: int = 0, confidence: float = 0.95) -> Estimate | None:
    """How far experts agree: Cohen's kappa of two, Krippendorff's alpha of more; None where no pair was seen by two."""
    labels = list(get_args(Better))
    by_pair: dict[tuple[str, str], dict[str, int]] = {}
    experts: dict[str, None] = {}
    for pair in pairs:
        is_turned = pair.first > pair.second
        key = (pair.second, pair.first) if is_turned else (pair.first, pair.second)
        verdict = {"first": "second", "second": "first"}.get(pair.better, pair.better) if is_turned else pair.better
        by_pair.setdefault(key, {})[pair.expert] = labels.index(verdict)
        experts[pair.expert] = None
    shared = [verdicts for verdicts in by_pair.values() if len(verdicts) > 1]
    if not shared:
        return None
    names = list(experts)
    matrix = np.array([[verdicts.get(name, math.nan) for name in names] for verdicts in shared])
    if len(names) == 2:
        return cohen_kappa(matrix[:, 0], matrix[:, 1], range(len(labels)), seed=seed, confidence=confidence)
    return krippendorff_alpha(matrix, "nominal", seed=seed, confidence=confidence)


def read_expert_pairs(path: Path) -> list[ExpertPair]:
    """Verdicts from a CSV file with the columns first, second, better (first, second or cannot_tell) and, if wanted, expert.

    A dialogue is named by the rater's pseudonym and the item, such as R0001/juno-1, as in exported tables.
    """
    source, problems = SourceFile(path), Problems(path.name)
    source.probe()
    pairs = []
    for row in table_rows(source, problems, ("first", "second", "better")):
        cells = {plain_column(name): cell.strip() for name, cell in row.cells.items()}
        better = cells["better"].casefold().replace(" ", "_").replace("'", "")
        better = "cannot_tell" if better in ("tie", "cant_tell", "equal") else better
        first, second = cells["first"], cells["second"]
        if better not in get_args(Better):
            message = f"'{cells['better']}' in column better"
            remedy = f"write one of {', '.join(get_args(Better))}"
            problems.of_file(problems.problem(message, remedy=remedy, line=row.line))
        elif not first or not second or first == second:
            remedy = "name each by rater and item, such as R0001/juno-1"
            message = "a pair needs two different dialogues"
            problems.of_file(problems.problem(message, remedy=remedy, line=row.line))
        else:
            pairs.append(ExpertPair(first, second, better, cells.get("expert", "")))  # type: ignore[arg-type]
    problems.finish()
    return pairs


TITLE = "Self-ratings beside experts"


def expert_section(name: str, ratings: Sequence[SelfRatings], path: Path | None, options: Options) -> Section:
    """Disagreement by the gap between two self-ratings; without a file of verdicts, how to give one."""
    if path is None:
        return Section(
            name,
            TITLE,
            (
                "There are no experts' verdicts on pairs of dialogues, so nothing is said here about how far self-ratings "
                f"can be trusted. To add them, write {PAIRS_FILE} beside study.yaml with the columns first, second (a "
                "dialogue is named by rater and item, such as R0001/item-1), better (first, second or cannot_tell) and, "
                "if several experts judge, expert.",
            ),
        )
    pairs = read_expert_pairs(path)
    tables = {rated.label: _by_gap(rated, pairs, options) for rated in ratings}
    main = tables[ratings[0].label]
    parts: list[Table | Figure] = [gap_table(name, tables), _trend_table(name, tables)]
    if main.gaps:
        parts.insert(0, gap_figure(name, ratings[0].label, main))
    return Section(name, TITLE, tuple(_words(ratings[0].label, main, pairs, options)), tuple(parts))


def _by_gap(ratings: SelfRatings, pairs: list[ExpertPair], options: Options) -> GapTable:
    low, high = ratings.ends
    width = 1.0 if ratings.scale.categories() else (high - low) / 4 or 1.0
    return disagreement_by_gap(
        dict(zip(ratings.conversation, ratings.value.tolist(), strict=True)),
        pairs,
        width=width,
        **options.resampling,
    )


def _words(label: str, by_gap: GapTable, pairs: list[ExpertPair], options: Options) -> list[str]:
    agreement = expert_agreement(pairs, seed=options.seed, confidence=options.confidence)
    words = [
        "Experts compared pairs of dialogues. Where they prefer the one that its own rater gave the lower rating, the two "
        "kinds of judgment disagree."
    ]
    if agreement is not None and agreement.is_known:
        words[0] += f" Experts among themselves: {agreement.method} {with_interval(agreement)}."
    if not by_gap.overall.is_known:
        words.append(f"{label}: no pair has two different ratings and a verdict, so nothing can be compared.")
    else:
        text = f"{label}: experts and self-ratings disagree on {with_interval(by_gap.overall, is_percent=True)} of "
        text += f"{n_of(by_gap.overall.n, 'pair')} with different ratings."
        if by_gap.trend.is_known:
            falls = by_gap.trend.value < 0 and by_gap.trend.p_value <= 1 - options.confidence
            text += (
                f" Disagreement falls by {percent(-by_gap.trend.value)} for each further point of gap"
                if falls
                else " That it falls as the gap grows is not significant"
            ) + f" ({p_words(by_gap.trend.p_value)})."
        words.append(f"{text} In the published study it was 45% at a gap of one point and 16% at a gap of four.")
    left = [
        f"{n_of(n, 'pair')} {why}"
        for n, why in (
            (by_gap.n_equal, "with equal ratings"),
            (by_gap.n_undecided, "on which experts could not tell or were divided"),
            (by_gap.n_unrated, "with a dialogue that has no rating here"),
        )
        if n
    ]
    if left:
        words.append(sentence(f"excluded: {'; '.join(left)}"))
    return words


def gap_table(name: str, tables: dict[str, GapTable]) -> Table:
    """Disagreement at each gap and over all of them."""
    rows: list[tuple[Cell, ...]] = []
    for label, by_gap in tables.items():
        rows += [(label, f"{gap.gap:g}", gap.share, gap.n_disagree, gap.share.n) for gap in by_gap.gaps]
        total = sum(gap.n_disagree for gap in by_gap.gaps)
        rows.append((label, "all", by_gap.overall, total, by_gap.overall.n))
    return Table(
        name,
        "Disagreement of experts with self-ratings, by the gap between two ratings",
        (
            Column("criterion", "Criterion"),
            Column("gap", "Gap"),
            Column("share", "Disagree", "percent_estimate"),
            Column("n_disagree", "Pairs that disagree", "count"),
            Column("n", "Pairs", "count"),
        ),
        tuple(rows),
        caption="Pairs are taken as independent; where one dialogue is in many pairs, the confidence intervals are too narrow.",
    )


def _trend_table(name: str, tables: dict[str, GapTable]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for label, slope_estimate in tables.items():
        p = slope_estimate.trend.p_value
        rows.append(
            (
                label,
                slope_estimate.trend,
                None if math.isnan(p) else p,
                slope_estimate.n_equal,
                slope_estimate.n_undecided,
                slope_estimate.n_unrated,
            )
        )
    return Table(
        f"{name}_trend",
        "Trend over the gap, and pairs that could not be used",
        (
            Column("criterion", "Criterion"),
            Column("trend", "Change per point of gap", "percent_estimate", unit=PERCENTAGE_POINTS),
            Column("p", "p", "p_value"),
            Column("n_equal", "Equal ratings", "count"),
            Column("n_undecided", "Experts undecided", "count"),
            Column("n_unrated", "Without a rating", "count"),
        ),
        tuple(rows),
    )


def gap_figure(name: str, label: str, by_gap: GapTable) -> Figure:
    """The same as dots with intervals."""
    details = "; ".join(f"gap {gap.gap:g}: {percent(gap.share.value)}" for gap in by_gap.gaps)
    return Figure(
        f"{name}_figure",
        f"{label}: disagreement by gap",
        dot_interval(
            [Dot(f"gap {gap.gap:g}", gap.share) for gap in by_gap.gaps],
            value_title="pairs on which experts prefer the lower rating",
            reference=0.5,
            domain=(0, 1),
            is_percent=True,
        ),
        alt=f"Share of pairs on which experts prefer the dialogue with the lower rating. {details}.",
        caption="The dashed line is what chance would give.",
    )
