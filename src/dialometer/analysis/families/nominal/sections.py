"""The chapters of a report on categories: shares, differences, agreement, and the majority for each thing judged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import (
    CONFIRMATORY_TITLE,
    factor_label,
    inside,
    listed,
    n_of,
    p_words,
    percent,
    sentence,
    value_only,
    with_interval,
)
from dialometer.analysis.families.nominal.categories import Answers
from dialometer.analysis.families.nominal.shares import (
    CategoryContrast,
    CategoryContrasts,
    CategoryShares,
    declared_tests,
    significant,
)
from dialometer.analysis.shared.comparisons import (
    comparison_caption,
    comparison_role,
    comparison_title,
    known_cell,
    p_adjusted,
    p_cells,
    p_columns,
    without_empty_interval,
)
from dialometer.model.analysis_plan import Comparison
from dialometer.model.design import Factor
from dialometer.model.estimate import Estimate
from dialometer.model.report import PERCENTAGE_POINTS, Cell, Column, Figure, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, Share, dot_interval, stacked_shares
from dialometer.stats.agreement.fleiss import fleiss_kappa, percent_agreement
from dialometer.stats.agreement.gwet import gwet_coefficient
from dialometer.stats.agreement.krippendorff_alpha import krippendorff_alpha

MOST_NAMED = 3
MOST_THINGS = 200
ALL = "all"


def over_words(options: Options) -> str:
    """What intervals and tests are about."""
    return "these items only (declared as fixed)" if options.has_fixed_items else "other raters and other items"


def group_name(name: str) -> str:
    """A group's name in a table; answers that are about no system have none."""
    return name or ALL


def difference_words(name: CategoryContrast, test: Estimate, shares: CategoryShares | None) -> str:
    """ "A gets “repetition” more often than B (32% against 11%, p = .003)"."""
    first, second = (name.first, name.second) if test.value > 0 else (name.second, name.first)
    sizes = f"difference {percent(abs(test.value))}"
    if shares is not None:
        own, other = (value_only(shares.shares[group, name.category], is_percent=True) for group in (first, second))
        sizes = f"{own} against {other}"
    return f"{first} gets “{name.category}” more often than {second} ({sizes}, {p_words(p_adjusted(test))})"


def shares_section(
    shares: CategoryShares, tests: CategoryContrasts, *, is_declared: bool, by: Factor | None = None
) -> Section:
    """The shares of one criterion by system (or condition) with a figure; differences unless declared ones say it."""
    answers, options = shares.answers, shares.options
    name = f"{answers.criterion}-{by.name}" if by else answers.criterion
    paragraphs = [common_words(shares)]
    parts: list[Table | Figure] = [shares_table(shares, name, by), shares_figure(shares, f"figure-{name}", by)]
    if tests and not is_declared:
        paragraphs.append(differ_words(tests))
        parts.append(differences_table(f"differences-{name}", f"Differences: {answers.label}", tests, options))
    title = f"Categories by {inside(factor_label(by))}: {answers.label}" if by else f"Categories: {answers.label}"
    return Section(f"categories-{name}", title, tuple(paragraphs), tuple(parts))


def common_words(shares: CategoryShares) -> str:
    """The most frequent category overall."""
    counts = np.bincount(shares.answers.category, minlength=len(shares.answers.categories))
    top = int(counts.argmax())
    unused = [name for name, count in zip(shares.answers.categories, counts, strict=True) if not count]
    rest = f" Nobody chose {listed(f'“{name}”' for name in unused)}." if unused else ""
    return (
        f"The most frequent category is “{shares.answers.categories[top]}” ({percent(counts[top] / counts.sum())} of "
        f"{n_of(int(counts.sum()), 'answer')}).{rest}"
    )


def differ_words(all_tests: CategoryContrasts) -> str:
    """Whether the systems differ in their categories at all, from the same tests as the table of differences."""
    tests = {name: test for name, test in all_tests.items() if not np.isnan(p_adjusted(test))}
    if not tests:
        reason = next((note for test in all_tests.values() for note in test.notes), "all answers are the same")
        return f"Whether the systems differ in their categories cannot be tested: {reason}."
    clear = significant(tests)
    smallest = p_words(min(p_adjusted(test) for test in tests.values()))
    if clear:
        return (
            f"The systems differ in their categories: {len(clear)} of {n_of(len(tests), 'difference')} "
            f"{'is' if len(clear) == 1 else 'are'} significant after correction (smallest {smallest})."
        )
    return f"No difference between the systems is significant after correction (smallest {smallest})."


