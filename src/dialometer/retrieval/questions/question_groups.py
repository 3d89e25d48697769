"""Metrics of retrievers on groups of questions, such as those that need the turns before them and those that do not.

Nobody dealt questions out to groups, so groups differ in other ways too: this describes them and tests nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dialometer.errors import DialometerError
from dialometer.model.estimate import Estimate
from dialometer.retrieval.evaluation import Evaluation, JudgeName, full_name
from dialometer.retrieval.queries import QuerySet
from dialometer.stats.retrieval.metrics import mean_over_questions

WITH, WITHOUT = "with co-reference", "without co-reference"
NOT_MARKED = "not marked"


@dataclass(frozen=True)
class GroupScores:
    """One retriever by one judge on one group of questions, over those with a right answer."""

    group: str
    retriever: str
    judge: JudgeName
    n_answerable: int
    answerable: Mapping[str, Estimate]


def coreference_groups(query_set: QuerySet) -> list[str]:
    """The group of each question; refused where no question is marked."""
    words = {True: WITH, False: WITHOUT, None: NOT_MARKED}
    groups = [words[query.coreference] for query in query_set.queries]
    if set(groups) == {NOT_MARKED}:
        remedy = "mark them in the dialogues, or by --marks (dialometer retrieval coreference proposes a table)"
        raise DialometerError("no question is marked as with or without co-reference", remedy=remedy)
    return groups


def group_scores(evaluation: Evaluation, query_set: QuerySet, groups: Sequence[str]) -> list[GroupScores]:
    """Every metric of every retriever in every group, by every judge."""
    how = evaluation.resampling
    names, dialogues = np.asarray(groups), np.asarray(query_set.dialogues)
    found = []
    for judge in evaluation.judges:
        own, where = names[judge.has_judged], dialogues[judge.has_judged]
        for group in sorted(set(groups), key=(WITH, WITHOUT, NOT_MARKED).index):
            chosen = own == group
            for retriever in evaluation.retrievers():
                values = evaluation.of(retriever, judge.name).values
                estimates = {
                    metric: mean_over_questions(
                        value[chosen],
                        where[chosen] if how.by == "dialogues" else None,
                        label=f"{full_name(metric)}, {group}",
                        n_resamples=how.n_resamples,
                        seed=how.seed,
                        confidence=how.confidence,
                    )
                    for metric, value in values.items()
                }
                n = int((~np.isnan(next(iter(values.values()))[chosen])).sum())
                found.append(GroupScores(group, retriever, judge.name, n, estimates))
    return found
