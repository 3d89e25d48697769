"""Encoding on a processor: the same encoder with 8-bit weights in ONNX Runtime, two to three times as fast as torch.

The features differ a little from those in single precision (cosine about .99), the ranking of dialogues hardly; figures in
``bench.learned``. Activations are rounded by the range of their batch, so a text's features depend slightly on what stands
beside it. Where ONNX Runtime is missing or the encoder is no BERT, torch does the work.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.learned.cmade.onnx_file import MICROSOFT, Graph
from dialometer.learned.cmade.tokens import Tokens, batch_of, bucketed

if TYPE_CHECKING:
    from dialometer.learned.cmade.encoder import DialogueEncoder
    from dialometer.learned.cmade.ranknet import RankNet


# A BERT encoder as an ONNX graph with 8-bit matrix products: what :mod:`dialometer.learned.cmade.fast_encoding` runs.
#
# Weights are rounded per output channel beforehand, activations per batch while it runs (ONNX Runtime's dynamic quantisation).
# Embeddings, normalisation, attention and pooling stay in single precision. The graph sums the last layer over a text's tokens,
# so that means over one chunk or several can be taken outside.


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


Floats = NDArray[np.float32]
Report = Callable[[int, int], None]
TOKENS_PER_BATCH = 1024
"""Small batches stay in the processor's cache; larger ones are slower."""
MAX_TOKENS = 256
"""Of a single text, as in the sentence-transformers release of the packaged encoder."""


def is_available() -> bool:
    """Whether ONNX Runtime is installed."""
    return importlib.util.find_spec("onnxruntime") is not None


def n_levels(cpu_file: Path = Path("/proc/cpuinfo")) -> int:
    """The largest 8-bit weight to use: half the range where the processor's products of two bytes may overflow.

    Processors without VNNI add two products in 16 bits, so ONNX Runtime recommends a reduced range for them.
    """
    try:
        has_wide_sums = "vnni" in cpu_file.read_text()
    except OSError:
        has_wide_sums = False
    return 127 if has_wide_sums else 64


