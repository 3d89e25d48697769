"""Retrievers on the development part of the Margarita corpus: our table beside the published one and other software."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dialometer.analysis.reproduce.compared import (
    REPRODUCTIONS,
    ComparedNumber,
    GridRow,
    NumberComparison,
    PublishedTable,
    Reproduction,
    data_file,
    expected,
)
from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.cross_validation import check_not_learned
from dialometer.retrieval.evaluate_retrievers import relevant_ranks
from dialometer.retrieval.evaluation import CUTOFFS, metric_names, metric_values
from dialometer.retrieval.knowledge_base import KnowledgeBase, read_knowledge_base
from dialometer.retrieval.published import published_label
from dialometer.retrieval.queries import QuerySet, read_queries
from dialometer.retrieval.questions.first_words import first_words
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Retriever, retriever_name
from dialometer.retrieval.saving import load_retriever
from dialometer.retrieval.selection import retriever_label, select_retrievers
from dialometer.stats.retrieval.metrics import RelevantRanks

CITATION = "Chierici and Habash, A View From The Crowd, HumEval 2021, Table 4 (development part, avatar maker's labels)"
COLUMNS = metric_names()
PUBLISHED = {
    "Random": (0.0, 0.2, 1.1, 2.6, 2.4, 0.0, 0.3, 1.5),
    "TF-IDF q-Q": (23.4, 29.5, 38.2, 69.1, 66.5, 32.4, 40.6, 49.1),
    "BERT q-Q": (22.9, 28.0, 42.0, 60.5, 69.1, 31.8, 38.2, 51.5),
    "BERT q-A 1:100": (24.0, 33.3, 55.2, 70.1, 90.3, 33.2, 45.0, 66.8),
    "BERT q-A 1:All": (21.0, 29.5, 43.1, 81.8, 59.6, 29.1, 40.9, 57.1),
    "Crowd": (9.1, 15.5, 34.0, 48.0, 18.8, 12.6, 20.9, 43.5),
}
SIZES = {"question-answer pairs": 892, "answers": 431, "questions": 758, "questions asked": 340}
FIRST_WORDS = {
    "what": 149, "how": 53, "do": 22, "where": 13, "when": 8, "are": 7, "i": 6, "is": 6, "why": 6, "have": 5, "can": 4, "did": 3,
    "if": 3, "so": 3, "that": 3,
}  # fmt: skip
FIRST_WORDS_ASKED = {"that": 5, "do": 3, "how": 3, "it": 3, "nice": 3, "so": 3, "what": 3, "where": 3, "wow": 3}
N_ASKED, N_RIGHT = 340, 471
ONE_QUESTION = 100 / N_ASKED
UNTRAINED = ("random", "tfidf", "bm25", "bert-q-q", "encoder-answer", "encoder", "mixed", "context")
"""What is shown where no retriever is named: the paper's that need no training, then ours."""


@REPRODUCTIONS.register("avatar")
def avatar(data: Path | None) -> Reproduction:
    """With all retrievers that need no training."""
    return avatar_with(data)


def avatar_with(
    data: Path | None, retrievers: Mapping[str, Retriever | Path] | None = None, work: Work = QUIET
) -> Reproduction:
    """``retrievers`` by label, with folders for trained ones; all that need no training by default."""
    kb = read_knowledge_base(data_file(data, "mdc", "knowledge_base.csv"))
    query_set = read_queries(data_file(data, "mdc", "dialogues_dev.csv"), kb)
    named = retrievers or {retriever_label(n, r): r for n, r in select_retrievers(UNTRAINED).items()}
    relevant = query_set.relevance(len(kb.answers))
    ranks: dict[str, RelevantRanks] = {}
    used: dict[str, Retriever] = {}
    for label, retriever in named.items():
        fitted = _fitted(retriever, kb, work)
        check_not_learned(fitted, kb, query_set, label)
        used[label] = fitted.options
        ranks[label] = relevant_ranks(fitted, query_set, [relevant])[0]
    return Reproduction(
        "avatar",
        "Answer retrieval for an avatar: Margarita corpus, 340 questions of the development part",
        CITATION,
        (_sizes(kb, query_set), _first_words(kb, query_set), _counts(), *_other_software(ranks, used)),
        (
            "Published R@k counts right answers over all questions together (of 471), so the table does the same for ours; "
            "'dialometer retrieval evaluate' gives the mean over questions.",
            "Published MRR and MAP cannot be compared: the published retrievers list some answers only, and the text says "
            "that this moves them. Ours rank all 431 answers.",
            "The knowledge base was recorded with the help of these dialogues, so many of their questions are in it almost word "
            "for word; new visitors ask harder ones (docs/explanation/retrieval.md measures that).",
            "Rows under the paper's names have its settings, but start from the packaged all-MiniLM-L6-v2 unless another model is "
            "named (-r bert-q-a-1-100:model=FOLDER). The other rows are retrievers of our own. The crowd's ratings are not "
            "public in this data, so its row has no counterpart.",
            "-r published adds the paper's trained retrievers (minutes on a GPU, hours on a CPU); -r fused -r ranker, or the "
            "folder of a trained one, adds ours.",
        ),
        (_table(ranks, used),),
    )


