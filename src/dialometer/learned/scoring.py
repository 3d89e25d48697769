"""Scores of many dialogues by a saved evaluator, in parts of fixed size: on one machine or on a cluster, the same numbers.

On a processor a trained encoder runs about twice as fast with 8-bit weights. Many dialogues are scored so if that orders some of
them as single precision does, which is looked at first; a few are scored exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from dialometer.learned.engines import LOCAL, Engine
from dialometer.learned.evaluator import Evaluator, Scores
from dialometer.learned.model_file import FILE, load_evaluator, read_about
from dialometer.model.dialogue import Dialogue

PART = 512
Speed = Literal["auto", "exact", "quick"]
MANY = 4000
"""Dialogues from which 8 bits are worth looking at whether they do."""
N_TRIED = 200
SAME_ORDER = 0.98
"""Rank correlation of scores in 8 bits and in single precision that passes for the same order."""


@dataclass(frozen=True, slots=True)
class Where:
    """An evaluator's folder, which every machine of a cluster must see, and the device to compute on.

    ``written_at_ns`` tells an evaluator from the one that stood in the same folder before.
    """

    folder: str
    device: str
    written_at_ns: int
    is_quick: bool = False


def score_dialogues(
    folder: Path | str,
    dialogues: Sequence[Dialogue],
    *,
    device: str = "auto",
    speed: Speed = "auto",
    engine: Engine = LOCAL,
    report: Callable[[int, int], None] | None = None,
) -> Scores:
    """Scores in the order of the dialogues. Parts do not depend on the engine, so neither do the numbers.

    ``speed`` asks for single precision (``exact``) or for 8 bits on a processor (``quick``); ``auto`` takes 8 bits for many
    dialogues where a sample comes out in the same order. Evaluators of the best recipe have one way only, which is quick.
    """
    read_about(folder)
    path = Path(folder).resolve()
    where = Where(str(path), device, (path / FILE).stat().st_mtime_ns)
    if speed == "quick" or (speed == "auto" and len(dialogues) >= MANY):
        where = replace(where, is_quick=_is_quick(_loaded(where), dialogues, is_asked=speed == "quick"))
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


def _is_quick(evaluator: Evaluator, dialogues: Sequence[Dialogue], *, is_asked: bool) -> bool:
    """Whether to score in 8 bits: where it is possible, and asked for or found to change the order hardly."""
    if not evaluator.has_quick_form:
        return False
    return is_asked or order_in_eight_bits(evaluator, dialogues) >= SAME_ORDER


def order_in_eight_bits(evaluator: Evaluator, dialogues: Sequence[Dialogue], n: int = N_TRIED) -> float:
    """Rank correlation (Spearman) of the scores in 8 bits and in single precision, of ``n`` dialogues from all over."""
    places = np.unique(np.linspace(0, len(dialogues) - 1, min(n, len(dialogues))).astype(np.int64))
    some = [dialogues[place] for place in places]
    ranks = [np.argsort(np.argsort(one.score(some).values)) for one in (evaluator, evaluator.in_eight_bits())]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def score_part(where: Where, part: Sequence[Dialogue]) -> Scores:
    """One part, by an evaluator that each process loads once."""
    return _loaded(where).score(part)


@lru_cache(maxsize=2)
def _loaded(where: Where) -> Evaluator:
    evaluator = load_evaluator(where.folder, where.device)
    return evaluator.in_eight_bits() if where.is_quick else evaluator
