"""Cross-encoders of all folds side by side: a question and an answer are read together, in both orders.

Each right pair stands beside wrong answers, half of them near the question by the encoder as it is; it must be found in its list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from bench._stacked_encoder import StackedEncoder, clip_by_fold

N_LISTS, N_WRONG = 16, 7
N_READ = 30


class StackedRanker(StackedEncoder):
    """The encoder with one number on top of the mean of its tokens."""

    def __init__(self, weights: dict[str, Any], n_folds: int, device: str) -> None:
        super().__init__(weights, n_folds, device)
        width = weights["embeddings.LayerNorm.weight"].shape[0]
        self.weights["head"] = torch.zeros(n_folds, width, device=device)

    def scores(self, tokens: Any, *, dropout: float = 0.0) -> Any:
        """Folds by texts."""
        hidden = self.hidden(tokens, dropout=dropout).float()
        mask = (tokens != 0).unsqueeze(-1).float()
        mean = (hidden * mask).sum(2) / mask.sum(2)
        return torch.einsum("fnw,fw->fn", mean, self.weights["head"])


def joined(plan: Any, first: Any, second: Any) -> Any:
    """Tokens of two texts one after the other, the second without its first token; folds by texts by length."""
    both = np.zeros((*first.shape, 2 * plan.table.shape[1]), dtype=np.int64)
    table = plan.table_rows
    for at in np.ndindex(*first.shape):
        one, two = table[first[at]], table[second[at]][1:]
        both[at][: len(one)] = one
        both[at][len(one) : len(one) + len(two)] = two
    longest = int((both != 0).sum(-1).max())
    return torch.tensor(both[..., :longest], device=plan.device)


def train_ranker(
    plan: Any,
    nearest: list[Any],
    shown: Any,
    start: dict[str, Any] | None = None,
    n_epochs: int = 5,
    rate: float = 5e-5,
    seed: int = 0,
) -> Any:
    """A ranker that reads either order, chosen by lot at every step.

    It begins at the weights ``start`` of each fold and then sees all near wrong answers that are known; without, at the encoder
    as it is.
    """
    torch.manual_seed(seed)
    net = StackedRanker(plan.weights, len(plan.folds), plan.device)
    net.weights.update({name: value.detach().clone() for name, value in (start or {}).items()})
    n_near = N_WRONG if start else N_WRONG // 2 + 1
    weights = [value.requires_grad_() for value in net.weights.values()]
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=0.01, fused=plan.device == "cuda")
    rngs = [np.random.default_rng([seed, number]) for number in range(len(plan.folds))]
    size = min(len(fold["lessons"]) for fold in plan.folds)
    n_steps = size // N_LISTS
    answer_texts = np.array(plan.answers)
    for epoch in range(n_epochs):
        orders = [rng.permutation(len(fold["lessons"])) for rng, fold in zip(rngs, plan.folds, strict=True)]
        for step in range(n_steps):
            asked, answers = [], []
            for rng, fold, order, near in zip(rngs, plan.folds, orders, nearest, strict=True):
                for at in order[step * N_LISTS : (step + 1) * N_LISTS]:
                    question, answer = fold["lessons"][at]
                    right = near["right"][question]
                    wrong = list(rng.permutation(near[question, answer])[:n_near])
                    while len(wrong) < N_WRONG:
                        lot = int(rng.integers(len(answer_texts)))
                        wrong += [lot] if lot not in right else []
                    text = shown(question, rng)
                    asked += [text] * (N_WRONG + 1)
                    answers += [answer, *wrong]
            shape = len(plan.folds), N_LISTS * (N_WRONG + 1)
            one, two = np.array(asked).reshape(shape), answer_texts[np.array(answers, dtype=np.int64)].reshape(shape)
            done = epoch * n_steps + step
            now = rate * min(1.0, (done + 1) / (0.1 * n_epochs * n_steps)) * (1 - done / (n_epochs * n_steps))
            for group in optimiser.param_groups:
                group["lr"] = now
            optimiser.zero_grad(set_to_none=True)
            with torch.autocast(plan.device, torch.bfloat16, enabled=plan.device == "cuda"):
                texts = joined(plan, one, two) if rngs[0].random() < 0.5 else joined(plan, two, one)
                given = net.scores(texts, dropout=0.1).view(shape[0] * N_LISTS, N_WRONG + 1)
            target = torch.zeros(len(given), dtype=torch.long, device=plan.device)
            (functional.cross_entropy(given.float(), target) * shape[0]).backward()
            clip_by_fold(weights, 1.0)
            optimiser.step()
    for value in net.weights.values():
        value.requires_grad_(False)
    return net


def read(net: Any, plan: Any, first: Any) -> Any:
    """Scores of each question's first answers in both orders, in thousandths; -30000 where an answer was not read."""
    out = np.full((plan.n_questions, len(plan.answers), 2), -30000, dtype=np.int16)
    answer_texts = np.array(plan.answers)
    most = max(len(fold["rows"]) for fold in plan.folds)
    rows = np.array([[fold["rows"][min(at, len(fold["rows"]) - 1)] for at in range(most)] for fold in plan.folds])
    turns = np.array([plan.forms["turn"][row][0] for row in range(plan.n_questions)])
    with torch.inference_mode(), torch.autocast(plan.device, torch.bfloat16, enabled=plan.device == "cuda"):
        for at in range(most):
            own = rows[:, at]
            asked = np.repeat(turns[own][:, None], first.shape[1], axis=1)
            for order in (0, 1):
                two = answer_texts[first[own]]
                texts = joined(plan, asked, two) if order == 0 else joined(plan, two, asked)
                given = np.round(1000 * net.scores(texts).float().cpu().numpy()).clip(-29000, 29000)
                for fold, row in enumerate(own):
                    out[row, first[row], order] = given[fold]
    return out
