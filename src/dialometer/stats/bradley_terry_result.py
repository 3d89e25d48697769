"""What a Bradley-Terry fit says: strengths, probabilities and Elo values, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtri

from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.paired_newton import Cells, Model

Array = npt.NDArray[np.float64]

ELO_START = 1000.0
ELO_PER_LOGIT = 400 / math.log(10)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The numbers of a fit, from which every estimate is made the same way.

    ``names`` are the systems that were voted on; ``parameters`` are their strengths, then tie, then position.
    """

    names: tuple[str, ...]
    parameters: Array
    covariance: Array
    model: Model
    method: str
    interval_method: str
    confidence: float
    notes: tuple[str, ...]

    def linear(self, at: int, *, n: int, label: str, unit: str, shift: float = 0.0, scale: float = 1.0) -> Estimate:
        """One parameter, moved and stretched, with Wald's interval and test against 0."""
        value, se = float(self.parameters[at]), math.sqrt(max(float(self.covariance[at, at]), 0.0))
        z = float(ndtri((1 + self.confidence) / 2))
        return Estimate(
            value=shift + scale * value,
            n=n,
            method=self.method,
            low=shift + scale * (value - z * se),
            high=shift + scale * (value + z * se),
            confidence=self.confidence,
            interval_method=self.interval_method,
            label=label,
            unit=unit,
            notes=self.notes,
            details={"se": scale * se},
        )

    def probability(self, opponents: list[tuple[int, int]], *, n: int, label: str) -> Estimate:
        """Expected points (a win 1, a tie ½) averaged over pairs of systems, position set aside; interval on the logit scale."""
        value, slope = self._expected_points(opponents)
        z = float(ndtri((1 + self.confidence) / 2))
        se_logit = math.sqrt(max(float(slope @ self.covariance @ slope), 0.0)) / (value * (1 - value))
        return Estimate(
            value=value,
            n=n,
            method=self.method,
            low=float(expit(logit(value) - z * se_logit)),
            high=float(expit(logit(value) + z * se_logit)),
            confidence=self.confidence,
            interval_method=f"{self.interval_method}, on the logit scale",
            label=label,
            unit="probability",
            notes=self.notes,
            details={"se_logit": se_logit},
        )

    def _expected_points(self, opponents: list[tuple[int, int]]) -> tuple[float, Array]:
        """The mean of P(win) + P(tie)/2 and its derivatives by the parameters."""
        n, n_pairs = len(self.names), len(opponents)
        a, b = np.array(opponents).T
        pairs = Cells(n, a, b, *(np.zeros((n_pairs, 1)) for _ in range(3)))
        even = self.parameters.copy()
        if self.model.has_position:
            even[-1] = 0.0
        win, loss, tied = (p[:, 0] for p in self.model.outcome_probabilities(pairs, even[:, None]))
        by_difference = win * loss + tied * (win + loss) / 4
        slope = np.zeros(len(self.parameters))
        np.add.at(slope, a, by_difference)
        np.add.at(slope, b, -by_difference)
        if self.model.has_ties:
            slope[n] = -(tied * (win - loss) / 2).sum()
        return float((win + tied / 2).mean()), slope / n_pairs

    def tie_parameter(self, n_ties: float) -> Estimate:
        """Davidson's ν, with an interval on the logarithmic scale."""
        log = self.linear(len(self.names), n=round(n_ties), label="tie parameter", unit="")
        details: Mapping[str, Any] = {"se_log": log.details["se"], "tie_probability_of_equals": _tie_share(log.value)}
        return Estimate(
            value=math.exp(log.value),
            n=log.n,
            method=self.method,
            low=math.exp(log.low),
            high=math.exp(log.high),
            confidence=self.confidence,
            interval_method=f"{self.interval_method}, on the logarithmic scale",
            label=log.label,
            notes=self.notes,
            details=details,
        )

    def position_effect(self, n_votes: float) -> Estimate:
        """Log odds for the system shown first, with Wald's test against none."""
        plain = self.linear(len(self.parameters) - 1, n=round(n_votes), label="shown first", unit="log odds")
        z = plain.value / plain.details["se"]
        return Estimate(
            value=plain.value,
            n=plain.n,
            method=self.method,
            low=plain.low,
            high=plain.high,
            confidence=self.confidence,
            interval_method=self.interval_method,
            statistic=z,
            p_value=math.erfc(abs(z) / math.sqrt(2)),
            label=plain.label,
            unit=plain.unit,
            notes=self.notes,
            details={**plain.details, "first_preferred_among_equals": float(expit(plain.value))},
        )


def _tie_share(log_tie: float) -> float:
    """How often equal systems tie: ν / (2 + ν)."""
    return float(expit(log_tie - math.log(2)))


@dataclass(frozen=True, slots=True, eq=False)
class BradleyTerry:
    """A fitted model. ``strengths`` are logarithmic and centred at 0 over the systems that were voted on."""

    systems: tuple[str, ...]
    strengths: Mapping[str, Estimate]
    beats_average: Mapping[str, Estimate]
    """Probability (a tie counting half) of beating an opponent drawn at random from the other systems."""
    elo: Mapping[str, Estimate]
    """The strengths on the scale of Elo ratings, centred at 1000; independent of the order of votes."""
    tie_parameter: Estimate | None
    """Davidson's ν where it was asked for: equal systems tie with probability ν / (2 + ν)."""
    position_effect: Estimate | None
    """Log odds that the system shown first is preferred to an equal one, where it was asked for."""
    ranked: tuple[str, ...]
    """Systems with an estimate, strongest first."""
    groups: tuple[tuple[str, ...], ...]
    """Systems joined by wins or ties in both directions; with more than one group no finite estimate exists."""
    is_penalised: bool
    prior: float
    log_likelihood: float
    n_votes: float
    n_iterations: int
    method: str
    notes: tuple[str, ...]
    fitted: Fitted = field(repr=False)

    def win_probability(self, a: str, b: str) -> Estimate:
        """How likely a is preferred to b, a tie counting half, position set aside."""
        names = self.fitted.names
        for name in (a, b):
            if name not in names:
                return unknown(self.method, f"no votes on '{name}'", label=f"{a} over {b}")
        pair = (names.index(a), names.index(b))
        return self.fitted.probability([pair], n=round(self.n_votes), label=f"{a} over {b}")
