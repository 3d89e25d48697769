"""A BERT encoder as an ONNX graph with 8-bit matrix products: what :mod:`dialometer.learned.fast_encoding` runs.

Weights are rounded per output channel beforehand, activations per batch while it runs (ONNX Runtime's dynamic quantisation).
Embeddings, normalisation, attention and pooling stay in single precision. The graph sums the last layer over a text's tokens,
so that means over one chunk or several can be taken outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.learned.onnx_file import MICROSOFT, Graph

Weights = Mapping[str, NDArray[np.float32]]
_ABSENT = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """The few numbers of a BERT's configuration that its graph needs."""

    n_layers: int
    n_heads: int
    width: int
    epsilon: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape:
        """From the names that Hugging Face uses."""
        return cls(
            int(config["num_hidden_layers"]),
            int(config["num_attention_heads"]),
            int(config["hidden_size"]),
            float(config["layer_norm_eps"]),
        )


def is_known(config: Mapping[str, Any]) -> bool:
    """Whether a configuration describes the one architecture that this file can write."""
    return (
        config.get("model_type") == "bert"
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") in ("absolute", None)
    )


def bert_graph(
    weights: Weights, shape: Shape, speakers: NDArray[np.float32] | None = None, n_levels: int | None = 127
) -> bytes:
    """The file of a graph from ``ids``, ``mask`` (and ``speakers``) to ``sums`` and ``firsts``.

    ``speakers`` holds the embeddings of who speaks. ``n_levels`` is the largest 8-bit weight; None keeps all in single
    precision, which tests compare with.
    """
    return _Writer(weights, shape, n_levels).write(speakers)


class _Writer:
    def __init__(self, weights: Weights, shape: Shape, n_levels: int | None) -> None:
        self.weights = weights
        self.shape = shape
        self.n_levels = n_levels
        self.graph = Graph("dialogue encoder")

    def write(self, speakers: NDArray[np.float32] | None) -> bytes:
        graph = self.graph
        ids = graph.input("ids", "int64", ["texts", "tokens"])
        mask = graph.input("mask", "int32", ["texts", "tokens"])
        hidden = self._embeddings(ids, speakers)
        for number in range(self.shape.n_layers):
            hidden = self._layer(f"encoder.layer.{number}", hidden, mask)
        axis = graph.constant(np.array([1]))
        weights = graph.add("Unsqueeze", [graph.add("Cast", [mask], {"to": 1}), axis])
        graph.add("Squeeze", [graph.add("MatMul", [weights, hidden]), axis], output="sums")
        graph.add("Gather", [hidden, graph.constant(np.array(0))], {"axis": 1}, output="firsts")
        graph.output("sums", "float32", ["texts", self.shape.width])
        graph.output("firsts", "float32", ["texts", self.shape.width])
        return graph.model()

    def _embeddings(self, ids: str, speakers: NDArray[np.float32] | None) -> str:
        graph = self.graph
        total = graph.add("Gather", [self._constant("embeddings.word_embeddings.weight"), ids])
        if speakers is not None:
            who = graph.input("speakers", "int64", ["texts", "tokens"])
            total = graph.add("Add", [total, graph.add("Gather", [graph.constant(speakers), who])])
        # Every token is of the first segment, so its embedding goes with the positions.
        places = self.weights["embeddings.position_embeddings.weight"]
        places = places + self.weights["embeddings.token_type_embeddings.weight"][0]
        zero = graph.constant(np.array([0]))
        n_tokens = graph.add("Shape", [ids], {"start": 1, "end": 2})
        used = graph.add("Slice", [graph.constant(places), zero, n_tokens, zero])
        total = graph.add("Add", [total, graph.add("Unsqueeze", [used, zero])])
        name = "embeddings.LayerNorm"
        parts = [total, self._constant(f"{name}.weight"), self._constant(f"{name}.bias")]
        return str(graph.add("LayerNormalization", parts, {"epsilon": self.shape.epsilon}))

    def _layer(self, name: str, hidden: str, mask: str) -> str:
        width = self.shape.width
        both = self._linear(hidden, *(f"{name}.attention.self.{part}" for part in ("query", "key", "value")))
        sizes = self.graph.constant(np.array([width] * 3))
        query, key, value = self.graph.add("Split", [both, sizes], {"axis": -1}, n_outputs=3)
        heads = {"num_heads": self.shape.n_heads}
        parts = [query, key, value, _ABSENT, mask]
        seen = self.graph.add("MultiHeadAttention", parts, heads, domain=MICROSOFT)
        hidden = self._added(self._linear(seen, f"{name}.attention.output.dense"), hidden, f"{name}.attention.output")
        inner = self.graph.add("Gelu", [self._linear(hidden, f"{name}.intermediate.dense")], domain=MICROSOFT)
        return self._added(self._linear(inner, f"{name}.output.dense"), hidden, f"{name}.output")

    def _linear(self, value: str, *names: str) -> str:
        """One product for the layers ``names`` side by side."""
        weight = np.concatenate([self.weights[f"{name}.weight"] for name in names])
        bias = self.graph.constant(np.concatenate([self.weights[f"{name}.bias"] for name in names]))
        if self.n_levels is None:
            product = self.graph.add("MatMul", [value, self.graph.constant(weight.T)])
            return str(self.graph.add("Add", [product, bias]))
        scale = np.maximum(np.abs(weight).max(axis=1), 1e-9) / self.n_levels
        rounded = np.round(weight / scale[:, None]).astype(np.int8).T
        parts = [value, self.graph.constant(rounded), self.graph.constant(scale.astype(np.float32)), _ABSENT, bias]
        return str(self.graph.add("DynamicQuantizeMatMul", parts, domain=MICROSOFT))

    def _added(self, value: str, before: str, name: str) -> str:
        parts = [value, before, self._constant(f"{name}.LayerNorm.weight"), self._constant(f"{name}.LayerNorm.bias")]
        attributes = {"epsilon": self.shape.epsilon}
        return str(self.graph.add("SkipLayerNormalization", parts, attributes, domain=MICROSOFT))

    def _constant(self, name: str) -> str:
        return self.graph.constant(self.weights[name])
