"""Adaptive assignment: how raters were assigned, how many each comparison got, and what their answers weigh."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import polars as pl

from dialometer.analysis.base.data import StudyData
from dialometer.analysis.base.family import ANALYSES, Family, Findings, Options, section_or_problem
from dialometer.analysis.base.wording import criterion_label, n_of, number, percent, system_label
from dialometer.design.adaptive import deciding_criterion, floor_of
from dialometer.errors import NotEnoughData
from dialometer.model.report import Cell, Column, Method, Section, Table
from dialometer.model.study import Study

NAME, TITLE = "assignment", "How raters were assigned"
MOST_PAIRS = 45
"""Of more pairs than this, only the systems are listed."""


class AdaptiveAssignment(Family):
    """Studies that send raters where it is open which system is best; it never gives the answer."""

    rank = 862

    def fits(self, study: Study) -> bool:
        """Where the study file declares it."""
        return floor_of(study) is not None

    def run(self, data: StudyData, options: Options) -> Findings:
        """One section and its method."""
        section = section_or_problem(NAME, TITLE, lambda: assignment_section(data))
        return Findings("", "", sections=(section,), methods=(method(data.study),))


ANALYSES.register(NAME)(AdaptiveAssignment())


def method(study: Study) -> Method:
    """How raters were assigned, for the methods section."""
    criterion, primary = deciding_criterion(study), study.primary_comparison
    on = f" on {criterion_label(study, criterion.name)}" if criterion else ""
    open_ = (
        "the comparisons of the hypothesis, in proportion to their p-values so far"
        if primary is not None and primary.expected_pairs
        else "the systems that may still be the best, in proportion to the p-values of their comparison with the leader so far"
    )
    return Method(
        "Assignment of raters",
        f"adaptive: by the answers so far{on}, raters went to {open_}; {percent(floor_of(study) or 0.0)} of the draws were spread "
        "evenly. Each answer weighs one over the square root of the probability with which its systems were drawn",
        "fewer raters decide which system is best; with these weights, the errors of an estimate have the same variance at every "
        "draw, so that its confidence interval holds although the draws followed the answers",
        "Hadad et al. 2021; Russo 2020",
    )


def assignment_section(data: StudyData) -> Section:
    """How often each system and each pair was drawn, among the answers that count."""
    study = data.study
    drawn = data.draws.join(data.judgments.select("rater", "item").unique(), on=["rater", "item"], how="semi")
    if drawn.is_empty():
        raise NotEnoughData("no answer counts yet whose systems were drawn", remedy="collect judgments")
    sets = [tuple(systems.split("|")) for systems in drawn["systems"].to_list()]
    by_system = Counter(system for systems in sets for system in systems)
    by_pair = Counter(pair for systems in sets for pair in combinations(systems, 2))
    names = [system.name for system in study.spec.systems if system.name in by_system]
    pairs = [pair for pair in combinations(names, 2) if pair in by_pair or pair[::-1] in by_pair]
    low, high = (float(drawn["weight"].cast(pl.Float64).quantile(q) or 0.0) for q in (0.0, 1.0))
    text = (
        f"{n_of(len(drawn), 'draw')}, one for each rater and item. Balanced assignment would have given every system and every "
        f"pair about the same number. Weights are between {number(low, 2)} and {number(high, 2)}, where 1 is what an answer weighs if "
        "all were drawn alike."
    )
    count = (Column("n", "Draws", "count"), Column("share", "Share", "percent", 0))
    rows: list[tuple[Cell, ...]] = [
        (system_label(study, name), by_system[name], by_system[name] / len(drawn)) for name in names
    ]
    caption = "A draw shows several systems, so that the shares add up to more than 100%." if pairs else ""
    tables = [
        Table(
            "assigned_systems",
            "Draws of each system",
            (Column("system", "System"), *count),
            tuple(rows),
            caption=caption,
        )
    ]
    if pairs and len(pairs) <= MOST_PAIRS:
        met = [by_pair[a, b] + by_pair[b, a] for a, b in pairs]
        listed = [
            (system_label(study, a), system_label(study, b), n, n / len(drawn))
            for (a, b), n in zip(pairs, met, strict=True)
        ]
        columns = (Column("first", "System"), Column("second", "against"), *count)
        tables.append(Table("assigned_pairs", "Draws of each pair", columns, tuple(listed)))
    return Section(NAME, TITLE, (text,), tuple(tables), in_appendix=True)
