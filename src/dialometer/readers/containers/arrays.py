"""Files of numpy arrays (``.npz``), read only where every array is as large as its entry: a header can claim terabytes."""

from __future__ import annotations

import ast
import math
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dialometer.errors import DialometerError
from dialometer.readers.containers.unpacking import DAMAGED, Allowance, read_entry

MAX_HEADER_BYTES = 10_000
_MAGIC = b"\x93NUMPY"
_KINDS = "fiubU"
"""Numbers, truth values and texts; never Python objects."""


class ArraysError(DialometerError):
    """A file of arrays that cannot be read, or lacks one."""


def read_arrays(path: Path, needed: Iterable[str] = ()) -> dict[str, Any]:
    """All arrays of a file by name; ``needed`` ones that are missing are an error."""
    try:
        allowance = Allowance(path)
        with zipfile.ZipFile(path) as packed:
            arrays = {
                entry.filename.removesuffix(".npy"): _array(read_entry(packed, entry, allowance), entry.filename)
                for entry in packed.infolist()
                if entry.filename.endswith(".npy")
            }
    except (OSError, ValueError, *DAMAGED) as error:
        raise ArraysError(
            f"the arrays cannot be read: {error}", where=str(path), remedy="copy the file again"
        ) from error
    missing = sorted(set(needed) - set(arrays))
    if missing:
        raise ArraysError(f"the array '{missing[0]}' is missing", where=str(path), remedy="copy the file again")
    return arrays


def _array(content: bytes, name: str) -> Any:
    """One array in numpy's own format; raises ValueError."""
    if not content.startswith(_MAGIC) or len(content) < 12:
        raise ValueError(f"'{name}' is not an array")
    n_length = 2 if content[6] == 1 else 4
    start = 8 + n_length
    n_header = int.from_bytes(content[8:start], "little")
    if n_header > MAX_HEADER_BYTES:
        raise ValueError(f"the header of '{name}' is too long")
    dtype, shape, is_fortran = _header(content[start : start + n_header], name)
    data = content[start + n_header :]
    if math.prod(shape) * dtype.itemsize != len(data) or not dtype.itemsize:
        raise ValueError(f"'{name}' does not hold what its header says")
    array = np.frombuffer(data, dtype=dtype)
    return array.reshape(shape, order="F" if is_fortran else "C").copy()


def _header(text: bytes, name: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    try:
        header = ast.literal_eval(text.decode("latin-1").strip())
        dtype, shape, is_fortran = np.dtype(header["descr"]), header["shape"], header["fortran_order"]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ValueError(f"the header of '{name}' cannot be read") from error
    is_shape = isinstance(shape, tuple) and all(type(size) is int and 0 <= size < 2**48 for size in shape)
    if dtype.kind not in _KINDS or not is_shape or not isinstance(is_fortran, bool) or len(shape) > 8:
        raise ValueError(f"'{name}' is not an array of numbers or texts")
    return dtype, shape, is_fortran