class Quick:
    """A graph ready to run. Threads sleep while they wait, so that a busy machine loses no time to spinning."""

    def __init__(self, graph: bytes, n_threads: int = 0) -> None:
        import onnxruntime  # noqa: PLC0415 (an extra)

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads or int(os.environ.get("OMP_NUM_THREADS", "0") or 0)
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session: Any = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self._has_speakers = any(one.name == "speakers" for one in self._session.get_inputs())

    def run(
        self, ids: NDArray[np.int64], mask: NDArray[np.bool_], speakers: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """Sums of the last layer over the tokens of each row, and its first token."""
        given = {"ids": ids, "mask": mask.astype(np.int32)}
        if self._has_speakers:
            given["speakers"] = speakers
        sums, firsts = self._session.run(["sums", "firsts"], given)
        return sums, firsts


class QuickEncoder:
    """Stands in for a :class:`DialogueEncoder` where features are only read, on a processor."""

    def __init__(self, encoder: DialogueEncoder) -> None:
        config = encoder.network.config.to_dict()
        if not is_known(config):
            raise DialometerError("this encoder has no quick form", remedy="use it with torch")
        weights = {name: value.detach().cpu().numpy() for name, value in encoder.network.state_dict().items()}
        speakers = encoder.speaker.weight.detach().cpu().numpy()
        self.pooling = encoder.pooling
        self.pad = encoder.tokeniser.pad
        self.width = encoder.width
        self._quick = Quick(bert_graph(weights, Shape.of(config), speakers, n_levels()))

    def features(self, tokens: Sequence[Tokens], *, report: Report | None = None) -> Floats:
        """As ``DialogueEncoder.features``: all chunks of a dialogue count by their tokens."""
        out = np.empty((len(tokens), self.width), dtype=np.float32)
        n_done = 0
        for rows in bucketed(tokens, np.arange(len(tokens)), TOKENS_PER_BATCH):
            batch = batch_of(tokens, rows, self.pad)
            sums, firsts = self._quick.run(batch.ids, batch.mask, batch.speakers)
            n_tokens = batch.mask.sum(axis=1, keepdims=True).astype(np.float32)
            totals, counts = np.zeros((len(rows), self.width), np.float32), np.zeros((len(rows), 1), np.float32)
            np.add.at(totals, batch.owners, sums if self.pooling == "mean" else firsts * n_tokens)
            np.add.at(counts, batch.owners, n_tokens)
            out[rows] = totals / counts
            n_done += len(rows)
            if report is not None:
                report(n_done, len(tokens))
        return out


class QuickRankNet:
    """Stands in for a :class:`RankNet` where dialogues are only scored, on a processor."""

    def __init__(self, model: RankNet) -> None:
        self.encoder = model.encoder
        self._quick = QuickEncoder(model.encoder)
        self._weight = model.head.weight.detach().cpu().numpy().astype(np.float64)
        self._bias = model.head.bias.detach().cpu().numpy().astype(np.float64)
        self._levels = np.array(model.levels)

    def scores(self, tokens: Sequence[Tokens], *, report: Report | None = None) -> NDArray[np.float64]:
        """As ``RankNet.scores``."""
        from dialometer.learned.cmade.ranknet import expected_rating  # noqa: PLC0415 - needs torch

        outputs = self._quick.features(tokens, report=report) @ self._weight.T + self._bias
        return expected_rating(outputs, self._levels) if len(self._levels) else np.asarray(outputs[:, 0])


def has_quick_form(encoder: DialogueEncoder) -> bool:
    """Whether an encoder can be run in 8 bits where it is."""
    return encoder.device.type == "cpu" and is_available() and is_known(encoder.network.config.to_dict())


def quick_features(encoder: DialogueEncoder, tokens: Sequence[Tokens], *, report: Report | None = None) -> Floats:
    """Features by the quickest way there is: 8 bits on a processor, torch on a GPU or where the quick form is missing."""
    if has_quick_form(encoder):
        return QuickEncoder(encoder).features(tokens, report=report)
    return encoder.features(tokens, report=report)


class QuickTextEncoder:
    """Single texts to vectors of length one, as sentence-transformers gives them; needs neither torch nor transformers."""

    def __init__(self, folder: Path, *, max_tokens: int = MAX_TOKENS, n_threads: int = 0) -> None:
        from safetensors.numpy import load_file  # noqa: PLC0415 (an extra)
        from tokenizers import Tokenizer  # noqa: PLC0415

        config = json.loads((folder / "config.json").read_text())
        if not is_known(config):
            raise DialometerError("this encoder has no quick form", where=str(folder), remedy="use it with torch")
        self.width = int(config["hidden_size"])
        self._pad = int(config.get("pad_token_id") or 0)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        graph = bert_graph(load_file(folder / "model.safetensors"), Shape.of(config), n_levels=n_levels())
        self._quick = Quick(graph, n_threads)

    def encode(self, texts: Sequence[str], *, report: Report | None = None) -> Floats:
        """One row for each text."""
        out = np.empty((len(texts), self.width), dtype=np.float32)
        ids = [np.array(one.ids) for one in self._tokenizer.encode_batch_fast(list(texts))]
        n_done = 0
        for rows in _similar(ids, TOKENS_PER_BATCH):
            shape = (len(rows), max(len(ids[row]) for row in rows))
            padded, mask = np.full(shape, self._pad, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
            for place, row in enumerate(rows):
                padded[place, : len(ids[row])], mask[place, : len(ids[row])] = ids[row], True
            sums, _ = self._quick.run(padded, mask, padded)
            out[rows] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
            n_done += len(rows)
            if report is not None:
                report(n_done, len(texts))
        return out


def _similar(ids: Sequence[NDArray[np.int64]], n_tokens: int) -> Iterator[list[int]]:
    """Batches of texts of similar length, longest first."""
    order = sorted(range(len(ids)), key=lambda row: (-len(ids[row]), row))
    start = 0
    while start < len(order):
        stop = start + max(1, n_tokens // max(1, len(ids[order[start]])))
        yield order[start:stop]
        start = stop
