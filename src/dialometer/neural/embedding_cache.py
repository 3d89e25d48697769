"""Embeddings on disk: a text is encoded once by a model, and a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
ROWS_AT_ONCE = 500


class EmbeddingCache:
    """Vectors by text in one SQLite file per model; several processes and threads may use it together."""

    def __init__(self, folder: Path, model: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{model}.sqlite"
        self._base = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
        self._lock = Lock()
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=OFF")  # what is lost with the power is only encoded again
        self._base.execute("CREATE TABLE IF NOT EXISTS embedding (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def read(self, texts: Sequence[str], out: Floats) -> list[int]:
        """Fills ``out`` with what is known; gives the rows that are not."""
        row_of = {_key(text): row for row, text in enumerate(texts)}
        missing = set(row_of.values())
        keys = list(row_of)
        width = out.shape[1] * 4
        for start in range(0, len(keys), ROWS_AT_ONCE):
            some = keys[start : start + ROWS_AT_ONCE]
            marks = ",".join("?" * len(some))
            with self._lock:
                rows = self._base.execute(f"SELECT * FROM embedding WHERE text IN ({marks})", some).fetchall()  # nosec B608
            for key, vector in rows:
                if len(vector) == width:
                    out[row_of[key]] = np.frombuffer(vector, dtype="<f4")
                    missing.discard(row_of[key])
        return sorted(missing)

    def write(self, texts: Sequence[str], vectors: Floats) -> None:
        """Keeps vectors; they are on disk when this returns."""
        rows = [(_key(text), vector.astype("<f4").tobytes()) for text, vector in zip(texts, vectors, strict=True)]
        with self._lock, self._base:
            self._base.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?)", rows)

    def __len__(self) -> int:
        with self._lock:
            return int(self._base.execute("SELECT count(*) FROM embedding").fetchone()[0])

    def close(self) -> None:
        """Gives the file back."""
        self._base.close()


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
