"""Networks in the ONNX format, written byte by byte: enough of its protocol buffers to describe a graph.

Writing the few messages that a graph needs keeps the `onnx` package, which only exporters use, out of an installation that
merely runs networks. Field numbers are those of onnx.proto (ONNX 1.16, IR version 10).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IR_VERSION = 10
OPSET = 17
MICROSOFT = "com.microsoft"
"""Domain of ONNX Runtime's own operators."""
_KINDS = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9}
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE, _INTS_ATTRIBUTE = 1, 2, 7


class Graph:
    """A graph under construction: operators are added in order, each gives the names of its outputs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._n_names = 0

    def input(self, name: str, kind: str, shape: Sequence[str | int]) -> str:
        """Declares what a caller gives; sizes may be names."""
        self._inputs.append(_value_info(name, kind, shape))
        return name

    def output(self, name: str, kind: str, shape: Sequence[str | int]) -> None:
        """Declares one of the results."""
        self._outputs.append(_value_info(name, kind, shape))

    def constant(self, array: NDArray[Any]) -> str:
        """Keeps an array in the file."""
        name = self._new_name("constant")
        array = np.asarray(array, order="C")  # not ascontiguousarray, which makes numbers vectors
        dims = b"".join(_number(1, size) for size in array.shape)
        kind = _number(2, _KINDS[array.dtype.name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        self._constants.append(dims + kind + _text(8, name) + _bytes(9, little.tobytes()))
        return name

    def add(
        self,
        operator: str,
        inputs: Iterable[str],
        attributes: Mapping[str, int | float | Sequence[int]] | None = None,
        *,
        n_outputs: int = 1,
        domain: str = "",
        output: str = "",
    ) -> Any:
        """Adds an operator; an empty input name leaves an optional one out. One name, or a list where there are several."""
        names = [output] if output else [self._new_name(operator) for _ in range(n_outputs)]
        node = b"".join(_text(1, name) for name in inputs)
        node += b"".join(_text(2, name) for name in names)
        node += _text(3, names[0]) + _text(4, operator)
        node += b"".join(_bytes(5, _attribute(name, value)) for name, value in (attributes or {}).items())
        if domain:
            node += _text(7, domain)
        self._nodes.append(node)
        return names[0] if len(names) == 1 else names

    def model(self) -> bytes:
        """The whole file."""
        graph = b"".join(_bytes(1, node) for node in self._nodes) + _text(2, self.name)
        graph += b"".join(_bytes(5, constant) for constant in self._constants)
        graph += b"".join(_bytes(11, value) for value in self._inputs)
        graph += b"".join(_bytes(12, value) for value in self._outputs)
        opsets = [_text(1, domain) + _number(2, version) for domain, version in (("", OPSET), (MICROSOFT, 1))]
        head = _number(1, IR_VERSION) + _text(2, "dialometer")
        return head + _bytes(7, graph) + b"".join(_bytes(8, opset) for opset in opsets)

    def _new_name(self, kind: str) -> str:
        self._n_names += 1
        return f"{kind}_{self._n_names}"


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _attribute(name: str, value: int | float | Sequence[int]) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, _FLOAT_ATTRIBUTE)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _INT_ATTRIBUTE)
    return _text(1, name) + b"".join(_number(8, one) for one in value) + _number(20, _INTS_ATTRIBUTE)


def _value_info(name: str, kind: str, shape: Sequence[str | int]) -> bytes:
    dims = b"".join(_bytes(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape)
    tensor = _number(1, _KINDS[kind]) + _bytes(2, dims)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))
