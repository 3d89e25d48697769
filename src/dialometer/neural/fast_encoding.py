"""Encoding on a processor: a BERT with 8-bit weights in ONNX Runtime, two to three times as fast as torch.

The features differ a little from those in single precision (cosine above .99), the ranking of texts hardly; figures in
``bench.encoding``. Activations are rounded token by token, each by its own range, so a text's features do not depend on the texts
beside it. ONNX Runtime's own dynamic quantisation rounds by the range of the whole batch: it needs a tenth less time, but then
a vector in the cache depends on what else was encoded that day. Nothing here needs torch or transformers. Torch's dynamic
quantisation is no substitute: on the packaged encoder it takes three to five times the processor time and reaches a cosine of
.91 to .94 only.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.neural.device import choose_device
from dialometer.neural.embedding_cache import EmbeddingCache
from dialometer.neural.pretrained import PACKAGED, model_path
from dialometer.neural.work import QUIET, Work

Floats = NDArray[np.float32]
Weights = Mapping[str, NDArray[np.float32]]
Report = Callable[[int, int], None]
TOKENS_PER_BATCH = 1024
"""Small batches stay in the processor's cache; larger ones are slower."""
MAX_TOKENS = 256
"""Of a single text, as in the sentence-transformers release of the packaged encoder."""
IR_VERSION = 10
OPSET = 17
MICROSOFT = "com.microsoft"
"""Domain of ONNX Runtime's own operators."""
LOWEST_GELU = -0.17
"""No value of the function is below it, so that nearly all 256 levels are left for positive ones."""
_TEXTS_AT_A_TIME = 2048


@dataclass(frozen=True, slots=True)
class BertShape:
    """The few numbers of a BERT's configuration that its graph needs."""

    n_layers: int
    n_heads: int
    width: int
    epsilon: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> BertShape:
        """From the names that Hugging Face uses."""
        return cls(
            int(config["num_hidden_layers"]),
            int(config["num_attention_heads"]),
            int(config["hidden_size"]),
            float(config["layer_norm_eps"]),
        )


def is_supported(config: Mapping[str, Any]) -> bool:
    """Whether a configuration describes the one architecture that :func:`bert_graph` can write."""
    return (
        config.get("model_type") == "bert"
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") in ("absolute", None)
    )


def bert_graph(
    weights: Weights, shape: BertShape, speakers: NDArray[np.float32] | None = None, n_levels: int | None = 127
) -> bytes:
    """An ONNX file from ``ids``, ``mask`` (and ``speakers``) to ``sums`` and ``firsts``, with 8-bit matrix products.

    Weights are rounded per output channel beforehand, activations per token while it runs. Embeddings, normalisation, attention
    and pooling stay in single precision. ``sums`` adds the last layer up over a text's tokens, so that means over one chunk or
    several can be taken outside; ``firsts`` is its first token. ``speakers`` holds the embeddings of who speaks. ``n_levels`` is
    the largest 8-bit weight; None keeps all in single precision, which tests compare with.
    """
    return _BertGraph(weights, shape, n_levels).write(speakers)


