"""What whole reports claimed before items were a sample as raters are, beside what they claim now."""

from __future__ import annotations

from collections.abc import Sequence

from bench.calibrate.table import Rate, Summary

WORST = "item0.6_taste0.4_careless5"
FALSE_CLAIMS = (
    (
        "strategies, 60 raters, two transcript pairs a strategy",
        Rate(97, 100),
        f"strategies_report_null_r60_n10_{WORST}",
    ),
    ("acute, 15 raters", Rate(31, 100), f"acute_report_null_r15_{WORST}"),
    ("best-worst, 24 raters", Rate(41, 100), f"best-worst_report_null_r24_{WORST}"),
    ("anchoring, 16 raters", Rate(22, 160), f"anchoring_report_null_r16_{WORST}"),
    ("imported ratings, one system of each item, 30 raters", Rate(56, 150), f"ratings-crossed_report_null_r30_{WORST}"),
    ("likert, 30 raters", Rate(6, 100), f"likert_report_null_r30_{WORST}"),
)
"""Studies in which nothing differs, and how many of their reports claimed a difference."""
ICC_COVERED = ("likert, confidence interval of ICC(2,1), 5% careless raters", f"likert_report_null_r30_{WORST}")
POWER = (
    ("acute, power at 6 raters", "95% promised, 0% found", f"acute_tests_effect1.5_r6_{WORST}"),
    ("acute, power at 8 raters", "100% promised, 3% found", f"acute_tests_effect1.5_r8_{WORST}"),
    ("acute, power at 15 raters", "100% promised, 83% found", f"acute_report_effect1.5_r15_{WORST}"),
    ("best-worst, power", "94% promised, 69% found", f"best-worst_report_effect0.5_r24_{WORST}"),
    (
        "imported ratings, power at 30 raters",
        "59% promised, 48% found",
        f"ratings-crossed_tests_effect0.6_r30_{WORST}",
    ),
)


def before_and_now(made: Sequence[Summary]) -> str:
    """A table of Markdown with the cells that are there."""
    by_name = {rates.cell.name: rates for rates in made}
    rows = []
    for words, before, name in FALSE_CLAIMS:
        if name in by_name:
            rows.append((f"{words}: false claims", _share(before), _share(by_name[name].claims), "5%, beside chance"))
    words, name = ICC_COVERED
    if name in by_name and by_name[name].icc.n:
        rows.append((f"{words}: holds the truth", "57% [53, 61]", _share(by_name[name].icc), "at least 95%"))
    for words, told, name in POWER:
        rates = by_name.get(name)
        if rates is not None and rates.promised.n:
            now = f"{rates.promised.share:.1%} promised, {rates.tests.share:.1%} found"
            rows.append((words, told, now, "within 3 points"))
    lines = ["| simulated studies | before | now | bound |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _share(rate: Rate) -> str:
    low, high = rate.interval
    return f"{rate.hits}/{rate.n} = {rate.share:.1%} [{100 * low:.0f}, {100 * high:.0f}]"
