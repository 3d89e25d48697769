"""Comparisons that declare equivalence or non-inferiority: one section for designs of every kind, and the answer where one
of them decides the study.

The tests are the deciding family's own contrasts with the declared margin, so they hold for the raters and items that its
other tests hold for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem
from dialometer.analysis.base.wording import confidence_words, n_of, with_interval
from dialometer.analysis.shared.comparisons import (
    comparison_role,
    comparison_title,
    deciding_family,
    is_significant,
    p_cells,
    p_columns,
)
from dialometer.analysis.shared.equivalence import (
    WORDS,
    answer_words,
    bounds,
    has_margin,
    is_outside,
    margin_words,
    plan_words,
    shown_with_margin,
    test_sentence,
    verdict,
)
from dialometer.errors import NotEnoughData
from dialometer.model.analysis_plan import Comparison
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Claim, Column, Figure, Headline, Method, Section, Table
from dialometer.model.study import Study
from dialometer.report.charts import Dot, dot_interval

MOST_HEADLINES = 3
TITLE = "Equivalence and non-inferiority"


class DeclaredMargins(Family):
    """The family of studies whose primary comparison has a margin: it gives the answer of the report."""

    rank = 1

    def fits(self, study: Study) -> bool:
        """Where the primary comparison declares equivalence or non-inferiority."""
        return _is_primary_with_margin(study)

    def run(self, data: StudyData, options: Options) -> Findings:
        """The tests of every comparison with a margin; the answer is that of the primary one."""
        made = _all_tests(data, options)
        primary = next(comparison for comparison in _with_margins(data.study) if _decides(data.study, comparison))
        tests = made[primary.name]
        return Findings(
            answer=answer_words(tests, primary),
            certainty=_certainty(tests, primary, options),
            headlines=tuple(_headline(label, test, primary) for label, test in list(tests.items())[:MOST_HEADLINES]),
            figure=_figure(f"margin-{primary.name}-summary", primary, tests),
            sections=(_section(data.study, made, options),),
            methods=METHODS,
            claims=tuple(
                Claim(f"{label}: {verdict(test, primary)}", is_general=not options.has_fixed_items)
                for label, test in tests.items()
                if is_significant(test) or is_outside(test)
            ),
        )


class FurtherMargins(Family):
    """The same tests where the primary comparison is another: a section without the answer."""

    rank = 870

    def fits(self, study: Study) -> bool:
        """Where a comparison beside the primary one has a margin."""
        return bool(_with_margins(study)) and not _is_primary_with_margin(study)

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section."""
        section = section_or_problem("margins", TITLE, lambda: _section(data.study, _all_tests(data, options), options))
        return Findings("", "", sections=(section,), methods=METHODS)


ANALYSES.register("declared_margins")(DeclaredMargins())
ANALYSES.register("further_margins")(FurtherMargins())

METHODS = (
    Method(
        "equivalence and non-inferiority",
        "two one-sided tests (equivalence) or one (non-inferiority) against the declared margin, with the standard error and "
        "degrees of freedom of the same contrast's test of a difference",
        "a difference that is not significant does not show that systems are equal",
        "Schuirmann 1987; Lakens 2017",
    ),
)


def _with_margins(study: Study) -> list[Comparison]:
    return [comparison for comparison in study.spec.analysis.comparisons if has_margin(comparison)]


def _decides(study: Study, comparison: Comparison) -> bool:
    return comparison.name == study.spec.analysis.primary


def _is_primary_with_margin(study: Study) -> bool:
    return any(_decides(study, comparison) for comparison in _with_margins(study))


def _all_tests(data: StudyData, options: Options) -> dict[str, dict[str, Estimate]]:
    made = {}
    for comparison in _with_margins(data.study):
        family = deciding_family(data.study, comparison)
        if not family.decides(data.study, comparison):
            message = f"no analysis of this design tests the comparison '{comparison.name}'"
            raise NotEnoughData(message, remedy="declare it between systems on a criterion that is rated or chosen")
        made[comparison.name] = family.primary_tests(data, comparison, options)
    return made


