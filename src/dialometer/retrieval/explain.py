"""What each retriever would answer, with scores and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import Fitted


@dataclass(frozen=True)
class Explained:
    """One answer of one retriever."""

    rank: int
    answer: str
    text: str
    score: float
    because: str


def explain(fitted: Mapping[str, Fitted], query: Query, k: int = 3) -> dict[str, list[Explained]]:
    """The first k answers of every retriever."""
    found: dict[str, list[Explained]] = {}
    for name, one in fitted.items():
        ranking = one.rank([query], k)
        pairs = zip(ranking.answers[0].tolist(), ranking.scores[0].tolist(), strict=True)
        found[name] = [
            Explained(rank, one.kb.answers[answer].id, one.kb.answers[answer].text, score, one.because(query, answer))
            for rank, (answer, score) in enumerate(pairs, start=1)
            if answer >= 0
        ]
    return found
