"""What a language model thinks of an answer: how much likelier its words are after the question than with none before them.

The first answers of the encoder as it is are read, all those of a question in one pass: they stand behind the question side by
side, and each sees the question and itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bench._reactions import load_language_model
from dialometer.retrieval.queries import Query

Floats = npt.NDArray[np.float32]
N_READ, N_TOGETHER, N_TURNS = 50, 32, 2
HEADING, ASKS, ANSWERS = "An interview with Margarita.\n\n", "Interviewer: ", "Margarita:"


class Likelihoods:
    """A causal language model and its tokenizer, by name or folder."""

    def __init__(self, name: str) -> None:
        self.model, self.tokenizer = load_language_model(name, "cpu")

    def tokens(self, text: str) -> list[int]:
        """Without marks at the beginning."""
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    @torch.inference_mode()
    def after(self, start: str, texts: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
        """The mean log probability per token of each text after ``start``."""
        before = self.tokens(start)
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        out = np.empty(len(texts))
        for begin in range(0, len(order), N_TOGETHER):
            some = order[begin : begin + N_TOGETHER]
            out[some] = self._together(before, [texts[number] for number in some])
        return out

    def _together(self, before: list[int], texts: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
        lengths = [len(text) for text in texts]
        tokens = torch.tensor([*before, *(token for text in texts for token in text)])
        places = torch.tensor([*range(len(before)), *(len(before) + at for n in lengths for at in range(n))])
        branch = torch.tensor([-1] * len(before) + [number for number, n in enumerate(lengths) for _ in range(n)])
        index = torch.arange(len(tokens))
        sees = (branch[None] == -1) | (branch[:, None] == branch[None])
        sees &= index[None] <= index[:, None]
        hidden = self.model.base_model(
            input_ids=tokens[None], position_ids=places[None], attention_mask=sees[None, None]
        ).last_hidden_state[0]
        scored = index[len(before) :]
        begins = torch.cat([torch.tensor([True]), branch[scored][1:] != branch[scored][:-1]])
        rows = torch.where(begins, len(before) - 1, scored - 1)
        log_probs = torch.log_softmax(self.model.get_output_embeddings()(hidden[rows]).float(), dim=-1)
        own = log_probs.gather(1, tokens[scored][:, None])[:, 0]
        sums = torch.zeros(len(texts)).index_add_(0, branch[scored], own)
        return np.asarray(sums.double().numpy() / np.array(lengths))


def likelihoods(model: str, queries: Sequence[Query], answers: Sequence[str], first: Any) -> Floats:
    """Questions by answers; nan where an answer was not read."""
    reader = Likelihoods(model)
    texts = [reader.tokens(f" {' '.join(answer.split())}\n") for answer in answers]
    alone = reader.after(HEADING + ANSWERS, texts)
    out = np.full((len(queries), len(answers)), np.nan, dtype=np.float32)
    started = time.monotonic()
    for row, query in enumerate(queries):
        said = "".join(
            f"{ASKS if turn.role == 'user' else f'{ANSWERS} '}{turn.text}\n" for turn in query.context[-N_TURNS:]
        )
        start = f"{HEADING}{said}{ASKS}{query.text}\n{ANSWERS}"
        out[row, first[row]] = reader.after(start, [texts[answer] for answer in first[row]]) - alone[first[row]]
        if row % 20 == 19:
            print(f"{row + 1} of {len(queries)} questions in {time.monotonic() - started:.0f} s", flush=True)
    return out