def shares_table(shares: CategoryShares, name: str, by: Factor | None) -> Table:
    """A row for each system, a column for each category."""
    answers, options = shares.answers, shares.options
    rows: list[tuple[Cell, ...]] = []
    for code, group in enumerate(shares.groups.names):
        n = int(np.sum(shares.groups.code == code))
        cells = [known_cell(shares.shares[group, category]) for category in answers.categories]
        rows.append((group_name(group), n, *cells))
    columns = (
        Column("group", factor_label(by) if by else "System"),
        Column("n", "Answers", "count"),
        *(Column(f"category-{k}", name, "percent_estimate") for k, name in enumerate(answers.categories)),
    )
    notes = dict.fromkeys(sentence(note) for share in shares.shares.values() for note in share.notes)
    return Table(
        f"shares-{name}",
        f"Shares of the categories: {answers.label}",
        columns,
        tuple(rows),
        caption=f"{n_of(len(answers.raters), 'rater')}, {n_of(len(answers.items), 'item')}. Confidence intervals are about "
        f"{over_words(options)}.",
        notes=tuple(notes),
    )


def shares_figure(shares: CategoryShares, name: str, by: Factor | None = None) -> Figure:
    """Each system's answers as a bar cut into categories; many categories as points with intervals."""
    answers = shares.answers
    used = [answers.categories[k] for k in answers.used]
    title = f"Categories by {inside(factor_label(by)) if by else 'system'}: {answers.label}"
    entries = [
        f"{group_name(group)}: "
        + ", ".join(f"{category} {value_only(shares.shares[group, category], is_percent=True)}" for category in used)
        for group in shares.groups.names
    ]
    alt = f"Shares of the categories. {'; '.join(entries)}."
    known = [group for group in shares.groups.names if shares.shares[group, used[0]].is_known]
    if len(used) > MOST_PARTS:
        dots = [
            Dot(group_name(group), shares.shares[group, category], facet=category)
            for category in used
            for group in known
        ]
        return Figure(name, title, dot_interval(dots, value_title="share of answers", is_percent=True), alt)
    parts = [
        Share(group_name(group), category, shares.shares[group, category].value) for group in known for category in used
    ]
    return Figure(name, title, stacked_shares(parts, parts=used, value_title="share of answers"), alt)


MOST_PARTS = 8
"""Categories of a stacked bar; the shares of more are drawn as points."""


def differences_table(
    name: str,
    title: str,
    tests: CategoryContrasts,
    options: Options,
    *,
    caption: str = "",
    is_confirmatory: bool = False,
) -> Table:
    """Every two groups and category, the larger share first."""
    has_criterion = len({test.criterion for test in tests}) > 1
    rows: list[tuple[Cell, ...]] = []
    for contrast, test in tests.items():
        first, second, shown = contrast.first, contrast.second, test
        if test.is_known and test.value < 0:
            first, second, shown = second, first, turned(test)
        criterion = (contrast.criterion,) if has_criterion else ()
        rows.append(
            (*criterion, contrast.category, first, second, known_cell(shown), *p_cells(test, options.correction))
        )
    columns = (
        *([Column("criterion", "Criterion")] if has_criterion else []),
        Column("category", "Category"),
        Column("first", "More often with"),
        Column("second", "than with"),
        Column("difference", "Difference of shares", "percent_estimate", unit=PERCENTAGE_POINTS),
        *p_columns(options.correction),
    )
    notes = dict.fromkeys(sentence(note) for test in tests.values() for note in test.notes)
    samples = "raters" if options.has_fixed_items else "raters and items"
    how = f"Tests take {samples} as samples (jackknife) and are about {over_words(options)}; all are one family."
    return Table(
        name,
        title,
        columns,
        tuple(rows),
        caption=f"{caption} {how}".strip(),
        notes=tuple(notes),
        is_confirmatory=is_confirmatory,
    )


def turned(test: Estimate) -> Estimate:
    """Second minus first."""
    return Estimate(
        -test.value, test.n, test.method, low=-test.high, high=-test.low, confidence=test.confidence,
        interval_method=test.interval_method, statistic=-test.statistic, df=test.df, p_value=test.p_value,
        notes=test.notes, details=test.details,
    )  # fmt: skip


