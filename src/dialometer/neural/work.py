"""How heavy work is done: on which device, in which portions, where results are kept, and who hears of progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from dialometer.neural.device import Device

T = TypeVar("T")
Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

CACHE_VARIABLE = "DIALOMETER_CACHE"


def silent(what: str, n_done: int, n_total: int) -> None:
    """Tells nobody."""


def default_cache() -> Path:
    """Where embeddings and trained models are kept between runs."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dialometer"


@dataclass(frozen=True)
class Work:
    """``cache`` is None where nothing may be kept on disk."""

    device: Device = "auto"
    report: Report = silent
    cache: Path | None = None
    n_texts_per_batch: int = 64

    def portions(self, what: str, rows: Sequence[T], size: int) -> Iterator[tuple[int, Sequence[T]]]:
        """Rows in portions with their first number, telling how far the work is."""
        self.report(what, 0, len(rows))
        for start in range(0, len(rows), size):
            yield start, rows[start : start + size]
            self.report(what, min(start + size, len(rows)), len(rows))

    def during(self, stage: str) -> Work:
        """The same, with the stage before what is being done: "Fold 1 of 3: training the encoder"."""

        def report(what: str, n_done: int, n_total: int) -> None:
            self.report(f"{stage}: {what[:1].lower()}{what[1:]}" if what else what, n_done, n_total)

        return replace(self, report=report)

    def folder(self, *parts: str) -> Path | None:
        """A folder of the cache, made if need be."""
        if self.cache is None:
            return None
        path = self.cache.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path


QUIET = Work()


@cache
def _passing() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="dialometer-models-")


def models_folder(work: Work) -> Path:
    """Where trained models stand; without a cache they go when the program ends."""
    return work.cache or Path(_passing().name)
