"""An evaluation as plain values, for ``--json`` and for files."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from dialometer.model.estimate import Estimate
from dialometer.retrieval.measuring import DEFINITIONS, MISLEADING, Evaluation


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """What could not be computed is null, with the reason in its notes."""
    return {
        "n_questions": evaluation.n_questions,
        "n_dialogues": evaluation.n_dialogues,
        "resampling": asdict(evaluation.resampling),
        "definitions": DEFINITIONS,
        "where_measures_mislead": MISLEADING,
        "judges": [
            {
                "name": judge.name,
                "right": judge.explained,
                "n_judged": int(judge.has_judged.sum()),
                "n_answerable": judge.n_answerable,
            }
            for judge in evaluation.judges
        ],
        "retrievers": [
            {
                "retriever": one.retriever,
                "judge": one.judge,
                "answerable": {name: _plain(estimate) for name, estimate in one.answerable.items()},
                "all": {name: _plain(estimate) for name, estimate in one.everything.items()},
            }
            for one in evaluation.scored
        ],
        "rated_share_of_first_k": {
            name: {str(k): _number(share) for k, share in shares.items()} for name, shares in evaluation.rated.items()
        },
        "comparisons": [
            {
                "first": one.first,
                "second": one.second,
                "judge": one.judge,
                "measure": one.measure,
                **_plain(one.difference),
                "p": _number(one.difference.p_value),
                "p_adjusted": _number(one.difference.details.get("p_adjusted", math.nan)),
            }
            for one in evaluation.compared
        ],
    }


def _plain(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": _number(estimate.value),
        "low": _number(estimate.low),
        "high": _number(estimate.high),
        "interval": estimate.interval_method,
        "n": estimate.n,
        "notes": list(estimate.notes),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
