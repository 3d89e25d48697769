"""Scores of many dialogues by a saved evaluator, in parts of fixed size: on one machine or on a cluster, the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from dialometer.learned.engines import LOCAL, Engine
from dialometer.learned.evaluator import Evaluator, Scores
from dialometer.learned.model_file import FILE, load_evaluator, read_about
from dialometer.model.dialogue import Dialogue

PART = 512


@dataclass(frozen=True, slots=True)
class Where:
    """An evaluator's folder, which every machine of a cluster must see, and the device to compute on.

    ``written_at_ns`` tells an evaluator from the one that stood in the same folder before.
    """

    folder: str
    device: str
    written_at_ns: int


def score_dialogues(
    folder: Path | str,
    dialogues: Sequence[Dialogue],
    *,
    device: str = "auto",
    engine: Engine = LOCAL,
    report: Callable[[int, int], None] | None = None,
) -> Scores:
    """Scores in the order of the dialogues. Parts do not depend on the engine, so neither do the numbers."""
    read_about(folder)
    path = Path(folder).resolve()
    where = Where(str(path), device, (path / FILE).stat().st_mtime_ns)
    parts = [list(dialogues[start : start + PART]) for start in range(0, len(dialogues), PART)]
    found: list[Scores] = []
    for number, scores in enumerate(engine.run(score_part, where, parts)):
        found.append(scores)
        if report is not None:
            report(min(len(dialogues), (number + 1) * PART), len(dialogues))
    return Scores(
        np.concatenate([one.values for one in found]),
        np.concatenate([one.deviations for one in found]),
        np.concatenate([one.members for one in found], axis=1),
    )


def score_part(where: Where, part: Sequence[Dialogue]) -> Scores:
    """One part, by an evaluator that each process loads once."""
    return _loaded(where).score(part)


@lru_cache(maxsize=1)
def _loaded(where: Where) -> Evaluator:
    return load_evaluator(where.folder, where.device)
