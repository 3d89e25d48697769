"""Fine-tuned answer ranker q-A: a transformer reads the question and each answer together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Floats, Retriever
from dialometer.retrieval.retrievers.mixed import FittedMixed, Mixed
from dialometer.retrieval.saving import copy_model

if TYPE_CHECKING:
    from dialometer.retrieval.training.ranker import CrossEncoder

FOLDER = "ranker"
BELOW = 1_000.0
"""What puts answers that the ranker did not read below all that it did."""


@RETRIEVERS.register("ranker")
class AnswerRanker(Retriever):
    """A cross-encoder trained on the knowledge base (Chierici and Habash 2021, "BERT q-A")."""

    label: ClassVar[str] = "Answer ranker q-A"
    about: ClassVar[str] = "Highest score of a transformer that was trained to tell right answers from wrong ones."
    is_trained: ClassVar[bool] = True
    model: str = Field(default="", description="Encoder to start from; the packaged all-MiniLM-L6-v2 if empty.")
    negatives: int | Literal["all"] = Field(default=10, description="Wrong answers for each right one, or all.")
    hard_share: float = Field(default=0.5, ge=0, le=1)
    loss: Literal["pairs", "lists"] = "lists"
    n_variants: int = Field(default=1, ge=0, le=16, description="Varied questions beside each recorded one.")
    n_epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    batch_size: int = Field(default=96, ge=2)
    seed: int = Field(default=0, ge=0)
    depth: int = Field(
        default=100,
        ge=0,
        description="How many answers are read per question, best of the mixed encoder first; 0 reads all.",
    )

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedRanker:
        first = Mixed(model=self.model).fit(kb, work)
        return self._fitted(kb, self.train(kb, first, work), first, work)

    def train(self, kb: KnowledgeBase, first: FittedMixed, work: Work = QUIET) -> Path:
        """The folder of the ranker, trained against answers that the encoder confuses; trained once for all who use it."""
        from dialometer.retrieval.training.ranker import RankerOptions, train_ranker  # noqa: PLC0415 - imports torch

        own = self.model_dump(exclude={"model", "depth"})
        nearest = first.rank(kb.questions, min(60, len(kb.answers))).answers if self.hard_share else None
        return train_ranker(kb, self.model, RankerOptions.model_validate(own), work, nearest=nearest)

    def load(self, kb: KnowledgeBase, folder: Path, work: Work = QUIET) -> FittedRanker:
        return self._fitted(kb, folder / FOLDER, Mixed(model=self.model).fit(kb, work), work)

    def _fitted(self, kb: KnowledgeBase, folder: Path, first: FittedMixed, work: Work) -> FittedRanker:
        from dialometer.retrieval.training.ranker import CrossEncoder  # noqa: PLC0415 - imports torch

        return FittedRanker(self, kb, CrossEncoder.load(folder, work), folder, first, work)


class FittedRanker(FittedRetriever):
    """Reads the most promising answers; the others follow in the order of the retriever that chose them."""

    options: AnswerRanker

    def __init__(
        self,
        options: AnswerRanker,
        kb: KnowledgeBase,
        ranker: CrossEncoder,
        folder: Path,
        first: FittedMixed,
        work: Work,
    ) -> None:
        super().__init__(options, kb)
        self.ranker = ranker
        self.folder = folder
        self.first = first
        self.work = work

    def prepare(self, queries: Sequence[Query]) -> tuple[Any, Floats]:
        """What the first retriever needs, and the ranker's scores of the answers it read (nan elsewhere)."""
        prepared = self.first.prepare(queries)
        n_answers = len(self.kb.answers)
        depth = min(self.options.depth or n_answers, n_answers)
        read = self.first.rank(queries, depth).answers if depth < n_answers else None
        columns = read if read is not None else np.broadcast_to(np.arange(n_answers), (len(queries), n_answers))
        rows = np.repeat(np.arange(len(queries)), columns.shape[1])
        flat = columns.ravel()
        logits = self.ranker.scores(
            [queries[row].text for row in rows.tolist()],
            [self.kb.answers[number].text for number in flat.tolist()],
            self.work,
            "Ranking answers",
        )
        scores = np.full((len(queries), n_answers), np.nan, dtype=np.float32)
        scores[rows, flat] = np.round(logits, 4)
        return prepared, scores

    def score_block(self, prepared: tuple[Any, Floats], first: int, last: int) -> Floats:
        before, scores = prepared
        own = scores[:, first:last]
        return np.where(np.isnan(own), self.first.score_block(before, first, last) - BELOW, own)

    def save_into(self, folder: Path) -> tuple[Path, ...]:
        copy_model(self.folder, folder / FOLDER)
        return (folder / FOLDER,)
