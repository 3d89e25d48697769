"""Fine-tuned classifier q-A as published: a transformer reads the question with every answer of the knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Floats, Retriever
from dialometer.retrieval.saving import copy_model

if TYPE_CHECKING:
    from dialometer.retrieval.training.ranker import CrossEncoder

FOLDER = "classifier"


@RETRIEVERS.register("classifier")
class Classifier(Retriever):
    """BERT fine-tuned to tell right pairs from wrong ones (Chierici and Habash 2021, "BERT q-A")."""

    label: ClassVar[str] = "Classifier q-A"
    about: ClassVar[str] = (
        "Probability that the pair is right, by a transformer trained as in Chierici and Habash (2021)."
    )
    is_trained: ClassVar[bool] = True
    model: str = Field(
        default="",
        description="BERT to start from, a folder or Hugging Face name; the packaged all-MiniLM-L6-v2 if empty.",
    )
    negatives: int | Literal["all"] = Field(default=100, description="Wrong answers for each right one, or all.")
    n_variants: int = Field(default=9, ge=0, le=64, description="Synthetic questions beside each recorded one.")
    changed_share: float = Field(default=0.1, gt=0, le=1, description="Share of words that augmentation changes.")
    n_epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    batch_size: int = Field(default=256, ge=2, description="Pairs in a step.")
    seed: int = Field(default=0, ge=0)

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedClassifier:
        from dialometer.retrieval.training.pair_classifier import (  # noqa: PLC0415 - imports torch
            ClassifierOptions,
            train_classifier,
        )

        options = ClassifierOptions.model_validate(self.model_dump(exclude={"model"}))
        return self._fitted(kb, train_classifier(kb, self.model, options, work), work)

    def load(self, kb: KnowledgeBase, folder: Path, work: Work = QUIET) -> FittedClassifier:
        return self._fitted(kb, folder / FOLDER, work)

    def _fitted(self, kb: KnowledgeBase, folder: Path, work: Work) -> FittedClassifier:
        from dialometer.retrieval.training.ranker import CrossEncoder  # noqa: PLC0415 - imports torch

        return FittedClassifier(self, kb, CrossEncoder.load(folder, work), folder, work)


class FittedClassifier(FittedRetriever):
    """Reads every answer for every question, so a question takes seconds on a CPU."""

    options: Classifier

    def __init__(self, options: Classifier, kb: KnowledgeBase, encoder: CrossEncoder, folder: Path, work: Work) -> None:
        super().__init__(options, kb)
        self.encoder = encoder
        self.folder = folder
        self.work = work

    def prepare(self, queries: Sequence[Query]) -> Sequence[Query]:
        return queries

    def score_block(self, prepared: Sequence[Query], first: int, last: int) -> Floats:
        texts = self.kb.texts[first:last]
        logits = self.encoder.scores(
            [query.text for query in prepared for _ in texts], list(texts) * len(prepared), self.work, "Reading answers"
        )
        return np.round(logits.reshape(len(prepared), len(texts)), 4)

    def save_into(self, folder: Path) -> tuple[Path, ...]:
        copy_model(self.folder, folder / FOLDER)
        return (folder / FOLDER,)