def _fitted(retriever: Retriever | Path, kb: KnowledgeBase, work: Work) -> FittedRetriever:
    return load_retriever(retriever, work) if isinstance(retriever, Path) else retriever.fit(kb, work)


def _sizes(kb: KnowledgeBase, query_set: QuerySet) -> NumberComparison:
    ours = (kb.n_pairs, len(kb.answers), len(kb.questions), len(query_set))
    rows = [ComparedNumber(name, own, other, 0) for own, (name, other) in zip(ours, SIZES.items(), strict=True)]
    return NumberComparison("Size of the corpus", "the paper, section 3", tuple(rows))


def _first_words(kb: KnowledgeBase, query_set: QuerySet) -> NumberComparison:
    """How many questions begin with a word, among those whose first three words occur three times or more."""
    recorded, asked = first_words(kb.questions), first_words(query.text for query in query_set.queries)
    rows = [
        ComparedNumber(f"{kind}: {word}", own.get(word, 0), n, 0)
        for kind, own, published in (
            ("recorded", recorded.totals(3), FIRST_WORDS),
            ("asked", asked.totals(3), FIRST_WORDS_ASKED),
        )
        for word, n in published.items()
    ]
    return NumberComparison("First words of questions", "figure 2: the authors' figure files", tuple(rows))


def _counts() -> NumberComparison:
    """At rank 1 recall and success rate count the same hits, of 471 right answers and of 340 questions."""
    rows = [
        ComparedNumber(f"{name}: hits at rank 1", values[0] * N_RIGHT / 100, values[5] * N_ASKED / 100, 0.5)
        for name, values in PUBLISHED.items()
    ]
    return NumberComparison("Published R@1 and SR@1 as numbers of hits", "the paper, Table 4", tuple(rows))


def _other_software(ranks: Mapping[str, RelevantRanks], used: Mapping[str, Retriever]) -> list[NumberComparison]:
    """The same retrievers put together from other libraries, and the metrics written out list by list."""
    other = expected("avatar")
    comparisons = []
    for label, retriever in used.items():
        kind = retriever_name(retriever)
        there = other["retrievers"].get(kind)
        if there is None or retriever != RETRIEVERS.get(kind)():
            continue
        ours = _means(ranks[label])
        # Eight-bit arithmetic on some processors may move a few questions by a rank.
        allowed = 1e-4 if kind == "tfidf" else 2 * ONE_QUESTION
        rows = [ComparedNumber(f"{label}: {name}", ours[name], there[name], allowed) for name in COLUMNS]
        comparisons.append(NumberComparison(f"{label}, percent", other["sources"][kind], tuple(rows)))
    return comparisons


def _means(ranks: RelevantRanks) -> dict[str, float]:
    return {name: 100 * float(np.nanmean(value)) for name, value in metric_values(ranks).items()}


def _table(ranks: Mapping[str, RelevantRanks], used: Mapping[str, Retriever]) -> PublishedTable:
    """Each of ours beside the published row of the same name, if there is one; then what was published of others."""
    rows: list[GridRow] = []
    shown = set()
    for label, own in ranks.items():
        published = published_label(used[label])
        shown.add(published)
        rows.append(GridRow(label, _as_published(own), PUBLISHED.get(published, ()), published))
    rows += [GridRow(name, other=values) for name, values in PUBLISHED.items() if name not in shown]
    return PublishedTable("Retrievers by metric, percent", CITATION, COLUMNS, tuple(rows))


def _as_published(ranks: RelevantRanks) -> tuple[float, ...]:
    """Metrics with recall over all right answers together."""
    means = _means(ranks)
    total = max(1, int(ranks.n_relevant.sum()))
    pooled = {f"R@{k}": 100 * float((ranks.rank <= k).sum()) / total for k in CUTOFFS}
    return tuple({**means, **pooled}[name] for name in COLUMNS)
