"""One BERT encoder per fold, all trained side by side in one stack: ten small trainings cost about as much as one.

Every weight has a first axis for the fold, so that a layer is one batched product. Nothing is shared between folds: gradients are
clipped fold by fold, and all else of the optimiser acts on single weights. Needs torch and numpy alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

N_HEADS = 12
DROPOUT = 0.1
LAYER_PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)


class StackedEncoder:
    """BERT's encoder with weights of shape (folds, ...). Texts come as tokens of shape (folds, texts, length), 0 for padding."""

    def __init__(self, weights: dict[str, Any], n_folds: int, device: str) -> None:
        self.n_folds, self.device = n_folds, device
        self.weights = {
            name: torch.tensor(np.asarray(value, dtype=np.float32), device=device).expand(n_folds, *value.shape).clone()
            for name, value in weights.items()
        }
        self.n_layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))

    def trainable(self, n_frozen: int) -> list[Any]:
        """The weights above the first ``n_frozen`` layers; the embeddings too where no layer is frozen."""
        kept = []
        for name, value in self.weights.items():
            layer = int(name.split(".")[2]) if name.startswith("encoder.") else -1
            if layer >= n_frozen or not n_frozen:
                kept.append(value.requires_grad_())
        return kept

    def hidden(self, tokens: Any, *, dropout: float = 0.0) -> Any:
        """The last layer: (folds, texts, length, width)."""
        n_folds, n_texts, length = tokens.shape
        own = self.weights
        table = own["embeddings.word_embeddings.weight"]
        fold = torch.arange(n_folds, device=tokens.device)[:, None, None]
        x = (
            functional.embedding((tokens + fold * table.shape[1]).flatten(), table.flatten(0, 1)).view(
                *tokens.shape, -1
            )
            + own["embeddings.position_embeddings.weight"][:, None, :length]
        )
        x = x + own["embeddings.token_type_embeddings.weight"][:, None, None, 0]
        x = self._norm("embeddings.LayerNorm", x.flatten(1, 2))
        x = functional.dropout(x, dropout, training=dropout > 0)
        mask = (tokens != 0).flatten(0, 1)[:, None, None, :]
        for layer in range(self.n_layers):
            x = self._layer(f"encoder.layer.{layer}", x, mask, (n_folds, n_texts, length), dropout)
        return x.unflatten(1, (n_texts, length))

    def pooled(self, tokens: Any, *, dropout: float = 0.0) -> tuple[Any, Any]:
        """Mean of the tokens, of length one; and the tokens' own vectors of length one."""
        hidden = self.hidden(tokens, dropout=dropout).float()
        mask = (tokens != 0).unsqueeze(-1).float()
        mean = (hidden * mask).sum(2) / mask.sum(2).clamp(min=1e-9)
        return functional.normalize(mean, dim=-1), functional.normalize(hidden, dim=-1) * mask

    def _layer(self, name: str, x: Any, mask: Any, shape: tuple[int, int, int], dropout: float) -> Any:
        n_folds, n_texts, length = shape
        query, key, value = (
            self._dense(f"{name}.attention.self.{part}", x).view(n_folds * n_texts, length, N_HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        read = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        read = read.transpose(1, 2).reshape(n_folds, n_texts * length, -1)
        read = functional.dropout(self._dense(f"{name}.attention.output.dense", read), dropout, training=dropout > 0)
        x = self._norm(f"{name}.attention.output.LayerNorm", x + read)
        inner = functional.gelu(self._dense(f"{name}.intermediate.dense", x))
        inner = functional.dropout(self._dense(f"{name}.output.dense", inner), dropout, training=dropout > 0)
        return self._norm(f"{name}.output.LayerNorm", x + inner)

    def _dense(self, name: str, x: Any) -> Any:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return torch.bmm(x, weight.transpose(1, 2)) + bias[:, None].to(
            x.dtype if x.dtype == weight.dtype else bias.dtype
        )

    def _norm(self, name: str, x: Any) -> Any:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return functional.layer_norm(x.float(), x.shape[-1:], eps=1e-12) * weight[:, None] + bias[:, None]


def clip_by_fold(weights: list[Any], most: float) -> None:
    """Scales each fold's gradient to at most this length."""
    grads = [value.grad for value in weights if value.grad is not None]
    total = sum(grad.flatten(1).pow(2).sum(1) for grad in grads).sqrt()
    scale = (most / (total + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(scale.view(-1, *[1] * (grad.dim() - 1)))
