"""Answers drawn by chance: the lower bound."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Floats, Retriever


@RETRIEVERS.register("random")
class Chance(Retriever):
    """An order drawn by lot for each question; the same question (and id) always gets the same order."""

    label: ClassVar[str] = "Random"
    about: ClassVar[str] = "Any answer, drawn by chance; the lower bound."
    seed: int = Field(default=0, ge=0)

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedChance:
        return FittedChance(self, kb)


class FittedChance(FittedRetriever):
    """Draws from a generator that is seeded by the question, so that neither batches nor blocks change anything."""

    options: Chance

    def prepare(self, queries: Sequence[Query]) -> list[int]:
        texts = [f"{self.options.seed}\x1f{query.id}\x1f{query.text}" for query in queries]
        return [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in texts]

    def score_block(self, prepared: list[int], first: int, last: int) -> Floats:
        rows = [np.random.default_rng([seed, first]).random(last - first, dtype=np.float32) for seed in prepared]
        return np.stack(rows) if rows else np.empty((0, last - first), dtype=np.float32)
