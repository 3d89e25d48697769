"""Retrievers measured on one's own questions, as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialometer.errors import NotEnoughData
from dialometer.model.report import Cell, Column, Table
from dialometer.neural.work import Work, default_cache
from dialometer.public.extras import needs_extra
from dialometer.retrieval.evaluation import Resampling, judges_of, measure, relevant_ranks
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.queries import read_queries
from dialometer.retrieval.retriever import make_retriever


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

    Over the questions that have a right answer, with bootstrap intervals over questions. Crowds as judges, trained retrievers
    and paired tests are in ``dialometer retrieval evaluate``.
    """
    kb = read_knowledge_base(knowledge_base)
    asked = read_queries(dialogues, kb)
    judges = judges_of(asked, len(kb.answers))
    if not judges:
        remedy = "mark right answers in the dialogues (see the reference of dialogues)"
        raise NotEnoughData("no question has a right answer", where=str(dialogues), remedy=remedy)
    work = Work(cache=default_cache())
    made = {name: make_retriever(name) for name in dict.fromkeys(retrievers)}
    ranks = {
        name: relevant_ranks(retriever.fit(kb, work), asked, [judges[0].marks]) for name, retriever in made.items()
    }
    how = Resampling(n_resamples=n_resamples, seed=seed)
    found = measure(ranks, asked, judges[:1], cuts=tuple(dict.fromkeys(cuts)), resampling=how)
    rows: list[tuple[Cell, ...]] = [
        (made[one.retriever].label, *(one.answerable[name] for name in found.measures)) for one in found.scored
    ]
    columns = (
        Column("retriever", "Retriever"),
        *(Column(name, name, "estimate", 3) for name in found.measures),
    )
    return Table(
        "retrievers",
        "Retrievers by the maker's labels",
        columns,
        tuple(rows),
        caption=f"{found.n_questions:,} questions of {found.n_dialogues:,} dialogues; those with a right answer count.",
    )
