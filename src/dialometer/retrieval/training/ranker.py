"""A transformer that reads a question and an answer together and says how well they fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch.nn import functional

from dialometer.errors import DialometerError
from dialometer.neural.device import choose_device
from dialometer.neural.pretrained import first_line, load_model
from dialometer.neural.training import TrainingOptions, fingerprint, train
from dialometer.neural.work import QUIET, Work, models_folder
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.saving import CHECKPOINT_FILE, is_done, mark_done
from dialometer.retrieval.training.augment import one_variant, synonym_source
from dialometer.retrieval.training.tuned_encoder import Example, examples_of

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
MOST_TOKENS = 128
HEAD_FILE = "head.pt"
POOLING = "pooling"
PAIRS_TOGETHER = 16


Pooling = Literal["mean", "cls"]


class PairNetwork(torch.nn.Module):
    """One number from the encoder's mean over both texts, or from what it makes of its first token."""

    def __init__(self, network: Any, pooling: Pooling = "mean") -> None:
        super().__init__()
        self.network = network
        self.pooling = pooling
        self.drop = torch.nn.Dropout(0.1)
        self.head = torch.nn.Linear(network.config.hidden_size, 1)

    def forward(self, batch: dict[str, Any]) -> Any:
        """One score (a logit) per pair."""
        out = self.network(**batch)
        hidden = out.last_hidden_state.float()
        if self.pooling == "cls":
            pooled = getattr(out, "pooler_output", None)
            return self.head(self.drop(hidden[:, 0] if pooled is None else pooled.float())).squeeze(-1)
        mask = batch["attention_mask"].unsqueeze(-1).float()
        return self.head(self.drop((hidden * mask).sum(1) / mask.sum(1))).squeeze(-1)


class TokenTable:
    """Texts cut into tokens, one after the other, and where each begins."""

    def __init__(self, texts: Sequence[Sequence[int]]) -> None:
        self.length: Ints = np.array([len(tokens) for tokens in texts], dtype=np.int64)
        self.start: Ints = np.concatenate([[0], np.cumsum(self.length)[:-1]]).astype(np.int64)
        self.flat: Ints = np.array([*(token for tokens in texts for token in tokens), 0], dtype=np.int64)


