"""Dialogues that were (almost) seen before: MinHash signatures on disk, compared band by band.

Broder 1997: the share of equal minima of two sets under random hashes estimates their Jaccard similarity. Signatures are
cut into bands; two dialogues that agree in a whole band are compared in full. Memory holds one band of the corpus at a time
(eight bytes a dialogue), so that a corpus of millions of dialogues needs no more than some hundred megabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from dialometer.generators.filters import words_of

N_HASHES = 64
N_BANDS = 16
_PRIME = np.uint64((1 << 61) - 1)
_SHINGLE = 3
_MASK = np.uint64((1 << 32) - 1)
_MIX = np.random.default_rng(1729).integers(1 << 40, 1 << 62, N_HASHES, dtype=np.uint64) | np.uint64(1)


class Signatures:
    """Signatures of dialogues, appended one by one to a scratch file."""

    def __init__(self, path: Path) -> None:
        rng = np.random.default_rng([0, 7919])
        self.path = path
        self._factor = rng.integers(1, 1 << 29, N_HASHES, dtype=np.uint64)[:, None]
        self._shift = rng.integers(0, 1 << 29, N_HASHES, dtype=np.uint64)[:, None]
        self._file = path.open("wb")

    def __enter__(self) -> Signatures:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, turns: Sequence[str]) -> None:
        """The next dialogue."""
        self._file.write(self.of(turns).tobytes())

    def of(self, turns: Sequence[str]) -> npt.NDArray[np.uint32]:
        """Smallest hash of the dialogue's word triples under each of the hash functions."""
        words = [word for turn in turns for word in words_of(turn)]
        shingles = {" ".join(words[i : i + _SHINGLE]) for i in range(max(1, len(words) - _SHINGLE + 1))}
        keys = np.array([zlib.crc32(shingle.encode()) for shingle in shingles], dtype=np.uint64)[None, :]
        # factor * key stays under 2^61, so the sum cannot overflow before it is reduced
        hashed = (self._factor * keys + self._shift) % _PRIME
        return np.asarray((hashed & _MASK).min(axis=1), dtype=np.uint32)


def near_duplicates(path: Path, threshold: float, among: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.bool_]:
    """For each dialogue whether an earlier one is at least as similar as ``threshold`` (1 means equal signatures).

    With ``among`` only those dialogues are looked at.
    """
    signatures = _signatures(path)
    is_copy = np.zeros(len(signatures), dtype=bool)
    for group in _groups(signatures):
        _mark(signatures, group if among is None else group[among[group]], is_copy, threshold)
    return is_copy


@dataclass(frozen=True)
class Leakage:
    """How many of the ``n`` dialogues of one part of a corpus are also in another part.

    ``n_near`` counts those at least as similar as the threshold, ``n_same`` those with the same words among them.
    """

    part: str
    also_in: str
    n: int
    n_near: int
    n_same: int


def leakage(
    path: Path, parts: npt.NDArray[np.int8], names: Sequence[str], threshold: float
) -> tuple[list[Leakage], npt.NDArray[np.bool_]]:
    """What of each part is also in the parts before it, and which dialogues of the first part are also in a later one.

    ``parts`` numbers the part of each dialogue in the order of ``names``.
    """
    signatures = _signatures(path)
    pairs = [(later, earlier) for later in range(1, len(names)) for earlier in range(later)]
    best = {pair: np.zeros(len(signatures)) for pair in pairs}  # of each dialogue of the later part
    is_leak = np.zeros(len(signatures), dtype=bool)
    for group in _groups(signatures):
        for later, earlier in pairs:
            ours, theirs = group[parts[group] == later], group[parts[group] == earlier]
            for number in ours if len(theirs) else ():
                alike = np.mean(signatures[theirs] == signatures[number], axis=1)
                best[later, earlier][number] = max(best[later, earlier][number], alike.max())
                if earlier == 0:
                    is_leak[theirs[alike >= threshold]] = True
    counts = [
        Leakage(
            part=names[later],
            also_in=names[earlier],
            n=int((parts == later).sum()),
            n_near=int((similarity >= threshold).sum()),
            n_same=int((similarity >= 1).sum()),
        )
        for (later, earlier), similarity in best.items()
    ]
    return counts, is_leak


def _signatures(path: Path) -> npt.NDArray[np.uint32]:
    size = path.stat().st_size // (N_HASHES * 4)
    if not size:
        return np.empty((0, N_HASHES), dtype=np.uint32)
    return np.memmap(path, dtype=np.uint32, mode="r", shape=(size, N_HASHES))


def _groups(signatures: npt.NDArray[np.uint32]) -> Iterator[npt.NDArray[np.int64]]:
    """Dialogues that agree in a whole band, two or more at a time; the same two may come in several bands."""
    n_rows = N_HASHES // N_BANDS
    for band in range(N_BANDS) if len(signatures) else ():
        part = signatures[:, band * n_rows : (band + 1) * n_rows].astype(np.uint64)
        keys = (part * _MIX[:n_rows]).sum(axis=1, dtype=np.uint64)  # overflow wraps; equal bands stay equal
        order = np.argsort(keys, kind="stable")
        yield from _runs(order, keys[order][1:] == keys[order][:-1])


def _runs(order: npt.NDArray[np.int64], same: npt.NDArray[np.bool_]) -> list[npt.NDArray[np.int64]]:
    """Groups of dialogues whose band is equal, two or more in each."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.astype(np.int8), [0]])))
    return [order[start : end + 1] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _mark(
    signatures: npt.NDArray[np.uint32],
    group: npt.NDArray[np.int64],
    is_copy: npt.NDArray[np.bool_],
    threshold: float,
) -> None:
    """Mark those of a group that are near an earlier one which itself is kept."""
    members = np.sort(group[~is_copy[group]])
    while len(members) > 1:
        first, rest = members[0], members[1:]
        alike = np.mean(signatures[rest] == signatures[first], axis=1) >= threshold
        is_copy[rest[alike]] = True
        members = rest[~alike]
