"""The sections of a report on controlled pairs: preferences, differences, subgroups of raters, place on the screen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import first_note, listed, n_of, p_words, percent, sentence, with_interval
from dialometer.analysis.families.pairs.choices import (
    DeclaredShares,
    Flags,
    PairChoices,
    Shares,
    differs,
    marginal_share,
    strategy_differences,
)
from dialometer.analysis.shared.comparisons import (
    CORRECTIONS,
    corrected,
    is_significant,
    known_cell,
    p_adjusted,
    p_cell,
    p_cells,
    p_columns,
)
from dialometer.analysis.shared.ranking import pair_columns, pair_rows
from dialometer.analysis.shared.subgroups import (
    FEWEST_RATERS,
    GroupTest,
    RaterGroups,
    corrected_groups,
    groups_test,
    no_difference_words,
    rater_groups,
)
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, HeatCell, dot_interval, forest, heatmap
from dialometer.stats.clustered.clustered import clustered_proportion

EXPERIMENTAL = "prefer the experimental version"
NO_PREFERENCE = 0.5


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


def declared_section(declared: Sequence[DeclaredShares], choices: PairChoices, options: Options) -> Section | None:
    """Every declared comparison with its hypothesis and the tests that decide on it."""
    if not declared:
        return None
    tables, paragraphs = [], []
    for comparison in declared:
        declaration = comparison.comparison
        name = declaration.name
        words = name.replace("_", " ").replace("-", " ")
        asked = listed(choices.question_labels[choices.questions.index(q)] for q in comparison.questions)
        role = "the comparison that decides the study" if comparison.is_primary else "declared beforehand"
        paragraphs.append(f"{sentence(words)[:-1]} ({role}): {verdict(comparison.shares)}")
        rows = [(share.label, *share_cells(share, options)) for share in comparison.shares]
        tables.append(
            Table(
                f"declared-{name}",
                f"{sentence(words)[:-1]}: share that preferred the experimental version, by strategy",
                (Column("strategy", "Strategy"), *share_columns(options)),
                tuple(rows),
                caption=f"Questions: {asked}. " + (f"Hypothesis: {declaration.hypothesis}" if declaration.hypothesis else ""),
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
    unclear = [s for s in shares if id(s) not in known]
    parts = []
    if up:
        whole = " all strategies:" if len(up) == len(shares) > 1 else ""
        parts.append(f"the experimental version is preferred for{whole} {_with_shares(up)}")
    if down:
        parts.append(f"the control version is preferred for {_with_shares(down)}")
    if unclear:
        parts.append(f"no preference can be told from chance for {_with_shares(unclear)}")
    if untested:
        parts.append(f"there are too few raters for a test on {_with_shares(untested)}")
    if unknown:
        why = first_note(unknown).partition(":")[0]
        parts.append(f"there are not enough data on {listed(s.label for s in unknown)}" + (f" ({why})" if why else ""))
    return sentence("; ".join(parts))


def _with_shares(shares: Sequence[Estimate]) -> str:
    return listed(f"{s.label} ({percent(s.value)})" for s in sorted(shares, key=lambda s: -s.value))


def preference_section(
    choices: PairChoices, shares: Shares, options: Options, declared: Sequence[DeclaredShares]
) -> Section:
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
    return Section("preference", "Preference by strategy and question", _preference_words(shares), (*parts, *margins))


def _any_repeated(choices: PairChoices) -> bool:
    pair = choices.rater * len(choices.strategies) + choices.strategy
    key = pair * len(choices.questions) + choices.question
    return len(np.unique(key)) < len(key)


def _interval_note(choices: PairChoices) -> str:
    cells = "by rater, as raters judged several pairs" if _any_repeated(choices) else "Wilson's"
    return f"Intervals of single cells are {cells}; those of marginals take each rater as one cluster."


def _n_tests(shares: object) -> int:
    return sum(not math.isnan(share.p_value) for share in shares)  # type: ignore[attr-defined]


def _preference_words(shares: Shares) -> tuple[str, ...]:
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
    details = "; ".join(
        f"{c.row}, {c.column}: {'not enough data' if c.value is None else percent(c.value)}" for c in cells
    )
    return Figure("preference-map", "Preference by strategy and question", spec, f"Shares in colour. {details}.")


def _margins_table(
    choices: PairChoices, shares: Shares, options: Options, declared: Sequence[DeclaredShares]
) -> tuple[Table, ...]:
    """Marginals with tests; those of strategies only where no declared comparison already is exactly that."""
    rows: list[tuple[Cell, ...]] = []
    is_declared = any(comparison.covers(choices) for comparison in declared)
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


def differences_section(choices: PairChoices, options: Options) -> Section:
    """Do strategies differ, do questions differ, and which strategy is above which?"""
    rows: list[tuple[Cell, ...]] = []
    tested: dict[str, Estimate] = {}
    if len(choices.strategies) > 1:
        tested["between strategies"] = differs(choices, "strategy", label="between strategies")
    if len(choices.questions) > 1:
        tested["between questions"] = differs(choices, "question", label="between questions")
    for label, test in tested.items():
        rows.append((label, test.n, known_cell(test), p_cell(test.statistic), _df(test), p_cell(test.p_value)))
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
            *dict.fromkeys(note for test in tested.values() for note in test.notes),
        ),
    )
    parts: list[Table | Figure] = [homogeneity]
    paragraphs = [_homogeneity_words(name, test, options) for name, test in tested.items()]
    if len(choices.strategies) > 1:
        pairs = strategy_differences(choices, options)
        apart = [f"{a} and {b}" for (a, b), gap in pairs.items() if is_significant(gap)]
        n_pairs = sum(gap.is_known for gap in pairs.values())
        if n_pairs:
            paragraphs.append(
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
    return Section("differences", "Do strategies and questions differ?", tuple(paragraphs), tuple(parts))


def _differences_figure(pairs: dict[tuple[str, str], Estimate]) -> list[Figure]:
    dots = [Dot(f"{a} − {b}", gap) for (a, b), gap in pairs.items() if gap.is_known]
    if not dots:
        return []
    details = "; ".join(f"{dot.label} {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    spec = forest(dots, value_title="difference of shares", is_percent=True)
    title = "Differences between strategies"
    return [Figure("strategy-differences-figure", title, spec, f"Differences of shares with intervals: {details}.")]


def _df(test: Estimate) -> str:
    return ", ".join(f"{value:.4g}" for value in test.df)


def _homogeneity_words(name: str, test: Estimate, options: Options) -> str:
    if math.isnan(test.p_value):
        reason = test.notes[-1] if test.notes else "not enough data"
        return f"Whether the preference differs {name} cannot be tested: {reason}."
    is_clear = test.p_value <= 1 - options.confidence
    return f"The preference {'differs' if is_clear else 'shows no clear difference'} {name} ({p_words(test.p_value)})."


def question_section(
    choices: PairChoices, shares: Shares, options: Options, declared: Sequence[DeclaredShares]
) -> Section:
    """Which question each strategy moves most, overall and within each declared group of questions."""
    groups = {
        comparison.comparison.name.replace("_", " "): comparison.questions
        for comparison in declared
        if len(comparison.questions) < len(choices.questions)
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
    text = f"The preference depends on the question for {listed(clear)}." if clear else ""
    if rest:
        whom = listed(rest) if clear else "every strategy"
        text += (
            f" For {whom} the differences between questions are within chance after correction: there, which question "
        )
        text += "comes first is a description, not a finding."
    table = Table("questions-by-strategy", "Which question each strategy moves most", columns, tuple(rows))
    dots = [
        Dot(choices.strategy_labels[s], share, group=choices.question_labels[q])
        for (s, q), share in shares.cells.items()
    ]
    details = "; ".join(f"{dot.label}, {dot.group}: {with_interval(dot.estimate, is_percent=True)}" for dot in dots)
    spec = dot_interval(
        dots, value_title=f"share who {EXPERIMENTAL}", group_title="Question", reference=0.5, is_percent=True
    )
    figure = Figure("questions-figure", "Preference by question", spec, f"Shares with intervals: {details}.")
    return Section("questions", "Which question does each strategy move most?", (text.strip(),), (table, figure))


def _top(choices: PairChoices, shares: dict[str, Estimate]) -> Cell:
    if not shares:
        return None
    best = max(shares, key=lambda q: shares[q].value)
    return f"{choices.question_labels[choices.questions.index(best)]} ({percent(shares[best].value)})"


def subgroup_section(data: StudyData, choices: PairChoices, question: str, options: Options) -> Section:
    """Marginals of each strategy by the raters' answers to one question, and whether the groups differ."""
    groups = rater_groups(data, question, choices.rater_names)

    def by_group(inside: PairChoices, label: str) -> GroupTest:
        def share(chosen: Flags) -> Estimate:
            return marginal_share(inside.where(chosen), confidence=options.confidence)

        return groups_test(groups, inside.share, inside.rater, share, label=label)

    labels = choices.strategy_labels
    outcomes = [by_group(choices.where(choices.strategy == s), label) for s, label in enumerate(labels)]
    outcomes = corrected_groups(outcomes, options)
    whole = by_group(choices, "all strategies")
    rows: list[tuple[Cell, ...]] = [
        (outcome.test.label, *map(known_cell, outcome.by_level), *p_cells(outcome.test, options.correction))
        for outcome in outcomes
    ]
    if len(labels) > 1:
        last = ("",) if options.correction in CORRECTIONS else ()
        rows.append((whole.test.label, *map(known_cell, whole.by_level), p_cell(whole.test.p_value), *last))
    table = Table(
        f"subgroup-{question}",
        f"Share that preferred the experimental version by “{groups.text}”",
        (
            Column("strategy", "Strategy"),
            *groups.columns("percent_estimate", "group-{}", first=0),
            *p_columns(options.correction, "p (groups differ)"),
        ),
        tuple(rows),
        notes=_group_notes(groups),
    )
    title = f"Subgroups of raters: {question.replace('_', ' ')}"
    words = _group_words([outcome.test for outcome in outcomes], whole.test)
    return Section(f"subgroup-{question}", title, (words,), (table,))


