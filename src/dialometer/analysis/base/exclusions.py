"""What was excluded and why: counts for the summary, and the raters one by one."""

from __future__ import annotations

import polars as pl

from dialometer.analysis.base.data import EXCLUDED, OTHER_SOURCE, StudyData
from dialometer.analysis.base.measures import unmeasured
from dialometer.model.report import Cell, Column, Table
from dialometer.quality.gold import gold_items
from dialometer.storage.counting.counts import OUTSIDE_STATES

MOST_RATERS = 50


def exclusions_table(data: StudyData) -> Table:
    """How many raters and judgments were excluded, by reason."""
    rows: list[tuple[str, int | None, int | None]] = []
    sessions = _shown_sessions(data)
    for state, label in (
        ("screened_out", "screened out"),
        ("declined", "declined to take part"),
        ("withdrawn", "withdrew"),
    ):
        n = len(sessions.filter(pl.col("state") == state))
        if n:
            rows.append((label, n, None))
    of_shown = data.findings.filter(pl.col("rater").is_in(sessions["rater"].implode()))
    rows += [(f"excluded by the rule {rule}", n, None) for rule, n in _n_by_rule(of_shown, "exclude")]
    rows += _without_a_rule(data, sessions)
    n_of_judges = len(data.by_models) if data.study.spec.analysis.judges is not None else 0
    n_raters = data.set_aside["rater"].n_unique()  # a rater may have broken several rules
    rows += [
        (
            f"judgments of {reason}" if "raters" in reason else f"judgments on {reason}",
            n_raters if reason == EXCLUDED else None,
            n,
        )
        for reason, n in data.n_left_out.items()
        if not (reason == OTHER_SOURCE and n <= n_of_judges)
    ]
    gold = gold_items(data.study)
    n_gold = len(data.judgments.filter(pl.col("item").is_in(gold))) if gold else 0
    if n_gold:
        rows.append(("judgments on gold items, which check raters and are in no result", None, n_gold))
    rows += [(f"judgments {reason}", None, n) for reason, n in unmeasured(data).items()]
    kept = of_shown.filter(pl.col("rater").is_in(data.judgments["rater"].unique().implode()))
    rows += [(f"only flagged by the rule {rule}, kept", n, None) for rule, n in _n_by_rule(kept, "flag")]
    return Table(
        "exclusions",
        "What was excluded",
        (Column("reason", "Reason"), Column("raters", "Raters", "count"), Column("judgments", "Judgments", "count")),
        tuple((reason, "" if n is None else n, "" if m is None else m) for reason, n, m in rows),
        notes=() if rows else ("Nothing was excluded.",),
    )


def _shown_sessions(data: StudyData) -> pl.DataFrame:
    """Those of the sources that the report is about."""
    return data.sessions.filter(pl.col("source").is_in(data.sources))


def _n_by_rule(findings: pl.DataFrame, action: str) -> list[tuple[str, int]]:
    """How many raters each rule with this action applied to."""
    counts = findings.filter(pl.col("action") == action).group_by("rule").agg(pl.col("rater").n_unique()).sort("rule")
    return [(rule.replace("_", " "), n) for rule, n in counts.iter_rows()]


def _without_a_rule(data: StudyData, sessions: pl.DataFrame) -> list[tuple[str, int | None, int | None]]:
    """Raters whom no rule excludes: an experimenter did, or the data came so."""
    by_rules = data.findings.filter(pl.col("action") == "exclude")["rater"].implode()
    others = sessions.filter(
        pl.col("is_excluded") & ~pl.col("state").is_in(OUTSIDE_STATES) & ~pl.col("rater").is_in(by_rules)
    )
    is_imported = pl.col("source") == "imported"
    counts = {
        "excluded by hand": others.filter(~is_imported)["rater"].n_unique(),
        "excluded in the imported data": others.filter(is_imported)["rater"].n_unique(),
    }
    return [(label, n, None) for label, n in counts.items() if n]


def excluded_raters_table(data: StudyData) -> Table | None:
    """Each rater whom a rule excluded or screened out, with the reason; None where there is none."""
    of_shown = data.findings.filter(pl.col("rater").is_in(_shown_sessions(data)["rater"].implode()))
    rows = of_shown.filter(pl.col("action").is_in(["exclude", "screen_out"])).unique(maintain_order=True)
    rows = rows.sort("rater", maintain_order=True)
    if not len(rows):
        return None
    body: list[tuple[Cell, ...]] = [
        (rater, rule.replace("_", " "), "screened out" if action == "screen_out" else "excluded", reason)
        for rater, rule, action, reason in rows.head(MOST_RATERS).iter_rows()
    ]
    n_more = len(rows) - len(body)
    return Table(
        "raters_excluded",
        "Raters excluded by quality rules",
        (Column("rater", "Rater"), Column("rule", "Rule"), Column("what", "What followed"), Column("reason", "Reason")),
        tuple(body),
        notes=(f"{n_more} more are not shown in this table.",) if n_more > 0 else (),
    )