def _section(study: Study, made: Mapping[str, Mapping[str, Estimate]], options: Options) -> Section:
    paragraphs: list[str] = []
    parts: list[Table | Figure] = []
    for comparison in _with_margins(study):
        tests = made[comparison.name]
        role = comparison_role(study, comparison)
        paragraphs.append(
            f"{comparison_title(comparison)} ({role}). {comparison.hypothesis} "
            f"{plan_words(comparison, options.confidence)} {answer_words(tests, comparison)}".replace(" .", ".")
        )
        parts += [_table(study, comparison, tests, options), _figure(f"margin-{comparison.name}", comparison, tests)]
    return Section("margins", TITLE, tuple(paragraphs), tuple(parts), is_confirmatory=True)


def _table(study: Study, comparison: Comparison, tests: Mapping[str, Estimate], options: Options) -> Table:
    rows: list[tuple[Cell, ...]] = []
    is_share = False
    for label, test in tests.items():
        shown, is_share = shown_with_margin(test)
        cells = p_cells(test, options.correction)
        rows.append((label, shown if shown.is_known else None, *cells, verdict(test, comparison)))
    inner = confidence_words(1 - 2 * (1 - options.confidence))
    is_ratio = any(test.details.get("is_log") for test in tests.values())
    heading = "Share" if is_share else "Ratio" if is_ratio else "Difference"
    return Table(
        f"margin-{comparison.name}",
        f"{comparison_title(comparison)}: {WORDS[comparison.test]}",
        (
            Column("pair", "Pair"),
            Column("estimate", heading, "percent_estimate" if is_share else "estimate"),
            *p_columns(options.correction, f"p, {WORDS[comparison.test]}"),
            Column("verdict", "Result"),
        ),
        tuple(rows),
        caption=f"Margin: {margin_words(comparison, tests.values())}. Confidence intervals of {inner}: with them, a test at "
        f"{1 - options.confidence:.2g} on each side is significant where the confidence interval lies within the margin (before "
        f"correction). Role: {comparison_role(study, comparison)}.",
        notes=tuple(dict.fromkeys(note for test in tests.values() if not test.is_known for note in test.notes)),
        is_confirmatory=True,
    )


def _figure(name: str, comparison: Comparison, tests: Mapping[str, Estimate]) -> Figure:
    """The intervals with the bounds of the margin as lines."""
    dots, lines, is_share, is_ratio = [], set(), False, False
    for label, test in tests.items():
        shown, is_share = shown_with_margin(test)
        is_ratio = is_ratio or bool(test.details.get("is_log"))
        dots.append(Dot(label, shown))
        if test.is_known:
            ends = (end for end in bounds(test, comparison) if math.isfinite(end))
            lines |= {math.exp(end) if is_ratio else end for end in ends}
    null = 0.5 if is_share else 1.0 if is_ratio else 0.0
    title = "share of choices" if is_share else "ratio" if is_ratio else "difference"
    spec = dot_interval(dots, value_title=title, reference=null, bounds=sorted(lines), is_percent=is_share)
    shown_words = "; ".join(f"{dot.label}: {with_interval(dot.estimate, is_percent=is_share)}" for dot in dots)
    return Figure(
        name,
        f"{comparison_title(comparison)}: differences and the margin",
        spec,
        f"Confidence intervals beside the margin of {margin_words(comparison, tests.values())}, whose bounds are dotted "
        f"lines. {shown_words}.",
        is_confirmatory=True,
    )


def _headline(label: str, test: Estimate, comparison: Comparison) -> Headline:
    shown, _ = shown_with_margin(test)
    estimate = shown if shown.is_known else None
    return Headline(label, estimate, test_sentence(label, test, comparison), is_confirmatory=True)


def _certainty(tests: Mapping[str, Estimate], comparison: Comparison, options: Options) -> str:
    n = {
        key: max((int(test.details.get(f"n_{key}s", 0)) for test in tests.values()), default=0)
        for key in ("rater", "item")
    }
    basis = " and ".join(n_of(count, key) for key, count in n.items() if count)
    reach = " The claim is about these items only, as declared." if options.has_fixed_items else ""
    found = f" It rests on {basis}." if basis else ""
    return f"{plan_words(comparison, options.confidence)} The comparison is confirmatory (declared in advance).{found}{reach}"