def _group_notes(groups: RaterGroups) -> tuple[str, ...]:
    notes = [groups.note] if groups.note else []
    few = [level for k, level in enumerate(groups.levels) if groups.n_raters(k) < FEWEST_RATERS]
    if few:
        notes.append(f"With one rater only, {listed(few)} is shown but not tested.")
    if groups.n_without:
        notes.append(f"{n_of(groups.n_without, 'rater')} gave no answer to this question.")
    return tuple(notes)


def _group_words(tests: Sequence[Estimate], whole: Estimate) -> str:
    known = [test for test in tests if not np.isnan(test.p_value)]
    apart = [test.label for test in known if is_significant(test)]
    if not known:
        return no_difference_words([*tests, whole])
    if apart:
        return (
            f"The groups differ in their preference for {listed(apart)}. This was not randomised: it describes raters."
        )
    text = "No difference between the groups can be told from chance"
    if len(tests) > 1:
        smallest = min(p_adjusted(test) for test in known)
        return (
            f"{text}, for any strategy (smallest corrected {p_words(smallest)}) or over all ({p_words(whole.p_value)})."
        )
    return f"{text} ({p_words(known[0].p_value)})."


def side_section(data: StudyData, choices: PairChoices, options: Options) -> Section:
    """Whether the transcript shown first had an advantage, overall and for each strategy."""
    if not np.isfinite(choices.chose_first).any():
        raise NotEnoughData(
            "the data do not say which transcript stood first", remedy="import the column with the side or the order"
        )
    overall = clustered_proportion(
        choices.chose_first, choices.rater, confidence=options.confidence, label="all strategies"
    )
    by_strategy = corrected(
        [
            clustered_proportion(
                choices.chose_first[choices.strategy == s],
                choices.rater[choices.strategy == s],
                confidence=options.confidence,
                label=label,
            )
            for s, label in enumerate(choices.strategy_labels)
        ],
        options,
    )
    was_first = choices.chose_first == (choices.signed == 1)
    is_known = np.isfinite(choices.chose_first)
    rows: list[tuple[Cell, ...]] = []
    for s, share in enumerate((*by_strategy, overall)):
        here = is_known & ((choices.strategy == s) if s < len(by_strategy) else True)
        when = [
            known_cell(marginal_share(choices.where(here & side), confidence=options.confidence))
            for side in (was_first, ~was_first)
        ]
        p = p_adjusted(share) if s < len(by_strategy) else share.p_value
        rows.append((share.label, share.n, known_cell(share), p_cell(p), *when))
    if len(by_strategy) == 1:
        rows = rows[-1:]
    columns = (
        Column("strategy", "Strategy"),
        Column("n", "Answers", "count"),
        Column("first", "Chose the first shown", "percent_estimate"),
        Column("p", "p, corrected" if len(by_strategy) > 1 else "p", "p_value"),
        Column("when_first", "Prefer experimental, shown first", "percent_estimate"),
        Column("when_second", "Prefer experimental, shown second", "percent_estimate"),
    )
    table = Table(
        "side",
        "Choice by place on the screen",
        columns,
        tuple(rows),
        notes=(
            "Cluster-robust by rater (CR2); p values of strategies are corrected as one family, that of the whole is not.",
        ),
    )
    return Section(
        "side", "Did the place on the screen matter?", _side_words(data, overall, was_first[is_known]), (table,)
    )


def _side_words(data: StudyData, overall: Estimate, was_first: Flags) -> tuple[str, ...]:
    share = float(np.mean(was_first))
    if not 0 < share < 1:
        return (
            "The experimental version always stood on the same side, so its advantage cannot be told from that of the side. "
            "Set system_order to random or counterbalanced.",
        )
    text = f"{with_interval(overall, is_percent=True)} of the choices went to the transcript shown first "
    text += f"({p_words(overall.p_value)}). "
    drawn = data.study.spec.design.system_order
    if drawn == "fixed":
        return (
            text + "The order was fixed by the item file; where sides are unequal, the preferences carry some of this.",
        )
    return (
        text
        + f"Sides were {'counterbalanced' if drawn == 'counterbalanced' else 'drawn at random'} (the experimental version "
        f"stood first in {percent(share)}), so a preference for a side does not favour either version.",
    )
