"""What a study of comparisons cost and how long it took, from the declared pay and the sessions' own times."""

from __future__ import annotations

import numpy as np
import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.wording import n_of, number, value_only, with_interval
from dialometer.analysis.families.pairs.choices import pair_items, strategy_of
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Column, Section, Table
from dialometer.model.session import NO_DATE_MS
from dialometer.model.study import Study
from dialometer.recruit.platforms import platform_of
from dialometer.stats.clustered.proportion import quantile
from dialometer.storage.counting.counts import OUTSIDE_STATES

MINUTES_PER_DAY = 24 * 60


class Costs(Family):
    """Cost and duration, the last word of every report on comparisons."""

    rank = 80

    def fits(self, study: Study) -> bool:
        """Anything that is answered by comparing."""
        return any(scale.compares for criterion in study.spec.criteria for scale in study.scales_of(criterion))

    def run(self, data: StudyData, options: Options) -> Findings:
        """One chapter; it never gives the answer."""
        strategies = {strategy_of(data.study, item) for item in pair_items(data.study)}
        is_controlled = data.study.spec.items.pairs == "controlled"
        per = ("strategy", len(strategies)) if is_controlled else None
        section = section_or_problem("cost", "Cost and duration", lambda: cost_section(data, options, per=per))
        return Findings("", "", sections=in_appendix((section,)))


ANALYSES.register("costs")(Costs())


def cost_section(data: StudyData, options: Options, *, per: tuple[str, int] | None = None) -> Section:
    """Money and time. ``per`` names what the cost is divided by as well, such as ("strategy", 5)."""
    finished = data.sessions.filter(
        pl.col("source").is_in(data.sources) & (pl.col("state") == "completed") & ~pl.col("state").is_in(OUTSIDE_STATES)
    )
    if not len(finished):
        raise NotEnoughData("no session has been completed yet", remedy="cost and duration appear with the first")
    minutes = _minutes(data, options)
    rows = [("Sessions finished (excluded ones were paid too)", n_of(len(finished), "session"))]
    platform = platform_of(data.study.spec.recruitment)
    if not platform.is_open:
        rows.append(("Raters recruited through", platform.label))
    rows += _money(data, len(finished), minutes, per)
    if minutes.is_known:
        rows.append(("Median length of a session", with_interval(minutes, unit="minutes", n_digits=1)))
    period = _period_minutes(finished)
    if period is not None:
        rows.append(("From the first arrival to the last finish", _time(period)))
    table = Table("cost", "Cost and duration", (Column("what", "What"), Column("amount", "Amount")), tuple(rows))
    return Section("cost", "Cost and duration", _promise_words(data, minutes), (table,))


def _minutes(data: StudyData, options: Options) -> Estimate:
    durations = data.completed_sessions()["duration_s"].drop_nulls().to_numpy() / 60
    return quantile(durations, confidence=options.confidence, label="minutes per session")


def _money(data: StudyData, n_paid: int, minutes: Estimate, per: tuple[str, int] | None) -> list[tuple[str, str]]:
    pay = data.study.spec.recruitment
    if not pay.pay_cents:
        return [("Pay", "none declared")]
    fee = f" and {pay.fee_percent:g}% for the platform" if pay.fee_percent else ""
    total = pay.cost_cents(n_paid) / 100
    rows = [
        ("Pay", f"{pay.pay} for each session{fee}"),
        ("Total cost", f"{number(total)} {pay.currency}"),
    ]
    if per is not None and per[1] > 1:
        rows.append((f"Cost per {per[0]}", f"{number(total / per[1])} {pay.currency}"))
    n_judgments = len(data.rated)
    if n_judgments:
        rows.append(("Cost per judgment that counts", f"{number(total / n_judgments, 3)} {pay.currency}"))
    if minutes.is_known and minutes.value > 0:
        rows.append(
            ("Pay per hour at the median length", f"{number(pay.pay_cents / 100 * 60 / minutes.value)} {pay.currency}")
        )
    return rows


def _period_minutes(finished: pl.DataFrame) -> float | None:
    timed = finished.filter((pl.col("started_at_ms") > NO_DATE_MS) & pl.col("duration_s").is_not_null())
    if not len(timed):
        return None
    start = timed["started_at_ms"].to_numpy()
    end = start + 1000 * timed["duration_s"].to_numpy()
    return float(np.max(end) - np.min(start)) / 60_000


def _time(minutes: float) -> str:
    if minutes < 120:
        return f"{number(minutes, 0)} minutes"
    if minutes < 2 * MINUTES_PER_DAY:
        return f"{number(minutes / 60, 1)} hours"
    return f"{number(minutes / MINUTES_PER_DAY, 1)} days"


def _promise_words(data: StudyData, minutes: Estimate) -> tuple[str, ...]:
    promised = data.study.spec.recruitment.minutes
    if promised is None or not minutes.is_known:
        return ()
    is_clear = not minutes.has_interval or minutes.low > promised
    if minutes.value > 1.2 * promised and is_clear:
        return (
            f"Sessions took longer than the announced {promised:g} minutes (median {value_only(minutes, n_digits=1)}): "
            "in the next study, announce a longer time or pay more.",
        )
    return (
        f"The announced time was {promised:g} minutes; half of the sessions took {value_only(minutes, n_digits=1)} minutes or less.",
    )
