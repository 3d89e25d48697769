"""The sections of the example report: one of every chart and column, gaps, long names, markup, other scripts."""

from __future__ import annotations

import math

import numpy as np

from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Figure, Section, Table, Turns
from dialometer.report import charts
from dialometer.report.charts import Bar, Dot, HeatCell, LinePoint, Share

HOSTILE = "<script>alert('x')</script> & \"quotes\" | pipes_and_*stars* \\ 50% #1 {braces} ~ ^ $"
HEBREW = "שלום, מה שלומך היום?"
LONG = "blender-90M-distilled-2020-07-01-checkpoint-final"
SYSTEMS = ("seq2seq", "HRED", "THRED with topic attention", LONG, "GPT-2 small")
CRITERIA = ("readability", "coherence")
BOOTSTRAP = "percentile bootstrap over raters"


def mean(value: float, half: float, n: int = 120, **more: object) -> Estimate:
    fields = {"interval_method": BOOTSTRAP, "n_resamples": 2000, "seed": 7, **more}
    return Estimate(value, n, "mean", value - half, value + half, **fields)  # type: ignore[arg-type]


def ratings() -> Table:
    columns = (
        Column("condition", "Condition"),
        Column("criterion", "Criterion"),
        Column("n", "Judgments", "count"),
        Column("rating", "Mean rating", "estimate"),
        Column("difference", "Difference", "estimate"),
        Column("p", "p", "p_value"),
        Column("is_different", "After Holm", "mark"),
    )
    rows = tuple(
        (
            f"{anchor}, {layout}",
            criterion,
            1204,
            mean(2.3412 + i / 10, 0.1134),
            mean(0.1 * i, 0.0313),
            0.0004 if i else 0.4127,
            bool(i),
        )
        for i, (anchor, layout, criterion) in enumerate(
            (a, b, c) for a in ("anchor", "no anchor") for b in ("one page", "page per question") for c in CRITERIA
        )
    )
    few = unknown("mean", "1 rater; at least 2 are needed", n=1)
    last: tuple[Cell, ...] = ("anchor, spoken", "readability", 4, few, few, None, None)
    return Table(
        "anchoring_ratings",
        "Mean rating by condition and criterion",
        columns,
        (*rows, last),
        caption="Ratings on a logarithmic scale, per rater.",
        is_confirmatory=True,
    )


def anchoring() -> Section:
    rng = np.random.default_rng(3)
    bins = [
        bin
        for label, shift in (("no anchor", 0.0), ("anchor", 0.4))
        for bin in charts.bin_values(rng.normal(shift, 1, 600), edges=np.arange(-4, 4.5, 0.5), facet=label)
    ]
    return Section(
        "anchoring",
        "Effect of the anchor",
        (
            "Ratings were given by magnitude estimation, so each rater's own scale was removed first: ratings are "
            "divided by the rater's geometric mean and analysed on a logarithmic scale.",
            "Both criteria move in the same direction.",
        ),
        (
            ratings(),
            Figure(
                "rating_distribution",
                "Distribution of ratings",
                charts.histogram(bins, value_title="log rating", reference=0),
                "Two histograms; the one with an anchor lies further right.",
                "All judgments that were not left out.",
                is_confirmatory=True,
            ),
            Figure(
                "anchoring_effects",
                "Effects and their intervals",
                charts.forest(
                    [
                        Dot("Anchor", mean(0.158, 0.082)),
                        Dot("Layout", mean(-0.02, 0.075)),
                        Dot("Anchor × layout", mean(0.04, 0.12)),
                    ],
                    value_title="effect on log rating",
                ),
                "The anchor's interval lies above zero, the others include it.",
            ),
        ),
        is_confirmatory=True,
    )