def declared_section(
    study: Study, answers: Sequence[Answers], comparisons: Sequence[Comparison], options: Options
) -> list[Section]:
    """Confirmatory comparisons of systems or conditions, with the tests that also decide the headline."""
    paragraphs, tables = [], []
    for comparison in comparisons:
        title = comparison_title(comparison)
        tests = declared_tests(study, answers, comparison, options, has_fixed_items=options.has_fixed_items)
        if not tests:
            paragraphs.append(f"{title}: there are no answers to compare yet.")
            continue
        clear = significant(tests)
        scope = " on the items of this study" if options.has_fixed_items else ""
        words = f"no difference in any category is significant{scope}"
        if clear:
            words = listed((difference_words(name, test, None) for name, test in clear.items()), most=6) + scope
        paragraphs.append(f"{title} ({comparison_role(study, comparison)}): {words}.")
        labels = [given.label for given in answers if not comparison.criteria or given.criterion in comparison.criteria]
        tables.append(
            differences_table(
                f"declared-{comparison.name}",
                f"{title}: differences of shares",
                tests,
                options,
                caption=comparison_caption(comparison, labels),
                is_confirmatory=True,
            )
        )
    if not paragraphs:
        return []
    return [Section("declared", CONFIRMATORY_TITLE, tuple(paragraphs), tuple(tables), is_confirmatory=True)]


def agreement_section(answers: Sequence[Answers], options: Options) -> Section:
    """How far raters agree on the category of the same thing."""
    rows: list[tuple[Cell, ...]] = []
    words, notes = [], []
    for given in answers:
        matrix = given.matrix()
        names = range(len(given.categories))
        found = (
            percent_agreement(matrix, names, **options.resampling),
            fleiss_kappa(given.counts(), **options.resampling),
            krippendorff_alpha(matrix, "nominal", **options.resampling),
            gwet_coefficient(matrix, names, confidence=options.confidence),
        )
        estimates = [without_empty_interval(one) for one in found]
        rows.append((given.label, len(given.things), *map(known_cell, estimates)))
        notes += [f"{given.label}: {sentence(note)}" for one in estimates for note in one.notes]
        if estimates[2].is_known:
            words.append(f"{given.label}: Krippendorff's alpha is {with_interval(estimates[2])}.")
    columns = (
        Column("criterion", "Criterion"),
        Column("things", "Judged", "count"),
        Column("agreement", "Pairs of raters who agree", "percent_estimate"),
        Column("kappa", "Fleiss' kappa", "estimate"),
        Column("alpha", "Krippendorff's alpha", "estimate"),
        Column("ac1", "Gwet's AC1", "estimate"),
    )
    table = Table(
        "agreement",
        "Agreement on the categories",
        columns,
        tuple(rows),
        caption="Kappa, alpha and AC1 are agreement beyond chance: 1 is perfect, 0 what chance would give. AC1 is not drawn "
        "down where one category is by far the most frequent. Confidence intervals are about other items.",
        notes=tuple(dict.fromkeys(notes)),
    )
    return Section("agreement", "Agreement of the raters", tuple(words), (table,))


def majority_section(answers: Sequence[Answers]) -> Section:
    """The category that most raters chose for each thing."""
    tables, words = [], []
    for given in answers:
        counts = given.counts()
        top = counts.max(axis=1)
        is_tie = (counts == top[:, None]).sum(axis=1) > 1
        n_clear = int(np.sum((2 * top > counts.sum(axis=1)) & ~is_tie))
        words.append(
            f"{given.label}: in {n_clear} of {n_of(len(given.things), 'case')} more than half of the raters chose the same "
            "category."
        )
        order = np.argsort(top / counts.sum(axis=1), kind="stable")[:MOST_THINGS]
        rows: list[tuple[Cell, ...]] = []
        for k in order.tolist():
            item, system = given.things[k]
            best = [name for name, count in zip(given.categories, counts[k], strict=True) if count == top[k]]
            rows.append((item, system, int(counts[k].sum()), " / ".join(best), float(top[k] / counts[k].sum())))
        columns = (
            Column("item", "Item"),
            Column("system", "System"),
            Column("n", "Raters", "count"),
            Column("majority", "Most frequent category"),
            Column("share", "Its share", "percent", 0),
        )
        caption = "The least agreed on first; equally frequent categories are all named."
        if len(given.things) > MOST_THINGS:
            caption += f" The first {MOST_THINGS} of {len(given.things)}."
        tables.append(
            Table(
                f"majority-{given.criterion}", f"Majority by item: {given.label}", columns, tuple(rows), caption=caption
            )
        )
    return Section("majority", "Majority by item", tuple(words), tuple(tables))
