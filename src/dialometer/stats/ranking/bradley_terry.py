"""Strengths of systems from pairwise votes: the Bradley-Terry model, with ties and the effect of position.

Ties count as half a win for each side, or have a parameter of their own (Davidson 1970). From the fit come strengths,
probabilities and Elo values, each with its interval.

A finite, unique maximum-likelihood estimate does not always exist. For the plain model the graph of wins decides
(:mod:`dialometer.stats.ranking.votes`). With further parameters the exact criterion is a linear programme (Albert and
Anderson 1984; Konis 2007): if some direction makes no observed outcome less likely and at least one more likely, the likelihood
grows without end along it; if a direction changes nothing, the estimate is not unique. Where there is none, the groups that
cannot be compared are named and a penalised fit is given, labelled as such.

Checked in ``tests/stats/test_ranking_bradley_terry.py`` against independent penalised values and ``evalica.bradley_terry``
0.4.2, against ``statsmodels.api.GLM(..., family=Binomial())`` for strengths, position and standard errors, and against a
Poisson log-linear ``GLM`` for Davidson's model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack
from scipy.special import expit, logit, ndtri

from dialometer.errors import DialometerError, NotEnoughData
from dialometer.model.estimate import Estimate, unknown
from dialometer.stats.observations import Floats, from_the_highest
from dialometer.stats.ranking.paired_newton import (
    NewtonFit,
    PairCells,
    PairedModel,
    cells_of,
    covariance,
    gradient_and_information,
    newton,
)
from dialometer.stats.ranking.votes import WinMatrix, describe_groups, strong_groups

ELO_START = 1000.0
ELO_PER_LOGIT = 400 / math.log(10)


@dataclass(frozen=True, slots=True, eq=False)
class BradleyTerryFit:
    """The numbers of a fit, from which every estimate is made the same way.

    ``names`` are the systems that were voted on; ``parameters`` are their strengths, then tie, then position.
    """

    names: tuple[str, ...]
    parameters: Floats
    covariance: Floats
    model: PairedModel
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

    def _expected_points(self, opponents: list[tuple[int, int]]) -> tuple[float, Floats]:
        """The mean of P(win) + P(tie)/2 and its derivatives by the parameters."""
        n, n_pairs = len(self.names), len(opponents)
        a, b = np.array(opponents).T
        pairs = PairCells(n, a, b, *(np.zeros((n_pairs, 1)) for _ in range(3)))
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
            details=plain.details,
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
    fitted: BradleyTerryFit = field(repr=False)

    def win_probability(self, a: str, b: str) -> Estimate:
        """How likely a is preferred to b, a tie counting half, position set aside."""
        names = self.fitted.names
        for name in (a, b):
            if name not in names:
                return unknown(self.method, f"no votes on '{name}'", label=f"{a} over {b}")
        pair = (names.index(a), names.index(b))
        return self.fitted.probability([pair], n=round(self.n_votes), label=f"{a} over {b}")


DEFAULT_PRIOR = 0.1
"""Pseudo-wins of every system over every other one where maximum likelihood has no finite answer."""


def choose_penalty(prior: float | None, obstacles: list[str], where: str) -> tuple[float, list[str]]:
    """Pseudo-wins to add and the notes that go with them. ``obstacles`` say why no finite estimate exists; none if it does.

    A prior of 0 that was asked for is not silently replaced: without a finite estimate it is an error.
    """
    if prior is not None and not 0 <= prior < float("inf"):
        raise DialometerError(f"a prior of {prior} pseudo-wins", where=where, remedy="give 0 or more")
    used = prior if prior is not None else (DEFAULT_PRIOR if obstacles else 0.0)
    notes = [f"no maximum-likelihood estimate exists: {'; '.join(obstacles)}"] if obstacles else []
    if obstacles and not used:
        raise NotEnoughData(notes[0], where=where, remedy="leave prior out, or set it to a positive number")
    if used:
        notes.append(f"penalised fit: {used:g} pseudo-wins for every system over every other one")
    return used, notes


def fitting_name(prior: float) -> str:
    """For the method line of an estimate."""
    return f"penalised likelihood ({prior:g} pseudo-wins)" if prior else "maximum likelihood"


def penalised_note(n_penalised: int, n_resamples: int) -> str:
    """Said where the data have a finite estimate but some resamples do not."""
    return (
        f"{n_penalised} of {n_resamples} resamples admit no maximum-likelihood estimate and were fitted with "
        f"{DEFAULT_PRIOR:g} pseudo-wins"
    )


def has_finite_estimate(cells: PairCells, model: PairedModel) -> bool:
    """For a single data set; the exact answer, whatever the parameters."""
    rows = _advantages(cells, model)
    n_parameters = cells.n_systems + model.n_extra
    gram = (rows.T @ rows).toarray()
    if np.linalg.matrix_rank(gram, hermitian=True) < n_parameters - 1:
        return False
    # Directions are looked for in a box, with the first strength held at 0.
    bounds = [(0, 0)] + [(-1, 1)] * (n_parameters - 1)
    solution = linprog(-rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(rows.shape[0]), bounds=bounds, method="highs")
    return bool(solution.status == 0 and -solution.fun < 1e-7)


def _advantages(cells: PairCells, model: PairedModel) -> csr_array:
    """One row for each observed outcome and each other outcome it was preferred to: how parameters favour the observed one."""
    n, m = cells.n_systems, len(cells.first)
    index, ones = np.arange(m), np.ones(m)
    shape = (m, n + model.n_extra)
    lead = csr_array(
        (np.concatenate([ones, -ones]), (np.tile(index, 2), np.concatenate([cells.first, cells.second]))), shape=shape
    )
    if model.has_position:
        lead = lead + csr_array((ones, (index, np.full(m, shape[1] - 1))), shape=shape)
    first_won, second_won, tied = (counts[:, 0] > 0 for counts in (cells.first_won, cells.second_won, cells.tied))
    if not model.has_ties:
        return vstack([lead[first_won | tied], -lead[second_won | tied]]).tocsr()
    first, second = lead / 2, -lead / 2
    tie = csr_array((ones, (index, np.full(m, n))), shape=shape)
    return vstack(
        [
            (first - second)[first_won],
            (first - tie)[first_won],
            (second - first)[second_won],
            (second - tie)[second_won],
            (tie - first)[tied],
            (tie - second)[tied],
        ]
    ).tocsr()


Ties = Literal["half", "davidson"]


def bradley_terry(
    matrix: WinMatrix,
    *,
    ties: Ties = "half",
    position_effect: bool = False,
    prior: float | None = None,
    confidence: float = 0.95,
) -> BradleyTerry:
    """Fit the model to counted votes.

    ``prior`` is a number of pseudo-wins of every system over every other one; ``None`` takes maximum likelihood where it
    exists and 0.1 where it does not. Standard errors come from the curvature of the (penalised) likelihood; with ties as
    half wins they are on the cautious side, since a tie is less variable than the plain model allows for.
    """
    check_request(matrix)
    part = matrix.part(np.flatnonzero(matrix.votes_per_system > 0).tolist())
    model, notes = choose_model(part, ties=ties, position_effect=position_effect)
    if part.n_self:
        notes.append(f"{part.n_self} votes set a system against itself and were excluded")
    groups = strong_groups(part.half_wins)
    used, remarks = choose_penalty(prior, _obstacles(part, model, groups), "Bradley-Terry")
    notes += remarks
    cells, fit = _fit(part, model, used)
    _, information = gradient_and_information(cells, model, fit.parameters)
    fitted = BradleyTerryFit(
        names=part.systems,
        parameters=fit.parameters[:, 0],
        covariance=covariance(information[0], len(part.systems)),
        model=model,
        method=method_name(model, used, is_tied=bool(matrix.tied.any())),
        interval_method="Wald, curvature of the penalised likelihood" if used else "Wald, observed information",
        confidence=confidence,
        notes=tuple(notes),
    )
    return _result(matrix, fitted, cells, fit, prior=used, ties=ties, groups=groups)


def check_request(matrix: WinMatrix) -> None:
    """Refuse in words what cannot be fitted."""
    if len(matrix.systems) < 2:
        raise NotEnoughData(
            f"{len(matrix.systems)} system", where="Bradley-Terry", remedy="a ranking needs at least two"
        )
    if matrix.n_votes <= 0:
        raise NotEnoughData(
            "no votes between two different systems", where="Bradley-Terry", remedy="collect votes first"
        )


def _obstacles(matrix: WinMatrix, model: PairedModel, groups: list[list[int]]) -> list[str]:
    """Why no finite maximum-likelihood estimate exists, in words; empty where it does."""
    if len(groups) > 1:
        return describe_groups(groups, matrix.half_wins, matrix.systems)
    if model.n_extra and not has_finite_estimate(
        cells_of(matrix, keep_order=model.has_position, all_pairs=False), model
    ):
        return ["the votes leave the tie or position parameter open"]
    return []


def choose_model(matrix: WinMatrix, *, ties: Ties, position_effect: bool) -> tuple[PairedModel, list[str]]:
    """Davidson's tie parameter has no finite value where nobody tied; the plain model is its limit there."""
    if ties == "davidson" and not matrix.tied.any():
        return PairedModel(has_position=position_effect), [
            "no ties were cast, so that Davidson's model is the plain one"
        ]
    return PairedModel(has_ties=ties == "davidson", has_position=position_effect), []


