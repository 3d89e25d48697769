"""A sentence encoder trained on a knowledge base: a question moves towards its answers and their other questions.

In-batch negatives (Henderson et al., "Efficient Natural Language Response Suggestion", 2017), both ways between questions and
answers, and from a question to another question of the same answer. Pairs in the batch that are right too are no negatives.

The weights kept lie between those before and after training (Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR
2022): a small knowledge base teaches its own questions quickly, and the way back keeps what the encoder knew of all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch.nn import functional

from dialometer.neural.device import choose_device
from dialometer.neural.encoder import mean_pooled
from dialometer.neural.pretrained import load_model
from dialometer.neural.training import TrainingOptions, fingerprint, train
from dialometer.neural.work import QUIET, Work, models_folder
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.saving import CHECKPOINT_FILE, is_done, mark_done
from dialometer.retrieval.training.augment import OPENERS, Synonyms, one_variant, synonym_source

MOST_TOKENS = 64
TEXTS_TOGETHER = 16


class TuningOptions(TrainingOptions):
    """Defaults chosen by cross-validation over dialogues of the Margarita corpus (``python -m bench.retrieval_trials``)."""

    n_epochs: int = Field(default=6, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0)
    temperature: float = Field(default=0.05, gt=0)
    augmented_share: float = Field(default=0.5, ge=0, le=1, description="Share of questions shown in a varied form.")
    opened_share: float = Field(default=0.2, ge=0, le=1, description="Share shown after a word such as 'Okay.'.")
    tuned_share: float = Field(default=0.75, gt=0, le=1, description="How far the weights go from before to after.")


@dataclass(frozen=True)
class Example:
    """A question, one of its answers, all of its answers, and the other questions of that answer."""

    question: str
    answer: int
    answers: frozenset[int]
    others: tuple[str, ...]


def examples_of(kb: KnowledgeBase) -> list[Example]:
    """Every pair of the knowledge base."""
    of_answer: dict[int, list[str]] = {}
    of_question: dict[int, set[int]] = {}
    rows = list(zip(kb.pair_question.tolist(), kb.pair_answer.tolist(), strict=True))
    for question, answer in rows:
        of_answer.setdefault(answer, []).append(kb.questions[question])
        of_question.setdefault(question, set()).add(answer)
    return [
        Example(
            kb.questions[question],
            answer,
            frozenset(of_question[question]),
            tuple(other for other in of_answer[answer] if other != kb.questions[question]),
        )
        for question, answer in rows
    ]


def tune_encoder(
    kb: KnowledgeBase,
    model: str = "",
    options: TuningOptions | None = None,
    work: Work = QUIET,
    out: Path | None = None,
) -> Path:
    """Trains an encoder on a knowledge base and writes it as a model folder; one that is already there is used as it is.

    Without ``out`` it stands in the cache, under a name made of all that it depends on.
    """
    chosen = options or TuningOptions()
    name = fingerprint("tuned encoder", model, kb.fingerprint, chosen.model_dump())
    folder = out or models_folder(work) / "encoders" / name
    if is_done(folder, name):
        return folder
    device = choose_device(work.device)
    tokenizer, network = load_model(model, device)
    course = _Course(kb, tokenizer, network, chosen, device)
    before = {key: value.detach().clone() for key, value in network.state_dict().items()}
    losses = train(
        network,
        course.batches,
        course.loss,
        chosen,
        work,
        device=device,
        what="Training the encoder",
        checkpoint=folder / CHECKPOINT_FILE,
    )
    network.load_state_dict(between(before, network.state_dict(), chosen.tuned_share))
    folder.mkdir(parents=True, exist_ok=True)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    mark_done(folder, name, {"options": chosen.model_dump(), "losses": losses, "base": model})
    return folder


def between(before: Mapping[str, Any], after: Mapping[str, Any], share: float) -> dict[str, Any]:
    """Weights on the line from one model to another; whole numbers (positions) stay as they were."""
    return {
        key: torch.lerp(before[key], value, share) if value.is_floating_point() else value
        for key, value in after.items()
    }


class _Course:
    """What the encoder is shown in every epoch, and how far off it is."""

    def __init__(self, kb: KnowledgeBase, tokenizer: Any, network: Any, options: TuningOptions, device: str) -> None:
        self.kb = kb
        self.tokenizer = tokenizer
        self.network = network
        self.options = options
        self.device = device
        self.examples = examples_of(kb)
        self.synonyms: Synonyms = synonym_source(tokenizer, network)

    def batches(self, epoch: int, rng: np.random.Generator) -> list[list[tuple[Example, str, str]]]:
        """All pairs in a new order: the example, its question as shown, and another question of the same answer."""
        size = self.options.batch_size
        rows = []
        for number in rng.permutation(len(self.examples)):
            example = self.examples[number]
            shown = self._varied(example.question, rng)
            other = example.others[int(rng.integers(len(example.others)))] if example.others else example.question
            rows.append((example, shown, other))
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def _varied(self, question: str, rng: np.random.Generator) -> str:
        lot = rng.random()
        if lot < self.options.opened_share:
            return f"{OPENERS[int(rng.integers(len(OPENERS)))]} {question}"
        if lot < self.options.opened_share + self.options.augmented_share:
            return one_variant(question, rng, self.synonyms)
        return question

    def loss(self, batch: Sequence[tuple[Example, str, str]]) -> Any:
        """Cross-entropy of finding the own answer and the own other question among all of the batch."""
        texts = [shown for _, shown, _ in batch] + [other for _, _, other in batch]
        texts += [self.kb.answers[example.answer].text for example, _, _ in batch]
        asked, others, answers = self._encode(texts).split(len(batch))
        is_right = [[two.answer in query.answers for two, _, _ in batch] for query, _, _ in batch]
        also = torch.tensor(is_right, device=self.device)
        also.fill_diagonal_(False)
        own = torch.arange(len(batch), device=self.device)
        to_answer = (asked @ answers.T / self.options.temperature).masked_fill(also, -1e4)
        to_other = (asked @ others.T / self.options.temperature).masked_fill(also, -1e4)
        both_ways = functional.cross_entropy(to_answer, own) + functional.cross_entropy(to_answer.T, own)
        return both_ways / 2 + functional.cross_entropy(to_other, own)

    def _encode(self, texts: list[str]) -> Any:
        """Vectors of texts. On a CPU, those of similar length go together: padding would be most of the work."""
        size = len(texts) if self.device != "cpu" else TEXTS_TOGETHER
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        parts = []
        for start in range(0, len(order), size):
            some = [texts[row] for row in order[start : start + size]]
            batch = self.tokenizer(some, padding=True, truncation=True, max_length=MOST_TOKENS, return_tensors="pt")
            parts.append(mean_pooled(self.network, dict(batch.to(self.device))))
        back = torch.tensor(np.argsort(order), device=self.device)
        return torch.cat(parts)[back]