class _BertGraph:
    """A graph under construction: operators are added in order."""

    def __init__(self, weights: Weights, shape: BertShape, n_levels: int | None) -> None:
        self.weights = weights
        self.shape = shape
        self.n_levels = n_levels
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def write(self, speakers: NDArray[np.float32] | None) -> bytes:
        from onnx import TensorProto, helper  # noqa: PLC0415 (an extra)

        ids, mask = self._input("ids", TensorProto.INT64), self._input("mask", TensorProto.INT32)
        hidden = self._embeddings(ids, speakers)
        for number in range(self.shape.n_layers):
            hidden = self._layer(f"encoder.layer.{number}", hidden, mask)
        axis = self._constant(np.array([1]))
        weights = self._add("Unsqueeze", [self._add("Cast", [mask], {"to": 1}), axis])
        self._add("Squeeze", [self._add("MatMul", [weights, hidden]), axis], output="sums")
        self._add("Gather", [hidden, self._constant(np.array(0))], {"axis": 1}, output="firsts")
        outputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", self.shape.width])
            for name in ("sums", "firsts")
        ]
        graph = helper.make_graph(self.nodes, "dialogue encoder", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()
        return model

    def _embeddings(self, ids: str, speakers: NDArray[np.float32] | None) -> str:
        from onnx import TensorProto  # noqa: PLC0415 (an extra)

        total = self._add("Gather", [self._weight("embeddings.word_embeddings.weight"), ids])
        if speakers is not None:
            who = self._input("speakers", TensorProto.INT64)
            total = self._add("Add", [total, self._add("Gather", [self._constant(speakers), who])])
        # Every token is of the first segment, so its embedding goes with the positions.
        places = self.weights["embeddings.position_embeddings.weight"]
        places = places + self.weights["embeddings.token_type_embeddings.weight"][0]
        zero = self._constant(np.array([0]))
        n_tokens = self._add("Shape", [ids], {"start": 1, "end": 2})
        used = self._add("Slice", [self._constant(places), zero, n_tokens, zero])
        total = self._add("Add", [total, self._add("Unsqueeze", [used, zero])])
        name = "embeddings.LayerNorm"
        parts = [total, self._weight(f"{name}.weight"), self._weight(f"{name}.bias")]
        return self._add("LayerNormalization", parts, {"epsilon": self.shape.epsilon})

    def _layer(self, name: str, hidden: str, mask: str) -> str:
        """Biases are added by the operators after the products, which saves a pass over the values."""
        names = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        sizes = self._constant(np.array([self.shape.width] * 3))
        query, key, value = self._add_several("Split", [self._product(hidden, *names), sizes], 3, {"axis": -1})
        bias = self._constant(np.concatenate([self.weights[f"{part}.bias"] for part in names]))
        heads = {"num_heads": self.shape.n_heads}
        seen = self._add("MultiHeadAttention", [query, key, value, bias, mask], heads, domain=MICROSOFT)
        hidden = self._added(seen, hidden, f"{name}.attention.output")
        inner = self._product(hidden, f"{name}.intermediate.dense")
        inner = self._add("BiasGelu", [inner, self._weight(f"{name}.intermediate.dense.bias")], domain=MICROSOFT)
        return self._added(inner, hidden, f"{name}.output", lowest=LOWEST_GELU)

    def _product(self, value: str, *names: str, lowest: float = -1.0) -> str:
        """One product for the layers ``names`` side by side, without their biases."""
        weight = np.concatenate([self.weights[f"{name}.weight"] for name in names])
        if self.n_levels is None:
            return self._add("MatMul", [value, self._constant(weight.T)])
        scale = np.maximum(np.abs(weight).max(axis=1), 1e-9) / self.n_levels
        rounded = self._constant(np.round(weight / scale[:, None]).astype(np.int8).T)
        size = self._size(value, lowest)
        zero = round(-lowest * 255 / (1 - lowest))
        step, zero_point = self._number(1 / (255 - zero)), self._constant(np.array(zero, dtype=np.uint8))
        levels = self._add("QuantizeLinear", [self._add("Div", [value, size]), step, zero_point])
        parts = [levels, rounded, step, self._constant(scale.astype(np.float32)), zero_point]
        return self._add("Mul", [self._add("MatMulIntegerToFloat", parts, domain=MICROSOFT), size])

    def _size(self, value: str, lowest: float) -> str:
        """What each token is divided by, so that its numbers lie between ``lowest`` and 1."""
        along = {"axes": [-1], "keepdims": 1}
        if lowest == -1:
            size, least = self._add("ReduceMax", [self._add("Abs", [value])], along), 1e-9
        else:  # values that are never below it anyhow: they only need to be divided by 1 or more
            size, least = self._add("ReduceMax", [value], along), 1.0
        return self._add("Max", [size, self._number(least)])

    def _added(self, value: str, before: str, name: str, *, lowest: float = -1.0) -> str:
        product = self._product(value, f"{name}.dense", lowest=lowest)
        parts = [f"{name}.LayerNorm.weight", f"{name}.LayerNorm.bias", f"{name}.dense.bias"]
        inputs = [product, before, *(self._weight(part) for part in parts)]
        return self._add("SkipLayerNormalization", inputs, {"epsilon": self.shape.epsilon}, domain=MICROSOFT)

    def _weight(self, name: str) -> str:
        return self._constant(self.weights[name])

    def _input(self, name: str, kind: int) -> str:
        from onnx import helper  # noqa: PLC0415 (an extra)

        self.inputs.append(helper.make_tensor_value_info(name, kind, ["texts", "tokens"]))
        return name

    def _constant(self, array: NDArray[Any]) -> str:
        from onnx import numpy_helper  # noqa: PLC0415 (an extra)

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def _number(self, value: float) -> str:
        return self._constant(np.array(value, dtype=np.float32))

    def _add(
        self,
        operator: str,
        inputs: Sequence[str],
        attributes: Mapping[str, Any] | None = None,
        *,
        domain: str = "",
        output: str = "",
    ) -> str:
        """Adds an operator; an empty input name leaves an optional one out."""
        return self._add_several(operator, inputs, 1, attributes, domain=domain, output=output)[0]

    def _add_several(
        self,
        operator: str,
        inputs: Sequence[str],
        n_outputs: int,
        attributes: Mapping[str, Any] | None = None,
        *,
        domain: str = "",
        output: str = "",
    ) -> list[str]:
        from onnx import helper  # noqa: PLC0415 (an extra)

        name = output or f"{operator}_{len(self.nodes)}"
        names = [name] if n_outputs == 1 else [f"{name}_{number}" for number in range(n_outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name, domain=domain, **(attributes or {})))
        return names


def is_available() -> bool:
    """Whether ONNX and ONNX Runtime are installed."""
    return all(importlib.util.find_spec(library) is not None for library in ("onnx", "onnxruntime"))


def n_levels(cpu_file: Path = Path("/proc/cpuinfo")) -> int:
    """The largest 8-bit weight to use: half the range where the processor's products of two bytes may overflow.

    Processors without VNNI add two products in 16 bits, so ONNX Runtime recommends a reduced range for them.
    """
    try:
        has_wide_sums = "vnni" in cpu_file.read_text()
    except OSError:
        has_wide_sums = False
    return 127 if has_wide_sums else 64


def rounding() -> str:
    """How numbers are rounded: for the names of caches, since vectors rounded in another way must not be mixed with these."""
    return f"8bit-{n_levels()}-by-token"


class QuickBert:
    """A graph ready to run. Threads sleep while they wait, so that a busy machine loses no time to spinning."""

    def __init__(self, graph: bytes, n_threads: int = 0) -> None:
        import onnxruntime  # noqa: PLC0415 (an extra)

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads or int(os.environ.get("OMP_NUM_THREADS", "0") or 0)
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session: Any = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self._has_speakers = any(value.name == "speakers" for value in self._session.get_inputs())

    def run(
        self, ids: NDArray[np.int64], mask: NDArray[np.bool_], speakers: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """Sums of the last layer over the tokens of each row, and its first token."""
        given = {"ids": ids, "mask": mask.astype(np.int32)}
        if self._has_speakers:
            given["speakers"] = speakers
        sums, firsts = self._session.run(["sums", "firsts"], given)
        return sums, firsts


def has_8_bit_form(folder: Path) -> bool:
    """Whether :class:`QuickTextEncoder` can read the model in a folder."""
    files = [folder / name for name in ("config.json", "tokenizer.json", "model.safetensors")]
    return is_available() and all(file.is_file() for file in files) and is_supported(json.loads(files[0].read_text()))


class QuickTextEncoder:
    """Single texts to vectors of length one, as sentence-transformers gives them; needs neither torch nor transformers."""

    def __init__(self, folder: Path, *, max_tokens: int = MAX_TOKENS, n_threads: int = 0) -> None:
        from safetensors.numpy import load_file  # noqa: PLC0415 (an extra)
        from tokenizers import Tokenizer  # noqa: PLC0415

        config = json.loads((folder / "config.json").read_text())
        if not is_supported(config):
            raise DialometerError("this encoder has no quick form", where=str(folder), remedy="use it with torch")
        self.width = int(config["hidden_size"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        graph = bert_graph(load_file(folder / "model.safetensors"), BertShape.of(config), n_levels=n_levels())
        self._quick = QuickBert(graph, n_threads)

    def encode(self, texts: Sequence[str], *, report: Report | None = None) -> Floats:
        """One row for each text."""
        out = np.empty((len(texts), self.width), dtype=np.float32)
        ids = [np.array(encoding.ids) for encoding in self._tokenizer.encode_batch_fast(list(texts))]
        n_done = 0
        for rows in _of_one_length(ids, TOKENS_PER_BATCH):
            tokens = np.stack([ids[row] for row in rows])
            sums, _ = self._quick.run(tokens, np.ones(tokens.shape, dtype=np.bool_), tokens)
            out[rows] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
            n_done += len(rows)
            if report is not None:
                report(n_done, len(texts))
        return out


def _of_one_length(ids: Sequence[NDArray[np.int64]], n_tokens: int) -> Iterator[list[int]]:
    """Batches of texts of the same length, longest first: padding would be work, and change the last digits."""
    by_length: dict[int, list[int]] = {}
    for row, own in enumerate(ids):
        by_length.setdefault(len(own), []).append(row)
    for length, rows in sorted(by_length.items(), reverse=True):
        size = max(1, n_tokens // length)
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


@cache
def _packaged_encoder() -> QuickTextEncoder:
    """Loaded once in a process: those who score many dialogues ask for vectors part by part."""
    return QuickTextEncoder(Path(model_path(PACKAGED)))


def packaged_vectors(texts: Sequence[str], work: Work = QUIET, *, what: str = "Encoding utterances") -> Floats:
    """One vector of length one for each of the distinct ``texts``, by the packaged encoder in the quickest way there is.

    Vectors are kept in the cache, so that encoding the same texts again takes no time.
    """
    if not (is_available() and choose_device(work.device) == "cpu"):
        from dialometer.neural.encoder import TextEncoder  # noqa: PLC0415 - needs torch

        return TextEncoder(PACKAGED, work).encode(texts, what=what)
    encoder = _packaged_encoder()
    folder = work.folder("embeddings")
    kept = EmbeddingCache(folder, f"packaged-{rounding()}") if folder else None
    out = np.zeros((len(texts), encoder.width), dtype=np.float32)
    missing = kept.read(texts, out) if kept is not None else list(range(len(texts)))
    # By length, so that a portion needs little padding; the portions are what an interrupted run keeps.
    order = sorted(missing, key=lambda row: len(texts[row]))
    for _, rows in work.portions(what, order, _TEXTS_AT_A_TIME) if order else ():
        some = [texts[row] for row in rows]
        out[list(rows)] = encoder.encode(some)
        if kept is not None:
            kept.write(some, out[list(rows)])
    if kept is not None:
        kept.close()
    return out
