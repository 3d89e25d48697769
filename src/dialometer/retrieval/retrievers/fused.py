"""The fused retriever: an encoder trained on the knowledge base, all its parts weighed, the first few read by the ranker.

Cross-validation over dialogues (``python -m bench.retrieval_trials``) gave the weights and found no gain in reading again,
which costs a second training; so that is left out unless ``n_read`` asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from dialometer.neural.work import QUIET, Work
from dialometer.report.numbers import write_signed
from dialometer.retrieval.fusion import N_NEAR, PARTS, FusionParts, PreparedParts
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Query
from dialometer.retrieval.retriever import (
    NO_ANSWER,
    RETRIEVERS,
    FittedRetriever,
    Floats,
    Questions,
    RankedAnswers,
    Retriever,
    as_queries,
    top_k,
)
from dialometer.retrieval.retrievers.answer_ranker import AnswerRanker
from dialometer.retrieval.retrievers.mixed import Mixed
from dialometer.retrieval.saving import copy_model

if TYPE_CHECKING:
    from dialometer.retrieval.training.ranker import CrossEncoder
    from dialometer.retrieval.training.tuned_encoder import TuningOptions

ENCODER_FOLDER = "encoder"
RANKER_FOLDER = "ranker"
DEFAULT_WEIGHTS: Mapping[str, float] = {
    "question:turn": 2.5,
    "answer:turn": 1.0,
    "question:sentences": 2.5,
    "answer:sentences": 2.0,
    "question:context": 2.0,
    "answer:context": 0.5,
    "question:asked": 1.5,
    "answer:asked": 2.0,
    "words": 2.0,
}
"""Rounded from what cross-validation over dialogues of the Margarita corpus gives, with more by question than for new questions
alone: who asks what is recorded must be answered by it."""
DEFAULT_READ_WEIGHT = 0.1
"""The most that did no harm there."""


@RETRIEVERS.register("fused")
class Fused(Retriever):
    """Weights are those found by cross-validation; ``dialometer retrieval train`` finds them anew for other data."""

    label: ClassVar[str] = "Fused"
    about: ClassVar[str] = (
        "Encoder trained on the knowledge base: by question, answer, sentence and context, and shared words."
    )
    is_trained: ClassVar[bool] = True
    model: str = Field(default="", description="Encoder to start from; the packaged all-MiniLM-L6-v2 if empty.")
    n_tuning_epochs: int = Field(default=6, ge=0, description="Epochs the encoder is trained; 0 takes it as it is.")
    weights: dict[str, float] = Field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    n_read: int = Field(default=0, ge=0, description="How many first answers the ranker reads again, say 10.")
    read_weight: float = Field(default=DEFAULT_READ_WEIGHT, description="Weight of the ranker among those.")
    negatives: int | Literal["all"] = Field(default=10, description="Wrong answers for each right one in its training.")
    seed: int = Field(default=0, ge=0)

    def tuning(self) -> TuningOptions:
        """How the encoder is trained."""
        from dialometer.retrieval.training.tuned_encoder import TuningOptions  # noqa: PLC0415 - imports torch

        return TuningOptions(n_epochs=max(self.n_tuning_epochs, 1), seed=self.seed)

    def fit(self, kb: KnowledgeBase, work: Work = QUIET) -> FittedFused:
        parts, encoder_folder = self.fit_parts(kb, work)
        ranker_folder = self.fit_ranker(kb, work) if self.n_read else None
        return FittedFused(self, kb, parts, _load_ranker(ranker_folder, work), (encoder_folder, ranker_folder))

    def fit_parts(self, kb: KnowledgeBase, work: Work) -> tuple[FusionParts, Path | None]:
        """The encoder (trained, where that is asked for) and everything weighed."""
        from dialometer.neural.encoder import TextEncoder  # noqa: PLC0415 - imports torch
        from dialometer.retrieval.training.tuned_encoder import tune_encoder  # noqa: PLC0415 - imports torch

        folder = tune_encoder(kb, self.model, self.tuning(), work) if self.n_tuning_epochs else None
        return FusionParts(kb, TextEncoder(str(folder or self.model), work, in_8_bits=True)), folder

    def fit_ranker(self, kb: KnowledgeBase, work: Work) -> Path:
        """The answer ranker of its own retriever, so that both share one training."""
        ranker = AnswerRanker(model=self.model, negatives=self.negatives, seed=self.seed)
        return ranker.train(kb, Mixed(model=self.model).fit(kb, work), work)

    def load(self, kb: KnowledgeBase, folder: Path, work: Work = QUIET) -> FittedFused:
        from dialometer.neural.encoder import TextEncoder  # noqa: PLC0415 - imports torch

        encoder = folder / ENCODER_FOLDER if self.n_tuning_epochs else None
        ranker = folder / RANKER_FOLDER if self.n_read else None
        parts = FusionParts(kb, TextEncoder(str(encoder or self.model), work, in_8_bits=True))
        return FittedFused(self, kb, parts, _load_ranker(ranker, work), (encoder, ranker))


def _load_ranker(folder: Path | None, work: Work) -> CrossEncoder | None:
    from dialometer.retrieval.training.ranker import CrossEncoder  # noqa: PLC0415 - imports torch

    return CrossEncoder.load(folder, work) if folder else None


class FittedFused(FittedRetriever):
    """A weighted sum, then the first few put into a new order; they stay the first few."""

    options: Fused

    def __init__(
        self,
        options: Fused,
        kb: KnowledgeBase,
        parts: FusionParts,
        ranker: CrossEncoder | None,
        folders: tuple[Path | None, Path | None] = (None, None),
    ) -> None:
        super().__init__(options, kb)
        self.parts = parts
        self.ranker = ranker
        self.folders = folders

    def prepare(self, queries: Sequence[Query]) -> PreparedParts:
        return self.parts.prepare(queries)

    def score_block(self, prepared: PreparedParts, first: int, last: int) -> Floats:
        total = np.zeros((prepared.n_queries, last - first), dtype=np.float32)
        for name in PARTS:
            weight = self.options.weights.get(name, 0.0)
            if weight:
                total += np.float32(weight) * self.parts.part(name, prepared, first, last)
        return np.asarray(np.round(total, 4))

    def scores(self, questions: Questions) -> Floats:
        queries = as_queries(questions)
        out = super().scores(queries)
        if self.ranker is not None and len(queries):
            first = top_k(out, self.options.n_read)
            again = self._read(queries, first)
            rows, places = np.nonzero(first.answers != NO_ANSWER)
            out[rows, first.answers[rows, places]] = again[rows, places]
        return out

    def _rank_batch(self, queries: Sequence[Query], k: int | None) -> RankedAnswers:
        if self.ranker is None:
            return self._first_ranking(queries, k)
        wanted = len(self.kb.answers) if k is None else k
        n_read = self.options.n_read
        ranking = self._first_ranking(queries, max(wanted, n_read))
        again = top_k(self._read(queries, ranking.first(n_read)), n_read, columns=ranking.answers[:, :n_read])
        answers = np.concatenate([again.answers, ranking.answers[:, n_read:]], axis=1)
        scores = np.concatenate([again.scores, ranking.scores[:, n_read:]], axis=1)
        return RankedAnswers(answers, scores).first(wanted)

    def _first_ranking(self, queries: Sequence[Query], k: int | None) -> RankedAnswers:
        """By the weighted sum: of all answers, or of those near the question where answers are very many."""
        shortlist = self.parts.shortlist
        if shortlist is None or k is None or k > N_NEAR:
            return super()._rank_batch(queries, k)
        prepared = self.prepare(queries)
        rows = []
        for row in range(len(queries)):
            answers, scores = shortlist.scores(prepared, row, self.options.weights)
            rows.append(top_k(scores[None], k, columns=answers[None]))
        return RankedAnswers(np.concatenate([r.answers for r in rows]), np.concatenate([r.scores for r in rows]))

    def _read(self, queries: Sequence[Query], first: RankedAnswers) -> Floats:
        """New scores of the first answers: the ranker's weighed in, and none below what stood on the last of their places."""
        assert self.ranker is not None
        rows, places = np.nonzero(first.answers != NO_ANSWER)
        texts = [self.kb.answers[number].text for number in first.answers[rows, places].tolist()]
        read = np.full(first.scores.shape, np.nan, dtype=np.float32)
        read[rows, places] = self.ranker.scores([queries[row].text for row in rows.tolist()], texts)
        again = first.scores + np.float32(self.options.read_weight) * read
        lift = np.nanmin(first.scores, axis=1) - np.nanmin(again, axis=1)
        return np.asarray(np.round(again + np.maximum(lift, 0)[:, None], 4))

    def explain(self, query: Query, answer: int) -> str:
        """The parts that add most to the answer's score."""
        prepared = self.prepare([query])
        shares = {
            name: weight * float(self.parts.part(name, prepared, answer, answer + 1)[0, 0])
            for name, weight in self.options.weights.items()
            if name in PARTS
        }
        weightiest = sorted(shares, key=lambda name: -abs(shares[name]))[:3]
        return ", ".join(f"{name} {write_signed(shares[name], 2)}" for name in weightiest)

    def save_into(self, folder: Path) -> tuple[Path, ...]:
        written = []
        for source, name in zip(self.folders, (ENCODER_FOLDER, RANKER_FOLDER), strict=True):
            if source is not None:
                copy_model(source, folder / name)
                written.append(folder / name)
        return tuple(written)
