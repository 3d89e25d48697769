"""The chapters of a report on controlled pairs that are about the preferences themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dialometer.analysis.family import Options
from dialometer.analysis.leader import CORRECTIONS, p_adjusted
from dialometer.analysis.pair_choices import PairChoices
from dialometer.analysis.pair_shares import Declared, Shares
from dialometer.analysis.words import first_note, listed, percent, sentence, with_interval
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import HeatCell, heatmap

EXPERIMENTAL = "prefer the experimental version"
NO_PREFERENCE = 0.5


def p_cell(value: float) -> Cell:
    """A p value for a table; None where there was no test."""
    return None if math.isnan(value) else value


def is_significant(estimate: Estimate) -> bool:
    """Whether the corrected test leaves chance out, at the confidence of the estimate."""
    p = p_adjusted(estimate)
    return not math.isnan(p) and p <= 1 - estimate.confidence


def share_columns(options: Options, *, has_chi2: bool = False) -> tuple[Column, ...]:
    """Columns for a share and its test."""
    columns = [
        Column("n", "Answers", "count"),
        Column("share", "Prefer experimental", "percent_estimate"),
        Column("p", "p", "p_value"),
    ]
    if options.correction in CORRECTIONS:
        columns.append(Column("p_adjusted", f"p ({CORRECTIONS[options.correction]})", "p_value"))
    if has_chi2:
        columns += [Column("chi2", "χ²", "number"), Column("chi2_p", "p (χ²)", "p_value")]
    return tuple(columns)


def share_cells(share: Estimate, options: Options, *, has_chi2: bool = False) -> tuple[Cell, ...]:
    """The cells under those columns."""
    cells: list[Cell] = [share.n, share if share.is_known else None, p_cell(share.p_value)]
    if options.correction in CORRECTIONS:
        cells.append(p_cell(p_adjusted(share)))
    if has_chi2:
        cells += [p_cell(float(share.details.get(key, math.nan))) for key in ("chi2", "chi2_p")]
    return tuple(cells)


def declared_section(declared: Sequence[Declared], choices: PairChoices, options: Options) -> Section | None:
    """Every declared comparison with its hypothesis and the tests that decide on it."""
    if not declared:
        return None
    tables, paragraphs = [], []
    for one in declared:
        name = one.comparison.name
        words = name.replace("_", " ").replace("-", " ")
        asked = listed(choices.question_labels[choices.questions.index(q)] for q in one.questions)
        role = "the comparison that decides the study" if one.is_primary else "declared beforehand"
        paragraphs.append(f"{sentence(words)[:-1]} ({role}): {verdict(one.shares)}")
        rows = [(share.label, *share_cells(share, options)) for share in one.shares]
        tables.append(
            Table(
                f"declared-{name}",
                f"{sentence(words)[:-1]}: share that preferred the experimental version, by strategy",
                (Column("strategy", "Strategy"), *share_columns(options)),
                tuple(rows),
                caption=f"Questions: {asked}. " + (f"Hypothesis: {one.comparison.hypothesis}" if one.comparison.hypothesis else ""),
                notes=(CLUSTER_NOTE, *tie_note(choices)),
                is_confirmatory=True,
            )
        )  # fmt: skip
    return Section("declared", "Declared comparisons", tuple(paragraphs), tuple(tables), is_confirmatory=True)


CLUSTER_NOTE = (
    "Each rater answers several questions, so answers are not independent: the interval and the test take each rater as one "
    "cluster (cluster-robust, CR2)."
)


def tie_note(choices: PairChoices) -> tuple[str, ...]:
    """What was done with ties and "cannot tell"."""
    n_ties, n_unsure = int(np.sum(choices.signed == 0)), int(np.sum(np.isnan(choices.signed)))
    parts = [f"{n_ties:,} ties"] if n_ties else []
    parts += [f"{n_unsure:,} answers “cannot tell”"] if n_unsure else []
    return (f"Shares are of those who preferred one of the two; {' and '.join(parts)} are left out.",) if parts else ()


def verdict(shares: Sequence[Estimate]) -> str:
    """One sentence on which strategies are preferred, which rejected, and which left open."""
    up = [s for s in shares if is_significant(s) and s.value > NO_PREFERENCE]
    down = [s for s in shares if is_significant(s) and s.value < NO_PREFERENCE]
    unknown = [s for s in shares if not s.is_known]
    untested = [s for s in shares if s.is_known and math.isnan(p_adjusted(s))]
    known = {id(s) for s in (*up, *down, *unknown, *untested)}
    open_ = [s for s in shares if id(s) not in known]
    parts = []
    if up:
        whole = " all strategies:" if len(up) == len(shares) > 1 else ""
        parts.append(f"the experimental version is preferred for{whole} {_with_shares(up)}")
    if down:
        parts.append(f"the control version is preferred for {_with_shares(down)}")
    if open_:
        parts.append(f"no preference can be told from chance for {_with_shares(open_)}")
    if untested:
        parts.append(f"there are too few raters for a test on {_with_shares(untested)}")
    if unknown:
        why = first_note(unknown).partition(":")[0]
        parts.append(f"there are not enough data on {listed(s.label for s in unknown)}" + (f" ({why})" if why else ""))
    return sentence("; ".join(parts))


def _with_shares(shares: Sequence[Estimate]) -> str:
    return listed(f"{s.label} ({percent(s.value)})" for s in sorted(shares, key=lambda s: -s.value))


def preference_section(choices: PairChoices, shares: Shares, options: Options, declared: Sequence[Declared]) -> Section:
    """The table of the published studies: strategies by questions with marginals, then the tests behind it."""
    labels, asked = choices.strategy_labels, choices.question_labels
    has_margin = len(asked) > 1
    columns = [Column("strategy", "Strategy")]
    columns += [Column(q, label, "percent_estimate") for q, label in zip(choices.questions, asked, strict=True)]
    columns += [Column("marginal", "All questions", "percent_estimate")] if has_margin else []
    rows: list[tuple[Cell, ...]] = []
    for s, label in enumerate(labels):
        cells = [known_cell(shares.cells[s, q]) for q in range(len(asked))]
        rows.append((label, *cells, *([known_cell(shares.by_strategy[s])] if has_margin else [])))
    if len(labels) > 1:
        margin = [known_cell(share) for share in shares.by_question]
        rows.append(("All strategies", *margin, *([known_cell(shares.overall)] if has_margin else [])))
    wide = Table(
        "preference",
        "Share of raters who preferred the experimental version",
        tuple(columns),
        tuple(rows),
        caption=f"Intervals hold {100 * options.confidence:g}%; 50% would be no preference.",
        notes=(_interval_note(choices), *tie_note(choices)),
    )
    tests = Table(
        "preference-tests",
        "Tests of each strategy and question",
        (Column("strategy", "Strategy"), Column("question", "Question"), *share_columns(options, has_chi2=True)),
        tuple(
            (labels[s], asked[q], *share_cells(share, options, has_chi2=True)) for (s, q), share in shares.cells.items()
        ),
        caption=f"Exact binomial tests, corrected as one family of {_n_tests(shares.cells.values())}; χ² stands beside "
        "them as in the published studies.",
        notes=() if not _any_repeated(choices) else ("Raters judged several pairs of a strategy; those cells are tested by rater.",),
    )  # fmt: skip
    parts: list[Table | Figure] = [wide, _heatmap(choices, shares), tests]
    margins = _margins_table(choices, shares, options, declared)
    return Section("preference", "Preference by strategy and question", _said(shares), (*parts, *margins))


def known_cell(share: Estimate) -> Cell:
    """An estimate for a table; None where there are not enough data."""
    return share if share.is_known else None


def _any_repeated(choices: PairChoices) -> bool:
    pair = choices.rater * len(choices.strategies) + choices.strategy
    key = pair * len(choices.questions) + choices.question
    return len(np.unique(key)) < len(key)


def _interval_note(choices: PairChoices) -> str:
    cells = "by rater, as raters judged several pairs" if _any_repeated(choices) else "Wilson's"
    return f"Intervals of single cells are {cells}; those of marginals take each rater as one cluster."


def _n_tests(shares: object) -> int:
    return sum(not math.isnan(share.p_value) for share in shares)  # type: ignore[attr-defined]


def _said(shares: Shares) -> tuple[str, ...]:
    cells = [share for share in shares.cells.values() if share.is_known]
    up = sum(is_significant(share) and share.value > NO_PREFERENCE for share in cells)
    down = sum(is_significant(share) and share.value < NO_PREFERENCE for share in cells)
    if not shares.overall.is_known:
        return (sentence(f"there are no shares to show: {first_note([shares.overall])}"),)
    text = f"Over all strategies and questions, {with_interval(shares.overall, is_percent=True)} of the choices went to the "
    text += "experimental version."
    if len(cells) > 1:
        text += f" Of {len(cells)} combinations of strategy and question, {up} show a preference for it"
        text += f" and {down} for the control version" if down else ""
        text += " after correction."
    return (text,)


def _heatmap(choices: PairChoices, shares: Shares) -> Figure:
    cells = [
        HeatCell(choices.strategy_labels[s], choices.question_labels[q], share.value if share.is_known else None)
        for (s, q), share in shares.cells.items()
    ]
    spec = heatmap(cells, value_title=f"share who {EXPERIMENTAL}", midpoint=NO_PREFERENCE, is_percent=True)
    told = "; ".join(
        f"{c.row}, {c.column}: {'not enough data' if c.value is None else percent(c.value)}" for c in cells
    )
    return Figure("preference-map", "Preference by strategy and question", spec, f"Shares in colour. {told}.")


def _margins_table(
    choices: PairChoices, shares: Shares, options: Options, declared: Sequence[Declared]
) -> tuple[Table, ...]:
    """Marginals with tests; those of strategies only where no declared comparison already is exactly that."""
    rows: list[tuple[Cell, ...]] = []
    is_declared = any(one.covers(choices) for one in declared)
    if len(choices.questions) > 1 and not is_declared:
        rows += [(share.label, "strategy", *share_cells(share, options)) for share in shares.by_strategy]
    if len(choices.strategies) > 1:
        rows += [(share.label, "question", *share_cells(share, options)) for share in shares.by_question]
    if not rows:
        return ()
    notes = [CLUSTER_NOTE]
    if is_declared and len(choices.questions) > 1:
        notes.append("Marginals of the strategies are tested under “Declared comparisons”.")
    return (
        Table(
            "marginals",
            "Tests of the marginals",
            (Column("what", "Marginal of"), Column("kind", "which is a"), *share_columns(options)),
            tuple(rows),
            caption="Strategies and questions are corrected as two families." if not is_declared else "",
            notes=tuple(notes),
        ),
    )
