"""The raters themselves, in every report: do they agree with the rest, know the gold answers, take their time?

The signs of every rater are sums over groups of the whole table, so that a study with thousands of raters takes no longer
per judgment than one with ten.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import special

from dialometer.analysis.base.data import StudyData, by_raters, n_by_rater
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.measures import Measures, numeric_measures
from dialometer.analysis.base.wording import n_of, number, percent
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.item import CandidateItem
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.model.study import Study
from dialometer.quality.gold import Acceptable, Gold
from dialometer.report.charts import strip
from dialometer.stats.clustered.proportion import proportion, wilson_bounds
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


def is_correlation(kind: str) -> bool:
    """Whether agreement is a correlation; otherwise it is a share."""
    return kind.startswith("correlation")


def choice_frame(data: StudyData, confidence: float) -> pl.DataFrame:
    """Share of the others who chose the same, averaged over what each rater judged, with Wilson's interval."""
    rows = data.judgments.filter(pl.col("choice").is_not_null() & pl.col("value").is_null())
    what = ["item", "criterion", "turn"]
    rows = rows.with_columns(pl.col("turn").fill_null(-1))
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
    return frame.with_columns(pl.Series("pace_z", robust_z(np.log(frame["median_s"].to_numpy()))))


def monotony_frame(judgments: pl.DataFrame) -> pl.DataFrame:
    """Share of each rater's most frequent answer per criterion (the mean over criteria), and the longest run of one answer."""
    used = judgments.select("rater", "criterion", "position", "side", "value", "choice", "answer")
    return by_raters(used, _monotony)


