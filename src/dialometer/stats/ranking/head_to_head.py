"""Every pair of systems on its own, and every system's record: exact tests that assume no model of strength.

Checked against ``scipy.stats.binomtest(wins, wins + losses)`` and Holm's procedure in
``statsmodels.stats.multitest.multipletests(p, method="holm")``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import bdtr

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.clustered.proportion import clopper_pearson_interval
from dialometer.stats.effects.multiplicity import adjust_estimates
from dialometer.stats.ranking.votes import WinMatrix


@dataclass(frozen=True, slots=True)
class WinRecord:
    """Wins, losses and ties of ``a`` against ``b`` (or against all others, where ``b`` is empty).

    ``share`` is the share of wins among decisive votes with Clopper and Pearson's interval and the exact two-sided test of
    ½; ``details["p_adjusted"]`` is corrected for the number of pairs that could be tested.
    """

    a: str
    b: str
    wins: int
    losses: int
    ties: int
    share: Estimate

    @property
    def n(self) -> int:
        """All votes, ties too."""
        return self.wins + self.losses + self.ties


def head_to_head(matrix: WinMatrix, *, confidence: float = 0.95) -> tuple[WinRecord, ...]:
    """One record for each pair that was ever shown, in the order of the systems."""
    wins, ties, names = matrix.wins, matrix.ties, matrix.systems
    records = [
        _record(names[a], names[b], wins[a, b], wins[b, a], ties[a, b], confidence)
        for a in range(len(names))
        for b in range(a + 1, len(names))
        if wins[a, b] + wins[b, a] + ties[a, b] > 0
    ]
    return _corrected(records)


def overall_records(matrix: WinMatrix, *, confidence: float = 0.95) -> tuple[WinRecord, ...]:
    """One record for each system against all others. The tests share votes, so read them as a summary."""
    wins, ties = matrix.wins, matrix.ties
    records = [
        _record(name, "", wins[k].sum(), wins[:, k].sum(), ties[k].sum(), confidence)
        for k, name in enumerate(matrix.systems)
    ]
    return _corrected(records)


def _record(a: str, b: str, wins: float, losses: float, ties: float, confidence: float) -> WinRecord:
    n_wins, n_losses, n_ties = round(float(wins)), round(float(losses)), round(float(ties))
    label, method = f"{a} over {b}" if b else a, "exact binomial test on decisive votes"
    n = n_wins + n_losses
    if n == 0:
        why = "only ties" if n_ties else "no votes"
        return WinRecord(a, b, n_wins, n_losses, n_ties, unknown(method, why, n=0, label=label))
    low, high = clopper_pearson_interval(n_wins, n, confidence=confidence)
    share = Estimate(
        value=n_wins / n,
        n=n,
        method=method,
        low=low,
        high=high,
        confidence=confidence,
        interval_method="Clopper-Pearson",
        # At ½ the distribution is symmetric, so that the exact two-sided test is twice the smaller tail.
        p_value=min(1.0, 2 * float(bdtr(min(n_wins, n_losses), n, 0.5))),
        label=label,
        notes=(f"{n_ties} ties excluded",) if n_ties else (),
    )
    return WinRecord(a, b, n_wins, n_losses, n_ties, share)


def _corrected(records: Sequence[WinRecord]) -> tuple[WinRecord, ...]:
    shares = adjust_estimates([record.share for record in records], "holm")
    return tuple(
        replace(record, share=share if not math.isnan(share.p_value) else record.share)
        for record, share in zip(records, shares, strict=True)
    )
