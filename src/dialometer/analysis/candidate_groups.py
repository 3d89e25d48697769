"""First answers as groups of raters see them: is another retriever better for another crowd?"""

from __future__ import annotations

import numpy as np
import polars as pl

from dialometer.analysis.candidates import Pool, pool_of
from dialometer.analysis.data import StudyData
from dialometer.analysis.family import Options
from dialometer.analysis.first_answers import GOLD, group_means
from dialometer.analysis.rater_groups import rater_groups
from dialometer.analysis.words import listed
from dialometer.errors import NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.model.report import Cell, Column, Section, Table


def candidate_group_section(name: str, data: StudyData, pool: Pool, question: str, options: Options) -> Section:
    """Average ratings of first answers in each group of raters, and which system is first there."""
    groups = rater_groups(data, question, pool.rater_names)
    labels = [GOLD, *pool.labels] if pool.is_gold.any() else list(pool.labels)
    columns: list[dict[str, Estimate]] = []
    for level in range(len(groups.levels)):
        raters = pool.rater_names[groups.of_rater == level].tolist()
        columns.append(_averages(data, pool, raters, options))
    rows: list[tuple[Cell, ...]] = [
        (label, *(one[label] if label in one and one[label].is_known else None for one in columns)) for label in labels
    ]
    first = []
    for group, one in zip(groups.levels, columns, strict=True):
        known = {label: one[label].value for label in pool.labels if label in one and one[label].is_known}
        if known:
            first.append(f"{max(known, key=lambda label: known[label])} ({group})")
    words = (
        (f"First by average rating in each group: {listed(first)}. " if first else "")
        + "Each group has rated only some candidates, so groups differ in what they saw as well as in taste; no test is made."
    )
    table = Table(
        name,
        f"Average rating of first answers by “{groups.text}”",
        (
            Column("system", "System"),
            *(
                Column(f"group_{k + 1}", f"{level} (n = {groups.n_raters(k)})", "estimate")
                for k, level in enumerate(groups.levels)
            ),
        ),
        tuple(rows),
        caption="Every question counts alike; intervals draw raters and questions.",
        notes=(groups.note,) if groups.note else (),
    )
    return Section(name, f"Groups of raters: {question.replace('_', ' ')}", (words,), (table,))


def _averages(data: StudyData, pool: Pool, raters: list[str], options: Options) -> dict[str, Estimate]:
    own = data.judgments.filter(pl.col("rater").is_in(raters))
    names = [GOLD, *pool.labels]
    try:
        part = pool_of(data, pool.criterion, pool.scale, judgments=own)
    except NotEnoughData as error:
        return {name: unknown("mean rating", str(error)) for name in names}
    groups = [part.is_gold, *(part.first_answers(k) for k in range(len(part.systems)))]
    found = group_means(part, [np.asarray(group) for group in groups], options)
    return {name: found.mean(k, label=name) for k, name in enumerate(names)}
