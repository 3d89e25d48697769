"""Which question each strategy moves most, and whether its preference depends on the question at all."""

from __future__ import annotations

from collections.abc import Sequence

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import correction_name, listed, percent, with_interval
from dialometer.analysis.families.pairs.choices import PairChoices
from dialometer.analysis.families.pairs.result_words import pairs_words
from dialometer.analysis.families.pairs.results import (
    NO_PREFERENCE,
    DeclaredShares,
    Result,
    Shares,
    corrected_results,
    difference_test,
)
from dialometer.analysis.families.pairs.sections import EXPERIMENTAL
from dialometer.analysis.shared.comparisons import p_adjusted, p_cell
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, dot_interval


def question_section(
    choices: PairChoices, shares: Shares, options: Options, declared: Sequence[DeclaredShares]
) -> Section:
    """Which question each strategy moves most, overall and within each declared group of questions."""
    groups = {
        comparison.comparison.name.replace("_", " "): comparison.questions
        for comparison in declared
        if len(comparison.questions) < len(choices.questions)
    }
    tested = corrected_results(
        [
            difference_test(choices.where(choices.strategy == s), "question", options, label)
            for s, label in enumerate(choices.strategy_labels)
        ],
        options,
    )
    has_general = any(result.has_general_test for result in tested)
    cells = shares.cells_here
    rows: list[tuple[Cell, ...]] = []
    for s, label in enumerate(choices.strategy_labels):
        known = {q: cells[s, k] for k, q in enumerate(choices.questions) if cells[s, k].is_known}
        within = [_top(choices, {q: e for q, e in known.items() if q in questions}) for questions in groups.values()]
        lowest = _top(choices, known, is_lowest=True)
        here, general = tested[s].here, tested[s].general
        p_values = [p_cell(here.p_value), p_cell(p_adjusted(here))]
        if has_general:
            p_values += [None if general is None else p_cell(p_adjusted(general))]
        rows.append((label, _top(choices, known), lowest, *within, *p_values))
    columns = [
        Column("strategy", "Strategy"),
        Column("most", "Most preferred on"),
        Column("least", "Least preferred on"),
        *(Column(f"most-{k}", f"Most within {name}") for k, name in enumerate(groups)),
        Column("p", "p (questions differ in these pairs)", "p_value"),
        Column("p_adjusted", f"p ({correction_name(options.correction)})", "p_value"),
    ]
    columns += (
        [Column("p_general", f"p ({correction_name(options.correction)}), in general", "p_value")]
        if has_general
        else []
    )
    table = Table("questions-by-strategy", "Which question each strategy moves most", tuple(columns), tuple(rows))
    return Section(
        "questions",
        "Which question does each strategy move most?",
        (_question_words(tested),),
        (table, _questions_figure(choices, shares)),
    )


def _question_words(tested: Sequence[Result]) -> str:
    general = [result.label for result in tested if result.reach == "general"]
    here = [result for result in tested if result.reach == "here"]
    rest = [result.label for result in tested if result.reach == "open"]
    untested = [result.label for result in tested if result.reach in ("untested", "unknown")]
    parts = []
    if general:
        parts.append(f"The preference depends on the question for {listed(general)}.")
    if here:
        parts += [_here_words(own, other) for other in _ELSEWHERE if (own := [r for r in here if _others(r) == other])]
    if rest:
        whom = listed(rest) if len(rest) < len(tested) else "every strategy"
        parts.append(
            f"For {whom} the differences between questions are not significant after correction: the order of the questions "
            "is only a description there."
        )
    if untested:
        parts.append(f"For {listed(untested)} the answers vary too little for a test.")
    return " ".join(parts)


_ELSEWHERE = ("", "; for other pairs it is not significant", "; for other pairs it cannot be tested")


def _others(result: Result) -> str:
    """What is known about other pairs where the preference depends on the question in these."""
    return _ELSEWHERE[0 if result.general is None else 1 if result.has_general_test else 2]


def _here_words(results: Sequence[Result], others: str) -> str:
    pairs = pairs_words(results)
    pairs = pairs.replace("the ", "its ", 1) if len(results) == 1 else pairs
    return f"The preference depends on the question for {listed(r.label for r in results)} in {pairs}{others}."


def _questions_figure(choices: PairChoices, shares: Shares) -> Figure:
    dots = [
        Dot(choices.strategy_labels[s], share, group=choices.question_labels[q])
        for (s, q), share in shares.cells_here.items()
    ]
    details = "; ".join(f"{dot.label}, {dot.group}: {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    spec = dot_interval(
        dots, value_title=EXPERIMENTAL, group_title="Question", reference=NO_PREFERENCE, is_percent=True
    )
    title = "Preference by question, in these transcript pairs"
    return Figure("questions-figure", title, spec, f"Shares with confidence intervals: {details}.")


def _top(choices: PairChoices, shares: dict[str, Estimate], *, is_lowest: bool = False) -> Cell:
    """The question with the largest (or smallest) share; several where they have the same."""
    if not shares:
        return None
    values = [share.value for share in shares.values()]
    best = min(values) if is_lowest else max(values)
    # Those that are written with the same number are named together: the reader sees no other order.
    names = [
        choices.question_labels[choices.questions.index(q)]
        for q, e in shares.items()
        if percent(e.value) == percent(best)
    ]
    return f"{listed(names)} ({percent(best)})"
