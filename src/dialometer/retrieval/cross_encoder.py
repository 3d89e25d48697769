"""A transformer that reads a question and an answer together and says how well they fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.retrieval.packaged import device_of
from dialometer.retrieval.text_encoder import load_model
from dialometer.retrieval.work import QUIET, Work

Floats = NDArray[np.float32]
MOST_TOKENS = 128
HEAD_FILE = "head.pt"
PAIRS_TOGETHER = 16


class PairNetwork(torch.nn.Module):
    """The encoder's mean over both texts, and one number from it."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        self.drop = torch.nn.Dropout(0.1)
        self.head = torch.nn.Linear(network.config.hidden_size, 1)

    def forward(self, batch: dict[str, Any]) -> Any:
        """One score (a logit) per pair."""
        hidden = self.network(**batch).last_hidden_state.float()
        mask = batch["attention_mask"].unsqueeze(-1).float()
        return self.head(self.drop((hidden * mask).sum(1) / mask.sum(1))).squeeze(-1)


class CrossEncoder:
    """A network with its tokenizer, ready to score pairs. Texts are cut into tokens once each."""

    def __init__(self, tokenizer: Any, network: PairNetwork, device: str) -> None:
        self.tokenizer = tokenizer
        self.network = network.to(device)
        self.device = device
        self._tokens: dict[str, list[int]] = {}

    @classmethod
    def fresh(cls, model: str, work: Work = QUIET, seed: int = 0) -> CrossEncoder:
        """An untrained head on an encoder."""
        device = device_of(work.device)
        tokenizer, network = load_model(model, device)
        torch.manual_seed(seed)
        return cls(tokenizer, PairNetwork(network), device)

    @classmethod
    def load(cls, folder: Path, work: Work = QUIET) -> CrossEncoder:
        """As :meth:`save` wrote it."""
        head = folder / HEAD_FILE
        if not head.is_file():
            raise DialometerError("no trained answer ranker", where=str(folder), remedy="train one")
        found = cls.fresh(str(folder), work)
        found.network.head.load_state_dict(torch.load(head, map_location=found.device, weights_only=True))
        found.network.eval()
        return found

    def save(self, folder: Path) -> None:
        """The encoder in the usual form, the head beside it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.network.network.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        torch.save(self.network.head.state_dict(), folder / HEAD_FILE)

    def batch(self, questions: Sequence[str], answers: Sequence[str]) -> dict[str, Any]:
        """``[CLS] question [SEP] answer [SEP]``, padded; what is too long loses the start of the question first."""
        rows = [self._joined(question, answer) for question, answer in zip(questions, answers, strict=True)]
        width = max(len(ids) for ids, _ in rows)
        pad = self.tokenizer.pad_token_id or 0
        table = {
            "input_ids": [ids + [pad] * (width - len(ids)) for ids, _ in rows],
            "attention_mask": [[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows],
            "token_type_ids": [
                [0] * n_first + [1] * (len(ids) - n_first) + [0] * (width - len(ids)) for ids, n_first in rows
            ],
        }
        if "token_type_ids" not in self.tokenizer.model_input_names:
            del table["token_type_ids"]
        return {name: torch.tensor(values, device=self.device) for name, values in table.items()}

    def _joined(self, question: str, answer: str) -> tuple[list[int], int]:
        start, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        second = self._cut(answer)[: MOST_TOKENS // 2]
        first = self._cut(question)[-(MOST_TOKENS - len(second) - 3) :]
        return [start, *first, end, *second, end], len(first) + 2

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
                found = self.network(batch)
            out[rows] = found.float().cpu().numpy()
        return out
