"""How strategies and questions differ from each other, beyond each being preferred or not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dialometer.analysis.family import Options
from dialometer.analysis.leader import p_adjusted, pair_columns, pair_rows
from dialometer.analysis.pair_choices import PairChoices
from dialometer.analysis.pair_sections import EXPERIMENTAL, is_significant, known_cell, p_cell
from dialometer.analysis.pair_shares import Declared, Shares, corrected, differs, strategy_differences
from dialometer.analysis.words import listed, p_words, percent, with_interval
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval, forest


def differences_section(choices: PairChoices, options: Options) -> Section:
    """Do strategies differ, do questions differ, and which strategy is above which?"""
    rows: list[tuple[Cell, ...]] = []
    tested: dict[str, Estimate] = {}
    if len(choices.strategies) > 1:
        tested["between strategies"] = differs(choices, "strategy", label="between strategies")
    if len(choices.questions) > 1:
        tested["between questions"] = differs(choices, "question", label="between questions")
    for label, one in tested.items():
        rows.append((label, one.n, known_cell(one), p_cell(one.statistic), _df(one), p_cell(one.p_value)))
    columns = (
        Column("what", "Differences"),
        Column("n", "Answers", "count"),
        Column("effect", "Effect size", "number"),
        Column("f", "F", "number"),
        Column("df", "df"),
        Column("p", "p", "p_value"),
    )
    homogeneity = Table(
        "homogeneity",
        "Does the preference differ between strategies, and between questions?",
        columns,
        tuple(rows),
        notes=(
            "Homogeneity of shares, cluster-robust by rater (CR2, HTZ test); the effect size is Cramér's V.",
            *dict.fromkeys(note for one in tested.values() for note in one.notes),
        ),
    )
    parts: list[Table | Figure] = [homogeneity]
    said = [_homogeneity_words(name, one, options) for name, one in tested.items()]
    if len(choices.strategies) > 1:
        pairs = strategy_differences(choices, options)
        apart = [f"{a} and {b}" for (a, b), one in pairs.items() if is_significant(one)]
        n_pairs = sum(one.is_known for one in pairs.values())
        if n_pairs:
            said.append(
                f"Of {n_pairs} pairs of strategies, {len(apart)} differ after correction"
                + (f": {listed(apart)}." if apart else ".")
            )
        table = Table(
            "strategy-differences",
            "Differences between strategies",
            (
                Column("first", "Strategy"),
                *pair_columns(options.correction, value="Difference of shares", kind="percent_estimate")[1:],
            ),
            pair_rows(pairs, options.correction),
            caption="In percentage points, over all questions.",
            notes=(
                "The same raters judged all strategies, so each serves as their own comparison (cluster-robust by rater, CR2).",
            ),
        )
        figures = _differences_figure(pairs)
        parts += [table, *figures]
    return Section("differences", "Do strategies and questions differ?", tuple(said), tuple(parts))


def _differences_figure(pairs: dict[tuple[str, str], Estimate]) -> list[Figure]:
    dots = [Dot(f"{a} − {b}", one) for (a, b), one in pairs.items() if one.is_known]
    if not dots:
        return []
    told = "; ".join(f"{dot.label} {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    spec = forest(dots, value_title="difference of shares", is_percent=True)
    title = "Differences between strategies"
    return [Figure("strategy-differences-figure", title, spec, f"Differences of shares with intervals: {told}.")]


def _df(one: Estimate) -> str:
    return ", ".join(f"{value:.4g}" for value in one.df)


def _homogeneity_words(name: str, one: Estimate, options: Options) -> str:
    if math.isnan(one.p_value):
        reason = one.notes[-1] if one.notes else "not enough data"
        return f"Whether the preference differs {name} cannot be tested: {reason}."
    is_clear = one.p_value <= 1 - options.confidence
    return f"The preference {'differs' if is_clear else 'shows no clear difference'} {name} ({p_words(one.p_value)})."


def question_section(choices: PairChoices, shares: Shares, options: Options, declared: Sequence[Declared]) -> Section:
    """Which question each strategy moves most, overall and within each declared group of questions."""
    groups = {
        one.comparison.name.replace("_", " "): one.questions
        for one in declared
        if len(one.questions) < len(choices.questions)
    }
    tested = corrected(
        [
            differs(choices.where(choices.strategy == s), "question", label=label)
            for s, label in enumerate(choices.strategy_labels)
        ],
        options,
    )
    rows: list[tuple[Cell, ...]] = []
    clear = []
    for s, label in enumerate(choices.strategy_labels):
        known = {q: shares.cells[s, k] for k, q in enumerate(choices.questions) if shares.cells[s, k].is_known}
        if is_significant(tested[s]):
            clear.append(label)
        within = [_top(choices, {q: e for q, e in known.items() if q in questions}) for questions in groups.values()]
        lowest = _top(choices, {q: known[q] for q in sorted(known, key=lambda q: known[q].value)[:1]})
        rows.append(
            (label, _top(choices, known), lowest, *within, p_cell(tested[s].p_value), p_cell(p_adjusted(tested[s])))
        )
    columns = (
        Column("strategy", "Strategy"),
        Column("most", "Most preferred on"),
        Column("least", "Least preferred on"),
        *(Column(f"most-{k}", f"Most within {name}") for k, name in enumerate(groups)),
        Column("p", "p (questions differ)", "p_value"),
        Column("p_adjusted", "p, corrected", "p_value"),
    )
    rest = [label for label in choices.strategy_labels if label not in clear]
    said = f"The preference depends on the question for {listed(clear)}." if clear else ""
    if rest:
        whom = listed(rest) if clear else "every strategy"
        said += (
            f" For {whom} the differences between questions are within chance after correction: there, which question "
        )
        said += "comes first is a description, not a finding."
    table = Table("questions-by-strategy", "Which question each strategy moves most", columns, tuple(rows))
    dots = [
        Dot(choices.strategy_labels[s], share, group=choices.question_labels[q])
        for (s, q), share in shares.cells.items()
    ]
    told = "; ".join(f"{dot.label}, {dot.group}: {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    spec = dot_interval(
        dots, value_title=f"share who {EXPERIMENTAL}", group_title="Question", reference=0.5, is_percent=True
    )
    figure = Figure("questions-figure", "Preference by question", spec, f"Shares with intervals: {told}.")
    return Section("questions", "Which question does each strategy move most?", (said.strip(),), (table, figure))


def _top(choices: PairChoices, shares: dict[str, Estimate]) -> Cell:
    if not shares:
        return None
    best = max(shares, key=lambda q: shares[q].value)
    return f"{choices.question_labels[choices.questions.index(best)]} ({percent(shares[best].value)})"
