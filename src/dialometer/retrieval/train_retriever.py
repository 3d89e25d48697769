"""A retriever made ready for use: its options settled by cross-validation, fitted on all there is, its confidence calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dialometer.retrieval.calibrating import calibrate_across, calibrate_from, calibrate_on
from dialometer.retrieval.cross_fit import N_FOLDS, CrossFit, cross_fit, enriched
from dialometer.retrieval.fusion_parts import PARTS
from dialometer.retrieval.knowledge_base import KnowledgeBase
from dialometer.retrieval.queries import Asked
from dialometer.retrieval.retriever import Fitted, Retriever
from dialometer.retrieval.retrievers.fused import Fused
from dialometer.retrieval.threshold import Calibration
from dialometer.retrieval.work import QUIET, Work
from dialometer.stats.ir_measures import success_at
from dialometer.stats.relevant_ranks import ranks_from_scores

PartRow = tuple[str, tuple[float, ...]]


@dataclass(frozen=True)
class Trained:
    """``calibration`` is None where none was asked for; ``parts`` tells for the fused retriever what its parts give."""

    fitted: Fitted
    calibration: Calibration | None = None
    parts: tuple[PartRow, ...] = ()


def train_retriever(
    kb: KnowledgeBase,
    retriever: Retriever,
    lessons: Asked | None = None,
    work: Work = QUIET,
    *,
    held_out: Asked | None = None,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    cost_of_wrong: float = 1.0,
    cuts: Sequence[int] = (1, 2, 10),
) -> Trained:
    """``lessons`` are dialogues to learn from, ``held_out`` ones to calibrate on. Without the latter, calibration is by
    cross-validation (``n_folds`` further trainings), and the fused retriever's weights are found anew; 0 folds leave both out.
    """
    parts: tuple[PartRow, ...] = ()
    calibration: Calibration | None = None
    if isinstance(retriever, Fused) and n_folds:
        found = cross_fit(kb, lessons, retriever, n_folds=n_folds, work=work, seed=seed)
        retriever = _with_weights(retriever, found)
        parts = tuple(parts_table(found, retriever.n_read, cuts))
        if held_out is None:
            calibration = calibrate_from(found, retriever.n_read, cost_of_wrong=cost_of_wrong)
    elif n_folds and held_out is None:
        calibration = calibrate_across(
            kb, retriever, lessons, work, n_folds=n_folds, seed=seed, cost_of_wrong=cost_of_wrong
        )
    fitted = retriever.fit(enriched(kb, lessons), work)
    if held_out is not None:
        calibration = calibrate_on(fitted, held_out, cost_of_wrong=cost_of_wrong)
    return Trained(fitted, calibration, parts)


def _with_weights(retriever: Fused, found: CrossFit) -> Fused:
    weights = dict(zip(PARTS, found.weights().tolist(), strict=True))
    read = found.read_weight(found.fused(), retriever.n_read) if retriever.n_read else retriever.read_weight
    return retriever.model_copy(update={"weights": weights, "read_weight": read})


def parts_table(found: CrossFit, n_read: int, cuts: Sequence[int]) -> list[PartRow]:
    """Success rates out of fold: all parts together, re-ranked, without each of them, and the plain nearest question.

    Over questions of dialogues, where there are any: they are what visitors ask.
    """
    rows = found.is_asked if found.is_asked.any() else np.ones(len(found.fold), dtype=bool)

    def rates(scores: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> tuple[float, ...]:
        ranks = ranks_from_scores(scores[rows], found.right[rows])
        return tuple(float(np.nanmean(success_at(ranks, k))) for k in cuts)

    table = [(f"only {PARTS[0]}", rates(found.fused((PARTS[0],)))), ("all parts", rates(found.fused()))]
    if n_read:
        table.append((f"all parts, first {n_read} re-ranked", rates(found.reranked(n_read))))
    for part in PARTS:
        table.append((f"without {part}", rates(found.fused(tuple(other for other in PARTS if other != part)))))
    return table
