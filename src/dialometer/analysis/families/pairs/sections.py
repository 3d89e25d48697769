"""The sections of a report on controlled pairs: declared comparisons, preferences, differences between strategies and questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import (
    CONFIRMATORY_TITLE,
    confidence_words,
    first_note,
    listed,
    n_of,
    p_words,
    percent,
    sentence,
    with_interval,
)
from dialometer.analysis.families.pairs.choices import PairChoices
from dialometer.analysis.families.pairs.results import (
    NO_PREFERENCE,
    DeclaredShares,
    Result,
    Shares,
    corrected_results,
    difference_test,
    strategy_differences,
)
from dialometer.analysis.shared.comparisons import (
    CORRECTIONS,
    comparison_caption,
    is_significant,
    known_cell,
    p_adjusted,
    p_cell,
)
from dialometer.model.estimate import Estimate
from dialometer.model.report import PERCENTAGE_POINTS, Cell, Column, Figure, Section, Table
from dialometer.report.charts import Dot, HeatCell, forest, heatmap

EXPERIMENTAL = "share of choices for the experimental version"
HERE, IN_GENERAL = "in these pairs", "in general"


class ResultColumns:
    """The columns of a table of results: in general where the data allow it, and in these pairs."""

    def __init__(self, results: Iterable[Result], options: Options) -> None:
        given = tuple(results)
        self.has_general = any(result.has_general_test for result in given)
        self.is_fixed = options.has_fixed_items
        self.correction = CORRECTIONS.get(options.correction, "")

    def columns(self, value: str, unit: str = "") -> tuple[Column, ...]:
        """A share, or a difference of shares, with its tests at each reach."""
        parts: list[Column] = []
        if self.has_general:
            parts += [
                Column("share", f"{value}, {IN_GENERAL}", "percent_estimate", unit=unit),
                *self._tests("p", ""),
            ]
        last = "" if self.has_general else "p"
        name = "share_here" if self.has_general else "share"
        parts.append(Column(name, f"{value}, {HERE}", "percent_estimate", unit=unit))
        return (*parts, *self._tests(last or "p_here", f", {HERE}" if self.has_general else ""))

    def _tests(self, name: str, where: str) -> list[Column]:
        columns = [Column(name, f"p{where}", "p_value")]
        if self.correction:
            columns.append(Column(f"{name}_adjusted", f"p ({self.correction}){where}", "p_value"))
        return columns

    def cells(self, result: Result) -> tuple[Cell, ...]:
        """The cells under those columns."""
        general = result.general if self.has_general else None
        parts = [] if general is None else self._estimate(general)
        return (*parts, *self._estimate(result.here))

    def _estimate(self, estimate: Estimate) -> list[Cell]:
        tested: list[Cell] = [known_cell(estimate), p_cell(estimate.p_value)]
        return [*tested, p_cell(p_adjusted(estimate))] if self.correction else tested

    @property
    def note(self) -> str:
        """What the two reaches mean."""
        here = (
            "“In these pairs”: raters are a sample, the texts are as they are (each rater as one cluster, CR2); a claim about "
            "these texts."
        )
        if self.is_fixed:
            return f"{here} The study declares its transcript pairs as fixed."
        if not self.has_general:
            return f"{here} With a single pair for each strategy nothing can be tested about other pairs."
        return (
            "“In general”: raters and transcript pairs are both samples (two-way jackknife), so the test holds for other pairs of "
            f"the same strategy. {here}"
        )


def declared_section(declared: Sequence[DeclaredShares], choices: PairChoices, options: Options) -> Section | None:
    """Every declared comparison with its hypothesis and the tests that decide on it."""
    if not declared:
        return None
    tables = []
    for comparison in declared:
        declaration = comparison.comparison
        name = declaration.name
        words = name.replace("_", " ").replace("-", " ")
        asked = [choices.question_labels[choices.questions.index(q)] for q in comparison.questions]
        shown = ResultColumns(comparison.results, options)
        tables.append(
            Table(
                f"declared-{name}",
                f"{sentence(words)[:-1]}{' (primary)' if comparison.is_primary else ''}: share of choices for the experimental "
                "version, by strategy",
                (
                    Column("strategy", "Strategy"),
                    Column("n", "Answers", "count"),
                    Column("pairs", "Pairs", "count"),
                    *shown.columns("Prefer experimental"),
                ),
                tuple((c.label, c.here.n, c.n_pairs, *shown.cells(c)) for c in comparison.results),
                caption=comparison_caption(declaration, asked),
                notes=(shown.note, *_confirmed_note(shown), *tie_note(choices)),
                is_confirmatory=True,
            )
        )  # fmt: skip
    return Section("declared", CONFIRMATORY_TITLE, (), tuple(tables), is_confirmatory=True)


def _confirmed_note(shown: ResultColumns) -> tuple[str, ...]:
    return ("The test in general decides on the hypothesis.",) if shown.has_general else ()


def tie_note(choices: PairChoices) -> tuple[str, ...]:
    """What was done with ties and "cannot tell"."""
    n_ties, n_unsure = int(np.sum(choices.signed == 0)), int(np.sum(np.isnan(choices.signed)))
    parts = [f"{n_ties:,} ties"] if n_ties else []
    parts += [f"{n_unsure:,} answers “cannot tell”"] if n_unsure else []
    return (f"Shares are of the choices of one of the two; {' and '.join(parts)} are excluded.",) if parts else ()


def preference_section(
    choices: PairChoices, shares: Shares, options: Options, declared: Sequence[DeclaredShares]
) -> Section:
    """The table of the published studies: strategies by questions with marginals, then the tests behind it."""
    parts: list[Table | Figure] = [
        _preference_table(choices, shares, options),
        _heatmap(choices, shares),
        _cell_tests(choices, shares, options),
    ]
    margins = _margins_table(choices, shares, options, declared)
    return Section("preference", "Preference by strategy and question", _preference_words(shares), (*parts, *margins))


def _preference_table(choices: PairChoices, shares: Shares, options: Options) -> Table:
    labels, asked = choices.strategy_labels, choices.question_labels
    has_margin = len(asked) > 1
    columns = [Column("strategy", "Strategy")]
    columns += [Column(q, label, "percent_estimate") for q, label in zip(choices.questions, asked, strict=True)]
    columns += [Column("marginal", "All questions", "percent_estimate")] if has_margin else []
    rows: list[tuple[Cell, ...]] = []
    for s, label in enumerate(labels):
        cells = [known_cell(shares.cells[s, q].here) for q in range(len(asked))]
        rows.append((label, *cells, *([known_cell(shares.by_strategy[s].here)] if has_margin else [])))
    if len(labels) > 1:
        margin = [known_cell(result.here) for result in shares.by_question]
        rows.append(("All strategies", *margin, *([known_cell(shares.overall.here)] if has_margin else [])))
    cells_by = "by rater, as raters judged several pairs" if _any_repeated(choices) else "Wilson's"
    return Table(
        "preference",
        "Share of choices for the experimental version in these transcript pairs",
        tuple(columns),
        tuple(rows),
        caption=f"{confidence_words(options.confidence)} confidence intervals; 50% would be no preference.",
        notes=(
            "As in the published studies, shares and confidence intervals are about these very transcript pairs, for other raters "
            "who would read them; they do not say how other pairs of the same strategy would do.",
            f"Confidence intervals for one strategy and question are {cells_by}; those over all strategies or "
            "questions take each rater as one cluster.",
            *tie_note(choices),
        ),
    )


def _cell_tests(choices: PairChoices, shares: Shares, options: Options) -> Table:
    labels, asked = choices.strategy_labels, choices.question_labels
    results = list(shares.cells.values())
    has_general = any(result.has_general_test for result in results)
    correction = CORRECTIONS.get(options.correction, "")
    columns = [
        Column("strategy", "Strategy"),
        Column("question", "Question"),
        Column("n", "Answers", "count"),
        Column("share", f"Prefer experimental, {HERE}", "percent_estimate"),
        Column("p", "p", "p_value"),
        *([Column("p_adjusted", f"p ({correction})", "p_value")] if correction else []),
        Column("chi2", "χ²", "number"),
        Column("chi2_p", "p (χ²)", "p_value"),
    ]
    if has_general:
        columns.append(Column("p_general", f"p, {IN_GENERAL}", "p_value"))
        columns += [Column("p_general_adjusted", f"p ({correction}), {IN_GENERAL}", "p_value")] if correction else []
    rows: list[tuple[Cell, ...]] = []
    for (s, q), result in shares.cells.items():
        here = result.here
        cells: list[Cell] = [labels[s], asked[q], here.n, known_cell(here), p_cell(here.p_value)]
        cells += [p_cell(p_adjusted(here))] if correction else []
        cells += [p_cell(float(here.details.get(key, math.nan))) for key in ("chi2", "chi2_p")]
        if has_general and result.general is not None:
            cells.append(p_cell(result.general.p_value))
            cells += [p_cell(p_adjusted(result.general))] if correction else []
        rows.append(tuple(cells))
    notes = ["The exact test and χ² are about these very transcript pairs."]
    if has_general:
        notes.append("p in general takes raters and transcript pairs as samples (two-way jackknife).")
    if _any_repeated(choices):
        notes.append("Raters judged several pairs of a strategy; those cells are tested by rater.")
    n_tests = sum(not math.isnan(result.here.p_value) for result in results)
    return Table(
        "preference-tests",
        "Tests of each strategy and question",
        tuple(columns),
        tuple(rows),
        caption=f"Exact binomial tests{f', corrected as one family of {n_tests}' if correction else ''}; χ² is added as in the "
        "published studies.",
        notes=tuple(notes),
    )


def _any_repeated(choices: PairChoices) -> bool:
    pair = choices.rater * len(choices.strategies) + choices.strategy
    key = pair * len(choices.questions) + choices.question
    return len(np.unique(key)) < len(key)


def _preference_words(shares: Shares) -> tuple[str, ...]:
    overall = shares.overall
    if not overall.here.is_known:
        return (sentence(f"there are no shares to show: {first_note([overall.here])}"),)
    text = f"Over all strategies and questions, {with_interval(overall.shown, is_percent=True)} of the choices went to the "
    whom = (
        "other raters and other transcript pairs" if overall.has_general_test else "other raters who read these pairs"
    )
    text += "experimental version"
    text += f"; the confidence interval is about {whom}." if overall.shown.has_interval else "."
    cells = [result for result in shares.cells.values() if result.here.is_known]
    if len(cells) > 1:
        text += f" Of {len(cells)} combinations of strategy and question, "
        if any(result.has_general_test for result in cells):
            general = [c.value for c in cells if c.reach == "general"]
            text += f"{_sides(general, len(cells))} in general after correction. In these transcript pairs, "
        here = [c.value for c in cells if is_significant(c.here)]
        text += f"{_sides(here, len(cells))} after correction."
    return (text,)


def _sides(values: Sequence[float], n_all: int) -> str:
    up = sum(value > NO_PREFERENCE for value in values)
    down = sum(value < NO_PREFERENCE for value in values)
    if not up and not down:
        return "none shows a significant preference"
    n_first, text = (up, "for the experimental version") if up else (down, "for the control version")
    rest = f" and {down} for the control version" if up and down else ""
    how_many = f"all {n_first} show" if n_first == n_all else f"{n_first} {'shows' if n_first == 1 else 'show'}"
    return f"{how_many} a significant preference {text}{rest}"


def _heatmap(choices: PairChoices, shares: Shares) -> Figure:
    cells = [
        HeatCell(choices.strategy_labels[s], choices.question_labels[q], share.value if share.is_known else None)
        for (s, q), share in shares.cells_here.items()
    ]
    spec = heatmap(cells, value_title=EXPERIMENTAL, midpoint=NO_PREFERENCE, is_percent=True)
    details = "; ".join(
        f"{c.row}, {c.column}: {'not enough data' if c.value is None else percent(c.value)}" for c in cells
    )
    return Figure("preference-map", "Preference by strategy and question", spec, f"Shares in colour. {details}.")


def _margins_table(
    choices: PairChoices, shares: Shares, options: Options, declared: Sequence[DeclaredShares]
) -> tuple[Table, ...]:
    """Marginals with tests; those of strategies only where no declared comparison already is exactly that."""
    is_declared = any(comparison.covers(choices) for comparison in declared)
    listed_results: list[tuple[str, Result]] = []
    if len(choices.questions) > 1 and not is_declared:
        listed_results += [("strategy", result) for result in shares.by_strategy]
    if len(choices.strategies) > 1:
        listed_results += [("question", result) for result in shares.by_question]
    if not listed_results:
        return ()
    shown = ResultColumns([result for _, result in listed_results], options)
    notes = [shown.note]
    if is_declared and len(choices.questions) > 1:
        notes.append("Strategies over all questions are tested under “Confirmatory comparisons”.")
    kinds = {kind for kind, _ in listed_results}
    title = "Tests over all strategies" if kinds == {"question"} else "Tests over all questions"
    return (
        Table(
            "marginals",
            "Tests over all questions, and over all strategies" if len(kinds) > 1 else title,
            (
                *([Column("kind", "Each")] if len(kinds) > 1 else []),
                Column("what", "Strategy or question" if len(kinds) > 1 else f"{sentence(kinds.copy().pop())[:-1]}"),
                Column("n", "Answers", "count"),
                Column("pairs", "Pairs", "count"),
                *shown.columns("Prefer experimental"),
            ),
            tuple(
                (*([kind] if len(kinds) > 1 else []), result.label, result.here.n, result.n_pairs, *shown.cells(result))
                for kind, result in listed_results
            ),
            caption="Strategies and questions are corrected as two families." if not is_declared else "",
            notes=tuple(notes),
        ),
    )  # fmt: skip


def differences_section(choices: PairChoices, options: Options) -> Section:
    """Do strategies differ, do questions differ, and which strategy is above which?"""
    tested: list[Result] = []
    if len(choices.strategies) > 1:
        tested += corrected_results([difference_test(choices, "strategy", options, "between strategies")], options)
    if len(choices.questions) > 1:
        tested += corrected_results([difference_test(choices, "question", options, "between questions")], options)
    parts: list[Table | Figure] = [_homogeneity_table(tested)]
    paragraphs = [_homogeneity_words(result) for result in tested]
    if len(choices.strategies) > 1:
        pairs = strategy_differences(choices, options)
        paragraphs += _apart_words(pairs)
        parts += [_differences_table(pairs, options), *_differences_figure(pairs)]
    return Section("differences", "Do strategies and questions differ?", tuple(paragraphs), tuple(parts))


def _homogeneity_table(tested: Sequence[Result]) -> Table:
    has_general = any(result.general is not None for result in tested)
    rows: list[tuple[Cell, ...]] = []
    for result in tested:
        cells: list[Cell] = [result.label, result.here.n, known_cell(result.here)]
        for test in (result.general, result.here) if has_general else (result.here,):
            cells += [None, "", None] if test is None else [p_cell(test.statistic), _df(test), p_cell(test.p_value)]
        rows.append(tuple(cells))
    columns = [
        Column("what", "Differences"),
        Column("n", "Answers", "count"),
        Column("effect", "Effect size", "number"),
    ]
    if has_general:
        columns += [
            Column("f", "min F′, in general", "number"),
            Column("df", "df"),
            Column("p", "p, in general", "p_value"),
            Column("f_here", "F, in these pairs", "number"),
            Column("df_here", "df, in these pairs"),
            Column("p_here", "p, in these pairs", "p_value"),
        ]
    else:
        columns += [Column("f", "F, in these pairs", "number"), Column("df", "df"), Column("p", "p", "p_value")]
    notes = [
        "In these pairs: homogeneity of shares, cluster-robust by rater (CR2, HTZ test). The effect size is Cramér's V."
    ]
    if has_general:
        notes.append(
            "In general: Clark's min F′, from the test by raters and the test by transcript pairs. Strategies have pairs of their "
            "own; questions are asked about the same pairs, but a pair may do better on one question than on another."
        )
    notes += dict.fromkeys(
        sentence(note) for c in tested for e in (c.general, c.here) if e is not None for note in e.notes
    )
    title = "Does the preference differ between strategies, and between questions?"
    return Table("homogeneity", title, tuple(columns), tuple(rows), notes=tuple(notes))


def _df(test: Estimate) -> str:
    return ", ".join(f"{value:.4g}" for value in test.df)


def _homogeneity_words(result: Result) -> str:
    name, here = result.label, p_words(p_adjusted(result.here))
    if result.reach in ("unknown", "untested"):
        reason = result.here.notes[-1] if result.here.notes else "not enough data"
        return f"Whether the preference differs {name} cannot be tested: {reason}."
    if result.reach == "general" and result.general is not None:
        return f"The preference differs {name} ({p_words(p_adjusted(result.general))})."
    if result.reach == "here":
        text = f"In these transcript pairs the preference differs {name} ({here})"
        if result.general is None:
            return f"{text}."
        if not result.has_general_test:
            return f"{text}; for other pairs this cannot be tested."
        return f"{text}; for other pairs the difference is not significant ({p_words(p_adjusted(result.general))})."
    p = here if not result.has_general_test or result.general is None else p_words(p_adjusted(result.general))
    where = "" if result.has_general_test else " in these transcript pairs"
    return f"The difference {name} is not significant{where} ({p})."


def _apart_words(pairs: dict[tuple[str, str], Result]) -> list[str]:
    known = {names: result for names, result in pairs.items() if result.here.is_known}
    if not known:
        return []
    n = n_of(len(known), "pair of strategies", "pairs of strategies")
    general = [f"{a} and {b}" for (a, b), result in known.items() if result.reach == "general"]
    here = [f"{a} and {b}" for (a, b), result in known.items() if result.reach == "here"]
    text = (
        _count_words(len(general), len(known), n) + " after correction" + (f": {', '.join(general)}" if general else "")
    )
    is_general = any(result.has_general_test for result in known.values())
    if not is_general:
        text = f"{_count_words(len(here), len(known), n)} in these transcript pairs after correction"
        return [text + (f": {listed(here)}." if here else ".")]
    if here:
        more = " more" if general else ""
        text += f"; {len(here)}{more} {'does' if len(here) == 1 else 'do'} in these transcript pairs only: {'; '.join(here)}"
    return [f"{text}."]


def _count_words(n_found: int, n_all: int, what: str) -> str:
    if not n_found:
        return f"None of {what} differs significantly" if n_all > 1 else f"The {what[2:]} does not differ significantly"
    return f"{n_found} of {what} {'differs' if n_found == 1 else 'differ'} significantly"


def _differences_table(pairs: dict[tuple[str, str], Result], options: Options) -> Table:
    shown = ResultColumns(pairs.values(), options)
    rows: list[tuple[Cell, ...]] = []
    for (a, b), result in pairs.items():
        is_turned = result.here.is_known and result.value < 0
        names = (b, a) if is_turned else (a, b)
        rows.append((*names, result.here.n, *shown.cells(_turned(result) if is_turned else result)))
    columns = [Column("first", "Strategy"), Column("second", "Compared with"), Column("n", "n", "count")]
    notes = [
        "In these pairs: the same raters judged all strategies, so each serves as their own comparison (cluster-robust by rater, "
        "CR2).",
    ]
    if shown.has_general:
        notes.append(
            "In general: raters and the pairs of both strategies are samples (two-way jackknife, Welch's degrees of freedom)."
        )
    return Table(
        "strategy-differences",
        "Differences between strategies",
        (*columns, *shown.columns("Difference", PERCENTAGE_POINTS)),
        tuple(rows),
        caption="Differences of shares over all questions; the first strategy is the one with the larger share.",
        notes=tuple(notes),
    )


def _turned(result: Result) -> Result:
    def turned(e: Estimate) -> Estimate:
        return replace(e, value=0.0 - e.value, low=0.0 - e.high, high=0.0 - e.low, statistic=-e.statistic)

    return replace(result, here=turned(result.here), general=None if result.general is None else turned(result.general))


def _in_points(share: Estimate) -> Estimate:
    """A difference of shares in percentage points."""
    value, low, high = (100 * part for part in (share.value, share.low, share.high))
    return replace(share, value=value, low=low, high=high, unit=PERCENTAGE_POINTS)


def _differences_figure(pairs: dict[tuple[str, str], Result]) -> list[Figure]:
    known = {names: result for names, result in pairs.items() if result.shown.is_known}
    if not known:
        return []
    dots = []
    for (a, b), result in known.items():
        is_turned = result.value < 0
        points = _in_points((_turned(result) if is_turned else result).shown)
        dots.append(Dot(f"{b} − {a}" if is_turned else f"{a} − {b}", points))
    details = "; ".join(f"{dot.label} {with_interval(dot.estimate, n_digits=0)}" for dot in dots)
    spec = forest(dots, value_title=f"difference of shares, {PERCENTAGE_POINTS}", n_digits=0)
    is_general = all(result.has_general_test for result in known.values())
    where = "for other raters and other transcript pairs" if is_general else "in these transcript pairs"
    title = f"Differences between strategies, {where}"
    return [
        Figure(
            "strategy-differences-figure",
            title,
            spec,
            f"Differences of shares in {PERCENTAGE_POINTS}, with confidence intervals: {details}.",
        )
    ]
