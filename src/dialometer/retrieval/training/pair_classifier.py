"""Answer selection as a classification of pairs, as it was published: right pairs of the knowledge base against drawn ones.

Chierici and Habash (HumEval 2021, section 4): every pair of the knowledge base is labelled 1; for each, wrong answers to its
question are drawn by lot and labelled 0: one, ten, a hundred, or all there are. Questions are augmented (Wei and Zou 2019). BERT is
trained for three epochs with the Transformers library, whose classifier reads the first token.

The paper does not say how many synthetic questions there were (nine for each is the default of the authors' program it names), nor
batch size and learning rate. Wrong answers are drawn once and stay the same in all epochs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch.nn import functional

from dialometer.neural.training import TrainingOptions, fingerprint, train
from dialometer.neural.work import QUIET, Work, models_folder
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.saving import CHECKPOINT_FILE, is_done, mark_done
from dialometer.retrieval.training.augment import augment, synonym_source
from dialometer.retrieval.training.ranker import CrossEncoder
from dialometer.retrieval.training.tuned_encoder import examples_of

Ints = NDArray[np.int64]
SORTED_TOGETHER = 64
"""Batches whose pairs are put together by length, so that little is padding; their order is drawn."""


class ClassifierOptions(TrainingOptions):
    """The paper's settings; batch size and learning rate are ours."""

    negatives: int | Literal["all"] = Field(default=100, description="Wrong answers for each right one, or all.")
    n_variants: int = Field(default=9, ge=0, le=64, description="Synthetic questions beside each recorded one.")
    changed_share: float = Field(default=0.1, gt=0, le=1, description="Share of words that augmentation changes.")
    n_epochs: int = Field(default=3, ge=1)
    batch_size: int = Field(default=256, ge=2, description="Pairs in a step.")


def train_classifier(
    kb: KnowledgeBase,
    model: str = "",
    options: ClassifierOptions | None = None,
    work: Work = QUIET,
    out: Path | None = None,
) -> Path:
    """Trains a classifier and writes it as a folder; one that is already there is used as it is."""
    chosen = options or ClassifierOptions()
    name = fingerprint("pair classifier", model, kb.fingerprint, chosen.model_dump())
    folder = out or models_folder(work) / "classifiers" / name
    if is_done(folder, name):
        return folder
    encoder = CrossEncoder.fresh(model, work, chosen.seed, pooling="cls")
    pairs = LabelledPairs(kb, encoder, chosen)
    losses = train(
        encoder.network,
        pairs.batches,
        pairs.loss,
        chosen,
        work,
        device=encoder.device,
        what="Training the classifier",
        checkpoint=folder / CHECKPOINT_FILE,
    )
    encoder.save(folder)
    about = {"options": chosen.model_dump(), "losses": losses, "base": model, "n_pairs": len(pairs.is_right)}
    mark_done(folder, name, about)
    return folder


class LabelledPairs:
    """The training data: pairs of a question and an answer as rows of two tables of tokens, each labelled right or wrong."""

    def __init__(self, kb: KnowledgeBase, encoder: CrossEncoder, options: ClassifierOptions) -> None:
        self.encoder = encoder
        self.options = options
        rng = np.random.default_rng(options.seed)
        synonyms = synonym_source(encoder.tokenizer, encoder.network.network)
        self.shown: list[str] = []
        asked, answered, labels = [], [], []
        for example in examples_of(kb):
            variants = augment(example.question, options.n_variants, rng, synonyms, share=options.changed_share)
            for text in (example.question, *variants):
                wrong = _wrong(len(kb.answers), example.answers, options.negatives, rng)
                asked.append(np.full(1 + len(wrong), len(self.shown), dtype=np.int64))
                answered.append(np.concatenate([[example.answer], wrong]))
                labels.append(np.arange(1 + len(wrong)) == 0)
                self.shown.append(text)
        self.asked: Ints = np.concatenate(asked)
        self.answered: Ints = np.concatenate(answered).astype(np.int64)
        self.is_right: NDArray[np.bool_] = np.concatenate(labels)
        self.questions = encoder.table(self.shown)
        self.answers = encoder.table(kb.texts)

    def batches(self, epoch: int, rng: np.random.Generator) -> list[Ints]:
        """All pairs in a new order; those of a batch are of similar length."""
        order = rng.permutation(len(self.is_right))
        length = self.questions.length[self.asked] + self.answers.length[self.answered]
        size = self.options.batch_size
        batches = []
        for start in range(0, len(order), size * SORTED_TOGETHER):
            some = order[start : start + size * SORTED_TOGETHER]
            by_length = some[np.argsort(length[some], kind="stable")]
            batches += [by_length[first : first + size] for first in range(0, len(some), size)]
        return [batches[k] for k in rng.permutation(len(batches))]

    def loss(self, rows: Ints) -> Any:
        """Cross-entropy of the labels; every pair counts the same."""
        batch = self.encoder.joined(self.questions, self.answers, self.asked[rows], self.answered[rows])
        target = torch.from_numpy(self.is_right[rows]).to(self.encoder.device).float()
        return functional.binary_cross_entropy_with_logits(self.encoder.network(batch).float(), target)


def _wrong(n_answers: int, right: frozenset[int], wanted: int | Literal["all"], rng: np.random.Generator) -> Ints:
    """Answers that do not belong to the question: by lot, each at most once, or all of them."""
    others = np.setdiff1d(np.arange(n_answers), list(right))
    return others if wanted == "all" else rng.permutation(others)[:wanted]