class CrossEncoder:
    """A network with its tokenizer, ready to score pairs. Texts are cut into tokens once each."""

    def __init__(self, tokenizer: Any, network: PairNetwork, device: str) -> None:
        self.tokenizer = tokenizer
        self.network = network.to(device)
        self.device = device
        self._tokens: dict[str, list[int]] = {}

    @classmethod
    def fresh(cls, model: str, work: Work = QUIET, seed: int = 0, pooling: Pooling = "mean") -> CrossEncoder:
        """An untrained head on an encoder."""
        device = choose_device(work.device)
        tokenizer, network = load_model(model, device)
        torch.manual_seed(seed)
        return cls(tokenizer, PairNetwork(network, pooling), device)

    @classmethod
    def load(cls, folder: Path, work: Work = QUIET) -> CrossEncoder:
        """As :meth:`save` wrote it."""
        head = folder / HEAD_FILE
        if not head.is_file():
            raise DialometerError("no trained answer ranker", where=str(folder), remedy="train one")
        try:
            held = torch.load(head, map_location="cpu", weights_only=True)
            ranker = cls.fresh(str(folder), work, pooling=held.pop(POOLING, "mean"))
            ranker.network.head.load_state_dict(held)
        except DialometerError:
            raise
        except Exception as error:  # torch raises anything on a damaged file
            message = f"the answer ranker is damaged: {first_line(error)}"
            raise DialometerError(
                message, where=str(head), remedy="copy the folder again, or train it again"
            ) from error
        ranker.network.eval()
        return ranker

    def save(self, folder: Path) -> None:
        """The encoder in the usual form, the head beside it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.network.network.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        torch.save({**self.network.head.state_dict(), POOLING: self.network.pooling}, folder / HEAD_FILE)

    def batch(self, questions: Sequence[str], answers: Sequence[str]) -> dict[str, Any]:
        """``[CLS] question [SEP] answer [SEP]``, padded; what is too long loses the start of the question first."""
        rows = np.arange(len(questions))
        return self.joined(self.table(questions), self.table(answers), rows, rows)

    def table(self, texts: Sequence[str]) -> TokenTable:
        """Texts as tokens; each is cut once."""
        return TokenTable([self._cut(text) for text in texts])

    def joined(self, questions: TokenTable, answers: TokenTable, asked: Ints, answered: Ints) -> dict[str, Any]:
        """The batch of some pairs of two tables, by their rows."""
        n_second = np.minimum(answers.length[answered], MOST_TOKENS // 2)[:, None]
        n_first = np.minimum(questions.length[asked][:, None], MOST_TOKENS - 3 - n_second)
        place = np.arange(int((n_first + n_second).max()) + 3)[None, :]
        from_question = (questions.start + questions.length)[asked][:, None] - n_first + place - 1
        from_answer = answers.start[answered][:, None] + place - n_first - 2
        is_first = (place >= 1) & (place <= n_first)
        is_second = (place >= n_first + 2) & (place < n_first + 2 + n_second)
        ids = np.full(is_first.shape, self.tokenizer.pad_token_id or 0, dtype=np.int64)
        ids[:, 0] = self.tokenizer.cls_token_id
        ids = np.where(is_first, questions.flat[np.where(is_first, from_question, 0)], ids)
        ids = np.where(is_second, answers.flat[np.where(is_second, from_answer, 0)], ids)
        ids[(place == n_first + 1) | (place == n_first + n_second + 2)] = self.tokenizer.sep_token_id
        is_text = place < n_first + n_second + 3
        table = {"input_ids": ids, "attention_mask": is_text, "token_type_ids": is_text & (place >= n_first + 2)}
        if "token_type_ids" not in self.tokenizer.model_input_names:
            del table["token_type_ids"]
        return {name: torch.from_numpy(values.astype(np.int64)).to(self.device) for name, values in table.items()}

    def _cut(self, text: str) -> list[int]:
        if text not in self._tokens:
            self._tokens[text] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return self._tokens[text]

    def logits(self, questions: Sequence[str], answers: Sequence[str]) -> Any:
        """Scores that can be learned from. On a CPU, pairs of similar length go together: padding would be half the work."""
        size = len(questions) if self.device != "cpu" else PAIRS_TOGETHER
        order = sorted(range(len(questions)), key=lambda row: len(questions[row]) + len(answers[row]))
        parts = []
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            parts.append(self.network(self.batch([questions[row] for row in rows], [answers[row] for row in rows])))
        return torch.cat(parts)[torch.tensor(np.argsort(order), device=self.device)]

    @torch.inference_mode()
    def scores(self, questions: Sequence[str], answers: Sequence[str], work: Work = QUIET, what: str = "") -> Floats:
        """One logit per pair, computed in batches of similar length."""
        out = np.empty(len(questions), dtype=np.float32)
        order = sorted(range(len(questions)), key=lambda row: len(questions[row]) + len(answers[row]))
        size = work.n_texts_per_batch * (16 if self.device == "cuda" else 1)
        for _, rows in (work if what else QUIET).portions(what, order, size):
            batch = self.batch([questions[row] for row in rows], [answers[row] for row in rows])
            with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
                logits = self.network(batch)
            out[rows] = logits.float().cpu().numpy()
        return out


# Training the answer ranker: right pairs from the knowledge base against answers that do not belong to the question.
#
# Chierici and Habash (HumEval 2021, section 4): a classifier of question-answer pairs, one wrong pair for each right one, ten, a
# hundred, or all; three epochs; questions augmented. Beyond the paper, wrong answers can be those that a retriever confuses
# with the right one, and a right answer can be told apart from its wrong ones in one list instead of pair by pair.

Nearest = NDArray[np.int64]
HARD_AMONG = 40


class RankerOptions(TrainingOptions):
    """``negatives`` wrong answers for each right one; "all" takes every other answer of the knowledge base."""

    negatives: int | Literal["all"] = Field(default=10, description="Wrong answers for each right one, or all.")
    hard_share: float = Field(default=0.5, ge=0, le=1, description="Share of wrong answers that a retriever confuses.")
    loss: Literal["pairs", "lists"] = "lists"
    n_variants: int = Field(default=1, ge=0, le=16, description="Varied questions beside each recorded one.")
    n_epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    batch_size: int = Field(default=96, ge=2, description="Pairs in a step.")


class Pair(NamedTuple):
    """A question as shown and an answer; in a list the right one comes first."""

    question: str
    answer: int
    is_right: bool


def train_ranker(
    kb: KnowledgeBase,
    model: str = "",
    options: RankerOptions | None = None,
    work: Work = QUIET,
    out: Path | None = None,
    nearest: Nearest | None = None,
) -> Path:
    """Trains a ranker and writes it as a folder; one that is already there is used as it is.

    ``nearest`` holds for each recorded question the answers that a retriever puts first; without it wrong answers are
    drawn by lot.
    """
    chosen = options or RankerOptions()
    hard = None if nearest is None else fingerprint(nearest.tolist())
    name = fingerprint("answer ranker", model, kb.fingerprint, chosen.model_dump(), hard)
    folder = out or models_folder(work) / "rankers" / name
    if is_done(folder, name):
        return folder
    ranker = CrossEncoder.fresh(model, work, chosen.seed)
    course = _Course(kb, ranker, chosen, nearest)
    losses = train(
        ranker.network,
        course.batches,
        course.loss,
        chosen,
        work,
        device=ranker.device,
        what="Training the answer ranker",
        checkpoint=folder / CHECKPOINT_FILE,
    )
    ranker.save(folder)
    mark_done(folder, name, {"options": chosen.model_dump(), "losses": losses, "base": model})
    return folder


class _Course:
    """What the ranker is shown in every epoch, and how far off it is."""

    def __init__(
        self, kb: KnowledgeBase, ranker: CrossEncoder, options: RankerOptions, nearest: Nearest | None
    ) -> None:
        self.kb = kb
        self.ranker = ranker
        self.options = options
        self.examples = examples_of(kb)
        self.synonyms = synonym_source(ranker.tokenizer, ranker.network.network)
        number = {question: row for row, question in enumerate(kb.questions)}
        self.hard = None if nearest is None else {q: nearest[row, :HARD_AMONG] for q, row in number.items()}

    def batches(self, epoch: int, rng: np.random.Generator) -> list[list[Pair]]:
        """Whole lists in a new order, or pairs of all lists mixed."""
        shown = [(example, example.question) for example in self.examples]
        for example in self.examples:
            for _ in range(self.options.n_variants):
                shown.append((example, one_variant(example.question, rng, self.synonyms)))
        lists = [
            [
                Pair(question, answer, answer == example.answer)
                for answer in (example.answer, *self._wrong(example, rng))
            ]
            for example, question in shown
        ]
        if self.options.loss == "pairs":
            lists = [[pair] for pairs in lists for pair in pairs]
        per_step = max(1, self.options.batch_size // len(lists[0]))
        order = rng.permutation(len(lists))
        return [
            [pair for k in order[start : start + per_step] for pair in lists[k]]
            for start in range(0, len(lists), per_step)
        ]

    @property
    def _n_wrong(self) -> int:
        n_answers = len(self.kb.answers)
        wanted = self.options.negatives
        return n_answers - 1 if wanted == "all" else min(wanted, n_answers - 1)

    def _wrong(self, example: Example, rng: np.random.Generator) -> list[int]:
        """Wrong answers: some that a retriever puts high, the rest by lot; never a right one."""
        wanted = self._n_wrong
        n_answers = len(self.kb.answers)
        if self.options.negatives == "all":
            return [answer for answer in range(n_answers) if answer not in example.answers]
        chosen: dict[int, None] = {}
        if self.hard is not None:
            near = [int(answer) for answer in self.hard[example.question] if int(answer) not in example.answers]
            n_hard = min(int(wanted * self.options.hard_share + rng.random()), len(near))
            chosen = dict.fromkeys(near[k] for k in rng.permutation(len(near))[:n_hard])
        most = min(wanted, n_answers - len(example.answers))
        while len(chosen) < most:
            drawn = rng.integers(n_answers, size=wanted).tolist()
            chosen |= dict.fromkeys(answer for answer in drawn if answer not in example.answers)
        return list(chosen)[:most]

    def loss(self, batch: Sequence[Pair]) -> Any:
        """Of lists: finding the right answer in its list. Of pairs: telling right pairs from wrong ones."""
        texts = [self.kb.answers[pair.answer].text for pair in batch]
        scores = self.ranker.logits([pair.question for pair in batch], texts)
        if self.options.loss == "lists":
            starts = [k for k, pair in enumerate(batch) if pair.is_right]
            own = torch.zeros(1, dtype=torch.long, device=scores.device)
            lists = [scores[a:b].unsqueeze(0) for a, b in pairwise([*starts, len(batch)])]
            return torch.stack([functional.cross_entropy(row, own) for row in lists]).mean()
        target = torch.tensor([float(pair.is_right) for pair in batch], device=scores.device)
        # Right pairs are few: they weigh with the square root of how many wrong ones stand against each.
        weight = torch.tensor(float(max(1, self._n_wrong)) ** 0.5, device=scores.device)
        return functional.binary_cross_entropy_with_logits(scores, target, pos_weight=weight)