def _monotony(judgments: pl.DataFrame) -> pl.DataFrame:
    # As in the rule straight_lining: for a choice between systems the position on the screen counts.
    place = pl.when(pl.col("choice").is_not_null() & (pl.col("side") > 0)).then(pl.format("place {}", pl.col("side")))
    answer = pl.coalesce(pl.col("value").cast(pl.String), place, pl.col("choice"), pl.col("answer"))
    # Numbers in place of names: a million texts take long to sort.
    by, named = ["rater", "criterion"], ["rater", "criterion", "given"]
    rows = judgments.select(*by, "position", "side", answer.alias("given")).drop_nulls("given")
    levels = {name: rows[name].unique().sort() for name in by}
    coded = [pl.col(name).cast(pl.Enum(levels[name])).to_physical().cast(pl.UInt32) for name in by]
    rows = rows.with_columns(*coded, pl.col("given").cast(pl.Categorical).to_physical())
    counts = rows.group_by(named).len().group_by(by).agg(pl.max("len").alias("same"), pl.sum("len").alias("n"))
    rows = rows.sort([*by, "position", "side"], nulls_last=True, maintain_order=True)
    is_new = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in named)
    runs = rows.group_by(is_new.fill_null(True).cum_sum().alias("run")).agg(pl.first("rater"), pl.len())
    longest = runs.group_by("rater").agg(pl.col("len").max().cast(pl.Int64).alias("longest_run"))
    shares = (
        counts.sort(by)
        .group_by("rater", maintain_order=True)
        .agg(
            (pl.col("same") / pl.col("n")).mean().alias("same_share"),
            pl.col("n").sum().cast(pl.Int64).alias("n_answers"),
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


TITLE = "The raters"
FAR = 3.5
"""Robust standard deviations from the other raters beyond which a rater is looked at (Iglewicz and Hoaglin 1993)."""
MONOTONOUS = 0.9
FEWEST_ANSWERS = 10
LOW_GOLD = 0.75
MOST_ROWS = 50


class Raters(Family):
    """The family that every study has: it speaks last and gives no answer of its own."""

    rank = 900

    def fits(self, study: Study) -> bool:
        """Always."""
        return True

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section."""
        section = section_or_problem("raters", TITLE, lambda: raters_section(data, options))
        return Findings(
            "There is no analysis for this design yet.", "", sections=in_appendix((section,)), methods=METHODS
        )


METHODS = (
    Method(
        "Raters to look at",
        "agreement with the other raters, answer times and gold answers; robust z over raters",
        "careless raters differ from the rest in more than one of these; a robust z is not stretched by them",
        "Iglewicz & Hoaglin 1993",
    ),
)


def rater_frame(data: StudyData, options: Options) -> tuple[pl.DataFrame, str]:
    """One row per rater with all signs, and which kind of agreement is in it."""
    rows = data.judgments
    kind = "correlation with the mean of the other raters"
    try:
        agreement = correlation_frame(numeric_measures(data), options.confidence)
    except NotEnoughData:
        agreement = choice_frame(data, options.confidence)
        has_worst = rows["worst"].drop_nulls().len() > 0
        kind = "share of the other raters who chose the same" + (" (best and worst count alike)" if has_worst else "")
    frame = n_by_rater(rows).rename({"n": "n_judgments"})
    for part in (agreement, pace_frame(rows), monotony_frame(rows), gold_frame(data.study, rows)):
        frame = frame.join(part, on="rater", how="left")
    agreed = frame["agreement"].fill_null(float("nan")).to_numpy()
    scale = np.arctanh(np.clip(agreed, -0.999, 0.999)) if is_correlation(kind) else agreed
    frame = frame.with_columns(pl.Series("agreement_z", robust_z(scale)))
    flagged = data.findings.filter(pl.col("action") == "flag").group_by("rater").agg(pl.col("reason").str.join("; "))
    return frame.join(flagged, on="rater", how="left"), kind


def raters_section(data: StudyData, options: Options) -> Section:
    """Which raters to look at and why, how raters differ, and who was excluded."""
    frame, kind = rater_frame(data, options)
    if not len(frame):
        raise NotEnoughData("no raters yet", remedy="collect judgments")
    is_agreeing = _is_agreeing(frame)
    reasons = _reasons(frame, is_correlation=is_correlation(kind) and is_agreeing)
    suspicious = [place for place, why in enumerate(reasons) if why]
    suspicious.sort(key=lambda place: -len(reasons[place]))
    parts: list[Table | Figure] = []
    paragraphs = [f"{n_of(len(frame), 'rater')} gave judgments that count. Pseudonyms are those of the export."]
    if suspicious:
        paragraphs.append(
            f"{n_of(len(suspicious), 'rater')} should be checked; nobody is excluded for this alone. To exclude a rater, "
            "exclude the session with a reason: the report then lists it among the exclusions."
        )
        parts.append(_look_table(frame, reasons, suspicious[:MOST_ROWS], options, kind))
    else:
        paragraphs.append("No rater is unusual in agreement, time, monotony, gold answers or flags.")
    if is_correlation(kind) and not is_agreeing:
        paragraphs.append(
            "Most raters do not agree significantly with the rest: this is about the question or the systems, "
            "not about single raters."
        )
    parts += [_spread_table(frame, kind), *_figure(frame, kind)]
    excluded = _excluded_table(data)
    if excluded is not None:
        parts.append(excluded)
    return Section("raters", TITLE, tuple(paragraphs), tuple(parts))


def _is_agreeing(frame: pl.DataFrame) -> bool:
    """Whether at least half of the raters agree with the rest: only then does a lack of agreement tell raters apart."""
    known = frame.filter(pl.col("n_shared") >= FEWEST_ANSWERS)["agreement_low"].drop_nulls().drop_nans()
    return not len(known) or float((known > 0).mean()) >= 0.5  # type: ignore[arg-type]


def _reasons(frame: pl.DataFrame, *, is_correlation: bool) -> list[list[str]]:
    return [_why(row, is_correlation=is_correlation) for row in frame.iter_rows(named=True)]


def _why(row: dict[str, object], *, is_correlation: bool) -> list[str]:
    """The reasons to look at a rater, in words."""

    def number(name: str) -> float:
        value = row.get(name)
        return float("nan") if value is None else float(value)  # type: ignore[arg-type]

    reasons = []
    enough = number("n_shared") >= FEWEST_ANSWERS
    if enough and number("agreement_z") < -FAR:
        reasons.append("agrees far less with the rest than other raters do")
    elif enough and is_correlation and number("agreement_low") <= 0:
        reasons.append("no significant agreement with the rest")
    if number("pace_z") < -FAR:
        reasons.append(f"much faster than the others ({number('median_s'):.1f} s per screen)")
    if number("n_answers") >= FEWEST_ANSWERS and number("same_share") >= MONOTONOUS:
        reasons.append(f"{percent(number('same_share'))} of the answers are the same")
    if number("n_gold") > 0 and number("n_right") / number("n_gold") < LOW_GOLD:
        reasons.append(f"{int(number('n_gold') - number('n_right'))} of {int(number('n_gold'))} gold answers wrong")
    if row.get("reason"):
        reasons.append(f"flagged: {row['reason']}")
    return reasons


def _agreement(row: dict[str, object], options: Options, kind: str) -> Estimate:
    value = row.get("agreement")
    if value is None or np.isnan(float(value)):  # type: ignore[arg-type]
        return unknown(kind, "too few things shared with other raters, or always the same answer")
    return Estimate(
        float(value),  # type: ignore[arg-type]
        int(row["n_shared"]),  # type: ignore[call-overload]
        kind,
        float(row["agreement_low"]),  # type: ignore[arg-type]
        float(row["agreement_high"]),  # type: ignore[arg-type]
        options.confidence,
        "Fisher's z" if is_correlation(kind) else "Wilson",
    )


def _look_table(frame: pl.DataFrame, reasons: list[list[str]], places: list[int], options: Options, kind: str) -> Table:
    has_gold = frame["n_gold"].fill_null(0).sum() > 0
    body: list[tuple[Cell, ...]] = []
    for place in places:
        row = frame.row(place, named=True)
        cells: list[Cell] = [row["rater"], row["n_judgments"], _agreement(row, options, kind)]
        if has_gold:
            n_gold = row["n_gold"] or 0
            cells.append(proportion(row["n_right"] or 0, n_gold, confidence=options.confidence) if n_gold else None)
        body.append((*cells, row["median_s"], row["same_share"], row["longest_run"], "; ".join(reasons[place])))
    columns = [
        Column("rater", "Rater"),
        Column("judgments", "Judgments", "count"),
        Column("agreement", "Agreement with the rest", "estimate" if is_correlation(kind) else "percent_estimate"),
    ]
    if has_gold:
        columns.append(Column("gold", "Gold answers right", "percent_estimate"))
    columns += [
        Column("median_s", "Seconds per screen", "number", 1),
        Column("same_share", "Most frequent answer", "percent", 0),
        Column("longest_run", "Longest run", "count"),
        Column("why", "Why"),
    ]
    n_more = sum(bool(why) for why in reasons) - len(places)
    return Table(
        "raters_to_look_at",
        "Raters to look at",
        tuple(columns),
        tuple(body),
        caption=f"Agreement: {kind}. Most frequent answer: its share of a rater's answers, mean over criteria.",
        notes=(f"{n_more} more are not shown in this table.",) if n_more else (),
    )


def _spread_table(frame: pl.DataFrame, kind: str) -> Table:
    """How raters differ: quartiles of every sign, a column each, so that every sign has its own unit and digits."""
    is_share = not is_correlation(kind)
    shown = (
        Column("agreement", "Agreement with the rest", "percent" if is_share else "number", 0 if is_share else 2),
        Column("median_s", "Seconds per screen", "number", 1),
        Column("same_share", "Most frequent answer", "percent", 0),
        Column("longest_run", "Longest run of one answer", "number", 1),
    )
    headings = ("Lowest", "Lower quartile", "Median", "Upper quartile", "Highest")
    columns: list[list[Cell]] = []
    for column in shown:
        values = frame[column.name].cast(pl.Float64).fill_nan(None).drop_nulls().to_numpy()
        columns.append(np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist() if len(values) else [None] * len(headings))
    return Table(
        "rater_spread",
        "How raters differ",
        (Column("quartile", "Quartile"), *shown),
        tuple((heading, *cells) for heading, *cells in zip(headings, *columns, strict=True)),
        caption=f"{n_of(len(frame), 'rater')}. Agreement: {kind}. Most frequent answer: its share of a rater's answers, mean over "
        "criteria.",
    )


def _figure(frame: pl.DataFrame, kind: str) -> list[Figure]:
    values = frame["agreement"].fill_nan(None).drop_nulls().to_numpy()
    if len(values) < 3:
        return []
    written = number if is_correlation(kind) else percent
    return [
        Figure(
            "rater_agreement",
            "Agreement of each rater with the rest",
            strip({"raters": values}, value_title=kind, is_percent=not is_correlation(kind)),
            alt=f"{kind.capitalize()} for {len(values)} raters: median {written(np.median(values))}, lowest "
            f"{written(values.min())}, highest {written(values.max())}.",
            caption="One point per rater (a selection where there are many); the bar spans the middle half."
            + _without_agreement(len(frame) - len(values)),
        )
    ]


def _without_agreement(n: int) -> str:
    """Why there are fewer points than raters."""
    if not n:
        return ""
    return f" Not shown: {n_of(n, 'rater')} with too few answers or with equal answers only."


def _excluded_table(data: StudyData) -> Table | None:
    rows = (
        data.findings.filter(pl.col("action").is_in(["exclude", "screen_out"]))
        .sort("rater")
        .unique(maintain_order=True)
    )
    if not len(rows):
        return None
    body: list[tuple[Cell, ...]] = [
        (rater, rule.replace("_", " "), "screened out" if action == "screen_out" else "excluded", reason)
        for rater, rule, action, reason in rows.head(MOST_ROWS).iter_rows()
    ]
    n_more = len(rows) - len(body)
    return Table(
        "raters_excluded",
        "Raters excluded by quality rules",
        (Column("rater", "Rater"), Column("rule", "Rule"), Column("what", "What followed"), Column("reason", "Reason")),
        tuple(body),
        notes=(f"{n_more} more are not shown in this table.",) if n_more > 0 else (),
    )


ANALYSES.register("raters")(Raters())