def method_name(model: PairedModel, prior: float, *, is_tied: bool) -> str:
    """The model and how it was fitted, in one line; ties are named where there are any."""
    parts = ["Bradley-Terry", *(["Davidson's ties" if model.has_ties else "ties as half wins"] if is_tied else [])]
    if model.has_position:
        parts.append("position effect")
    return ", ".join([*parts, fitting_name(prior)])


def _fit(matrix: WinMatrix, model: PairedModel, prior: float) -> tuple[PairCells, NewtonFit]:
    cells = cells_of(matrix, keep_order=model.has_position, all_pairs=prior > 0)
    if prior > 0:
        cells = cells.with_pseudo_wins(prior, keep_order=model.has_position)
    fit = newton(cells, model, max_iterations=200)
    if not fit.is_converged[0]:
        raise NotEnoughData(
            "the strengths lie too far apart to be estimated", where="Bradley-Terry", remedy="set a larger prior"
        )
    return cells, fit


def _result(
    matrix: WinMatrix,
    fitted: BradleyTerryFit,
    cells: PairCells,
    fit: NewtonFit,
    *,
    prior: float,
    ties: Ties,
    groups: list[list[int]],
) -> BradleyTerry:
    names, n = fitted.names, len(fitted.names)
    n_shown = dict(zip(matrix.systems, matrix.votes_per_system.round().astype(int).tolist(), strict=True))

    def by_system(make: Callable[[int, str], Estimate]) -> dict[str, Estimate]:
        place = {name: k for k, name in enumerate(names)}
        return {
            name: make(place[name], name)
            if name in place
            else unknown(fitted.method, f"no votes on '{name}'", label=name)
            for name in matrix.systems
        }

    tie_parameter = None
    if ties == "davidson":
        tie_parameter = (
            fitted.tie_parameter(matrix.tied.sum())
            if fitted.model.has_ties
            else unknown(fitted.method, "no ties were cast", n=0, label="tie parameter")
        )
    return BradleyTerry(
        systems=matrix.systems,
        strengths=by_system(lambda k, name: fitted.linear(k, n=n_shown[name], label=name, unit="log odds")),
        beats_average=by_system(
            lambda k, name: fitted.probability(
                [(k, other) for other in range(n) if other != k], n=n_shown[name], label=name
            )
        ),
        elo=by_system(
            lambda k, name: fitted.linear(
                k, n=n_shown[name], label=name, unit="Elo", shift=ELO_START, scale=ELO_PER_LOGIT
            )
        ),
        tie_parameter=tie_parameter,
        position_effect=fitted.position_effect(matrix.n_votes) if fitted.model.has_position else None,
        ranked=tuple(from_the_highest(dict(zip(names, fitted.parameters[:n].tolist(), strict=True)))),
        groups=tuple(tuple(names[k] for k in group) for group in groups),
        is_penalised=prior > 0,
        prior=prior,
        log_likelihood=float(fitted.model.log_likelihood(cells, fit.parameters)[0]),
        n_votes=matrix.n_votes,
        n_iterations=fit.n_iterations,
        method=fitted.method,
        notes=fitted.notes,
        fitted=fitted,
    )
