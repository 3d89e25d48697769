"""Statistics that say of themselves which studies they fit, such as those of other packages: one section of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, in_appendix, section_or_problem
from dialometer.analysis.base.wording import criterion_label
from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.model.statistic import Statistic
from dialometer.model.study import Study
from dialometer.stats import STATISTICS
from dialometer.stats.compute import compute

TITLE = "Further statistics"


class FurtherStatistics(Family):
    """The family of every study that a declared statistic fits; it never gives the answer."""

    rank = 950

    def fits(self, study: Study) -> bool:
        """Where at least one statistic declares that it fits."""
        return bool(fitting(study))

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section with a table for each statistic."""
        statistics = fitting(data.study)
        section = section_or_problem("further_statistics", TITLE, lambda: further_section(data, options, statistics))
        methods = tuple(Method(known.title, known.name, known.summary, known.source) for known in statistics)
        return Findings("", "", sections=in_appendix((section,)), methods=methods)


ANALYSES.register("further_statistics")(FurtherStatistics())


def fitting(study: Study) -> list[Statistic]:
    """The statistics that belong in the study's report."""
    known = [STATISTICS.get(name) for name in STATISTICS]
    return [statistic for statistic in known if statistic.fits is not None and statistic.fits(study)]


def further_section(data: StudyData, options: Options, statistics: list[Statistic]) -> Section:
    """A table for each statistic; one that cannot be computed says why, and the others are shown all the same."""
    paragraphs, tables = [], []
    for statistic in statistics:
        source = f" ({statistic.source})" if statistic.source else ""
        paragraphs.append(f"{statistic.title}{source}: {statistic.summary}")
        try:
            tables.append(_table(data, options, statistic))
        except DialometerError as error:
            paragraphs.append(f"{statistic.title} could not be computed: {error}")
    return Section("further_statistics", TITLE, tuple(paragraphs), tuple(tables))


def _table(data: StudyData, options: Options, statistic: Statistic) -> Table:
    """One row per criterion, or per criterion and group; a statistic of the column ``criterion`` gets all judgments at once."""
    offered = {"confidence": options.confidence, "n_resamples": options.n_resamples, "seed": options.seed}
    settings = {name: value for name, value in offered.items() if name in statistic.settings}
    rows: list[tuple[str, str, Estimate]] = []
    for label, judgments in _by_criterion(data, is_split="criterion" not in statistic.columns):
        result = compute(statistic, judgments, settings)
        groups = result if isinstance(result, Mapping) else {"": result}
        rows += [(label, group, estimate) for group, estimate in groups.items()]
    has_groups = any(group for _, group, _ in rows)
    has_tests = any(not math.isnan(estimate.p_value) for _, _, estimate in rows)
    columns = [
        Column("criterion", "Criterion"),
        *([Column("group", "Group")] if has_groups else []),
        Column("n", "n", "count"),
        Column("estimate", statistic.title, "estimate"),
        *([Column("p", "p", "p_value")] if has_tests else []),
    ]
    cells: list[tuple[Cell, ...]] = [
        (
            label,
            *((group,) if has_groups else ()),
            estimate.n,
            estimate,
            *((estimate.p_value if estimate.is_known else None,) if has_tests else ()),
        )
        for label, group, estimate in rows
    ]
    notes = tuple(dict.fromkeys(f"{label}: {note}" for label, _, estimate in rows for note in estimate.notes))
    return Table(f"further_{statistic.name}", statistic.title, tuple(columns), tuple(cells), notes=notes)


def _by_criterion(data: StudyData, *, is_split: bool) -> list[tuple[str, pl.DataFrame]]:
    """The judgments without gold items, as ``dm.read_judgments`` gives them."""
    judgments = data.rated
    if not is_split:
        return [("all criteria", judgments)]
    names = [criterion.name for criterion in data.study.spec.criteria]
    parts = [(name, judgments.filter(pl.col("criterion") == name)) for name in names]
    return [(criterion_label(data.study, name), own) for name, own in parts if len(own)]