def consistency() -> Section:
    low = mean(0.41, 0.09, n=96).with_note("3 raters gave the same rating to every item and were kept")
    return Section(
        "consistency",
        "Consistency of raters",
        ("ICC(2,1) by condition; higher means raters order the dialogues alike.",),
        (
            Table(
                "icc",
                "Consistency by criterion and condition",
                (
                    Column("criterion", "Criterion"),
                    Column("anchor", "With anchor", "estimate"),
                    Column("none", "Without", "estimate"),
                    Column("duration_s", "Median time", "number", 1, "s"),
                ),
                (
                    ("readability", mean(0.62, 0.07, n=96), low, 8.31),
                    ("coherence", mean(0.58, 0.0712, n=96), unknown("ICC(2,1)", "no variance between items"), 9.987),
                    ("small effects", mean(0.0000123, 0.000004), mean(12345.678, 240.0), 12031.0),
                ),
                notes=("Raters with zero variance are named in the section on raters.",),
            ),
            Figure(
                "power",
                "Power of the next study",
                charts.lines(
                    [
                        LinePoint(n, p, p - 0.04, min(1, p + 0.04), f"{k} items per rater")
                        for k in (10, 20, 40)
                        for n in (40, 80, 120, 160, 240)
                        for p in (1 - math.exp(-n * k**0.5 / 400),)
                    ],
                    x_title="raters",
                    y_title="power",
                    target=0.8,
                    y_domain=(0, 1),
                    is_percent=True,
                    group_title="Design",
                ),
                "Power rises with raters; 40 items per rater reach 80% first.",
            ),
        ),
    )


def strategies() -> Section:
    questions = ("engaging", "trustworthy", "clear", "polite")
    kinds = ("reactivity", "empathy", "personalisation", "plain style")
    cells = [HeatCell(k, q, 0.42 + 0.05 * i + 0.03 * j) for i, k in enumerate(kinds) for j, q in enumerate(questions)]
    estimate = Estimate(0.612, 80, "proportion", 0.503, 0.711, interval_method="Wilson", p_value=0.044)
    rows = tuple((kind, *(estimate for _ in questions[:3])) for kind in kinds)
    return Section(
        "strategies",
        "Strategies in transcript pairs",
        (f"Texts of the study may hold anything: {HOSTILE}",),
        (
            Table(
                "preference",
                "Share preferring the experimental transcript",
                (
                    Column("strategy", "Strategy"),
                    *(Column(q, f"Which agent was more {q}?", "percent_estimate") for q in questions[:3]),
                ),
                rows,
                is_confirmatory=True,
            ),
            Figure(
                "preference_map",
                "Share preferring the experimental transcript",
                charts.heatmap(cells, value_title="share of raters", midpoint=0.5, is_percent=True),
                "Most cells lie above one half.",
            ),
            Turns(
                "pair_1",
                "Transcript pair: empathy",
                (
                    ("user", (("equal", "My flight was cancelled.", "My flight was cancelled."),)),
                    (
                        "agent",
                        (
                            ("insert", "", "I am sorry, that is a nuisance. "),
                            ("equal", "I can book you on ", "I can book you on "),
                            ("replace", "flight 214", "the next flight, 214"),
                            ("equal", ". ", ". "),
                            ("delete", "Confirm now. ", ""),
                        ),
                    ),
                    ("user", (("equal", HEBREW, HEBREW),)),
                    (
                        "agent",
                        (("equal", "<b>Done</b> & sent.\nAnything else?", "<b>Done</b> & sent.\nAnything else?"),),
                    ),
                ),
                caption="The experimental transcript with its changes.",
            ),
        ),
    )


