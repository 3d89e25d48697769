"""Trained evaluators of either kind: load one from its folder, score many dialogues, compare two collections of them.

Many dialogues are scored in parts of fixed size: on one machine or on a cluster, the same numbers. On a processor a trained
encoder runs about twice as fast with 8-bit weights. Many dialogues are scored so if a sample comes out in the same order as in
single precision; a few are scored exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dialometer.errors import DialometerError
from dialometer.learned.data.calibration import posterior
from dialometer.learned.data.evaluator import FILE, DialogueScores, Evaluator, read_about
from dialometer.model.dialogue import Dialogue
from dialometer.model.estimate import Estimate
from dialometer.neural.engines import LOCAL, Engine
from dialometer.stats.bootstrap.bootstrap import draw_counts, percentile_interval

GAUSSIAN, RANKNET = "best", "ranknet"
PART = 512
Speed = Literal["auto", "exact", "quick"]
MANY = 4000
"""Dialogues from which 8 bits are worth looking at whether they do."""
N_TRIED = 200
SAME_ORDER = 0.98
"""Rank correlation of scores in 8 bits and in single precision that passes for the same order."""


@dataclass(frozen=True, slots=True)
class EvaluatorPlace:
    """An evaluator's folder, which every machine of a cluster must see, and the device to compute on.

    ``written_at_ns`` tells an evaluator from the one that stood in the same folder before.
    """

    folder: str
    device: str
    written_at_ns: int
    is_quick: bool = False


def load_evaluator(folder: Path | str, device: str = "auto") -> Evaluator:
    """An evaluator from its folder, whatever it was trained by."""
    kind = read_about(folder).get("kind")
    if kind not in (GAUSSIAN, RANKNET):
        remedy = "train it again, or use the version of dialometer that wrote it"
        raise DialometerError(f"an evaluator of an unknown kind ({str(kind)[:40]})", where=str(folder), remedy=remedy)
    if kind == GAUSSIAN:
        from dialometer.learned.gaussian.evaluator import GaussianEvaluator  # noqa: PLC0415 - each kind needs its own libraries

        return GaussianEvaluator.load(folder)
    from dialometer.learned.cmade.evaluator import load_ranknets  # noqa: PLC0415

    return load_ranknets(folder, device)


def score_dialogues(
    folder: Path | str,
    dialogues: Sequence[Dialogue],
    *,
    device: str = "auto",
    speed: Speed = "auto",
    engine: Engine = LOCAL,
    report: Callable[[int, int], None] | None = None,
) -> DialogueScores:
    """Scores in the order of the dialogues. Parts do not depend on the engine, so neither do the numbers.

    ``speed`` asks for single precision (``exact``) or for 8 bits on a processor (``quick``); ``auto`` takes 8 bits for many
    dialogues where a sample comes out in the same order. Evaluators of the best recipe have one way only, which is quick.
    """
    where = place_of(folder, device, speed, len(dialogues), dialogues)
    scored: list[DialogueScores] = []
    for number, scores in enumerate(engine.run(score_part, where, parts_of(dialogues))):
        scored.append(scores)
        if report is not None:
            report(min(len(dialogues), (number + 1) * PART), len(dialogues))
    return DialogueScores.joined(scored)


def parts_of(dialogues: Iterable[Dialogue]) -> Iterator[list[Dialogue]]:
    """Parts of the size that is scored at once, whoever scores them."""
    rest = iter(dialogues)
    while part := list(islice(rest, PART)):
        yield part


def place_of(
    folder: Path | str, device: str, speed: Speed, n_dialogues: int, sample: Sequence[Dialogue]
) -> EvaluatorPlace:
    """What :func:`score_part` needs to score so many dialogues, of which ``sample`` are some from all over."""
    read_about(folder)
    path = Path(folder).resolve()
    where = EvaluatorPlace(str(path), device, (path / FILE).stat().st_mtime_ns)
    if speed == "quick" or (speed == "auto" and n_dialogues >= MANY):
        where = replace(where, is_quick=_is_quick(_loaded(where), sample, is_asked=speed == "quick"))
    return where


def _is_quick(evaluator: Evaluator, dialogues: Sequence[Dialogue], *, is_asked: bool) -> bool:
    """Whether to score in 8 bits: where it is possible, and asked for or found to change the order hardly."""
    if not evaluator.has_quick_form:
        return False
    return is_asked or order_in_eight_bits(evaluator, dialogues) >= SAME_ORDER


def order_in_eight_bits(evaluator: Evaluator, dialogues: Sequence[Dialogue], n: int = N_TRIED) -> float:
    """Rank correlation (Spearman) of the scores in 8 bits and in single precision, of ``n`` dialogues from all over."""
    dialogues = [dialogue for dialogue in dialogues if dialogue.said_by("agent")]
    if not dialogues:
        return 1.0
    places = np.unique(np.linspace(0, len(dialogues) - 1, min(n, len(dialogues))).astype(np.int64))
    some = [dialogues[place] for place in places]
    ranks = [np.argsort(np.argsort(version.score(some).values)) for version in (evaluator, evaluator.in_eight_bits())]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def score_part(where: EvaluatorPlace, part: Sequence[Dialogue]) -> DialogueScores:
    """One part, by an evaluator that each process loads once."""
    return _loaded(where).score_agents(part)


@lru_cache(maxsize=2)
def _loaded(where: EvaluatorPlace) -> Evaluator:
    evaluator = load_evaluator(where.folder, where.device)
    return evaluator.in_eight_bits() if where.is_quick else evaluator


Floats = NDArray[np.float64]
_CELLS = 4_000_000  # probabilities held at a time


def compare_collections(
    evaluator: Evaluator,
    first: Sequence[Dialogue],
    second: Sequence[Dialogue],
    *,
    seed: int = 0,
    n_resamples: int = 2000,
) -> Estimate:
    """The probability that a random dialogue of the first collection is better than one of the second.

    The interval is by resampling dialogues on both sides; it does not hold the evaluator's own errors.
    """
    scores = evaluator.score([*first, *second]).values
    return mean_probability(scores[: len(first)], scores[len(first) :], seed=seed, n_resamples=n_resamples)


def mean_probability(first: Floats, second: Floats, *, seed: int = 0, n_resamples: int = 2000) -> Estimate:
    """Mean of sigmoid(a - b) over all pairs of scores, with a percentile interval over resamples of both sides."""
    rng = np.random.default_rng(seed)
    counts_a = np.vstack([np.ones(len(first)), draw_counts(rng, len(first), n_resamples)])
    counts_b = np.vstack([np.ones(len(second)), draw_counts(rng, len(second), n_resamples)])
    totals = np.zeros(n_resamples + 1)
    step = max(1, _CELLS // len(second))
    for start in range(0, len(first), step):
        rows = slice(start, start + step)
        inner = posterior(first[rows, None], second[None, :]) @ counts_b.T
        totals += np.einsum("ra,ar->r", counts_a[:, rows], inner)
    means = totals / (len(first) * len(second))
    low, high = percentile_interval(means[1:], 0.95)
    return Estimate(
        value=float(means[0]),
        n=len(first) + len(second),
        method="mean probability over all pairs",
        low=low,
        high=high,
        interval_method="percentile bootstrap over dialogues of both sides",
        seed=seed,
        n_resamples=n_resamples,
    )
