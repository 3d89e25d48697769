"""A report with one of everything: all kinds of columns and charts, gaps, long names, markup, other scripts, problems."""

from __future__ import annotations

from rich_sections import (
    CRITERIA,
    HEBREW,
    HOSTILE,
    LONG,
    anchoring,
    consistency,
    everything,
    leaderboard,
    mean,
    raters,
    strategies,
)

from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Column, Figure, Headline, Method, Report, Section, Summary, Table
from dialometer.report import charts
from dialometer.report.charts import Dot

__all__ = ["HEBREW", "HOSTILE", "LONG", "mean", "rich_report"]


def rich_report(*, is_finished: bool = False) -> Report:
    """The report; nothing in it is random, so that renderings can be compared."""
    return Report(
        study="anchoring-2026",
        title="Does an anchor change how readable dialogues are judged to be?",
        summary=summary(),
        sections=(anchoring(), consistency(), strategies(), leaderboard(), raters(), everything(), failed()),
        methods=methods(),
        provenance={
            "fingerprint": "sha256:4f9c1f0e7a52",
            "lock": 3,
            "seed": 7,
            "dialometer": "0.1.0",
            "judgments": 4812,
            "raters": 120,
            "first judgment": "2026-01-12T08:31:07Z",
            "last judgment": "2026-02-02T19:04:55Z",
            "declared_analysis": "frozen on 2026-01-08, before the first judgment",
        },
        is_finished=is_finished,
    )


def summary() -> Summary:
    dots = [
        Dot(label, mean(value, 0.11), group, criterion)
        for criterion, shift in zip(CRITERIA, (0.0, 0.06), strict=True)
        for label, base in (("No anchor", 0.52), ("Numerical anchor", 0.61))
        for group, extra in (("one page", 0.0), ("page per question", 0.035))
        for value in (base + shift + extra,)
    ]
    return Summary(
        answer="Raters who saw an anchor gave ratings 17% higher than raters who did not, for both criteria.",
        certainty="Fairly certain: the whole interval lies above no effect, and the permutation test agrees. "
        "Layout made no difference that 120 raters can show.",
        headlines=headlines(),
        exclusions=Table(
            "exclusions",
            "Left out, and why",
            (Column("why", "Reason"), Column("raters", "Raters", "count"), Column("judgments", "Judgments", "count")),
            (("failed both attention checks", 6, 240), ("answered in under 2 s", 3, 118), ("withdrew consent", 1, 12)),
            caption="Rules were declared before data collection.",
            is_confirmatory=True,
        ),
        balance=Table(
            "balance",
            "Balance of conditions",
            (
                Column("condition", "Condition"),
                Column("raters", "Raters", "count"),
                Column("judgments", "Judgments", "count"),
                Column("share", "Share", "percent"),
            ),
            (
                ("anchor, one page", 31, 1240, 0.2577),
                ("anchor, page per question", 30, 1204, 0.2502),
                ("no anchor, one page", 29, 1160, 0.2411),
                ("no anchor, page per question", 30, 1208, 0.2510),
            ),
        ),
        figure=Figure(
            "ratings_by_condition",
            "Mean normalised rating by anchor and layout",
            charts.dot_interval(dots, value_title="mean rating (0 to 1)", group_title="Layout"),
            "Means with intervals: the anchored conditions lie higher for both criteria; layouts overlap.",
            is_confirmatory=True,
        ),
        warnings=("Collection is at 120 of 160 planned raters.",),
    )


def headlines() -> tuple[Headline, ...]:
    return (
        Headline(
            "Effect of the anchor",
            mean(0.158, 0.082, unit="log", p_value=0.0002),
            "An anchor multiplies the rating by 1.17 [1.08, 1.27].",
            is_confirmatory=True,
        ),
        Headline(
            "Preferred the anchored form",
            Estimate(0.583, 120, "proportion", 0.494, 0.668, unit="share", p_value=0.081, details={"null": 0.5}),
            "About six in ten; half would be chance.",
            is_confirmatory=True,
        ),
        Headline(
            "Consistency (ICC)",
            mean(0.41, 0.09, n=96),
            "Two raters share less than half of their variance.",
        ),
        Headline(
            "Effect of experience",
            unknown("Welch's t", "one group has 2 raters; at least 3 are needed", n=2),
            "Too few raters had used a chatbot every day.",
        ),
    )


def failed() -> Section:
    return Section(
        "experience",
        "Prior experience",
        problem="the questionnaire has no question 'experience' — add it to the study, or leave this part out",
    )


def methods() -> tuple[Method, ...]:
    return (
        Method(
            "Effect of anchor and layout",
            "linear mixed model on log ratings, raters and items random",
            "raters and items repeat, and magnitude estimates are ratios",
            "Baayen, Davidson & Bates 2008",
        ),
        Method(
            "Consistency",
            "ICC(2,1), bootstrap over raters and items",
            "raters are a sample of all raters",
            "Shrout & Fleiss 1979",
        ),
        Method("Preference", "exact binomial test, Wilson interval", "forced choice against one half", "Wilson 1927"),
    )
