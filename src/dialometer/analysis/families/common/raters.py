"""The raters themselves, in every report: do they agree with the rest, know the gold answers, take their time?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.exclusions import excluded_raters_table
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.measures import numeric_measures
from dialometer.analysis.base.rater_parts import n_by_rater
from dialometer.analysis.base.wording import listed, n_of, number, percent
from dialometer.analysis.families.common.rater_signs import (
    FAR,
    choice_frame,
    correlation_frame,
    gold_frame,
    monotony_frame,
    pace_frame,
    robust_z,
)
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table
from dialometer.model.study import Study
from dialometer.quality.gold import Gold, gold_items
from dialometer.report.charts import COEFFICIENT, strip
from dialometer.stats.clustered.proportion import proportion

TITLE = "The raters"
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
        methods = _methods(data.study)
        return Findings(
            "There is no analysis for this design yet.", "", sections=in_appendix((section,)), methods=methods
        )


def _methods(study: Study) -> tuple[Method, ...]:
    """How raters are compared; gold answers are named where a rule asks for them."""
    has_gold = any(isinstance(rule, Gold) and rule.gold_ids(study) for rule in study.spec.quality)
    signs = [
        "agreement with the other raters",
        "answer times",
        "repeated answers",
        *(["gold answers"] if has_gold else []),
    ]
    return (
        Method(
            "Raters to look at",
            f"{listed(signs)}; robust z over raters",
            "careless raters differ from the rest in more than one of these; a robust z is not stretched by them",
            "Iglewicz & Hoaglin 1993",
        ),
    )


def is_correlation(kind: str) -> bool:
    """Whether agreement is a correlation; otherwise it is a share."""
    return kind.startswith("correlation")


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
    systems = {system.name for system in data.study.spec.systems}
    for part in (agreement, pace_frame(rows), monotony_frame(rows, systems), gold_frame(data.study, rows)):
        frame = frame.join(part, on="rater", how="left", maintain_order="left")
    agreed = frame["agreement"].fill_null(float("nan")).to_numpy()
    scale = np.arctanh(np.clip(agreed, -0.999, 0.999)) if is_correlation(kind) else agreed
    frame = frame.with_columns(pl.Series("agreement_z", robust_z(scale)))
    flagged = data.findings.filter(pl.col("action") == "flag").group_by("rater").agg(pl.col("reason").str.join("; "))
    return frame.join(flagged, on="rater", how="left", maintain_order="left"), kind


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
    n_open = data.n_not_finished()
    these = f", {n_open:,} of them without reaching the end" if n_open else ""
    paragraphs = [f"{n_of(len(frame), 'rater')} gave judgments that count{these}. Pseudonyms are those of the export."]
    if suspicious:
        paragraphs.append(
            f"{n_of(len(suspicious), 'rater')} should be checked; nobody is excluded for this alone. To exclude a rater, "
            "exclude the session with a reason: the report then lists it among the exclusions."
        )
        caption = _caption(data, frame, kind, is_reason=True)
        parts.append(_look_table(frame, reasons, suspicious[:MOST_ROWS], options, kind, caption))
    else:
        paragraphs.append(_none_unusual(data, frame))
    if is_correlation(kind) and not is_agreeing:
        paragraphs.append(
            "Most raters do not agree significantly with the rest: this is about the question or the systems, "
            "not about single raters."
        )
    parts += [_spread_table(frame, kind, _caption(data, frame, kind)), *_figure(frame, kind)]
    excluded = excluded_raters_table(data)
    if excluded is not None:
        parts.append(excluded)
    return Section("raters", TITLE, tuple(paragraphs), tuple(parts))


def _is_agreeing(frame: pl.DataFrame) -> bool:
    """Whether at least half of the raters agree with the rest: only then does a lack of agreement tell raters apart."""
    known = frame.filter(pl.col("n_shared") >= FEWEST_ANSWERS)["agreement_low"].drop_nulls().drop_nans()
    return not len(known) or float((known > 0).mean()) >= 0.5  # type: ignore[arg-type]


def _none_unusual(data: StudyData, frame: pl.DataFrame) -> str:
    """What no rater is unusual in, and what could not be checked."""
    n_times = frame["median_s"].drop_nulls().len()
    can_flag = any(rule.action == "flag" for rule in data.study.spec.quality)
    checks = (
        (
            "agreement",
            _is_any(frame, "n_shared", FEWEST_ANSWERS),
            f"no rater shares {FEWEST_ANSWERS} answers with others",
        ),
        ("answer times", n_times >= 3, "fewer than three raters have any"),
        ("repeated answers", _is_any(frame, "n_answers", FEWEST_ANSWERS), f"no rater gave {FEWEST_ANSWERS} answers"),
        ("gold answers", _is_any(frame, "n_gold", 1), "there are none"),
        ("flags", can_flag, "no rule flags raters"),
    )
    checked = [sign for sign, is_checked, _ in checks if is_checked]
    missing = [f"{sign} ({why})" for sign, is_checked, why in checks if not is_checked]
    found = f"No rater is unusual in {listed(checked, conjunction='or')}." if checked else "No sign could be checked."
    return f"{found} Not checked: {listed(missing)}." if missing else found


def _is_any(frame: pl.DataFrame, column: str, least: int) -> bool:
    return bool((frame[column].fill_null(0) >= least).any())


def _reasons(frame: pl.DataFrame, *, is_correlation: bool) -> list[list[str]]:
    usual = {
        name: float(known.median())  # type: ignore[arg-type]
        for name in ("agreement", "median_s")
        if len(known := frame[name].cast(pl.Float64).fill_nan(None).drop_nulls())
    }
    return [_why(row, usual, is_correlation=is_correlation) for row in frame.iter_rows(named=True)]


def _why(row: dict[str, object], usual: Mapping[str, float], *, is_correlation: bool) -> list[str]:
    """The reasons to look at a rater, in words; ``usual`` are medians of the raters."""

    def number(name: str) -> float:
        value = row.get(name)
        return float("nan") if value is None else float(value)  # type: ignore[arg-type]

    reasons = []
    enough = number("n_shared") >= FEWEST_ANSWERS
    # With few answers, or few raters who are much alike, a distance may be chance: only who agrees significantly less than others
    # is looked at.
    is_below = number("agreement_high") < usual.get("agreement", float("nan"))
    if enough and number("agreement_z") < -FAR and is_below:
        reasons.append("agrees far less with the rest than other raters do")
    elif enough and is_correlation and number("agreement_low") <= 0 and is_below:
        reasons.append("no significant agreement with the rest, and significantly less than the median of the raters")
    if number("pace_z") < -FAR:
        reasons.append(
            f"much faster than the others ({number('median_s'):.1f} s per screen, "
            f"median of the raters {usual['median_s']:.1f} s)"
        )
    # Who prefers a system that was always on one side chooses that side too: then it says nothing.
    is_repeated = number("same_share") >= MONOTONOUS and number("same_share") > number("same_system_share")
    if number("n_answers") >= FEWEST_ANSWERS and is_repeated:
        is_choices = number("n_between") == number("n_answers") < 2 * number("n_placed")
        what = "choices are for the same position on the screen" if is_choices else "answers are the same"
        reasons.append(f"{percent(number('same_share'))} of the {what}")
    if number("n_gold") > 0 and number("n_right") / number("n_gold") < LOW_GOLD:
        reasons.append(f"{int(number('n_gold') - number('n_right'))} of {int(number('n_gold'))} gold answers wrong")
    if row.get("reason"):
        reasons.append(f"flagged: {row['reason']}")
    return reasons


def _repeated_head(frame: pl.DataFrame) -> str:
    """What the most frequent of is counted: answers, or positions where all answers are choices between systems."""
    n_placed, n_between, n_answers = (frame[name].sum() for name in ("n_placed", "n_between", "n_answers"))
    return "position" if n_placed and n_between == n_answers else "answer"


def _caption(data: StudyData, frame: pl.DataFrame, kind: str, *, is_reason: bool = False) -> str:
    """What the columns of both tables mean."""
    head = _repeated_head(frame)
    agreement = f"Agreement: {kind}{', without gold items' if gold_items(data.study) else ''}"
    if is_reason:
        agreement += f"; it is a reason only with {FEWEST_ANSWERS} shared answers or more"
    share = f"Most frequent {head}: its share of a rater's {'choices' if head == 'position' else 'answers'}, mean over criteria"
    if frame["n_placed"].sum():
        share += "; a choice counts by its position on the screen"
    return f"{agreement}. {share}."


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


def _look_table(
    frame: pl.DataFrame, reasons: list[list[str]], places: list[int], options: Options, kind: str, caption: str
) -> Table:
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
        Column("same_share", f"Most frequent {_repeated_head(frame)}", "percent", 0),
        Column("longest_run", "Longest run", "count"),
        Column("why", "Why"),
    ]
    n_more = sum(bool(why) for why in reasons) - len(places)
    return Table(
        "raters_to_look_at",
        "Raters to look at",
        tuple(columns),
        tuple(body),
        caption=caption,
        notes=(f"{n_more} more are not shown in this table.",) if n_more else (),
    )


def _spread_table(frame: pl.DataFrame, kind: str, caption: str) -> Table:
    """How raters differ: quartiles of every sign, a column each, so that every sign has its own unit and digits."""
    is_share = not is_correlation(kind)
    shown = (
        Column("agreement", "Agreement with the rest", "percent" if is_share else "number", 0 if is_share else 2),
        Column("median_s", "Seconds per screen", "number", 1),
        Column("same_share", f"Most frequent {_repeated_head(frame)}", "percent", 0),
        Column("longest_run", f"Longest run of one {_repeated_head(frame)}", "number", 1),
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
        caption=f"{n_of(len(frame), 'rater')}. {caption}",
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
            strip(
                {"raters": values},
                value_title=kind,
                limits=COEFFICIENT if is_correlation(kind) else None,
                is_percent=not is_correlation(kind),
            ),
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


ANALYSES.register("raters")(Raters())
