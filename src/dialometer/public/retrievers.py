"""Retrievers evaluated on one's own questions, as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialometer.model.report import Cell, Column, Table
from dialometer.neural.work import Work, default_cache
from dialometer.public.extras import needs_extra
from dialometer.retrieval import evaluate_retrievers as evaluation
from dialometer.retrieval.evaluation import Resampling
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.queries import read_queries
from dialometer.retrieval.selection import retriever_label, select_retrievers


@needs_extra("learn")
def evaluate_retrievers(
    knowledge_base: str | Path,
    dialogues: str | Path,
    retrievers: Sequence[str] = ("random", "tfidf", "bm25"),
    *,
    cuts: Sequence[int] = (1, 2, 5, 10),
    n_resamples: int = 2000,
    seed: int = 0,
) -> Table:
    """How often each retriever finds a right answer, by the labels in the dialogues: Recall, MRR, MAP and Success Rate.

    Retrievers are named as in ``dialometer retrieval evaluate``, folders of trained ones included. Over the questions that
    have a right answer, with bootstrap intervals over questions. Crowds as judges and paired tests are in the command.
    """
    kb = read_knowledge_base(knowledge_base)
    selected = select_retrievers(retrievers)
    result = evaluation.evaluate_retrievers(
        kb,
        read_queries(dialogues, kb),
        selected,
        cutoffs=cuts,
        resampling=Resampling(n_resamples=n_resamples, seed=seed),
        work=Work(cache=default_cache()),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            retriever_label(scores.retriever, selected[scores.retriever]),
            *(scores.answerable[name] for name in result.metrics),
        )
        for scores in result.scores
    ]
    return Table(
        "retrievers",
        "Retrievers by the maker's labels",
        (Column("retriever", "Retriever"), *(Column(name, name, "estimate", 3) for name in result.metrics)),
        tuple(rows),
        caption=f"{result.n_questions:,} questions of {result.n_dialogues:,} dialogues; those with a right answer count.",
    )