def leaderboard() -> Section:
    dots = [Dot(name, mean(0.9 - 0.4 * i, 0.25 + 0.05 * i)) for i, name in enumerate(SYSTEMS)]
    dots.append(Dot("new entry", unknown("Bradley-Terry", "no comparison with this system yet")))
    cells = [
        HeatCell(a, b, None if a == b else 1 / (1 + math.exp(0.4 * (i - j))))
        for i, a in enumerate(SYSTEMS)
        for j, b in enumerate(SYSTEMS)
    ]
    return Section(
        "leaderboard",
        "Leaderboard",
        (),
        (
            Figure(
                "ranking",
                "Strength of systems",
                charts.ranking_intervals(
                    dots,
                    value_title="strength (log odds)",
                    rank_ranges={name: (max(1, i), min(5, i + 2)) for i, name in enumerate(SYSTEMS)},
                ),
                "seq2seq leads; neighbouring intervals overlap.",
            ),
            Figure(
                "wins",
                "Who beats whom",
                charts.heatmap(
                    cells, value_title="share of wins of the row's system", domain=(0, 1), midpoint=0.5, is_percent=True
                ),
                "A matrix of wins; the upper right is above one half.",
            ),
            Figure(
                "answers",
                "Answers by system",
                charts.stacked_shares(
                    [
                        Share(name, str(step), share)
                        for name in SYSTEMS
                        for step, share in zip(range(1, 6), (0.08, 0.17, 0.25, 0.3, 0.2), strict=True)
                    ],
                    parts=[str(step) for step in range(1, 6)],
                    part_title="Rating",
                    is_ordered=True,
                ),
                "Shares of the ratings 1 to 5 for each system.",
            ),
            Figure(
                "broken",
                "A figure that cannot be drawn",
                {"mark": "no-such-mark", "data": {"values": []}},
                "It would show nothing.",
            ),
        ),
    )


def raters() -> Section:
    rng = np.random.default_rng(5)
    samples = {f"condition {i}": rng.lognormal(2, 0.4, 90) for i in range(1, 4)} | {"condition 4": np.array([])}
    return Section(
        "raters",
        "Raters",
        (),
        (
            Figure(
                "times",
                "Time per judgment",
                charts.strip(samples, value_title="seconds per judgment"),
                "Medians lie near 7 seconds in three conditions; the fourth has no data.",
            ),
            Figure(
                "costs",
                "Cost of the study",
                charts.bars(
                    [
                        Bar("pilot", 41.5, "paid"),
                        Bar("pilot", 3.1, "fees"),
                        Bar("main", 212.0, "paid"),
                        Bar("main", None, "fees"),
                    ],
                    value_title="euro",
                ),
                "The main study cost 212 euro; its fees are not known yet.",
            ),
            Table(
                "rater_list",
                "Agreement of each rater with the rest",
                (
                    Column("rater", "Rater"),
                    Column("agreement", "Agreement", "estimate"),
                    Column("time", "Time", "number", 1, "s"),
                ),
                tuple((f"r{i:03}", mean(0.4 + 0.002 * i, 0.1, n=40), 5 + i / 7) for i in range(1, 46)),
            ),
        ),
    )


def everything() -> Section:
    """Every kind of column with every kind of cell."""
    columns = (
        Column("text", "Text"),
        Column("count", "Count", "count"),
        Column("number", "Number", "number", 3, "ms"),
        Column("percent", "Percent", "percent"),
        Column("estimate", "Estimate", "estimate"),
        Column("share", "Share", "percent_estimate"),
        Column("p", "p", "p_value"),
        Column("mark", "Mark", "mark"),
    )
    share = Estimate(0.5, 12, "proportion", 0.25, 0.75, interval_method="Wilson", p_value=0.9999)
    noted = mean(-0.04, 0.021).with_note(HOSTILE)
    endless = Estimate(math.inf, 9, "Bradley-Terry", 1.2, math.inf)
    rows = (
        ("plain", 1234567, 3.14159, 0.5, mean(-1.5, 0.25), share, 0.0231, True),
        (HOSTILE, 0, -0.0004, 0.0, noted, share, share, False),
        (
            HEBREW,
            None,
            math.nan,
            None,
            unknown("mean", "why: <b>nobody</b> came"),
            unknown("share", "no answers"),
            math.nan,
            None,
        ),
        ("", 12, math.inf, 1.0, endless, 0.25, 0.00001, "no"),
    )
    return Section("everything", "Every kind of cell", (), (Table("everything", "All kinds of cells", columns, rows),))
