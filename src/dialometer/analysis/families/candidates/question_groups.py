"""First answers by groups of questions: those that need the turns before them (co-reference) and those that do not."""

from __future__ import annotations

import numpy as np

from dialometer.analysis.base.family import Options
from dialometer.analysis.base.wording import percent
from dialometer.analysis.families.candidates.first_answers import group_means
from dialometer.analysis.families.candidates.pool import Marks, Pool
from dialometer.analysis.families.candidates.retrieval import FIRST, Retrieval
from dialometer.model.report import Cell, Column, Section, Table
from dialometer.retrieval.questions.question_groups import WITH, WITHOUT
from dialometer.stats.retrieval.metrics import mean_over_questions

TITLE = "Questions with and without co-reference"


def coreference_section(name: str, pool: Pool, retrieval: Retrieval, options: Options) -> Section:
    """Average rating of first answers, and Success Rate@1 by each judge, for both groups."""
    groups: tuple[tuple[str, Marks], ...] = (
        (WITH, np.asarray([mark is True for mark in pool.coreference])),
        (WITHOUT, np.asarray([mark is False for mark in pool.coreference])),
    )
    judges = [judged for judged in retrieval.judged if judged.judge.name != "both"]
    rows: list[tuple[Cell, ...]] = []
    for k, label in enumerate(pool.labels):
        chosen = [pool.first_answers(k) & marks[pool.question] for _, marks in groups]
        means = group_means(pool, chosen, options)
        for place, (group, marks) in enumerate(groups):
            rates: list[Cell] = []
            for judged in judges:
                values = judged.scores[label].values[FIRST][marks[judged.judge.has_judged]]
                rates.append(mean_over_questions(values, shares="wilson", **options.resampling))
            rows.append((label, group, int(marks.sum()), means.mean(place, label=label), *rates))
    share = percent(float(groups[0][1].sum()) / max(1, int(sum(marks.sum() for _, marks in groups))))
    return Section(
        name,
        TITLE,
        (
            f"{share} of the marked questions cannot be understood without the turns before them. Retrievers that read the "
            "question alone are expected to do worse there. The groups differ in other ways too, so nothing is tested.",
        ),
        (
            Table(
                name,
                "First answers by co-reference of the question",
                (
                    Column("system", "System"),
                    Column("group", "Questions"),
                    Column("n", "n", "count"),
                    Column("mean", "Average rating", "estimate"),
                    *(
                        Column(
                            f"rate_{judged.judge.name}",
                            f"Success Rate@1 by {judged.judge.label}",
                            "percent_estimate",
                            1,
                        )
                        for judged in judges
                    ),
                ),
                tuple(rows),
                caption="Success Rate over questions with a right answer.",
            ),
        ),
    )
