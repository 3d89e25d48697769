"""Forced choices of raters who answer more than once: the rules for ties of ``preference``, the test of ``clustered``."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered import Sandwich, Working, clustered_mean, clustered_proportion
from dialometer.stats.observations import numbers, same_length
from dialometer.stats.preference import NO_DECISIVE, Rule

__all__ = ["clustered_preference"]


def clustered_preference(
    signed: ArrayLike,
    raters: ArrayLike,
    *,
    ties: Rule = "drop",
    cannot_tell: Rule = "drop",
    working: Working = "independence",
    sandwich: Sandwich = "CR2",
    confidence: float = 0.95,
    label: str = "",
) -> Estimate:
    """Preference from +1 (for), -1 (against), 0 (tie), nan (cannot tell) when raters answer more than once.

    The rules are those of ``dialometer.stats.preference``. Where undecided answers are reported as answers of their
    own, the test asks whether answers for and against balance, by the cluster-robust mean of the signs.
    """
    choice = numbers(signed)
    ids = np.asarray(raters)
    same_length(signed=choice, raters=ids)
    is_unknown, is_tie = np.isnan(choice), choice == 0
    is_kept = ~((is_unknown & (cannot_tell == "drop")) | (is_tie & (ties == "drop")))
    is_half = (is_unknown & (cannot_tell == "half")) | (is_tie & (ties == "half"))
    is_reported = (is_unknown & (cannot_tell == "report")) | (is_tie & (ties == "report"))
    counts = {
        "n_for": int(np.sum(choice == 1)),
        "n_against": int(np.sum(choice == -1)),
        "n_ties": int(np.sum(is_tie)),
        "n_cannot_tell": int(np.sum(is_unknown)),
    }
    rules = f"; ties: {ties}, cannot tell: {cannot_tell}"
    if counts["n_for"] + counts["n_against"] == 0:
        return unknown(f"preference, cluster-robust by rater{rules}", NO_DECISIVE, n=int(is_kept.sum()), label=label)
    score = np.where(is_half, 0.5, np.where(choice == 1, 1.0, 0.0))
    share = clustered_proportion(
        score[is_kept], ids[is_kept], working=working, sandwich=sandwich, confidence=confidence, label=label
    )
    tested = share
    if is_reported.any():
        signs = np.where(is_unknown, 0.0, choice)[is_kept]
        tested = clustered_mean(signs, ids[is_kept], null=0.0, working=working, sandwich=sandwich)
    undecided = (("ties", is_tie, ties), ("cannot tell", is_unknown, cannot_tell))
    dropped = [f"{int(kind.sum())} {name} dropped" for name, kind, rule in undecided if rule == "drop" and kind.any()]
    return Estimate(
        value=share.value,
        n=share.n,
        method=share.method + rules,
        low=share.low,
        high=share.high,
        confidence=confidence,
        interval_method=share.interval_method,
        statistic=tested.statistic,
        df=tested.df,
        p_value=tested.p_value,
        label=label,
        notes=(*dropped, *share.notes, *(note for note in tested.notes if note not in share.notes)),
        details={**share.details, **counts},
    )
