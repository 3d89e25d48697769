"""Marked spans: how dense errors are in what each system says, of which kind, and whether raters mark the same words.

The score of an answer (100 minus weighted errors per 100 words) is a number and belongs to the analysis of ratings, which compares
the systems. Here errors are counted over all words of a system, so that long texts weigh more than short ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import (
    ANALYSES,
    Family,
    Findings,
    Options,
    in_appendix,
    section_or_problem,
    with_prefix,
)
from dialometer.analysis.base.wording import confidence_words, listed, n_of, sentence, with_interval
from dialometer.analysis.families.annotations.answers import criteria_with, sections_by_criterion
from dialometer.analysis.families.annotations.marks import Marked, marks_text
from dialometer.analysis.shared.comparisons import known_cell
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Figure, Method, Section, Table, Turns
from dialometer.model.study import Study
from dialometer.report.charts import Dot, dot_interval
from dialometer.report.numbers import shared_digits, write_estimate
from dialometer.stats.agreement.spans import span_alpha, span_f1
from dialometer.stats.observations import Ints

MOST_LISTED = 25
HEAT_LEVELS = 4
LOW_AGREEMENT = 0.4
RATE_DIGITS = 1
"""Of errors per 100 words, in every table."""


def density_section(marked: Marked) -> Section:
    """Weighted errors per 100 words by system, and by severity."""
    answers = marked.answers
    rows: list[tuple[Cell, ...]] = []
    densities: dict[str, Estimate] = {}
    notes: dict[str, None] = {}
    for code, label in enumerate(marked.labels):
        inside = answers.of_system(code)
        density = marked.density(code)
        clean = float(np.mean([not marks for marks, is_own in zip(marked.marks, inside, strict=True) if is_own]))
        cells = [known_cell(marked.density(code, severity=name, is_weighted=False)) for name in marked.severities]
        n_marks = sum(len(marks) for marks, is_own in zip(marked.marks, inside, strict=True) if is_own)
        rows.append((label, int(inside.sum()), n_marks, known_cell(density), *cells, clean))
        if not density.is_known:  # the note of a number stands at it
            notes |= dict.fromkeys(f"{label}: {sentence(note)}" for note in density.notes)
        densities[label] = density
    rates = [cell for row in rows for cell in row if isinstance(cell, Estimate)]
    n_digits = _digits(rates)
    words = [f"{label} {_rate_words(density, n_digits)}" for label, density in densities.items()]
    weights = listed(f"{name} {weight:g}" for name, weight in marked.severities.items())
    columns = (
        Column("system", "System"),
        Column("answers", "Judgments", "count"),
        Column("marks", "Marks", "count"),
        Column("density", "Weighted errors per 100 words", "estimate", RATE_DIGITS),
        *(
            Column(f"severity-{k}", f"{name[:1].upper()}{name[1:]} per 100 words", "estimate", RATE_DIGITS)
            for k, name in enumerate(marked.severities)
        ),
        Column("clean", "Without errors", "percent", 0),
    )
    has_intervals = any(density.has_interval for density in densities.values())
    level = f", with {confidence_words(marked.options.confidence)} confidence intervals" if has_intervals else ""
    over = "these items only (declared as fixed)" if marked.options.has_fixed_items else "other raters and other items"
    table = Table(
        f"density-{answers.criterion}",
        f"Errors per 100 words: {answers.label}",
        columns,
        tuple(rows),
        caption=f"Weights: {weights}. Severities are counted without weights. Errors and words are summed over texts, "
        f"so that long texts weigh more than in the mean of the scores. {n_of(len(answers.raters), 'rater')}, "
        f"{n_of(len(answers.items), 'item')}. Confidence intervals are about {over}.",
        notes=(*notes, *answers.notes),
    )
    return Section(
        f"density-{answers.criterion}",
        f"Errors in the texts: {answers.label}",
        (f"Weighted errors per 100 words{level}: {'; '.join(words)}.",),
        (table, category_figure(marked)),
    )


def _digits(rates: Iterable[Estimate]) -> int | None:
    """The digits that the table of these rates has, so that sentence, figure and table say the same."""
    return shared_digits(rates, RATE_DIGITS)


def _rate_words(rate: Estimate, n_digits: int | None) -> str:
    """A rate with its interval in brackets."""
    return write_estimate(rate, n_digits=n_digits, fallback=RATE_DIGITS).text


def category_figure(marked: Marked) -> Figure:
    """Density by category and system."""
    densities = {
        (name, code): marked.density(code, category=name)
        for name in marked.categories
        for code in range(len(marked.labels))
    }
    dots = [
        Dot(marked.categories[name], estimate, group=marked.labels[code])
        for (name, code), estimate in densities.items()
    ]
    n_digits = _digits(densities.values())
    entries = [
        f"{marked.categories[name]}, {marked.labels[code]}: {_rate_words(estimate, n_digits)}"
        for (name, code), estimate in densities.items()
    ]
    ends = [end for dot in dots for end in (dot.estimate.high, dot.estimate.value) if np.isfinite(end)]
    domain = (0.0, 1.05 * max(ends)) if ends and max(ends) > 0 else None
    spec = dot_interval(dots, value_title="weighted errors per 100 words", group_title="System", domain=domain)
    title = f"Weighted errors per 100 words by category: {marked.answers.label}"
    return Figure(
        f"figure-density-{marked.answers.criterion}",
        title,
        spec,
        f"{title}, with confidence intervals. {'; '.join(entries)}.",
    )


def category_section(marked: Marked) -> Section:
    """Category by severity for each system, as counts and densities."""
    rows: list[tuple[Cell, ...]] = []
    for name, words in marked.categories.items():
        for code, label in enumerate(marked.labels):
            inside = marked.answers.of_system(code)
            own = Counter(
                mark.severity
                for marks, is_own in zip(marked.marks, inside, strict=True)
                if is_own
                for mark in marks
                if mark.category == name
            )
            density = marked.density(code, category=name)
            rows.append((words, label, *(own[severity] for severity in marked.severities), known_cell(density)))
    columns = (
        Column("category", "Category"),
        Column("system", "System"),
        *(Column(f"severity-{k}", severity, "count") for k, severity in enumerate(marked.severities)),
        Column("density", "Weighted errors per 100 words", "estimate", RATE_DIGITS),
    )
    name = f"categories-{marked.answers.criterion}"
    title = f"Errors by category and severity: {marked.answers.label}"
    table = Table(name, title, columns, tuple(rows), caption="Severities are numbers of marks, over all raters.")
    return Section(name, title, (), (table,))


def agreement_section(marked: Marked) -> Section:
    """Whether raters mark the same characters, with the same categories."""
    texts, kinds = marked.texts, list(marked.categories)
    again = marked.options.resampling
    estimates = {
        "Krippendorff's alpha": (
            span_alpha(texts, kinds, by_category=False, **again),
            span_alpha(texts, kinds, by_category=True, **again),
        ),
        "F1 of marked characters": (
            span_f1(texts, kinds, **again),
            span_f1(texts, kinds, by_category=True, **again),
        ),
        "F1 corrected for chance": (
            span_f1(texts, kinds, is_corrected=True, **again),
            span_f1(texts, kinds, by_category=True, is_corrected=True, **again),
        ),
    }
    rows = tuple((name, known_cell(where), known_cell(what)) for name, (where, what) in estimates.items())
    notes = dict.fromkeys(sentence(note) for pair in estimates.values() for one in pair for note in one.notes)
    alpha = estimates["Krippendorff's alpha"][0]
    words = []
    if alpha.is_known:
        words.append(f"On which words are wrong, Krippendorff's alpha is {with_interval(alpha)}.")
        if alpha.value < LOW_AGREEMENT:
            words.append(
                "Raters mark mostly different words: take single marks with care, train raters with examples, or have more raters "
                "mark each text and use only words that several mark."
            )
    name = f"span-agreement-{marked.answers.criterion}"
    title = f"Agreement on marks: {marked.answers.label}"
    columns = (
        Column("statistic", "Statistic"),
        Column("where", "Same characters", "estimate"),
        Column("what", "Same characters and category", "estimate"),
    )
    table = Table(
        name,
        title,
        columns,
        rows,
        caption="Every character is a unit. Alpha and the corrected F1 are agreement beyond chance: 1 is perfect, 0 what chance "
        "would give. Confidence intervals are about other texts.",
        notes=tuple(notes),
    )
    return Section(name, title, tuple(words), (table,))


def heat_section(marked: Marked) -> Section:
    """The text in which raters marked most, each word as dark as it is often marked."""
    shared = {thing: rows for thing, rows in marked.rows_by_thing.items() if len(rows) > 1 and marked.passages(thing)}
    name = f"heat-{marked.answers.criterion}"
    title = f"Where the marks are: {marked.answers.label}"
    if not shared:
        return Section(name, title, problem="no text was marked by two or more raters")
    penalty = marked.counted()
    thing = max(shared, key=lambda one: float(np.mean(penalty[shared[one]] / marked.words[shared[one]])))
    rows = shared[thing]
    turns: list[tuple[str, tuple[tuple[str, str, str], ...]]] = []
    for passage in marked.passages(thing):
        if not passage.is_markable:
            turns.append((passage.speaker or "Text", (("equal", "", passage.text),)))
            continue
        n_marked = np.zeros(len(passage.text) + 1, dtype=np.int64)
        for row in rows:
            own = np.zeros(len(passage.text) + 1, dtype=bool)
            for mark in marked.marks[row]:
                if mark.turn == passage.turn:
                    own[mark.start : mark.end] = True
            n_marked += own
        turns.append((passage.speaker or "Text", _stretches(passage.text, n_marked, len(rows))))
    label = marked.labels[marked.answers.system_names.index(thing[1])]
    caption = (
        f"{thing[0]}, {label}: the text with the most errors per word among those that several raters marked. "
        f"{n_of(len(rows), 'rater')} read it."
    )
    return Section(name, title, (), (Turns(f"heat-text-{marked.answers.criterion}", title, tuple(turns), caption),))


def _stretches(text: str, n_marked: Ints, n_raters: int) -> tuple[tuple[str, str, str], ...]:
    """The text cut where the number of raters who marked it changes."""
    stretches = []
    start = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or n_marked[at] != n_marked[start]:
            n = int(n_marked[start])
            heat = -(-HEAT_LEVELS * n // n_raters)
            is_hot = n > 0 and not text[start:at].isspace()
            kind = f"heat-{heat}" if is_hot else "equal"
            stretches.append((kind, f"{n} of {n_raters}" if is_hot else "", text[start:at]))
            start = at
    return tuple(stretches)


def marks_section(marked: Marked) -> Section:
    """Every mark, the most serious first."""
    rows = [
        (mark.weight, marked.places(row), mark, marked.answers.raters[marked.answers.rater[row]])
        for row, marks in enumerate(marked.marks)
        for mark in marks
    ]
    rows.sort(key=lambda entry: (-entry[0], *entry[1][:2], entry[2].turn, entry[2].start))
    if len(rows) > MOST_LISTED:  # else texts late in the alphabet would have no marks among equally serious ones
        n_before: Counter[tuple[float, str, str]] = Counter()
        places = []
        for weight, (item, system, _), *_ in rows:
            places.append((-weight, n_before[weight, item, system]))
            n_before[weight, item, system] += 1
        rows = [rows[k] for k in sorted(range(len(rows)), key=places.__getitem__)]
    names = dict(zip(marked.answers.system_names, marked.labels, strict=True))
    cells: list[tuple[Cell, ...]] = [
        (item, names[system], mark.text, marked.categories[mark.category], mark.severity, mark.comment, rater)
        for _, (item, system, _), mark, rater in rows[:MOST_LISTED]
    ]
    columns = (
        Column("item", "Item"),
        Column("system", "System"),
        Column("text", "Marked words"),
        Column("category", "Category"),
        Column("severity", "Severity"),
        Column("comment", "Comment"),
        Column("rater", "Rater"),
    )
    name = f"marks-{marked.answers.criterion}"
    title = f"The most serious marks: {marked.answers.label}"
    caption = f"All {n_of(len(rows), 'mark')}, the most serious first."
    if len(rows) > MOST_LISTED:
        caption = (
            f"{MOST_LISTED} of {len(rows):,} marks, the most serious first; of equally serious marks one from each text in turn. "
            "dialometer export writes all of them (marks)."
        )
    return Section(name, title, (), (Table(name, title, columns, tuple(cells), caption=caption),))


METHODS = (
    Method(
        "errors per 100 words",
        "ratio of weighted marks to words, two-way jackknife over raters and items, Student's t on the logarithm",
        "long texts weigh more than short ones, as in MQM; intervals stay above zero",
        "Lommel, Uszkoreit and Burchardt 2014; Freitag et al. 2021",
    ),
    Method(
        "agreement on marks",
        "Krippendorff's alpha over characters; F1 of marked characters between raters, also corrected for chance; "
        "bootstrap over texts",
        "marks have no units of their own, and characters are the same for every rater",
        "Krippendorff 2011; Hripcsak and Rothschild 2005",
    ),
)


class MarkedSpans(Family):
    """Marks in texts, beside the analysis of their scores."""

    rank = 31

    def fits(self, study: Study) -> bool:
        """A criterion on which raters mark words."""
        return bool(criteria_with(study, marks_text))

    def run(self, data: StudyData, options: Options) -> Findings:
        """Density, categories, agreement and the marks themselves, for each such criterion."""
        sections = sections_by_criterion(
            data,
            marks_text,
            lambda answers: _sections(Marked(data.study, answers, options)),
            name="density",
            title="Errors in the texts",
        )
        return with_prefix(Findings("", "", sections=sections, methods=METHODS), "marks")


def _sections(marked: Marked) -> list[Section]:
    name = marked.answers.criterion
    later = in_appendix(
        [
            section_or_problem(f"kinds-{name}", "Errors by category", lambda: category_section(marked)),
            section_or_problem(f"all-{name}", "The most serious marks", lambda: marks_section(marked)),
        ]
    )
    return [
        section_or_problem(f"dense-{name}", "Errors in the texts", lambda: density_section(marked)),
        section_or_problem(f"same-{name}", "Agreement on marks", lambda: agreement_section(marked)),
        section_or_problem(f"where-{name}", "Where the marks are", lambda: heat_section(marked)),
        *later,
    ]


ANALYSES.register("marks")(MarkedSpans())
